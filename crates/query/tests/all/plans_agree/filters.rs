//! Random filters.

use crate::plans_agree::values::{braced, scalar};
use proptest::collection::vec;
use proptest::prelude::*;

/// Conditions on locations; few, so that filters of queries and of partial indexes often agree.
fn place_condition() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{$geoWithin: {$box: [[0, 0], [3, 3]]}}",
        "{$geoWithin: {$centerSphere: [[2, 2], 0.05]}}",
        "{$geoWithin: {$geometry: {type: 'Polygon', coordinates: [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}}}",
        "{$geoIntersects: {$geometry: {type: 'Polygon', coordinates: [[[2, 1], [5, 1], [5, 5], [2, 1]]]}}}",
        "{$geoIntersects: {$geometry: {type: 'Point', coordinates: [1, 2]}}}",
        "{$geoIntersects: {$geometry: {type: 'Polygon', coordinates: [[[0, -1], [1, -1], [1, 9], [0, 9], [0, -1]]]}}}",
        "{$geoWithin: {$geometry: {type: 'Polygon', coordinates: [[[0, 0], [6, 0], [6, 6], [0, 6], [0, 0]],
            [[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}}}",
        "{$geoWithin: {$center: [[2, 2], 1]}}",
    ])
}

/// A path, or a placeholder for the path of an index field: see `Find::settle`.
fn path() -> impl Strategy<Value = &'static str> {
    prop_oneof![any_path(), prop::sample::select(vec!["@0", "@0", "@1", "@2"])]
}

pub fn any_path() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        5 => Just("a"),
        5 => Just("a.b"),
        3 => Just("a.c"),
        2 => Just("d"),
        3 => Just("s"),
        3 => Just("t"),
        3 => prop::sample::select(vec!["d.b", "e", "a.0", "a.0", "a.b.c", "a.b.c", "a.b.d", "a.0.b", "a.c.d"]),
    ]
}

fn operand() -> impl Strategy<Value = String> {
    prop_oneof![5 => scalar(), 1 => vec(scalar(), 0..3).prop_map(|values| format!("[{}]", values.join(", ")))]
}

fn not_regex() -> impl Strategy<Value = String> {
    operand().prop_filter("a regex cannot be compared", |operand| !operand.contains('/'))
}

fn condition() -> impl Strategy<Value = String> {
    let compare = (prop::sample::select(vec!["$eq", "$gt", "$gte", "$lt", "$lte", "$gte", "$lte"]), not_regex())
        .prop_map(|(op, operand)| format!("{op}: {operand}"))
        .boxed();
    let list = (prop::sample::select(vec!["$in", "$in", "$nin", "$all"]), vec(operand(), 0..4))
        .prop_map(|(op, operands)| format!("{op}: [{}]", operands.join(", ")))
        .boxed();
    let other = prop::sample::select(vec![
        "$exists: true",
        "$exists: false",
        "$size: 1",
        "$type: 'number'",
        "$mod: [2, 0]",
        "$regex: '^a'",
        "$regex: '^ab.*c'",
        "$regex: 'B', $options: 'i'",
        "$in: [/b/, 3, null]",
        "$mod: [3, 1]",
        "$ne: null",
        "$ne: 2",
        "$not: {$gt: 2}",
        "$type: 'array'",
        "$type: ['object', 'null']",
        "$type: ['string', 'bool', 'minKey']",
        "$eq: {}",
        "$eq: []",
        "$in: [[], 3]",
    ])
    .prop_map(str::to_owned);
    let unequal =
        prop_oneof![2 => not_regex(), 1 => Just("null".to_owned())].prop_map(|operand| format!("$ne: {operand}"));
    let negated = prop_oneof![4 => compare.clone(), 2 => list.clone(), 1 => other.clone()]
        .prop_map(|condition| format!("$not: {{{condition}}}"));
    let neither = (0..6_i32, 0..6_i32).prop_map(|(low, high)| format!("$not: {{$gt: {low}, $lt: {high}}}"));
    // Boxed, since the values of nested unions grow beyond the stack of a test.
    let basic = prop_oneof![12 => compare, 6 => list, 4 => other, 2 => unequal, 3 => negated, 1 => neither].boxed();
    let element =
        vec(basic.clone(), 1..3).prop_map(|conditions| format!("$elemMatch: {}", braced(conditions.into_iter())));
    let object = (
        prop::sample::select(vec!["b", "c", "b.c", "0"]),
        basic.clone(),
        prop::sample::select(vec!["b", "c"]),
        basic.clone(),
    )
        .prop_map(|(one, first, other, second)| {
            format!("$elemMatch: {{'{one}': {{{first}}}, $and: [{{{other}: {{{second}}}}}]}}")
        });
    prop_oneof![10 => basic, 1 => element, 1 => object].boxed()
}

