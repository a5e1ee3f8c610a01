//! The command line of `bunko shell`: mongosh's flags.

use crate::abandonment::{end_when_abandoned, end_with_parent};
use crate::exit_status;
use crate::local_server;
use crate::passwords::{Flag, KEYS_OF_SERVER, SecretFile, URI, complete};
use crate::tools::TlsArguments;
use bunko_client::Uri;
use bunko_shell::{Interruption, Limits, Output, Rung, Shell, Start, Target, Work, ask_password, is_script};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// The connection string, for programs that must not show a password in the list of processes.
pub const URI_VARIABLE: &str = "BUNKO_SHELL_URI";

/// How results are printed.
#[derive(Clone, Copy, ValueEnum)]
enum JsonFormat {
    Canonical,
    Relaxed,
}

#[derive(Args)]
pub struct ShellArguments {
    /// A connection string, HOST, HOST:PORT/DATABASE or DATABASE, and files with scripts to run
    #[arg(value_name = "ADDRESS|FILE")]
    positional: Vec<String>,
    /// Run this script and print its result; may be repeated
    #[arg(long, value_name = "SCRIPT")]
    eval: Vec<String>,
    /// Run the script of this file; may be repeated
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Vec<String>,
    /// Continue at the prompt after the scripts
    #[arg(long)]
    shell: bool,
    /// Print no greeting
    #[arg(long)]
    quiet: bool,
    /// Do not run ~/.mongoshrc.js
    #[arg(long)]
    norc: bool,
    /// Connect to no server
    #[arg(
        long,
        conflicts_with_all = ["host", "port", "username", "config", "authentication_mechanism", "retry_writes", "tls"]
    )]
    nodb: bool,
    /// Print the result of --eval as Extended JSON
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "canonical", requires = "eval")]
    json: Option<JsonFormat>,
    /// Maximum memory that scripts may take, in MiB
    #[arg(long = "heap-mb", value_name = "MIB", default_value = "512", value_parser = clap::value_parser!(u32).range(16..=65_536))]
    heap_mb: u32,
    #[command(flatten)]
    server: ShellServerArguments,
    #[command(flatten)]
    tls: TlsArguments,
}

/// Flags that name the server.
#[derive(Args)]
#[command(next_help_heading = "Server")]
struct ShellServerArguments {
    /// A host, HOST:PORT, or SET/HOST:PORT,HOST:PORT
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// The server's port [default: 27017, or the one in --host]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The user who logs in
    #[arg(long, short = 'u', value_name = "NAME")]
    username: Option<String>,
    /// The user's password; without a value it is asked for
    #[arg(long, short = 'p', value_name = "PASSWORD", num_args = 0..=1, default_missing_value = "", requires = "username")]
    password: Option<String>,
    /// A YAML file with what must not stand on a command line: uri, password, sslPEMKeyPassword
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The database that the user is stored in
    #[arg(long = "authenticationDatabase", value_name = "DATABASE", requires = "username")]
    authentication_database: Option<String>,
    /// SCRAM-SHA-1, SCRAM-SHA-256, PLAIN or MONGODB-X509
    #[arg(long = "authenticationMechanism", value_name = "NAME")]
    authentication_mechanism: Option<String>,
    /// Repeat writes whose reply was lost, on a replica set [default: true]
    #[arg(long = "retryWrites", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    retry_writes: Option<bool>,
}

impl ShellArguments {
    /// Runs the shell.
    /// # Errors
    /// A sentence, if signals cannot be handled, or no thread can be started.
    pub fn run(&self) -> Result<ExitCode, String> {
        end_with_parent()?;
        end_when_abandoned().map_err(|error| format!("cannot start a thread: {error}"))?;
        let shell = match self.shell() {
            Ok(shell) => shell,
            Err(message) => {
                eprintln!("bunko: {message}");
                return Ok(ExitCode::from(exit_status::WRONG_CONFIGURATION.number));
            }
        };
        let interruption = Arc::new(Interruption::default());
        hear_interruptions(Arc::clone(&interruption))?;
        Ok(ExitCode::from(shell.run(&interruption)))
    }

    fn shell(&self) -> Result<Shell, String> {
        let (scripts, addresses): (Vec<_>, Vec<_>) = self.positional.iter().partition(|argument| is_script(argument));
        let files = self.file.iter().chain(scripts).cloned().map(Work::File);
        let work = self.eval.iter().cloned().map(Work::Text).chain(files).collect();
        Ok(Shell {
            start: self.start(&addresses)?,
            work,
            stays: self.shell,
            output: match self.json {
                None => Output::Text,
                Some(JsonFormat::Canonical) => Output::Canonical,
                Some(JsonFormat::Relaxed) => Output::Relaxed,
            },
            is_quiet: self.quiet,
            local: local_server::of_scripts(),
            skips_start_script: self.norc,
            limits: Limits { heap_bytes: (self.heap_mb as usize) << 20 },
        })
    }

    fn start(&self, addresses: &[&String]) -> Result<Start, String> {
        let names_host = self.server.host.is_some() || self.server.port.is_some();
        let of_environment = std::env::var(URI_VARIABLE).ok().filter(|_| !names_host);
        let file = self.server.config.as_deref().map(|path| SecretFile::read(path, KEYS_OF_SERVER)).transpose()?;
        let file = file.unwrap_or_default();
        let address = match addresses {
            [] => file.get(URI).or(of_environment.as_deref()).filter(|_| !self.nodb),
            [address] => Some(address.as_str()),
            [_, second, ..] => {
                let shown = Uri::redact(second);
                return Err(format!("{shown} is neither a second address nor a file with a name in .js"));
            }
        };
        if self.nodb {
            let refused = |address| Err(format!("--nodb excludes the address {}", Uri::redact(address)));
            return address.map_or(Ok(Start::Nothing), refused);
        }
        let password = self.server.password.as_deref().filter(|given| !given.is_empty());
        let retry_writes = self.server.retry_writes.map(|retries| retries.to_string());
        let of_user = [
            ("authSource", self.server.authentication_database.as_deref()),
            ("authMechanism", self.server.authentication_mechanism.as_deref()),
            ("retryWrites", retry_writes.as_deref()),
        ];
        let options = of_user.into_iter().chain(self.tls.options());
        let target = Target {
            address,
            host: self.server.host.as_deref(),
            port: self.server.port,
            user: self.server.username.as_deref(),
            password,
            options: options.collect(),
        };
        let text = target.connection_string()?;
        let flag = if password.is_some() { Flag::Given } else { Flag::Absent };
        complete(&text, flag, &file, ask_password).map(Start::Server)
    }
}

/// Starts the thread that hears Ctrl-C. The second one ends the process, if the first has not ended the script.
fn hear_interruptions(interruption: Arc<Interruption>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot handle signals: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = {
        let _context = runtime.enter();
        signal(SignalKind::interrupt()).map_err(failed)?
    };
    let hear = move || {
        runtime.block_on(async move {
            while signals.recv().await.is_some() {
                if interruption.ring() == Rung::Again {
                    std::process::exit(exit_status::INTERRUPTED_TOOL.number.into());
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hear).map(drop).map_err(failed)
}
