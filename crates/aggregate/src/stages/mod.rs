//! The table of stages: one file and one line each.

mod around;
mod brought;
mod bucket;
mod bucket_auto;
mod count;
mod densify;
mod documents;
mod facet;
mod fill;
mod fusion;
mod geo_near;
mod geo_near_distance;
mod graph_lookup;
mod group;
mod known;
mod limit;
mod lookup;
mod match_filter;
mod merge;
mod normalization;
mod out;
mod placed;
pub(crate) mod position;
mod preferred_numbers;
mod redact;
mod reshaped;
mod sample;
mod score;
mod search;
mod search_filter;
mod sharded_data_distribution;
mod skip;
mod sort;
mod sort_by_count;
mod stage_memory;
mod union_with;
mod unpack_bucket;
mod unwind;
mod vector_search;
mod window;

use crate::metadata::Carried;
use crate::{DocumentStream, Environment, WriteStage};
use bunko_bson::{DocumentBuf, DocumentRef, Element, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, SortPattern, with_path};
use bunko_query::Distinct;
use bunko_timeseries::TimeSeries;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use geo_near::GeoNear;
pub(crate) use geo_near::OverMeasurements;
pub use merge::{Merge, WhenMatched, WhenNotMatched};
pub use unwind::Unwinding;

static DEFINITIONS: &[Definition] = &[
    reshaped::ADD_FIELDS,
    reshaped::SET,
    bucket::DEFINITION,
    bucket_auto::DEFINITION,
    count::DEFINITION,
    densify::DEFINITION,
    documents::DEFINITION,
    facet::DEFINITION,
    fill::DEFINITION,
    geo_near::DEFINITION,
    graph_lookup::DEFINITION,
    group::DEFINITION,
    limit::DEFINITION,
    lookup::DEFINITION,
    match_filter::DEFINITION,
    merge::DEFINITION,
    out::DEFINITION,
    reshaped::PROJECT,
    fusion::RANK,
    redact::DEFINITION,
    reshaped::REPLACE_ROOT,
    reshaped::REPLACE_WITH,
    sample::DEFINITION,
    score::DEFINITION,
    fusion::SCORE,
    search::DOCUMENTS,
    search::METADATA,
    skip::DEFINITION,
    window::DEFINITION,
    sort::DEFINITION,
    sort_by_count::DEFINITION,
    union_with::DEFINITION,
    unpack_bucket::DEFINITION,
    reshaped::UNSET,
    unwind::DEFINITION,
    vector_search::DEFINITION,
];

/// What one specification parses to: some stages are short for several.
type Stages = Vec<Box<dyn Stage>>;

/// One entry of the table.
struct Definition {
    /// With its `$`.
    name: &'static str,
    /// Whether it compares values itself, beside the expressions that it holds.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test that walks the table reads it"))]
    strings: StringUse,
    /// Reads the specification.
    parse: fn(ValueRef<'_>, &Environment) -> Result<Stages>,
}

/// A parsed stage.
pub trait Stage: Send + Sync {
    /// With its `$`.
    fn name(&self) -> &'static str;

    /// Puts it on top of a stream.
    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, environment: &Arc<Environment>)
    -> Box<dyn DocumentStream>;

    /// Whether it begins the pipeline with documents of its own, and reads none of the collection.
    fn brings_documents(&self) -> bool {
        false
    }

    /// What of it the query planner could do.
    fn plannable(&self) -> Plannable<'_> {
        Plannable::Nothing
    }

    /// The distinct values of its input that it needs, where one document of each gives what all documents would.
    fn distinct(&self) -> Option<Distinct> {
        None
    }

    /// Adds the fields of its input that it reads.
    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads;

    /// What becomes of what is known of documents beside their fields.
    fn metadata(&self) -> Carried {
        Carried::Along
    }

    /// Does the work of the stage behind it too, which is left out then; whether it does.
    fn absorb(&mut self, _next: &dyn Stage) -> bool {
        false
    }

    /// What it does, where it is an `$unwind`.
    fn unwinding(&self) -> Option<Unwinding> {
        None
    }

    /// What it writes, where it is a stage that does.
    fn write(&self) -> Option<WriteStage> {
        None
    }

    /// Of a filter behind a stage that unpacks documents: what it says of the documents that are unpacked. Those that this
    /// leaves out have nothing inside that the filter would let through.
    fn bucket_filter(&self, _filter: DocumentRef<'_>) -> Option<DocumentBuf> {
        None
    }

    /// The time series whose measurements it unpacks, where it is a stage that does.
    fn unpacked(&self) -> Option<&TimeSeries> {
        None
    }

    /// Learns of fields of its input that have to come out with each document that it unpacks.
    fn keep(&mut self, _fields: Vec<String>) {}

    /// Whether it finds documents by the words of their texts, which only the planner can do.
    fn searches_text(&self) -> bool {
        false
    }

    /// Learns that MongoDB's slot-based engine hands its documents to a stage of the classic one.
    fn hand_over(&mut self) {}

    /// Learns that no more than this many of its documents are read.
    fn read_at_most(&mut self, _limit: u64) {}

    /// Learns that of its documents only these dotted paths are read.
    fn read_only(&mut self, _fields: &BTreeSet<String>) {}
}

