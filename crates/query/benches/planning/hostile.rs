//! Filters that would take long to plan: many alternatives, lists and conditions beside many indexes.

use super::{inserted, processor_ns};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace};
use bunko_operation::OperationContext;
use bunko_query::{FindQuery, QueryScope, plan};
use bunko_testkit::shell;
use std::hint::black_box;
use std::sync::Arc;

const DOCUMENTS: i32 = 2_000;
/// With the index on `_id`, as many as a collection may have.
const INDEXES: usize = 63;
const BRANCHES: usize = 10_000;
const LIST_VALUES: usize = 100_000;
/// Times that each filter is planned; the fastest counts.
const ROUNDS: usize = 3;

/// A filter, the key patterns of the indexes, and the options of each index.
struct Hostile {
    name: &'static str,
    indexes: fn(usize) -> String,
    options: &'static str,
    find: String,
}

fn parsed(text: &str) -> DocumentBuf {
    shell::parse_document(text).expect("a document")
}

/// Parts that follow from their numbers, with commas between.
fn list(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(", ")
}

/// An expression inside others, `depth` times.
fn nested(depth: usize, innermost: String, around: impl Fn(usize, String) -> String) -> String {
    (0..depth).fold(innermost, |inner, number| around(number, inner))
}

fn behind_a(number: usize) -> String {
    format!("{{a: 1, f{number}: 1}}")
}

fn alone(number: usize) -> String {
    format!("{{f{number}: 1}}")
}

fn three(number: usize) -> String {
    format!("{{a: 1, b: {}, c: 1, f{number}: 1}}", if number.is_multiple_of(2) { 1 } else { -1 })
}

fn two(number: usize) -> String {
    format!("{{f{}: 1, f{}: 1}}", number % 12, (number + number / 12 + 1) % 12)
}

fn below_a(number: usize) -> String {
    format!("{{'a.f{number}': 1, 'a.b.c': 1}}")
}

fn wildcard(number: usize) -> String {
    format!("{{'w{number}.$**': 1}}")
}

fn alternatives() -> Vec<Hostile> {
    let hostile = |name, indexes, find| Hostile { name, indexes, options: "{}", find };
    let pairs = list(BRANCHES, |number| format!("{{a: {number}, b: {number}}}"));
    let several = list(100, |one| {
        let of_one = list(100, |other| format!("{{f{}: {other}, a: {one}}}", (one + other) % INDEXES));
        format!("{{$or: [{of_one}]}}")
    });
    let product = list(12, |one| {
        let of_one = list(16, |value| format!("{{f{one}: {value}, g: {{$gte: {value}}}}}"));
        format!("{{$or: [{of_one}]}}")
    });
    vec![
        hostile("alternatives that all indexes may serve", behind_a, format!("{{filter: {{$or: [{pairs}]}}}}")),
        hostile("alternatives that no index serves", alone, format!("{{filter: {{$or: [{pairs}]}}}}")),
        hostile(
            "alternatives, each with an index of its own",
            alone,
            format!(
                "{{filter: {{$or: [{}]}}}}",
                list(BRANCHES, |number| format!("{{f{}: {number}, z: 1}}", number % INDEXES))
            ),
        ),
        hostile("alternatives in a sort's order", behind_a, format!("{{filter: {{$or: [{pairs}]}}, sort: {{f0: 1}}}}")),
        hostile("alternatives beside a condition", behind_a, format!("{{filter: {{a: {{$lt: 5}}, $or: [{pairs}]}}}}")),
        hostile("products of alternatives", two, format!("{{filter: {{f0: 1, $and: [{product}]}}}}")),
        hostile("a conjunction of alternatives", alone, format!("{{filter: {{$and: [{several}]}}}}")),
        hostile("a hint for alternatives", behind_a, format!("{{filter: {{$or: [{pairs}]}}, hint: {{a: 1, f0: 1}}}}")),
        Hostile {
            name: "alternatives beside partial indexes",
            indexes: behind_a,
            options: "{partialFilterExpression: {$or: [{a: {$gt: 5}}, {b: {$gt: 5}}, {c: {$gt: 5}}]}}",
            find: format!("{{filter: {{$or: [{pairs}]}}}}"),
        },
    ]
}

