//! A pipeline of a thousand stages runs on the stack of a thread that runs commands. Pipelines inside pipelines that would
//! not fit there are refused: a stack that overflows ends the server.

use crate::scripts::Collections;
use bunko_aggregate::{Documents, Environment, Pipeline, THREAD_STACK_BYTES};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_testkit::shell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Some stages become two.
const STAGES: usize = 996;

fn documents() -> Vec<DocumentBuf> {
    let document = |number: i32| DocumentBuf::new().with("_id", number).with("k", number).with("n", 7);
    (0..3).map(document).collect()
}

/// Number of results, on a thread with the stack of those that run commands.
fn results(stages: String) -> Result<usize, Failure> {
    let run = move || {
        let written = shell::parse_document(&format!("{{p: [{stages}]}}")).expect("a document");
        let stages = written.as_ref().get("p").and_then(ValueRef::as_array).expect("an array");
        let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
        let collections = Collections(BTreeMap::from([("o".to_owned(), documents())]));
        let environment = Environment::new(scope).with_sources(Arc::new(collections));
        let pipeline = Pipeline::parse(stages, environment)?;
        let (mut counted, _) = pipeline.open_counted(Box::new(Documents::new(documents())));
        let mut count = 0;
        while counted.next()?.is_some() {
            count += 1;
        }
        let mut plain = pipeline.open(Box::new(Documents::new(documents())));
        while plain.next()?.is_some() {}
        Ok(count)
    };
    let thread = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn(run).expect("a thread");
    thread.join().expect("no panic")
}

fn repeated(count: usize, stages: &[&str]) -> String {
    (0..count).map(|number| stages[number % stages.len()]).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_thousand_stages_fit_on_the_stack() {
    for (stages, count) in [
        (&["{$group: {_id: '$_id', k: {$first: '$k'}}}"][..], 3),
        (&["{$group: {_id: '$_id', k: {$push: '$k'}}}", "{$unwind: '$k'}"], 3),
        (&["{$sort: {k: 1}}", "{$group: {_id: '$_id', k: {$last: '$k'}}}"], 3),
        (&["{$setWindowFields: {partitionBy: '$n', sortBy: {k: 1}, output: {s: {$sum: '$k'}}}}"], 3),
        (&["{$bucketAuto: {groupBy: '$_id', buckets: 3}}", "{$set: {_id: '$_id.min'}}"], 3),
        (&["{$facet: {f: [{$limit: 9}]}}", "{$unwind: '$f'}", "{$replaceWith: '$f'}"], 3),
        (&["{$lookup: {from: 'o', localField: '_id', foreignField: '_id', as: 'j'}}", "{$unwind: '$j'}"], 3),
        (&["{$lookup: {from: 'o', let: {k: '$k'}, pipeline: [{$match: {$expr: {$eq: ['$k', '$$k']}}}], as: 'j'}}"], 3),
        (&["{$graphLookup: {from: 'o', startWith: '$k', connectFromField: 'z', connectToField: '_id', as: 'j'}}"], 3),
        (&["{$unionWith: {coll: 'o', pipeline: [{$match: {k: 9}}]}}"], 3),
        (&["{$set: {n: {$add: ['$n', 1]}}}", "{$match: {n: {$gt: 5}}}"], 3),
        (&["{$redact: '$$KEEP'}"], 3),
        (&["{$fill: {output: {z: {value: 1}}}}"], 3),
    ] {
        assert_eq!(results(repeated(STAGES, stages)).expect("results"), count, "{stages:?}");
    }
}

#[test]
fn pipelines_inside_pipelines_that_do_not_fit_are_refused() {
    let groups = repeated(900, &["{$group: {_id: '$_id', k: {$first: '$k'}}}"]);
    let nested = |depth: usize| {
        (0..depth).fold("{$match: {}}".to_owned(), |inner, _| {
            format!("{{$lookup: {{from: 'o', pipeline: [{inner}, {groups}], as: 'j'}}}}")
        })
    };
    let failure = results(nested(8)).expect_err("refused");
    assert_eq!(failure.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT, "{failure}");
    let failure = results(format!("{{$facet: {{f: [{}]}}}}", nested(8))).expect_err("refused");
    assert_eq!(failure.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT, "{failure}");
    assert_eq!(results(nested(1)).expect("results"), 3);
}
