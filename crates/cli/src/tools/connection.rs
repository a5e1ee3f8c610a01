//! Which server a tool talks to, and how it tells how far it is.

use super::in_process::InProcess;
use bunko_client::{ReadPreference, Uri, WriteConcern, percent_encoded};
use bunko_tools::progress::{Progress, Reporter, Style};
use bunko_tools::{Remote, Server};
use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

/// Where mongod listens when nothing is said.
const DEFAULT_HOST: &str = "localhost";

/// Flags that name a server; they mean what they mean to the classic tools.
#[derive(Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArguments {
    /// A connection string, with credentials, TLS, replica set and read preference
    #[arg(long, value_name = "URI", conflicts_with_all = ["host", "port", "username", "password"])]
    uri: Option<String>,
    /// A host, HOST:PORT, or SET/HOST:PORT,HOST:PORT
    #[arg(long, short = 'h', value_name = "HOST")]
    host: Option<String>,
    /// A port; 27017 where neither this nor --host names one
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// A user's name
    #[arg(long, short = 'u', value_name = "NAME", requires = "password")]
    username: Option<String>,
    /// The user's password
    #[arg(long, short = 'p', value_name = "PASSWORD", requires = "username")]
    password: Option<String>,
    /// The database that knows the user
    #[arg(long = "authenticationDatabase", value_name = "DATABASE", requires = "username")]
    authentication_database: Option<String>,
    /// SCRAM-SHA-1, SCRAM-SHA-256 or PLAIN
    #[arg(long = "authenticationMechanism", value_name = "NAME", requires = "username")]
    authentication_mechanism: Option<String>,
    /// A data directory of bunko, which no server may have open: no socket lies between
    #[arg(long, value_name = "DIR", conflicts_with_all = ["uri", "host", "port", "username"])]
    dbpath: Option<PathBuf>,
    /// The storage engine of --dbpath: lsm or mmap
    #[arg(long = "storage-engine", alias = "storageEngine", value_name = "NAME", requires = "dbpath")]
    storage_engine: Option<String>,
}

/// How progress is told.
#[derive(Clone, Copy, ValueEnum)]
pub enum LogFormat {
    /// For somebody who reads
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
    /// Say nothing but errors
    #[arg(long)]
    quiet: bool,
}

/// A server, and what is to be closed in the end.
pub enum Opened {
    /// Another process.
    Remote(Box<Remote>),
    /// This one.
    InProcess(InProcess),
}

impl Opened {
    /// The server as the tools see it.
    pub fn server(&self) -> &dyn Server {
        match self {
            Self::Remote(remote) => &**remote,
            Self::InProcess(in_process) => in_process,
        }
    }

    /// Closes what was opened; what was written is durable then.
    /// # Errors
    /// Why the data directory could not be closed.
    pub fn close(self) -> Result<(), String> {
        match self {
            Self::Remote(_) => Ok(()),
            Self::InProcess(in_process) => in_process.close(),
        }
    }
}

impl ServerArguments {
    /// Finds the server, or opens the directory.
    /// # Errors
    /// One line for the user.
    pub fn open(&self) -> Result<Opened, String> {
        self.open_for(None)
    }

    /// As [`Self::open`], to read from a member of that role; where none is given, the connection string says which.
    /// # Errors
    /// One line for the user.
    pub fn open_for(&self, preference: Option<ReadPreference>) -> Result<Opened, String> {
        if let Some(dbpath) = &self.dbpath {
            return InProcess::open(dbpath, self.storage_engine.as_deref()).map(Opened::InProcess);
        }
        let mut uri = self.uri()?;
        uri.read_preference = preference.unwrap_or(uri.read_preference);
        Remote::new(uri).map(Box::new).map(Opened::Remote).map_err(|error| error.to_string())
    }

    /// What the connection string says of writes.
    /// # Errors
    /// As [`Self::uri`].
    pub fn write_concern(&self) -> Result<Option<WriteConcern>, String> {
        self.uri().map(|uri| uri.write_concern)
    }

    /// The connection string, given or put together.
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
            .filter_map(|(name, value)| value.map(|value| format!("{name}={}", percent_encoded(value))))
            .collect();
        let uri = format!("mongodb://{user}{}/?{}", hosts.join(","), options.join("&"));
        uri.parse().map_err(|error| format!("--host {}: {error}", self.host.as_deref().unwrap_or(DEFAULT_HOST)))
    }
}

impl ReportArguments {
    /// Begins to tell of a run; `None` where nothing is to be said.
    pub fn start(&self, progress: &Arc<Progress>) -> Option<Reporter> {
        let style = match self.log_format {
            LogFormat::Json => Style::JsonLines,
            LogFormat::Text if std::io::stderr().is_terminal() => Style::Terminal,
            LogFormat::Text => Style::Lines,
        };
        (!self.quiet).then(|| Reporter::start(Arc::clone(progress), style, Box::new(std::io::stderr())))
    }

    /// Prints the result, unless nothing is to be said.
    pub fn print(&self, summary: &dyn std::fmt::Display) {
        if !self.quiet {
            eprintln!("{summary}");
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
        assert_eq!(uri("--host db:5 --port 27018").address(), "db:5");
        let set = uri("--host rs0/a:1,b --port 2 -u me@x -p p:w/ --authenticationDatabase admin");
        assert_eq!((set.address().as_str(), set.replica_set.as_deref()), ("a:1,b:2", Some("rs0")));
        let credential = set.credential.expect("a credential");
        assert_eq!((credential.user.as_str(), credential.source.as_str()), ("me@x", "admin"));
        assert_eq!(uri("--uri mongodb://h:9/db").address(), "h:9");
        assert!(Line::try_parse_from(["tool", "--uri", "mongodb://h", "--port", "1"]).is_err());
        assert!(Line::try_parse_from(["tool", "--dbpath", "d", "--port", "1"]).is_err());
    }
}
