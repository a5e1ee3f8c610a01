//! The server that a tool talks to, and how the tool reports its progress.

use super::in_process::InProcess;
use super::login::{HOST_AND_USER, LoginArguments, Named};
use crate::watch;
use bunko_client::{ReadPreference, Uri, WriteConcern};
use bunko_tools::import::ImportSummary;
use bunko_tools::progress::render::note_json;
use bunko_tools::progress::{Progress, Reporter, Style};
use bunko_tools::restore::RestoreSummary;
use bunko_tools::{Absent, Remote, Server};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Advice for the user of a dump or restore whose server is gone.
pub const RESUMABLE: &str = "; what is done so far is kept, and --resume goes on with it";

/// Flags that name a server, with the meaning that they have for the classic tools.
#[derive(Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArguments {
    /// A connection string, with credentials, TLS, replica set and read preference; a database in it is --db
    #[arg(long, value_name = "URI", conflicts_with_all = HOST_AND_USER)]
    uri: Option<String>,
    /// A host, HOST:PORT, or SET/HOST:PORT,HOST:PORT
    #[arg(long, short = 'h', value_name = "HOST")]
    host: Option<String>,
    /// The server's port [default: 27017, or the one in --host]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    login: LoginArguments,
    /// Seconds without an answer after which the server is given up
    #[arg(
        long = "server-timeout",
        alias = "serverTimeout",
        value_name = "SECONDS",
        default_value = "60",
        value_parser = clap::value_parser!(u32).range(1..=86_400),
        conflicts_with = "dbpath"
    )]
    server_timeout: u32,
    /// Work on this data directory of bunko itself; no server may have it open
    #[arg(long, value_name = "DIR", conflicts_with_all = ["uri", "config"], conflicts_with_all = HOST_AND_USER)]
    dbpath: Option<PathBuf>,
    /// The storage engine of --dbpath: lsm or mmap
    #[arg(
        long = "storage-engine",
        alias = "storageEngine",
        value_name = "NAME",
        requires = "dbpath",
        conflicts_with = "uri",
        conflicts_with_all = HOST_AND_USER
    )]
    storage_engine: Option<String>,
}

/// The result of a tool, for people and programs.
pub trait Summary: std::fmt::Display {
    /// The errors alone, one a line.
    fn troubles(&self) -> String;
    /// One JSON object.
    fn to_json(&self) -> String;
}

impl Summary for RestoreSummary {
    fn troubles(&self) -> String {
        self.troubles()
    }

    fn to_json(&self) -> String {
        self.to_json()
    }
}

impl Summary for ImportSummary {
    fn troubles(&self) -> String {
        self.troubles()
    }

    fn to_json(&self) -> String {
        self.to_json()
    }
}

/// How progress is reported.
#[derive(Clone, Copy, ValueEnum)]
pub enum LogFormat {
    /// Text for reading
    Text,
    /// One JSON object per line
    Json,
}

/// Flags about what is printed.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct ReportArguments {
    /// How progress and the report at the end are written to standard error
    #[arg(long = "log-format", alias = "logFormat", value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Print errors only
    #[arg(long, conflicts_with = "log_format")]
    quiet: bool,
}

/// A server, and the resources to be closed at the end.
pub enum Opened {
    /// Another process.
    Remote(Box<Remote>),
    /// This process.
    InProcess(InProcess),
    /// No server: the tool asks none.
    Absent(Absent),
}

impl Opened {
    /// The server as the tools see it.
    pub fn server(&self) -> &dyn Server {
        match self {
            Self::Remote(remote) => &**remote,
            Self::InProcess(in_process) => in_process,
            Self::Absent(absent) => absent,
        }
    }

    /// Closes what was opened, after work that returned `result`. Everything written is durable then.
    /// # Errors
    /// Why the work ended early, and why the data directory could not be closed.
    pub fn close<T>(self, result: Result<T, String>) -> Result<T, String> {
        let closed = match self {
            Self::Remote(_) | Self::Absent(_) => Ok(()),
            Self::InProcess(in_process) => in_process.close(),
        };
        match (result, closed) {
            (Err(first), Err(then)) => Err(format!("{first}\nbunko: {then}")),
            (Ok(_), Err(error)) => Err(error),
            (result, Ok(())) => result,
        }
    }
}

