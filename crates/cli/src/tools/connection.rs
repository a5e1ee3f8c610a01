//! The server that a tool talks to, and how the tool reports its progress.

use super::in_process::InProcess;
use super::tls_arguments::TlsArguments;
use crate::watch;
use bunko_client::{ReadPreference, Uri, WriteConcern, percent_encoded};
use bunko_tools::progress::{Progress, Reporter, Style};
use bunko_tools::restore::RestoreSummary;
use bunko_tools::{Absent, Remote, Server};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Default host, as mongod's.
const DEFAULT_HOST: &str = "localhost";

/// Flags that a connection string replaces, or that a data directory has no use for. Every one is listed, because clap
/// does not ask for a flag that another flag requires if a conflict rules it out.
pub const HOST_AND_USER: [&str; 13] = [
    "host",
    "port",
    "username",
    "password",
    "authentication_database",
    "authentication_mechanism",
    "tls",
    "tls_ca_file",
    "tls_certificate_key_file",
    "tls_certificate_key_password",
    "tls_allow_invalid_certificates",
    "tls_allow_invalid_hostnames",
    "tls_insecure",
];

/// Flags that name a server; they mean what they mean to the classic tools.
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
    /// The user who logs in
    #[arg(long, short = 'u', value_name = "NAME", requires = "password")]
    username: Option<String>,
    /// The user's password
    #[arg(long, short = 'p', value_name = "PASSWORD", requires = "username")]
    password: Option<String>,
    /// The database that the user is stored in
    #[arg(long = "authenticationDatabase", value_name = "DATABASE", requires = "username")]
    authentication_database: Option<String>,
    /// SCRAM-SHA-1, SCRAM-SHA-256, PLAIN or MONGODB-X509
    #[arg(long = "authenticationMechanism", value_name = "NAME")]
    authentication_mechanism: Option<String>,
    #[command(flatten)]
    tls: TlsArguments,
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
    #[arg(long, value_name = "DIR", conflicts_with = "uri", conflicts_with_all = HOST_AND_USER)]
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

/// How progress is told.
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

    /// Connects to the server to write to, or opens the directory, which is made if it is missing.
    /// # Errors
    /// One line for the user.
    pub fn open_to_write(&self) -> Result<Opened, String> {
        match &self.dbpath {
            Some(dbpath) => self.open_directory(dbpath),
            // The connection string's read preference does not matter: as with any driver, writes go to the primary.
            None => self.connect(Some(ReadPreference::Primary)),
        }
    }

    /// Connects to a member of that role to read from, or opens the directory. Without a role the connection string
    /// decides.
    /// # Errors
    /// One line for the user.
    pub fn open_to_read(&self, preference: Option<ReadPreference>) -> Result<Opened, String> {
        match &self.dbpath {
            Some(dbpath) if !dbpath.is_dir() => {
                Err(format!("--dbpath {}: there is no such directory", dbpath.display()))
            }
            Some(dbpath) => self.open_directory(dbpath),
            None => self.connect(preference),
        }
    }

    fn open_directory(&self, dbpath: &Path) -> Result<Opened, String> {
        InProcess::open(dbpath, self.storage_engine.as_deref()).map(Opened::InProcess)
    }

    fn connect(&self, preference: Option<ReadPreference>) -> Result<Opened, String> {
        let mut uri = self.uri()?;
        uri.read_preference = preference.unwrap_or(uri.read_preference);
        let silence_max = Duration::from_secs(self.server_timeout.into());
        // The first connection attempt has this limit as well.
        uri.connect_timeout = uri.connect_timeout.min(silence_max);
        let watched = uri.clone();
        let remote = Remote::new(uri).map_err(|error| error.to_string())?;
        watch::start(watched, silence_max, "; what is done so far is kept, and --resume goes on with it")?;
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
        if let Some(uri) = &self.uri {
            return uri.parse().map_err(|error| format!("--uri: {error}"));
        }
        let (set, hosts) = match self.host.as_deref().unwrap_or(DEFAULT_HOST).split_once('/') {
            Some((set, hosts)) => (Some(set), hosts),
            None => (None, self.host.as_deref().unwrap_or(DEFAULT_HOST)),
        };
        let names_its_own = |host: &str, port: u16| host.contains(':') && !host.ends_with(&format!(":{port}"));
        if let Some(port) = self.port.filter(|&port| hosts.split(',').all(|host| names_its_own(host, port))) {
            return Err(format!("--port {port}: --host {hosts} names other ports itself"));
        }
        let with_port = |host: &str| match self.port {
            Some(port) if !host.contains(':') => format!("{host}:{port}"),
            _ => host.to_owned(),
        };
        let hosts: Vec<_> = hosts.split(',').map(with_port).collect();
        let user = match (&self.username, &self.password) {
            (Some(name), Some(password)) => format!("{}:{}@", percent_encoded(name), percent_encoded(password)),
            _ => String::new(),
        };
        let options = [
            ("replicaSet", set),
            ("authSource", self.authentication_database.as_deref()),
            ("authMechanism", self.authentication_mechanism.as_deref()),
        ];
        let options: Vec<_> = options
            .into_iter()
            .chain(self.tls.options())
            .filter_map(|(name, value)| value.map(|value| format!("{name}={}", percent_encoded(value))))
            .collect();
        let uri = format!("mongodb://{user}{}/?{}", hosts.join(","), options.join("&"));
        uri.parse().map_err(|error| format!("--host {}: {error}", self.host.as_deref().unwrap_or(DEFAULT_HOST)))
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

    /// Prints the result of a restore; with `--quiet` only its errors.
    pub fn print_summary(&self, summary: &RestoreSummary) {
        match self.log_format {
            _ if self.quiet => eprint!("{}", summary.troubles()),
            LogFormat::Text => eprintln!("{summary}"),
            LogFormat::Json => eprintln!("{}", summary.to_json()),
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
    fn what_would_be_ignored_is_refused() {
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