/// Pairs of conditions that a plan tests on keys. Different elements of an array may satisfy the two.
pub fn tests_of_values() -> impl Strategy<Value = [&'static str; 2]> {
    prop::sample::select(vec![
        ["$mod: [2, 0]", "$mod: [3, 1]"],
        ["$mod: [2, 1]", "$regex: 'b'"],
        ["$regex: '^a'", "$regex: 'b'"],
        ["$mod: [2, 0]", "$gte: 3"],
        ["$exists: false", "$not: {$mod: [2, 0]}"],
    ])
}

pub fn predicate() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (path(), scalar()).prop_map(|(path, value)| format!("{{'{path}': {value}}}")),
        5 => (path(), condition()).prop_map(|(path, condition)| format!("{{'{path}': {{{condition}}}}}")),
        3 => (path(), -1..6_i32, 0..4_i32).prop_map(|(path, low, width)| {
            format!("{{'{path}': {{$gte: {low}, $lt: {}}}}}", low + width)
        }),
        2 => (prop::sample::select(vec!["s", "t"]), vec(0..6_i32, 2..4)).prop_map(|(path, list)| {
            format!("{{{path}: {{$in: {list:?}}}}}")
        }),
        2 => (path(), tests_of_values()).prop_map(|(path, [one, other])| {
            format!("{{$and: [{{'{path}': {{{one}}}}}, {{'{path}': {{{other}}}}}]}}")
        }),
        2 => (prop::sample::select(vec!["g", "h"]), place_condition())
            .prop_map(|(path, condition)| format!("{{{path}: {condition}}}")),
        1 => (0..6_i32, 0..6_i32).prop_map(|(b, c)| format!("{{'a.b': {b}, 'a.c': {c}}}")),
        1 => (0..3_i32, 0..3_i32).prop_map(|(c, d)| format!("{{'a.b.c': {c}, 'a.b.d': {d}}}")),
        1 => (0..3_i32, 0..3_i32).prop_map(|(c, d)| format!("{{'a.b': {{$elemMatch: {{c: {c}, d: {{$lte: {d}}}}}}}}}")),
        2 => element_of_a(),
    ]
}

/// Conditions on fields of one element, or of an array or element inside it, that an index has side by side.
pub fn element_of_a() -> impl Strategy<Value = String> {
    (0..4_i32, 0..4_i32, 0..8_u8).prop_map(|(one, other, form)| match form {
        0 => format!("{{a: {{$elemMatch: {{b: {one}, c: {other}}}}}}}"),
        1 => format!("{{a: {{$elemMatch: {{b: {{$gte: {one}}}, c: {other}}}}}}}"),
        2 => format!("{{a: {{$elemMatch: {{b: {one}, c: {{$ne: {other}}}}}}}}}"),
        3 => format!("{{$and: [{{a: {{$elemMatch: {{b: {one}}}}}}}, {{a: {{$elemMatch: {{c: {other}}}}}}}]}}"),
        4 => format!("{{a: {{$elemMatch: {{'b.c': {one}, 'b.d': {other}}}}}}}"),
        5 => format!("{{a: {{$elemMatch: {{b: {{$elemMatch: {{c: {one}, d: {other}}}}}}}}}}}"),
        6 => format!("{{a: {{$elemMatch: {{$or: [{{b: {one}}}, {{b: {other}}}], c: {{$lte: {other}}}}}}}}}"),
        _ => format!("{{a: {{$elemMatch: {{b: {one}, c: null}}}}, 'a.c': {other}}}"),
    })
}