impl ServerArguments {
    /// Whether the tool opens the data directory itself.
    pub fn is_directory(&self) -> bool {
        self.dbpath.is_some()
    }

    /// Connects to the server to write to, or opens the directory, which is made if it is missing. A server that stops
    /// answering is given up, with this advice.
    /// # Errors
    /// One line for the user.
    pub fn open_to_write(&self, advice: &'static str) -> Result<Opened, String> {
        match &self.dbpath {
            Some(dbpath) => self.open_directory(dbpath),
            // The connection string's read preference does not matter: as with any driver, writes go to the primary.
            None => self.connect(Some(ReadPreference::Primary), advice),
        }
    }

    /// The data directory of `--dbpath`, which the tool opens itself; `None` if it connects to a server.
    pub fn directory(&self) -> Option<&Path> {
        self.dbpath.as_deref()
    }

    /// Connects to a server that is waited for when it is gone. A connection that is silent for --server-timeout counts
    /// as lost.
    /// # Errors
    /// One line for the user, if the server cannot be reached now.
    pub fn open_to_follow(&self) -> Result<Opened, String> {
        let mut uri = self.uri()?;
        let silence_max = Duration::from_secs(self.server_timeout.into());
        uri.connect_timeout = uri.connect_timeout.min(silence_max);
        uri.socket_timeout = Some(silence_max);
        let remote = Remote::new(uri).map_err(|error| error.to_string())?;
        Ok(Opened::Remote(Box::new(remote)))
    }

    /// Connects to a member of that role to read from, or opens the directory. Without a role the connection string
    /// decides.
    /// # Errors
    /// One line for the user.
    pub fn open_to_read(&self, preference: Option<ReadPreference>, advice: &'static str) -> Result<Opened, String> {
        match &self.dbpath {
            Some(dbpath) if !dbpath.is_dir() => {
                Err(format!("--dbpath {}: there is no such directory", dbpath.display()))
            }
            Some(dbpath) => self.open_directory(dbpath),
            None => self.connect(preference, advice),
        }
    }

    fn open_directory(&self, dbpath: &Path) -> Result<Opened, String> {
        InProcess::open(dbpath, self.storage_engine.as_deref()).map(Opened::InProcess)
    }

    fn connect(&self, preference: Option<ReadPreference>, advice: &'static str) -> Result<Opened, String> {
        let mut uri = self.uri()?;
        uri.read_preference = preference.unwrap_or(uri.read_preference);
        let silence_max = Duration::from_secs(self.server_timeout.into());
        // The first connection attempt has this limit as well.
        uri.connect_timeout = uri.connect_timeout.min(silence_max);
        let watched = uri.clone();
        let remote = Remote::new(uri).map_err(|error| error.to_string())?;
        watch::start(watched, silence_max, advice)?;
        Ok(Opened::Remote(Box::new(remote)))
    }

    /// The database that `--db` or the connection string names.
    /// # Errors
    /// If both name one and they differ.
    /// Source: MongoDB Database Tools manual, "mongodump --db".
    pub fn database(&self, db: Option<&str>) -> Result<Option<String>, String> {
        match (self.uri()?.database, db) {
            (Some(of_uri), Some(db)) if of_uri != db => {
                Err(format!("--db {db}: the database in --uri is '{of_uri}': name one of them"))
            }
            (of_uri, db) => Ok(db.map(str::to_owned).or(of_uri)),
        }
    }

    /// The write concern of the connection string.
    /// # Errors
    /// As [`Self::uri`].
    pub fn write_concern(&self) -> Result<Option<WriteConcern>, String> {
        self.uri().map(|uri| uri.write_concern)
    }

    /// The connection string, as given or built from flags.
    /// # Errors
    /// Names the flag and what is wrong with it.
    pub fn uri(&self) -> Result<Uri, String> {
        let address = self.uri.as_deref().map(|uri| (uri, Some("--uri")));
        self.login.uri(Named { address, host: self.host.as_deref(), port: self.port })
    }
}

