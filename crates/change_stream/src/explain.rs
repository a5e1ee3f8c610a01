//! `explain` of a change stream: how the log is read, the stages that `$changeStream` stands for, and the stages after
//! it.
//!
//! This server runs all stages of `$changeStream` as one (`Reading`), so they all show the same number of returned
//! events.
//! Source: MongoDB 8.2, `src/mongo/db/pipeline/README.md` of change streams for the stages of a replica set; the
//! names that `explain` has for them.

use crate::options::{Beginning, Image};
use crate::source::{Asked, Stream, StreamContext, StreamRequest};
use crate::split::{self, fragments};
use crate::stage::STAGE;
use crate::target::Target;
use bunko_aggregate::StageRun;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_errors::Result;
use bunko_query::{Explained, FindQuery, LogRead, LogRun, Origin, Verbosity, explain_log_read};
use bunko_store::{Clock, Direction};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const OPLOG: &str = "local.oplog.rs";
/// Databases without events in any stream.
const OWN_DATABASES: &str = "(?!(admin|config|local)\\.)";
/// The server's own collections, except `system.views`, which has events.
const NOT_OWN: &str = "(?!system\\.(?!views$))";

/// Statistics of reading a stream to the end of the log.
struct Ran {
    entries: u64,
    elapsed: Duration,
    /// The runs of the source and of each stage after it.
    runs: Vec<Arc<StageRun>>,
    /// Results of the last stage: events, or their fragments.
    told: u64,
}

/// The stages of `explain`, with their statistics if the verbosity asks for a run.
/// # Errors
/// As opening the stream, and reading it.
pub fn explain(context: &StreamContext<'_>, request: &StreamRequest<'_>, verbosity: Verbosity) -> Result<ArrayBuf> {
    let sent = request.stages;
    let asked = Asked::parse(context, request)?;
    let reading = asked.begin(context)?;
    let (from, token) = (reading.from(), reading.token().to_owned());
    let reading = Arc::new(Mutex::new(reading));
    let ran = verbosity.runs().then(|| run(&asked, Stream(reading), &context.images.clock)).transpose()?;
    let mut stages = ArrayBuf::new();
    stages.push(&log_read(&asked, from, verbosity, ran.as_ref())?);
    let specification = sent.iter().next().and_then(ValueRef::as_document).and_then(DocumentRef::first);
    let specification = specification.and_then(|first| first.value.as_document()).unwrap_or(DocumentRef::EMPTY);
    let options = described(&asked, specification, from);
    for mut stage in own_stages(&asked, &options, &token) {
        if let Some(source) = ran.as_ref().and_then(|ran| ran.runs.first()) {
            source.describe(&mut stage);
        }
        stages.push(&stage);
    }
    for (position, stage) in sent.iter().filter_map(ValueRef::as_document).enumerate().skip(1) {
        let mut described = stage.to_owned();
        match &ran {
            Some(ran) if stage.first().is_some_and(|first| first.name == split::STAGE) => {
                described.append("nReturned", ran.told as i64);
            }
            Some(ran) => ran.runs.get(position).into_iter().for_each(|run| run.describe(&mut described)),
            None => {}
        }
        stages.push(&described);
    }
    Ok(stages)
}

fn run(asked: &Asked, source: Stream, clock: &Clock) -> Result<Ran> {
    let began = clock.now();
    let reading = Arc::clone(&source.0);
    let (mut stream, runs) = asked.pipeline.open_counted_from(Box::new(source));
    let mut told = 0;
    while let Some(event) = stream.next()? {
        told += if asked.splits { fragments(event.as_ref())?.len().max(1) as u64 } else { 1 };
    }
    drop(stream);
    let entries = reading.lock().entries();
    Ok(Ran { entries, elapsed: clock.since(began), runs, told })
}

