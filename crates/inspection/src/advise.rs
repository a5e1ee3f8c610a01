//! `bunko advise`: missing, unused and redundant indexes, and documents that grow too large, each with its evidence.

mod candidate;
mod evidence;
mod indexes;
mod report;
mod sample;

pub use report::{Advice, Kind, Report};

use crate::InspectionError;
use crate::operations::{each_of_log, of_profile};
use crate::peer::Peer;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_tools::Server;
use evidence::Evidence;
use indexes::Index;
use sample::Sample;
use std::io::BufRead;

/// Further sources of the advice, and its limits.
pub struct AdviceOptions<'a> {
    /// The log of the server in JSON lines.
    pub log: Option<Box<dyn BufRead + 'a>>,
    /// Number of days for which uses of an index must have been counted before it is reported as unused.
    pub unused_days: u64,
    /// The time now, in milliseconds since 1970.
    pub now_ms: u64,
}

/// Reads a server's operations, indexes and samples, and says what would pay.
/// # Errors
/// If the server does not answer, or refuses to list its databases.
pub fn advise(server: &dyn Server, options: AdviceOptions<'_>) -> Result<Report, InspectionError> {
    let connect = |error| InspectionError::Connection { server: server.name().to_owned(), error: Box::new(error) };
    let mut link = server.connect().map_err(connect)?;
    let mut peer = Peer { link: &mut *link, name: server.name() };
    let mut report = Report { server: server.name().to_owned(), ..Report::default() };
    let mut databases = peer.databases()?;
    // Users and roles are not data of applications.
    databases.retain(|name| name != "admin");
    let mut evidence = Evidence::default();
    for database in &databases {
        match of_profile(&mut peer, database)? {
            Ok(entries) => entries.iter().for_each(|entry| evidence.note(entry.as_ref())),
            Err(refusal) => report.skipped.push(format!("{database}.system.profile: {refusal}")),
        }
    }
    if let Some(mut log) = options.log {
        each_of_log(&mut *log, &mut |entry| {
            evidence.note(entry);
            Ok(())
        })?;
    }
    match statistics(&mut peer)? {
        Ok(entries) => entries.iter().for_each(|entry| evidence.note_statistics(entry.as_ref())),
        Err(refusal) => report.skipped.push(format!("$queryStats: {refusal}")),
    }
    report.operations = evidence.operations;
    for database in &databases {
        let collections = match collections(&mut peer, database)? {
            Ok(collections) => collections,
            Err(refusal) => {
                report.skipped.push(format!("{database}: {refusal}"));
                continue;
            }
        };
        for collection in collections {
            report.collections += 1;
            let place = Place { database, collection: &collection };
            let mut indexes = match indexes::of_collection(&mut peer, place)? {
                Ok(indexes) => indexes,
                Err(refusal) => {
                    report.skipped.push(format!("{database}.{collection}: {refusal}"));
                    continue;
                }
            };
            if let Err(refusal) = indexes::count_uses(&mut peer, place, &mut indexes)? {
                report.skipped.push(format!("{database}.{collection}: no counters of indexes: {refusal}"));
            }
            let limits = (options.unused_days, options.now_ms);
            one_collection(&mut peer, place, (&indexes, &evidence), limits, &mut report)?;
        }
    }
    report.advice.sort_by_key(|advice| (advice.kind, std::cmp::Reverse(advice.saved_ms)));
    Ok(report)
}

/// Reads `$queryStats`. The inner error is the server's refusal.
fn statistics(peer: &mut Peer<'_>) -> Result<Result<Vec<DocumentBuf>, bunko_client::CommandError>, InspectionError> {
    let stage = DocumentBuf::new().with("$queryStats", &DocumentBuf::new());
    let pipeline: ArrayBuf = std::iter::once(&stage).collect();
    let command =
        DocumentBuf::new().with("aggregate", 1_i32).with("pipeline", &pipeline).with("cursor", &DocumentBuf::new());
    peer.list("admin", &command)
}

/// The namespace of a collection.
#[derive(Clone, Copy)]
struct Place<'a> {
    database: &'a str,
    collection: &'a str,
}

impl Place<'_> {
    fn namespace(self) -> String {
        format!("{}.{}", self.database, self.collection)
    }

    /// The shell's expression for the collection.
    fn in_shell(self) -> String {
        format!("db.getSiblingDB({}).getCollection({})", quoted(self.database), quoted(self.collection))
    }
}

/// A name as a string literal of the shell, which reads strings as JSON does.
fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

fn one_collection(
    peer: &mut Peer<'_>,
    place: Place<'_>,
    (indexes, evidence): (&[Index], &Evidence),
    (unused_days, now_ms): (u64, u64),
    report: &mut Report,
) -> Result<(), InspectionError> {
    report.advice.extend(indexes::unused(place, indexes, unused_days, now_ms));
    report.advice.extend(indexes::redundant(place, indexes));
    let sample = match Sample::take(peer, place)? {
        Ok(sample) => sample,
        Err(refusal) => {
            report.skipped.push(format!("{}: no sample: {refusal}", place.namespace()));
            return Ok(());
        }
    };
    report.advice.extend(sample.large_documents(place));
    report.advice.extend(indexes::unselective(place, indexes, &sample));
    for needed in evidence.of(&place.namespace()) {
        report.advice.extend(candidate::advice(peer, place, needed, (indexes, &sample))?);
    }
    Ok(())
}

fn collections(
    peer: &mut Peer<'_>,
    database: &str,
) -> Result<Result<Vec<String>, bunko_client::CommandError>, InspectionError> {
    let filter = DocumentBuf::new().with("type", "collection");
    let command = DocumentBuf::new().with("listCollections", 1_i32).with("nameOnly", true).with("filter", &filter);
    let name = |entry: &DocumentBuf| entry.as_ref().get("name").and_then(ValueRef::as_str).map(str::to_owned);
    let listed = peer.list(database, &command)?;
    Ok(listed.map(|entries| entries.iter().filter_map(name).filter(|name| !name.starts_with("system.")).collect()))
}
