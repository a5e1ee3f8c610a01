//! Pipelines of a thousand stages that would take long to rewrite.

use bunko_aggregate::{Access, DocumentStream, Documents, Environment, Pipeline, Rewrites, SourceName, Sources};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, StringOrder};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_testkit::shell;
use std::sync::Arc;

/// Maximum number of stages of a pipeline.
const STAGES: usize = 1_000;

/// Collections without documents.
#[derive(Debug)]
struct Empty;

impl Sources for Empty {
    fn note(&self, _: &SourceName, _: &StringOrder) -> Result<()> {
        Ok(())
    }

    fn open(&self, _: &SourceName, stages: ArrayRef<'_>, environment: &Environment) -> Result<Box<dyn DocumentStream>> {
        Ok(Pipeline::parse_extended(stages, environment.clone())?.open(Box::new(Documents::none())))
    }

    fn access(&self, _: &SourceName, _: &str, _: &StringOrder) -> Access {
        Access::Scan
    }
}

/// Stages that follow from their numbers.
fn stages(stage: impl Fn(usize) -> String) -> ArrayBuf {
    some_stages(STAGES, stage)
}

fn some_stages(count: usize, stage: impl Fn(usize) -> String) -> ArrayBuf {
    let mut all = ArrayBuf::new();
    for number in 0..count {
        all.push(&parsed(&stage(number)));
    }
    all
}

/// The first stages, and others after them.
fn followed(stages: ArrayBuf, others: &[String]) -> ArrayBuf {
    others.iter().fold(stages, |mut all, stage| {
        all.push(&parsed(stage));
        all
    })
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
    without_sorts().into_iter().chain(with_sorts()).chain(with_pipelines_inside()).collect()
}

fn with_pipelines_inside() -> Vec<(&'static str, ArrayBuf)> {
    let lookup =
        |number| format!("{{$lookup: {{from: 'o', localField: 'k{number}', foreignField: 'k', as: 'j{number}'}}}}");
    let unwind = |number| format!("{{$unwind: '$j{number}'}}");
    let join = |number: usize| if number.is_multiple_of(2) { lookup(number / 2) } else { unwind(number / 2) };
    let union = "{$unionWith: {coll: 'o', pipeline: [{$set: {x: 1}}]}}";
    let matching = |number: usize| format!("{{$match: {{k{number}: 1}}}}");
    let conditions = |path: &str, count| list(count, |number| format!("{{'{path}{number}': {{$gt: {number}}}}}"));
    let long_match = |path: &str, count| format!("{{$match: {{$and: [{}]}}}}", conditions(path, count));
    let of_joined = list(499, |number| format!("'j{number}.a': 1, 'k{number}': 2"));
    let inner = list(STAGES, |number| pair("{$set: {x: 1}}", &matching(number), number));
    let facets =
        |count, stages: &str| format!("{{$facet: {{{}}}}}", list(count, |number| format!("f{number}: [{stages}]")));
    let few = list(10, |number| pair("{$set: {x: 1}}", &matching(number), number));
    let around = list(49, |number| pair("{$set: {x: 1}}", &matching(number), number));
    let deep = (0..19).fold(format!("{{$unionWith: {{coll: 'o', pipeline: [{around}]}}}}"), |stage, number| {
        let outer =
            if number % 2 == 0 { "$lookup: {from: 'o', as: 'j', pipeline" } else { "$unionWith: {coll: 'o', pipeline" };
        format!("{{{outer}: [{around}, {stage}]}}}}")
    });
    vec![
        ("$project and $match", stages(|number| pair("{$project: {x: 0}}", &matching(number), number))),
        ("$lookup", stages(lookup)),
        ("$lookup and $unwind", stages(join)),
        ("$lookup, $unwind and a $match", followed(some_stages(998, join), &[format!("{{$match: {{{of_joined}}}}}")])),
        ("$lookup, $unwind and a long $match", followed(some_stages(2, join), &[long_match("j0.a", 10_000)])),
        (
            "$lookup, $unwind and many $match",
            stages(
                |number| if number < 2 { join(number) } else { format!("{{$match: {{'j0.a{number}': {{$gt: 1}}}}}}") },
            ),
        ),
        ("$unionWith and $match", stages(|number| pair(union, &matching(number), number))),
        ("$unionWith and a long $match", followed(some_stages(1, |_| union.into()), &[long_match("k", 10_000)])),
        ("many $unionWith and a $match", followed(some_stages(999, |_| union.into()), &[matching(1)])),
        ("$facet of twenty long pipelines", some_stages(1, |_| facets(20, &inner))),
        ("$facet", stages(|_| facets(10, &few))),
        ("pipelines inside pipelines", some_stages(10, |_| deep.clone())),
    ]
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
    let environment = Environment::new(scope).with_sources(Arc::new(Empty)).with_rewrites(rewrites);
    Pipeline::parse(stages.as_ref(), environment).expect("a pipeline")
}

/// Number of stages of which the streams fit on the stack of a test's thread.
const STAGES_RUN_MAX: usize = 20;

/// Runs a pipeline of few stages over no documents: the pipelines inside `$unionWith` are rewritten when they are opened.
pub fn run(pipeline: &Pipeline) {
    if pipeline.stages().count() > STAGES_RUN_MAX {
        return;
    }
    let mut results = pipeline.open(Box::new(Documents::none()));
    while results.next().expect("read").is_some() {}
}