/// What the query planner could do of a stage.
#[derive(Clone, Copy)]
pub enum Plannable<'a> {
    /// Keep what this filter matches.
    Filter(DocumentRef<'a>),
    /// The documents of the collection by distance; nothing but filters may have come before.
    Near(&'a GeoNear),
    /// Order by this.
    Sort(&'a SortPattern),
    /// Leave out this many.
    Skip(u64),
    /// At most this many, never 0.
    Limit(u64),
    /// None of it.
    Nothing,
}

/// What reaches the stages above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Only what the stage makes of the fields that it reads.
    OnlyThese,
    /// Other fields of its input too.
    OthersToo,
}

/// Whether MongoDB has a stage of that name, be it supported here or not.
pub fn is_known_stage(name: &str) -> bool {
    is_stage(name) || known::is_known(name)
}

/// Reads one stage.
pub(crate) fn parse(stage: Element<'_>, environment: &Environment) -> Result<Stages> {
    let Some(definition) = DEFINITIONS.iter().find(|definition| definition.name == stage.name) else {
        if let Some(source) = environment.sources.source_stage(stage, environment.over.as_ref())? {
            return Ok(vec![Box::new(brought::Brought(source))]);
        }
        position::refuse_outside_stream(stage)?;
        sharded_data_distribution::refuse(stage)?;
        if known::is_known(stage.name) {
            return Err(Failure::not_supported_yet(stage.name));
        }
        let message = format!("Unrecognized pipeline stage name: '{}'", stage.name);
        return Err(Failure::new(ErrorCode(40324), message));
    };
    (definition.parse)(stage.value, environment)
}

/// Whether a stage of that name is in the table.
fn is_stage(name: &str) -> bool {
    DEFINITIONS.iter().any(|definition| definition.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Documents, Pipeline};
    use bunko_bson::StringOrder;
    use bunko_operation::OperationContext;
    use bunko_query::QueryScope;
    use bunko_testkit::collators::WithoutCase;
    use bunko_testkit::shell;

    const DOCUMENTS: &[&str] = &[
        "{_id: 1, s: 'b', v: 1, w: 5}",
        "{_id: 2, s: 'C', v: 2}",
        "{_id: 3, s: 'B', v: 4}",
        "{_id: 4, s: 'a', v: 2, list: ['x', 'X']}",
    ];
    const SPECIFICATIONS: &[&str] = &[
        "{s: 'c'}",
        "{s: 1}",
        "{_id: '$s', n: {$sum: 1}}",
        "'$s'",
        "'$list'",
        "'s'",
        "1",
        "{groupBy: '$s', boundaries: ['B', 'c', 'd'], default: 'x'}",
        "{groupBy: '$s', buckets: 2}",
        "{field: 'v', partitionByFields: ['s'], range: {step: 1, bounds: 'full'}}",
        "{partitionByFields: ['s'], sortBy: {v: 1}, output: {w: {method: 'locf'}}}",
        "{partitionBy: '$s', sortBy: {v: 1}, output: {n: {$sum: 1}}}",
        "{newRoot: {x: '$s'}}",
        "{x: '$s'}",
        "{f: [{$limit: 1}]}",
        "'$$KEEP'",
    ];
    /// Stages that read other collections, for which scripts of commands ask, or come out in any order.
    const ASKED_ELSEWHERE: &[&str] = &["$graphLookup", "$lookup", "$rankFusion", "$sample", "$scoreFusion"];

    /// Results of the stage for the documents, with each specification that it takes.
    fn results(stage: &str, strings: &StringOrder) -> Vec<(&'static str, Vec<String>)> {
        let document = |text: &str| shell::parse_document(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        let operation = OperationContext::unlimited();
        let mut results = Vec::new();
        for specification in SPECIFICATIONS {
            let scope = QueryScope { strings: strings.clone(), ..QueryScope::new(0, Arc::clone(&operation)) };
            let written = document(&format!("{{p: [{{'{stage}': {specification}}}]}}"));
            let stages = written.as_ref().get("p").and_then(ValueRef::as_array).expect("an array");
            let Ok(pipeline) = Pipeline::parse(stages, Environment::new(Arc::new(scope))) else { continue };
            let source: Vec<DocumentBuf> = DOCUMENTS.iter().map(|text| document(text)).collect();
            let mut stream = pipeline.open(Box::new(Documents::new(source)));
            let mut made = Vec::new();
            while let Ok(Some(document)) = stream.next() {
                made.push(shell::print(ValueRef::from(&document)));
            }
            results.push((*specification, made));
        }
        results
    }

    #[test]
    fn stages_compare_strings_as_their_entries_say() {
        for definition in DEFINITIONS.iter().filter(|definition| !ASKED_ELSEWHERE.contains(&definition.name)) {
            let by_bytes = results(definition.name, StringOrder::BYTES);
            let collated = results(definition.name, &StringOrder::collated(Arc::new(WithoutCase)));
            let differing = by_bytes.iter().zip(&collated).find(|(one, other)| one != other);
            let says = definition.strings == StringUse::Collated;
            assert_eq!(differing.is_some(), says, "{}: {differing:?}", definition.name);
        }
    }

    #[test]
    fn every_stage_has_its_script() {
        for definition in DEFINITIONS {
            let script = format!("{}/tests/scripts/stages/{}", env!("CARGO_MANIFEST_DIR"), &definition.name[1..]);
            assert!(std::path::Path::new(&script).is_file(), "{} lacks {script}", definition.name);
        }
    }
}
