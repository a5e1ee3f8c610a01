//! `bunko copy`.

use crate::passwords::{Flag, SecretFile, complete};
use crate::printed::print_line;
use crate::{local_server, stop, watch};
use bunko_client::{ReadPreference, Uri};
use bunko_host::Clock;
use bunko_shell::ask_at_terminal;
use bunko_tools::Remote;
use bunko_tools::copy::{self, APP_NAME, Comparison, CopyOptions, Existing, Mode, Notice, Servers, SourceWrites};
use bunko_tools::namespaces::Filter;
use bunko_tools::progress::Progress;
use clap::Args;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Advice for the user of a copy one of whose servers is gone.
const GO_ON: &str = "; the same command goes on with the copy";
/// How long a batch may take to be applied after a signal. A batch that is cut off is applied again.
const GRACE: Duration = Duration::from_secs(10);

/// Flags of `bunko copy`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct CopyArguments {
    /// The server to copy from, as a connection string; a password that it lacks is asked for
    #[arg(long, value_name = "URI", required_unless_present = "config")]
    from: Option<String>,
    /// The server to copy to, in the same way
    #[arg(long, value_name = "URI", required_unless_present = "config")]
    to: Option<String>,
    /// A YAML file with connection strings that must not stand on a command line: from, to
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only this database
    #[arg(long, short = 'd', value_name = "DATABASE")]
    db: Option<String>,
    /// Only this collection of --db
    #[arg(long, short = 'c', value_name = "COLLECTION", requires = "db")]
    collection: Option<String>,
    /// Only namespaces that match, such as shop.* ; may be repeated
    #[arg(long = "nsInclude", value_name = "PATTERN")]
    include: Vec<String>,
    /// Leave out namespaces that match; may be repeated
    #[arg(long = "nsExclude", alias = "exclude", value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Drop the target's collections of the chosen databases before the copy begins
    #[arg(long)]
    drop: bool,
    /// As --drop, and forget an earlier copy that could go on
    #[arg(long)]
    anew: bool,
    /// Apply the source's changes until Ctrl-C; needs a source that is a member of a replica set
    #[arg(long)]
    follow: bool,
    /// Apply the source's last changes, compare both, and end; also begins and goes on with a copy
    #[arg(long)]
    finish: bool,
    /// Have the source refuse clients' writes before the last changes are applied, and from then on
    #[arg(long = "block-source-writes", requires = "finish")]
    block_source_writes: bool,
    /// Compare all documents and indexes at the end, which is the default
    #[arg(long, conflicts_with = "no_verify")]
    verify: bool,
    /// Compare nothing at the end
    #[arg(long = "no-verify")]
    no_verify: bool,
    /// Number of threads that read, and of threads that apply changes [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
    /// Seconds without an answer after which a server is given up
    #[arg(long = "server-timeout", value_name = "SECONDS", default_value = "60")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    server_timeout: u32,
    /// Print each line as a JSON object
    #[arg(long)]
    json: bool,
    /// Print this help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// A name that no other run has.
fn app_name() -> String {
    format!("{APP_NAME} {}-{}", std::process::id(), Clock::machine().now_ms())
}

impl CopyArguments {
    /// Runs the copy.
    /// # Errors
    /// One line for the user.
    pub fn run(&self) -> Result<ExitCode, String> {
        let options = self.options()?;
        let file = self.config.as_deref().map(|path| SecretFile::read(path, &["from", "to"])).transpose()?;
        let file = file.unwrap_or_default();
        // Both passwords are asked for before either server is reached.
        let source = server("--from", self.from.as_deref().or(file.get("from")))?;
        let target = server("--to", self.to.as_deref().or(file.get("to")))?;
        let source = self.connect("--from", source, None)?;
        let target = self.connect("--to", target, Some(&options.app_name))?;
        let progress = Arc::new(Progress::new(Clock::machine()));
        let report = |notice: &Notice| {
            // A reader that is gone does not end the copy.
            let _ = if self.json {
                print_line(format_args!("{}", notice.to_json()))
            } else {
                print_line(format_args!("{notice}"))
            };
        };
        let interrupted = stop::on_signal(GRACE);
        let servers = Servers { source: &source, target: &target };
        let copied = copy::run(servers, &options, &progress, &interrupted, &report);
        copied.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
    }

    fn options(&self) -> Result<CopyOptions, String> {
        let filter = Filter::new(&self.include, &self.exclude).map_err(|error| error.to_string())?;
        let threads = self.threads.and_then(|threads| NonZeroUsize::new(threads.into()));
        Ok(CopyOptions {
            filter: filter.with(self.db.as_deref(), self.collection.as_deref()),
            mode: match (self.finish, self.follow) {
                (true, _) => Mode::Finish,
                (false, true) => Mode::Follow,
                (false, false) => Mode::Once,
            },
            existing: match (self.anew, self.drop) {
                (true, _) => Existing::Anew,
                (false, true) => Existing::Drop,
                (false, false) => Existing::Refuse,
            },
            source_writes: if self.block_source_writes { SourceWrites::Block } else { SourceWrites::GoOn },
            comparison: if self.no_verify { Comparison::Nothing } else { Comparison::Everything },
            threads: threads.unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
            app_name: app_name(),
        })
    }

    fn connect(&self, flag: &str, mut uri: Uri, app_name: Option<&str>) -> Result<Remote, String> {
        if uri.database.is_some() {
            return Err(format!("{flag}: the database in a connection string chooses nothing: --db names one to copy"));
        }
        // Reads have to see the newest data, and writes go to the primary.
        uri.read_preference = ReadPreference::Primary;
        match app_name {
            // By this name, later runs recognise the connections of this run.
            Some(name) => uri.app_name = Some(name.to_owned()),
            None => _ = uri.app_name.get_or_insert_with(|| APP_NAME.to_owned()),
        }
        let silence_max = Duration::from_secs(self.server_timeout.into());
        uri.connect_timeout = uri.connect_timeout.min(silence_max);
        let watched = uri.clone();
        let remote = Remote::new(uri).map_err(|error| format!("{flag}: {error}"))?;
        watch::start(watched, silence_max, GO_ON)?;
        Ok(remote)
    }
}

/// The server of a connection string.
fn server(flag: &str, text: Option<&str>) -> Result<Uri, String> {
    let text = text.ok_or_else(|| format!("{flag} is missing, and --config does not have it"))?;
    let text = complete(&local_server::reached_by(text), Flag::Absent, &SecretFile::default(), ask_at_terminal);
    text.map_err(|error| format!("{flag}: {error}"))?.parse().map_err(|error| format!("{flag}: {error}"))
}
