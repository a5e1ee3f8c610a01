//! Pipelines of a thousand stages that would take long to rewrite.

use bunko_aggregate::{Environment, Pipeline, Rewrites};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_testkit::shell;
use std::sync::Arc;

/// Maximum number of stages of a pipeline.
const STAGES: usize = 1_000;

/// Stages that follow from their numbers.
fn stages(stage: impl Fn(usize) -> String) -> ArrayBuf {
    let mut all = ArrayBuf::new();
    for number in 0..STAGES {
        all.push(&parsed(&stage(number)));
    }
    all
}

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn list(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(", ")
}

/// The first stage for even numbers, and the second for odd ones.
fn pair(one: &str, other: &str, number: usize) -> String {
    if number.is_multiple_of(2) { one.to_owned() } else { other.to_owned() }
}

/// The pipelines by name.
pub fn pipelines() -> Vec<(&'static str, ArrayBuf)> {
    without_sorts().into_iter().chain(with_sorts()).collect()
}

fn without_sorts() -> Vec<(&'static str, ArrayBuf)> {
    let fields = list(100, |field| format!("x{field}: 1"));
    let computed = list(20, |field| format!("y{field}: {{$add: ['$a', {field}]}}"));
    let alternatives = list(100, |number| format!("{{k: {number}}}"));
    let set = "{$set: {x: 1}}";
    let matching = |number| format!("{{$match: {{k{number}: 1}}}}");
    vec![
        ("$set of one field", stages(|number| format!("{{$set: {{x{number}: 1}}}}"))),
        ("$set of twenty fields", stages(|_| format!("{{$set: {{{computed}}}}}"))),
        ("$set and $match", stages(|number| pair(set, &matching(number), number))),
        ("$set and $limit", stages(|number| pair(set, "{$limit: 5}", number))),
        ("$set and $skip", stages(|number| pair(set, "{$skip: 1}", number))),
        ("$redact and $match", stages(|number| pair("{$redact: '$$KEEP'}", &matching(number), number))),
        ("$group and $match", stages(|number| pair("{$group: {_id: '$_id'}}", "{$match: {_id: {$gt: 1}}}", number))),
        ("$match", stages(|number| format!("{{$match: {{k: {{$gt: {number}}}, m{number}: {{$in: [1, 2]}}}}}}"))),
        (
            "$project and a long $match",
            stages(|number| match number {
                900.. => format!("{{$match: {{$or: [{alternatives}]}}}}"),
                _ => format!("{{$project: {{k: 1, {fields}}}}}"),
            }),
        ),
        (
            "renames and a $match",
            stages(|number| match number {
                999 => "{$match: {k999: 1}}".to_owned(),
                number => format!("{{$project: {{k{}: '$k{number}'}}}}", number + 1),
            }),
        ),
        (
            "$set and a count",
            stages(|number| match number {
                999 => "{$group: {_id: null, n: {$sum: 1}}}".to_owned(),
                _ => set.to_owned(),
            }),
        ),
    ]
}

fn with_sorts() -> Vec<(&'static str, ArrayBuf)> {
    let wide_set = format!("{{$set: {{{}}}}}", list(100, |field| format!("x{field}: 1")));
    let wide_sort = format!("{{$sort: {{{}}}}}", list(32, |field| format!("s{field}: 1")));
    let sort = |number| format!("{{$sort: {{k{number}: 1}}}}");
    let (unset, unwind) = ("{$unset: ['x', 'y.z']}", "{$unwind: {path: '$l', preserveNullAndEmptyArrays: true}}");
    vec![
        ("$sort", stages(sort)),
        ("$set and $sort", stages(|number| pair("{$set: {x: 1}}", &sort(number), number))),
        ("$unwind and $sort", stages(|number| pair(unwind, &sort(number), number))),
        ("wide $set and $sort", stages(|number| pair(&wide_set, &wide_sort, number))),
        (
            "$unset, $sort and $limit",
            stages(|number| match number % 3 {
                0 => unset.to_owned(),
                1 => sort(number),
                _ => "{$limit: 5}".to_owned(),
            }),
        ),
        (
            "$unset and one $sort",
            stages(|number| match number {
                998 => wide_sort.clone(),
                999 => "{$limit: 5}".to_owned(),
                _ => unset.to_owned(),
            }),
        ),
        (
            "renames and a $sort",
            stages(|number| match number {
                999 => "{$sort: {k999: 1}}".to_owned(),
                number => format!("{{$project: {{k{}: '$k{number}'}}}}", number + 1),
            }),
        ),
    ]
}

/// The pipeline, parsed and rewritten.
pub fn planned(stages: &ArrayBuf, rewrites: Rewrites) -> Pipeline {
    let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
    Pipeline::parse(stages.as_ref(), Environment::new(scope).with_rewrites(rewrites)).expect("a pipeline")
}
