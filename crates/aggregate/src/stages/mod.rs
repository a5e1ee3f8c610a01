//! The table of stages: one file and one line per stage.

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

use crate::effect::Effect;
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, WriteStage};
use bunko_bson::{DocumentBuf, DocumentRef, Element, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, SortPattern, with_path};
use bunko_query::{Distinct, Inclusion};
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

/// Stages parsed from one specification; some stages expand to several.
type Stages = Vec<Box<dyn Stage>>;

/// One entry of the table.
struct Definition {
    /// The facts that the table of all stages has about it.
    facts: &'static bunko_stages::Stage,
    /// Whether it compares values itself, apart from its expressions.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test that walks the table reads it"))]
    strings: StringUse,
    /// Parses the specification.
    parse: fn(ValueRef<'_>, &Environment) -> Result<Stages>,
}

/// A parsed stage.
pub trait Stage: Send + Sync {
    /// Name with its `$`.
    fn name(&self) -> &'static str;

    /// Opens the stage on top of a stream.
    fn open(self: Arc<Self>, input: Box<dyn DocumentStream>, environment: &Arc<Environment>)
    -> Box<dyn DocumentStream>;

    /// Whether it begins the pipeline with its own documents, and does not read the collection.
    fn brings_documents(&self) -> bool {
        false
    }

    /// The work that the query planner could do instead.
    fn plannable(&self) -> Plannable<'_> {
        Plannable::Nothing
    }

    /// The distinct values that it needs of its input, if one document per value is enough.
    fn distinct(&self) -> Option<Distinct> {
        None
    }

    /// Number of documents that it chooses at random from its input, if it does.
    fn sample_size(&self) -> Option<u64> {
        None
    }

    /// Adds the input fields that it reads.
    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads;

    /// The effect on its documents, for rewrites.
    fn effect(&self) -> Effect {
        Effect::Opaque
    }

    /// Adds a filter on the documents that it reads elsewhere. Only stages with the effects `Joins` and `Unites` do.
    fn take_inside(&mut self, _filter: DocumentRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether its results are numbers of documents, whatever the documents are and in which order they come.
    fn counts_alone(&self) -> bool {
        false
    }

    /// Whether it makes exactly one document of each.
    fn makes_one_of_each(&self) -> bool {
        false
    }

    /// The way metadata passes this stage.
    fn metadata(&self) -> Carried {
        Carried::Along
    }

    /// Takes over the work of the next stage, which is then dropped; returns whether it did.
    fn absorb(&mut self, _next: &dyn Stage) -> bool {
        false
    }

    /// The work of an `$unwind`.
    fn unwinding(&self) -> Option<Unwinding> {
        None
    }

    /// The write of a stage that writes.
    fn write(&self) -> Option<WriteStage> {
        None
    }

    /// For a filter after a stage that unpacks buckets: a filter on the buckets. Buckets that it excludes contain
    /// nothing that the stage's filter would accept.
    fn bucket_filter(&self, _filter: DocumentRef<'_>) -> Option<DocumentBuf> {
        None
    }

    /// The time series whose measurements it unpacks, if it unpacks any.
    fn unpacked(&self) -> Option<&TimeSeries> {
        None
    }

    /// Names input fields that must come out with each measurement unpacked.
    fn keep(&mut self, _fields: Vec<String>) {}

    /// Whether it is a text search, which only the planner can run.
    fn searches_text(&self) -> bool {
        false
    }

    /// Says that MongoDB's slot-based engine hands this stage's documents to the classic engine.
    fn hand_over(&mut self) {}

    /// Says that at most this many of its documents are read. Returns whether that saves work.
    fn read_at_most(&mut self, _limit: u64) -> bool {
        false
    }

    /// Says that only these dotted paths of its documents are read.
    fn read_only(&mut self, _fields: &BTreeSet<String>) {}
}

/// Work of a stage that the query planner could do.
#[derive(Clone, Copy)]
pub enum Plannable<'a> {
    /// Keep documents that match this filter.
    Filter(DocumentRef<'a>),
    /// Find the collection's documents by distance; only filters may come before.
    Near(&'a GeoNear),
    /// Sort by this pattern.
    Sort(&'a SortPattern),
    /// Skip this many.
    Skip(u64),
    /// Return at most this many, never 0.
    Limit(u64),
    /// Leave out all fields that this projection does not name.
    Projection(&'a Inclusion),
    /// Nothing.
    Nothing,
}

/// The input fields that reach later stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Only results of the fields that the stage reads.
    OnlyThese,
    /// Other input fields too.
    OthersToo,
}

/// Whether MongoDB has a stage with that name, supported here or not.
pub fn is_known_stage(name: &str) -> bool {
    bunko_stages::find(name).is_some()
}

/// A `$match` with this filter.
pub(crate) fn filtering(filter: DocumentRef<'_>, environment: &Environment) -> Result<Box<dyn Stage>> {
    match_filter::of(filter, environment)
}

/// Parses one stage.
pub(crate) fn parse(stage: Element<'_>, environment: &Environment) -> Result<Stages> {
    let Some(definition) = DEFINITIONS.iter().find(|definition| definition.facts.name == stage.name) else {
        if let Some(source) = environment.sources.source_stage(stage, environment.over.as_ref())? {
            return Ok(vec![Box::new(brought::Brought(source))]);
        }
        position::refuse_outside_stream(stage)?;
        sharded_data_distribution::refuse(stage)?;
        if is_known_stage(stage.name) {
            return Err(Failure::not_supported_yet(stage.name));
        }
        let message = format!("Unrecognized pipeline stage name: '{}'", stage.name);
        return Err(Failure::new(ErrorCode(40324), message));
    };
    (definition.parse)(stage.value, environment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Documents, Pipeline};
    use bunko_bson::StringOrder;
    use bunko_operation::OperationContext;
    use bunko_query::QueryScope;
    use bunko_testkit::collators::WithoutCase;
    use bunko_testkit::handbook::{check, paragraph};
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
    /// Stages that read other collections, which the command's scripts test, or whose results have no order.
    const ASKED_ELSEWHERE: &[&str] = &["$graphLookup", "$lookup", "$rankFusion", "$sample", "$scoreFusion"];

    /// Results of the stage over the documents, for each specification that it accepts.
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
        for definition in DEFINITIONS.iter().filter(|definition| !ASKED_ELSEWHERE.contains(&definition.facts.name)) {
            let by_bytes = results(definition.facts.name, StringOrder::BYTES);
            let collated = results(definition.facts.name, &StringOrder::collated(Arc::new(WithoutCase)));
            let differing = by_bytes.iter().zip(&collated).find(|(one, other)| one != other);
            let says = definition.strings == StringUse::Collated;
            assert_eq!(differing.is_some(), says, "{}: {differing:?}", definition.facts.name);
        }
    }

    #[test]
    fn every_stage_has_its_script() {
        for definition in DEFINITIONS {
            assert!(bunko_stages::find(definition.facts.name).is_some(), "the table of facts lacks a stage");
            let script = format!("{}/tests/scripts/stages/{}", env!("CARGO_MANIFEST_DIR"), &definition.facts.name[1..]);
            assert!(std::path::Path::new(&script).is_file(), "{} lacks {script}", definition.facts.name);
        }
    }

    #[test]
    fn the_handbook_lists_every_stage() {
        let names = DEFINITIONS.iter().map(|definition| definition.facts.name);
        check("reference/compatibility.md", "stages", &paragraph(names));
    }
}
