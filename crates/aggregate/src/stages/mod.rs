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
mod writing;

use crate::Environment;
use crate::stage::{Definition, Plannable, Reads, Stage, Stages, is_known_stage};
use bunko_bson::Element;
use bunko_errors::{ErrorCode, Failure, Result};

pub(crate) use geo_near::OverMeasurements;
pub(crate) use limit::limiting;
pub(crate) use match_filter::filtering;
pub(crate) use sort::sorting;

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
    use bunko_bson::{DocumentBuf, StringOrder, StringUse, ValueRef};
    use bunko_operation::OperationContext;
    use bunko_query::QueryScope;
    use bunko_testkit::collators::WithoutCase;
    use bunko_testkit::handbook::{check, paragraph};
    use bunko_testkit::shell;
    use std::sync::Arc;

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