fn conditions() -> Vec<Hostile> {
    let hostile = |name, indexes, find| Hostile { name, indexes, options: "{}", find };
    let unequal = list(BRANCHES, |number| format!("{{a: {{$ne: {number}}}}}"));
    let patterns = list(BRANCHES, |number| format!("{{b: {{$not: /x{number}/}}}}, {{b: /y{number}/}}"));
    let elements = nested(90, "c: 1".into(), |_, inner| format!("b: {{$elemMatch: {{{inner}}}}}"));
    let wide = list(BRANCHES, |number| format!("f{number}: {{$gt: {number}}}"));
    let compared = list(BRANCHES, |number| format!("{{$gt: ['$f{}', {number}]}}", number % INDEXES));
    let logic = nested(60, format!("{{$and: [{compared}]}}"), |_, inner| format!("{{$and: [true, {inner}]}}"));
    let paths = list(BRANCHES, |number| format!("{{'w{}.x{number}': {number}}}", number % INDEXES));
    vec![
        hostile("values that are excluded", behind_a, format!("{{filter: {{$and: [{unequal}]}}}}")),
        hostile(
            "patterns",
            three,
            format!("{{filter: {{a: {{$in: [1, 2, 3]}}, $and: [{patterns}]}}, sort: {{c: 1}}}}"),
        ),
        hostile("nested $elemMatch", below_a, format!("{{filter: {{a: {{$elemMatch: {{{elements}}}}}}}}}")),
        hostile("a wide $elemMatch", below_a, format!("{{filter: {{a: {{$elemMatch: {{{wide}}}}}}}}}")),
        hostile("a deep $expr", alone, format!("{{filter: {{$expr: {logic}}}}}")),
        hostile("paths of wildcard indexes", wildcard, format!("{{filter: {{$and: [{paths}]}}}}")),
    ]
}

fn lists() -> Vec<Hostile> {
    let hostile = |name, indexes, find| Hostile { name, indexes, options: "{}", find };
    let values = list(LIST_VALUES, |number| number.to_string());
    let words = list(LIST_VALUES, |number| format!("'word {number}'"));
    let patterns = list(BRANCHES, |number| format!("/^x{number}/"));
    let all = format!("a: {{$in: [{values}]}}, b: {{$in: [{values}]}}, c: {{$in: [{words}]}}");
    vec![
        hostile("lists of three fields", three, format!("{{filter: {{{all}}}}}")),
        hostile("lists in a sort's order", three, format!("{{filter: {{{all}}}, sort: {{c: 1}}, limit: 10}}")),
        hostile("a list that is excluded", behind_a, format!("{{filter: {{a: {{$nin: [{values}]}}}}}}")),
        hostile("a list with null", behind_a, format!("{{filter: {{a: {{$in: [null, {values}]}}}}}}")),
        hostile("a list of patterns", behind_a, format!("{{filter: {{a: {{$in: [{patterns}]}}}}}}")),
    ]
}

/// A collection with these indexes. Some fields hold few values, so that estimates have a choice.
fn filled(catalog: &Catalog, name: &str, hostile: &Hostile) -> Arc<Collection> {
    let namespace = Namespace::new("test", name).expect("a valid name");
    let unlimited = OperationContext::unlimited();
    let collection = catalog.collection_or_create(&namespace, &*unlimited).expect("created");
    let spec = |number: usize| {
        let mut spec = DocumentBuf::new().with("key", &parsed(&(hostile.indexes)(number)));
        spec.append("name", format!("index{number}").as_str());
        spec.extend(parsed(hostile.options).as_ref());
        IndexSpec::parse(spec.as_ref()).expect("a specification")
    };
    let specs: Vec<IndexSpec> = (0..INDEXES).map(spec).collect();
    catalog.create_indexes(&collection, &specs, &*unlimited).expect("built");
    inserted(
        catalog,
        &namespace,
        (0..DOCUMENTS).map(|number| {
            DocumentBuf::new().with("_id", number).with("a", number % 50).with("b", number).with("f1", number % 7)
        }),
    );
    collection
}

/// Prints the processor time of parsing and simplifying each filter, and of making and opening its plan.
pub fn measure(catalog: &Catalog) {
    let only = std::env::var("ONLY").unwrap_or_default();
    let all = alternatives().into_iter().chain(conditions()).chain(lists());
    for (number, hostile) in all.enumerate().filter(|(_, hostile)| hostile.name.contains(&only)) {
        let collection = filled(catalog, &format!("hostile{number}"), &hostile);
        let find = parsed(&hostile.find);
        let (mut parsing, mut planning) = (u64::MAX, u64::MAX);
        let mut is_stopped = false;
        for _ in 0..ROUNDS {
            let began = processor_ns();
            let query = query_of(&find);
            let between = processor_ns();
            let plan = black_box(plan(&collection, query).expect("a plan"));
            is_stopped = plan.is_stopped();
            drop(black_box(plan.open().expect("opened")));
            (parsing, planning) = (parsing.min(between - began), planning.min(processor_ns() - between));
        }
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1_000_000.0;
        let end = if is_stopped { ", stopped" } else { "" };
        println!("{}: {:.1} ms to parse, {:.1} ms to plan and open{end}", hostile.name, ms(parsing), ms(planning));
    }
}

fn query_of(find: &DocumentBuf) -> FindQuery {
    let part = |name| find.as_ref().get(name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
    let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
    let mut query = FindQuery::new(part("filter"), scope).expect("a filter");
    query.simplify();
    query.set_sort(part("sort")).expect("a sort");
    query.hint = find.as_ref().get("hint").and_then(|hint| bunko_query::Hint::parse(hint).expect("a hint"));
    query.limit = find.as_ref().get("limit").map(|_| 10);
    query
}