/// Conditions whose operands are at the limits of bounds and keys: null, the ends of the order, NaN.
pub fn pointed() -> impl Strategy<Value = String> {
    let conditions = vec![
        "null",
        "{$ne: null}",
        "{$exists: false}",
        "{$exists: true}",
        "{$lte: MaxKey}",
        "{$gt: MinKey}",
        "{$gte: NaN}",
        "{$lt: NaN}",
        "{$type: 'number'}",
        "{$mod: [2, 0]}",
        "{$type: 'double'}",
        "/^ab.*c/",
        "{$in: [/^ab.*c/, 3]}",
        "/^ab/",
        "{$in: [/^ab/, 3]}",
        "{$nin: [null, 2]}",
        "{$nin: [[1], 2]}",
        "'ab'",
        "'Ab'",
        "{$gte: 'ab'}",
        "{$gt: 'ab'}",
        "{$lte: 'ab'}",
        "{$gte: 'B'}",
        "{$in: ['ab', 'B']}",
        "{$elemMatch: {b: null}}",
        "{$elemMatch: {c: {$exists: false}}}",
        "{$elemMatch: {$gt: 1, $lt: 3}}",
        "[1, 2]",
        "[]",
        "NumberDecimal('-1.5')",
        "-1.5",
        "1.5",
        "NumberDecimal('2.5')",
        "{$gte: 1, $lt: 2}",
        "{$not: {$gt: 1, $lt: 4}}",
        "{$gte: 2}",
        "{$lte: 2}",
        "{$in: [1, 2, 3]}",
        "{$in: [1, 2, 3]}",
    ];
    let paths = || prop::sample::select(vec!["@0", "@0", "@1", "@2", "a.b"]);
    let one =
        (paths(), prop::sample::select(conditions)).prop_map(|(path, condition)| format!("'{path}': {condition}"));
    let expr =
        (paths(), prop::sample::select(vec!["$lt", "$lte", "$gte"]), prop::sample::select(vec!["null", "2", "'ab'"]))
            .prop_map(|(path, op, value)| format!("$expr: {{{op}: ['${path}', {value}]}}"));
    let elements = prop::sample::select(vec![
        "a: {$elemMatch: {b: null}}",
        "a: {$elemMatch: {b: 1, c: null}}",
        "a: {$elemMatch: {b: {$gte: 1}, c: {$lte: 2}}}",
        "a: {$elemMatch: {b: {$gt: 0, $lt: 2}}}",
        "'a.b': {$elemMatch: {c: 1, d: 1}}",
        "$or: [{'@0': {$gte: 1, $lt: 2}}, {'@0': 5}]",
    ]);
    let some = prop_oneof![8 => one, 1 => expr, 1 => elements.prop_map(str::to_owned)].boxed();
    vec(some.prop_map(|condition| format!("{{{condition}}}")), 1..3).prop_map(|parts| match &parts[..] {
        [only] => only.clone(),
        several => format!("{{$and: [{}]}}", several.join(", ")),
    })
}

/// A comparison in the order of all values, with the constant on either side.
fn comparison_in_expr() -> impl Strategy<Value = String> {
    let constant = prop_oneof![
        8 => operand().prop_map(|operand| format!("{{$literal: {operand}}}")),
        1 => Just("{$literal: undefined}".to_owned()),
        2 => Just("null".to_owned()),
        1 => Just("'$$REMOVE'".to_owned()),
        1 => Just("{$add: [1, 2]}".to_owned()),
    ];
    let op = prop::sample::select(vec!["$eq", "$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]);
    (op, path(), constant, prop::bool::ANY).prop_map(|(op, path, constant, is_first)| {
        if is_first {
            format!("{{{op}: [{constant}, '${path}']}}")
        } else {
            format!("{{{op}: ['${path}', {constant}]}}")
        }
    })
}

fn expr() -> impl Strategy<Value = String> {
    let several = vec(comparison_in_expr(), 1..4).prop_map(|parts| format!("{{$and: [{}]}}", parts.join(", ")));
    prop_oneof![3 => comparison_in_expr(), 2 => several]
        .prop_map(|expression| format!("{{$expr: {expression}}}"))
        .boxed()
}

pub fn filter() -> impl Strategy<Value = String> {
    let list = |name: &'static str, parts: Vec<String>| format!("{{{name}: [{}]}}", parts.join(", "));
    let constant = prop::sample::select(vec![
        "{$alwaysTrue: 1}",
        "{$alwaysFalse: 1}",
        "{a: {$nin: []}}",
        "{$expr: {$eq: [1, 1]}}",
        "{$expr: {$eq: ['$$NOW', 1]}}",
        "{a: {$elemMatch: {$in: []}}}",
    ]);
    let leaf = prop_oneof![12 => predicate(), 3 => expr(), 1 => constant.prop_map(str::to_owned)];
    leaf.prop_recursive(3, 8, 3, move |inner| {
        let repeated = (inner.clone(), inner.clone(), 0..4_usize);
        prop_oneof![
            1 => repeated.prop_map(|(one, other, form)| match form {
                0 => format!("{{$or: [{one}, {{$and: [{one}, {other}]}}]}}"),
                1 => format!("{{$and: [{one}, {{$or: [{one}, {other}]}}]}}"),
                2 => format!("{{$or: [{other}, {{$nor: [{one}]}}, {one}]}}"),
                _ => format!("{{$and: [{other}, {{$nor: [{one}]}}, {one}]}}"),
            }),
            4 => vec(inner.clone(), 1..4).prop_map(move |parts| list("$and", parts)),
            3 => vec(inner.clone(), 1..4).prop_map(move |parts| list("$or", parts)),
            1 => vec(inner, 1..3).prop_map(move |parts| list("$nor", parts)),
        ]
    })
}