/// The log read, which takes the place of a plan.
fn log_read(asked: &Asked, from: Timestamp, verbosity: Verbosity, ran: Option<&Ran>) -> Result<DocumentBuf> {
    let mut parts = ArrayBuf::new();
    parts.push(&DocumentBuf::new().with("ts", &DocumentBuf::new().with("$gte", from)));
    parts.push(&DocumentBuf::new().with("ns", &namespaces(&asked.target)));
    let filter = DocumentBuf::new().with("$and", &parts);
    let query = FindQuery::new(filter.as_ref(), Arc::clone(&asked.pipeline.environment().scope))?;
    let elapsed = ran.map_or(Duration::ZERO, |ran| ran.elapsed);
    let origin = Origin::Query;
    let explained = Explained { namespace: OPLOG, query: &query, verbosity, elapsed, failure: None, origin };
    let run = ran.map(|ran| LogRun { examined: ran.entries, returned: ran.entries });
    let read = explain_log_read(explained, LogRead { from: Some(from), direction: Direction::Forward, run });
    let mut cursor = DocumentBuf::new();
    for part in read.as_ref().iter().filter(|part| part.name != "explainVersion") {
        cursor.append(part.name, part.value);
    }
    let mut stage = DocumentBuf::new().with("$cursor", &cursor);
    if let Some(ran) = ran {
        stage
            .append("nReturned", ran.entries as i64)
            .append("executionTimeMillisEstimate", ran.elapsed.as_millis() as i64);
    }
    Ok(stage)
}

/// The condition on the namespaces of entries that may concern a stream.
fn namespaces(target: &Target) -> DocumentBuf {
    let matching = |pattern: String| DocumentBuf::new().with("$regex", pattern.as_str());
    match target {
        Target::Collection { full, commands } => {
            let names: ArrayBuf = [ValueRef::String(full), ValueRef::String(commands)].into_iter().collect();
            DocumentBuf::new().with("$in", &names)
        }
        Target::Database { prefix } => matching(format!("^{}{NOT_OWN}", literally(prefix))),
        Target::Cluster => matching(format!("^{OWN_DATABASES}[^.]+\\.{NOT_OWN}")),
    }
}

/// A pattern that matches only this text.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_punctuation() && character != '_' {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// The stages that `$changeStream` stands for, after the log read.
fn own_stages(asked: &Asked, described: &DocumentBuf, token: &DocumentBuf) -> Vec<DocumentBuf> {
    let Asked { target, options, .. } = asked;
    let named = |name: &str| DocumentBuf::new().with("stage", name);
    let filter = DocumentBuf::new().with("ns", &namespaces(target));
    let mut stages = vec![
        named("internalUnwindTransaction").with("filter", &filter),
        named("internalTransform").with("options", described),
    ];
    if !matches!(target, Target::Cluster) {
        stages.push(named("internalCheckInvalidate"));
    }
    stages.push(named("internalCheckResumability").with("resumeToken", token));
    if options.before != Image::None {
        stages.push(named("internalAddPreImage").with("fullDocumentBeforeChange", mode(options.before, "off")));
    }
    if options.full_document != Image::None {
        stages.push(named("internalAddPostImage").with("fullDocument", mode(options.full_document, "default")));
    }
    if matches!(&options.beginning, Beginning::After(after) if !after.is_high_water) {
        stages.push(named("internalEnsureResumeTokenPresent").with("resumeToken", token));
    }
    stages.iter().map(|stage| DocumentBuf::new().with(STAGE, stage)).collect()
}

/// The options as sent, and defaults for the others.
fn described(asked: &Asked, sent: DocumentRef<'_>, from: Timestamp) -> DocumentBuf {
    let mut described = DocumentBuf::new();
    for option in sent.iter().filter(|option| !option.value.is_nullish()) {
        described.append(option.name, option.value);
    }
    if matches!(asked.options.beginning, Beginning::Now) {
        described.append("startAtOperationTime", from);
    }
    let modes = [
        ("fullDocument", mode(asked.options.full_document, "default")),
        ("fullDocumentBeforeChange", mode(asked.options.before, "off")),
    ];
    for (name, mode) in modes {
        if sent.get(name).is_none_or(ValueRef::is_nullish) {
            described.append(name, mode);
        }
    }
    described
}

fn mode(image: Image, none: &'static str) -> &'static str {
    match image {
        Image::None => none,
        Image::Lookup => "updateLookup",
        Image::WhenAvailable => "whenAvailable",
        Image::Required => "required",
    }
}