impl ReportArguments {
    /// Starts to report a run's progress; `None` if it is not to be reported.
    pub fn start(&self, progress: &Arc<Progress>) -> Option<Reporter> {
        let style = match self.log_format {
            LogFormat::Json => Style::JsonLines,
            LogFormat::Text if std::io::stderr().is_terminal() => Style::Terminal,
            LogFormat::Text => Style::Lines,
        };
        (!self.quiet).then(|| Reporter::start(Arc::clone(progress), style, Box::new(std::io::stderr())))
    }

    /// Whether the output is for programs.
    pub fn is_json(&self) -> bool {
        matches!(self.log_format, LogFormat::Json)
    }

    /// Prints the result of a restore or an import; with `--quiet` only its errors.
    pub fn print_summary(&self, summary: &impl Summary) {
        match self.log_format {
            _ if self.quiet => eprint!("{}", summary.troubles()),
            LogFormat::Text => eprintln!("{summary}"),
            LogFormat::Json => eprintln!("{}", summary.to_json()),
        }
    }

    /// Prints a sentence, unless `--quiet` is given; in JSON it is a note.
    pub fn print_note(&self, sentence: &str) {
        match self.log_format {
            LogFormat::Text => self.print(&sentence),
            LogFormat::Json => eprint!("{}", note_json(sentence)),
        }
    }

    /// Prints a line, unless `--quiet` is given.
    pub fn print(&self, line: &dyn std::fmt::Display) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        server: ServerArguments,
    }

    fn uri(line: &str) -> Uri {
        let line = Line::try_parse_from(std::iter::once("tool").chain(line.split_whitespace())).expect("parses");
        line.server.uri().expect("a connection string")
    }

    #[test]
    fn the_classic_flags_make_a_connection_string() {
        assert_eq!(uri("").address(), "localhost:27017");
        assert_eq!(uri("-h db --port 27018").address(), "db:27018");
        assert_eq!(uri("--host db:5 --port 5").address(), "db:5");
        let set = uri("--host rs0/a:1,b --port 2 -u me@x -p p:w/ --authenticationDatabase admin");
        assert_eq!((set.address().as_str(), set.replica_set.as_deref()), ("a:1,b:2", Some("rs0")));
        let credential = set.credential.expect("a credential");
        assert_eq!((credential.user.as_str(), credential.source.as_str()), ("me@x", "admin"));
        assert_eq!(uri("--uri mongodb://h:9/db").address(), "h:9");
        let x509 = uri("--tls --tlsCertificateKeyFile me.pem --authenticationMechanism MONGODB-X509").credential;
        assert_eq!(x509.expect("a credential").source, "$external");
        assert!(Line::try_parse_from(["tool", "--uri", "mongodb://h", "--port", "1"]).is_err());
        assert!(Line::try_parse_from(["tool", "--dbpath", "d", "--port", "1"]).is_err());
    }

    #[test]
    fn flags_that_would_be_ignored_are_refused() {
        let parsed = |line: &str| {
            let line = Line::try_parse_from(std::iter::once("tool").chain(line.split_whitespace()));
            line.map(|line| line.server).map_err(|error| error.to_string())
        };
        let refused = parsed("--host db:5,other:6 --port 7").and_then(|server| server.uri());
        assert!(refused.is_err_and(|error| error.contains("--port 7: --host db:5,other:6")));
        let database = |line: &str, db| parsed(line).and_then(|server| server.database(db));
        assert_eq!(database("--uri mongodb://h/shop", None), Ok(Some("shop".to_owned())));
        assert_eq!(database("--uri mongodb://h/shop", Some("shop")), Ok(Some("shop".to_owned())));
        assert_eq!(database("--uri mongodb://h/", Some("blog")), Ok(Some("blog".to_owned())));
        assert_eq!(database("--host h", None), Ok(None));
        let two = database("--uri mongodb://h/shop", Some("blog"));
        assert!(two.is_err_and(|error| error.contains("--db blog: the database in --uri is 'shop'")));
    }
}
