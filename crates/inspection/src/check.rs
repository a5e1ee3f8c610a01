//! `bunko check`: reads one server, and rehearses on another one what is there.

mod counters;
mod finding;
mod operations;
mod probes;
mod schema;
mod server;
mod users;

pub use finding::{Finding, Report, Subject, Weight};

use crate::InspectionError;
use crate::peer::Peer;
use bunko_bson::DocumentBuf;
use bunko_client::CommandError;
use bunko_tools::Server;
use std::collections::HashSet;
use std::io::BufRead;

/// Judges a server's settings, as `getCmdLineOpts` shows them; returns the refusals.
pub type ConfigurationCheck = dyn Fn(&DocumentBuf) -> Vec<String>;

/// Further sources of a check.
#[derive(Default)]
pub struct CheckOptions<'a> {
    /// The log of the server in JSON lines: its slow operations are rehearsed as those of the profiler are.
    pub log: Option<Box<dyn BufRead + 'a>>,
    /// Judges the settings; without it they are not looked at.
    pub configuration: Option<&'a ConfigurationCheck>,
}

/// A check that runs.
struct Check<'a> {
    /// The server that is checked.
    source: Peer<'a>,
    /// The empty server.
    rehearsal: Peer<'a>,
    report: Report,
    /// Whether the source stores time series in compressed buckets, as MongoDB does.
    compresses_buckets: bool,
    /// Shapes of operations that were rehearsed already.
    shapes: HashSet<u64>,
}

impl Check<'_> {
    fn refused(&mut self, subject: Subject, name: String, refusal: &CommandError, advice: &str) {
        self.found(subject, Weight::Refused, name, refusal.to_string(), advice);
    }

    /// Reports `name` as unknown: the source refused to show it.
    fn unknown(&mut self, subject: Subject, name: &str, refusal: &CommandError, advice: &str) {
        self.found(subject, Weight::Unknown, name.to_owned(), refusal.to_string(), advice);
    }

    fn found(&mut self, subject: Subject, weight: Weight, name: String, problem: String, advice: &str) {
        if !self.report.looked_at.iter().any(|(counted, _)| *counted == subject) {
            self.report.looked_at.push((subject, 0));
        }
        self.report.findings.push(Finding { subject, weight, name, problem, advice: advice.to_owned() });
    }
}

/// Checks what of `source` would not work on a server like `rehearsal`, which must be empty and is changed.
/// # Errors
/// If one of the servers does not answer, or the source refuses to tell what it is.
pub fn check(
    source: &dyn Server,
    rehearsal: &dyn Server,
    options: CheckOptions<'_>,
) -> Result<Report, InspectionError> {
    let connect = |server: &dyn Server| {
        server
            .connect()
            .map_err(|error| InspectionError::Connection { server: server.name().to_owned(), error: Box::new(error) })
    };
    let (mut to_source, mut to_rehearsal) = (connect(source)?, connect(rehearsal)?);
    let mut check = Check {
        source: Peer { link: &mut *to_source, name: source.name() },
        rehearsal: Peer { link: &mut *to_rehearsal, name: rehearsal.name() },
        report: Report { server: source.name().to_owned(), ..Report::default() },
        compresses_buckets: true,
        shapes: HashSet::new(),
    };
    check.server(options.configuration)?;
    let databases = check.source.databases()?;
    for database in &databases {
        check.schema(database)?;
    }
    // Roles may have privileges on collections, and users have roles.
    check.roles_and_users(&databases)?;
    check.counters()?;
    for database in &databases {
        check.profile(database)?;
    }
    if let Some(mut log) = options.log {
        check.log(&mut *log)?;
    }
    check.report.findings.sort_by_key(|finding| finding.subject);
    check.report.looked_at.sort_by_key(|(subject, _)| *subject);
    Ok(check.report)
}
