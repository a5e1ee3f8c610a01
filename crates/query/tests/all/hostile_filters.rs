//! Filters that would take long to plan: many alternatives, lists and conditions beside many indexes.

/// With the index on `_id`, as many as a collection may have.
pub const INDEXES: usize = 63;
const BRANCHES: usize = 10_000;
/// Maximum number of stages of a pipeline.
const STAGES: usize = 1_000;
const LIST_VALUES: usize = 100_000;

/// A filter, the key patterns of the indexes, and the options of each index.
pub struct Hostile {
    pub name: &'static str,
    pub indexes: fn(usize) -> String,
    pub options: &'static str,
    pub find: String,
}

/// All of them.
pub fn all() -> impl Iterator<Item = Hostile> {
    alternatives().into_iter().chain(conditions()).chain(of_stages()).chain(lists())
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

/// Filters as pipelines of many stages leave them to the planner, and filters whose simplification could go on for long.
fn of_stages() -> Vec<Hostile> {
    let hostile = |name, indexes, find| Hostile { name, indexes, options: "{}", find };
    let stages = list(STAGES, |number| format!("{{f{}: {{$gte: {number}}}, g: {{$ne: {number}}}}}", number % INDEXES));
    let several = list(STAGES, |number| {
        let of_one =
            list(BRANCHES / STAGES, |value| format!("{{f{}: {value}, g: {number}}}", (number + value) % INDEXES));
        format!("{{$or: [{of_one}]}}")
    });
    let wide = list(BRANCHES, |number| format!("{{f{}: {number}}}", number % INDEXES));
    let negated = nested(40, format!("{{$and: [{wide}]}}"), |number, inner| {
        format!("{{$nor: [{{$nor: [{inner}, {{f{number}: 1, g: 1}}]}}]}}")
    });
    let absorbed = list(BRANCHES / 2, |number| {
        format!(
            "{{a: {{$gt: {number}}}}}, {{$and: [{{a: {{$gt: {number}}}}}, {{$or: [{{b: {number}}}, {{a: {number}}}]}}]}}"
        )
    });
    let inside = nested(40, "{f0: 1, g: 1}".into(), |number, inner| {
        format!("{{f{}: {number}, $or: [{{f{}: 1, g: 2}}, {inner}]}}", number % INDEXES, (number + 1) % INDEXES)
    });
    vec![
        hostile("conditions of a thousand stages", alone, format!("{{filter: {{$and: [{stages}]}}}}")),
        hostile("alternatives of a thousand stages", behind_a, format!("{{filter: {{$and: [{several}]}}}}")),
        hostile("negated negations", alone, format!("{{filter: {negated}}}")),
        hostile("conditions that absorb each other", two, format!("{{filter: {{$or: [{absorbed}]}}}}")),
        hostile("alternatives inside alternatives", alone, format!("{{filter: {inside}}}")),
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
