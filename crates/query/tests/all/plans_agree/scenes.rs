//! Random documents, indexes, filters and sorts.

use crate::temporary::{Database, document};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_testkit::shell;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        24 => (0..6_i32).prop_map(|number| number.to_string()),
        2 => fraction().prop_map(str::to_owned),
        3 => prop::sample::select(vec!["'a'", "'ab'", "'abc'", "'b'", "''"]).prop_map(str::to_owned),
        3 => Just("null".to_owned()),
        2 => prop::sample::select(vec!["NaN", "Infinity", "NumberLong(3)", "NumberDecimal('2.5')", "true", "MinKey",
            "MaxKey", "/^ab/", "ISODate('2020-01-01T00:00:00Z')", "BinData(0, 'AQID')", "{}", "[]"])
            .prop_map(str::to_owned),
    ]
}

/// Numbers whose types lose their fractions in different ways, and equal numbers of other types.
fn fraction() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "2.5",
        "NumberDecimal('2.5')",
        "1.5",
        "NumberDecimal('1.5')",
        "-1.5",
        "NumberDecimal('-1.5')",
        "NumberDecimal('3')",
        "NumberLong(3)",
        "NumberDecimal('1E19')",
        "1e19",
        "-0.0",
        "NumberDecimal('-0')",
    ])
}

fn value() -> impl Strategy<Value = String> {
    let nested = prop_oneof![6 => scalar(), 1 => Just("undefined".to_owned())];
    nested.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(", "))),
            3 => fields(inner),
        ]
    })
}

fn fields(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec((prop::sample::select(vec!["b", "b", "b", "c", "c", "0"]), value), 0..3)
        .prop_map(|fields| braced(fields.into_iter().map(|(name, value)| format!("'{name}': {value}"))))
}

pub fn braced(fields: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// A coordinate pair, at times two of them.
fn pair() -> impl Strategy<Value = String> {
    let pair = || (0..6_i32, 0..6_i32).prop_map(|(x, y)| format!("[{x}, {y}]"));
    prop_oneof![12 => pair(), 1 => (pair(), pair()).prop_map(|(one, other)| format!("[{one}, {other}]"))]
}

/// A location on the sphere.
fn geometry() -> impl Strategy<Value = String> {
    let place = || (0..6_i32, 0..6_i32);
    prop_oneof![
        place().prop_map(|(x, y)| format!("[{x}, {y}]")),
        place().prop_map(|(x, y)| format!("{{type: 'Point', coordinates: [{x}, {y}]}}")),
        (place(), 1..3_i32).prop_map(|((x, y), length)| {
            format!("{{type: 'LineString', coordinates: [[{x}, {y}], [{x}, {}]]}}", y + length)
        }),
        (place(), 1..4_i32).prop_map(|((x, y), width)| {
            format!("{{type: 'Polygon', coordinates: [{}]}}", square(f64::from(x), f64::from(y), f64::from(width)))
        }),
        (place(), 3..5_i32, 0..2_i32).prop_map(|((x, y), width, aside)| {
            let (x, y, width) = (f64::from(x), f64::from(y), f64::from(width));
            let (outer, hole) = (square(x, y, width), square(x + f64::from(aside) + 0.5, y + 0.5, width - 2.0));
            format!("{{type: 'Polygon', coordinates: [{outer}, {hole}]}}")
        }),
        prop::sample::select(vec!["{}", "[]", "null", "[[]]", "{type: 'Point'}"]).prop_map(str::to_owned),
    ]
}

/// The ring of a square in degrees.
fn square(x: f64, y: f64, width: f64) -> String {
    let (right, top) = (x + width, y + width);
    format!("[[{x}, {y}], [{right}, {y}], [{right}, {top}], [{x}, {top}], [{x}, {y}]]")
}

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

/// Documents. Fields `a`, `d` and `e` hold any value, `s` and `t` no arrays, so that their indexes can give an order;
/// `g` and `h` are locations.
pub fn stored() -> impl Strategy<Value = String> {
    let any = (prop::sample::select(vec!["a", "a", "a", "d", "d", "e"]), value());
    let pairs = vec((0..6_i32, 0..6_i32), 1..3).prop_map(|pairs| {
        let pairs = pairs.into_iter().map(|(b, c)| format!("{{b: {b}, c: {c}}}"));
        ("a", format!("[{}]", pairs.collect::<Vec<_>>().join(", ")))
    });
    let deep = vec(vec((0..3_i32, 0..3_i32), 0..3), 1..3).prop_map(|elements| {
        let inner = |pairs: Vec<(i32, i32)>| {
            let pairs = pairs.into_iter().map(|(c, d)| format!("{{c: {c}, d: {d}}}"));
            format!("{{b: [{}], c: {{d: 1}}}}", pairs.collect::<Vec<_>>().join(", "))
        };
        match &elements[..] {
            [only] => ("a", inner(only.clone())),
            several => ("a", format!("[{}]", several.iter().cloned().map(inner).collect::<Vec<_>>().join(", "))),
        }
    });
    let number = prop_oneof![
        12 => (0..6_i32).prop_map(|number| number.to_string()),
        2 => fraction().prop_map(str::to_owned),
        2 => prop::sample::select(vec!["null", "null", "'a'", "ISODate('2020-01-01T00:00:00Z')", "true",
            "NumberLong('5000000000')", "5000000000.0"]).prop_map(str::to_owned),
    ];
    let plain = (prop::sample::select(vec!["s", "t"]), number);
    let two = (0..3_i32, 0..3_i32).prop_map(|(one, other)| ("a", format!("[{one}, {other}]")));
    let places = prop_oneof![pair().prop_map(|pair| ("g", pair)), geometry().prop_map(|geometry| ("h", geometry))];
    vec(prop_oneof![3 => any, 1 => two, 1 => pairs, 1 => deep, 4 => plain, 2 => places], 0..6).prop_map(|fields| {
        let mut names = BTreeSet::new();
        braced(
            fields.into_iter().filter(|(name, _)| names.insert(*name)).map(|(name, value)| format!("{name}: {value}")),
        )
    })
}

fn path() -> impl Strategy<Value = &'static str> {
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

/// Tests that keys are checked for. Different elements of an array may satisfy the two.
fn tests_of_values() -> impl Strategy<Value = [&'static str; 2]> {
    prop::sample::select(vec![
        ["$mod: [2, 0]", "$mod: [3, 1]"],
        ["$mod: [2, 1]", "$regex: 'b'"],
        ["$regex: '^a'", "$regex: 'b'"],
        ["$mod: [2, 0]", "$gte: 3"],
        ["$exists: false", "$not: {$mod: [2, 0]}"],
    ])
}

fn predicate() -> impl Strategy<Value = String> {
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
    ]
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

pub fn pattern() -> impl Strategy<Value = String> {
    let telling = prop::sample::select(vec![
        "{'a.b': 1, 'a.c': 1}",
        "{'a.c': 1, 'a.b': -1}",
        "{'a.b.c': 1, 'a.b.d': 1}",
        "{'a.b.d': 1, 'a.c.d': 1, s: 1}",
        "{s: 1, t: 1}",
        "{s: 1, t: 1}",
        "{s: -1, t: 1}",
        "{t: 1, s: 1}",
    ]);
    prop_oneof![2 => any_pattern(), 1 => telling.prop_map(str::to_owned)]
}

/// Key patterns whose indexes refuse arrays on their paths, and wildcard patterns.
fn hashed_pattern() -> impl Strategy<Value = String> {
    let patterns = [
        "{'$**': 1}",
        "{'a.$**': -1}",
        "{s: 'hashed'}",
        "{t: 'hashed', s: 1}",
        "{s: -1, t: 'hashed'}",
        "{a: 'hashed'}",
    ];
    prop::sample::select(patterns.to_vec()).prop_map(str::to_owned)
}

fn place_pattern() -> impl Strategy<Value = String> {
    let patterns = [
        "{g: '2d'}",
        "{g: '2d', t: 1}",
        "{g: '2dsphere'}",
        "{h: '2dsphere'}",
        "{h: '2dsphere', s: 1}",
        "{s: -1, h: '2dsphere'}",
    ];
    prop::sample::select(patterns.to_vec()).prop_map(str::to_owned)
}

fn any_pattern() -> impl Strategy<Value = String> {
    vec((path(), prop::bool::ANY), 1..4).prop_map(|parts| {
        let mut paths = BTreeSet::new();
        braced(
            parts
                .into_iter()
                .filter(|(path, _)| paths.insert(*path))
                .map(|(path, ascending)| format!("'{path}': {}", if ascending { 1 } else { -1 })),
        )
    })
}

/// Index options, most often none.
fn options() -> impl Strategy<Value = String> {
    let partial = predicate().prop_map(|filter| format!("{{partialFilterExpression: {filter}}}"));
    let implied = prop::sample::select(vec![
        "{partialFilterExpression: {a: {$gte: 2}}}",
        "{partialFilterExpression: {s: {$exists: true}}}",
        "{partialFilterExpression: {$or: [{s: {$lt: 3}}, {a: {$in: [1, 2, 3]}}]}}",
        "{partialFilterExpression: {'a.b': {$lte: 4}, t: {$type: 'int'}}}",
        "{partialFilterExpression: {g: {$exists: true}}}",
        "{partialFilterExpression: {h: {$exists: true}}}",
        "{partialFilterExpression: {g: {$geoWithin: {$box: [[0, 0], [3, 3]]}}}}",
        "{partialFilterExpression: {h: {$geoWithin: {$centerSphere: [[2, 2], 0.05]}}}}",
        "{sparse: true}",
        "{sparse: true}",
        "{hidden: true}",
    ]);
    prop_oneof![4 => Just("{}".to_owned()), 1 => partial, 3 => implied.prop_map(str::to_owned)]
}

/// Contents and queries of one collection.
#[derive(Debug)]
pub struct Scene {
    pub documents: Vec<String>,
    pub indexes: Vec<String>,
    /// Options per index; some of them fail.
    pub options: Vec<String>,
    /// Number of documents inserted before the indexes are built.
    pub early: usize,
    pub finds: Vec<Find>,
}

/// One query.
#[derive(Debug)]
pub struct Find {
    pub filter: String,
    pub sort: Sort,
    pub skip: u8,
    pub limit: Option<u8>,
}

#[derive(Clone, Debug)]
pub enum Sort {
    None,
    By(String),
    /// By the key pattern of an index.
    AsIndex(usize),
    /// By the reverse of an index's key pattern.
    AgainstIndex(usize),
    /// By the fields of an index behind its first.
    BehindFirst(usize),
}

impl Sort {
    /// The key pattern to sort by; `indexes` are the key patterns of the indexes.
    pub fn pattern(&self, indexes: &[String]) -> Option<String> {
        match self {
            Self::None => None,
            Self::By(pattern) => Some(pattern.clone()),
            Self::AsIndex(number) => Some(sortable(&indexes[number % indexes.len()])),
            Self::AgainstIndex(number) => Some(reversed(&sortable(&indexes[number % indexes.len()]))),
            Self::BehindFirst(number) => {
                let pattern = sortable(&indexes[number % indexes.len()]);
                let (_, others) = pattern.split_once(", ")?;
                Some(if number % 2 == 0 { format!("{{{others}") } else { reversed(&format!("{{{others}")) })
            }
        }
    }
}

fn reversed(pattern: &str) -> String {
    pattern.replace(": 1", ": x").replace(": -1", ": 1").replace(": x", ": -1")
}

/// A key pattern with only directions.
fn sortable(pattern: &str) -> String {
    pattern.replace("'hashed'", "1").replace("'2dsphere'", "1").replace("'2d'", "1").replace("$**", "b")
}

fn sort() -> impl Strategy<Value = Sort> {
    prop_oneof![
        Just(Sort::None),
        pattern().prop_map(Sort::By),
        (0..4_usize).prop_map(Sort::AsIndex),
        (0..4_usize).prop_map(Sort::AgainstIndex),
        (0..4_usize).prop_map(Sort::BehindFirst),
    ]
}

pub fn scene() -> impl Strategy<Value = Scene> {
    (vec(stored(), 0..25), vec(index(), 1..5), 0..25_usize, vec(find(), 1..12)).prop_map(
        |(documents, indexes, early, finds)| {
            let (indexes, options) = indexes.into_iter().unzip();
            Scene { documents, indexes, options, early, finds }
        },
    )
}

/// A key pattern and options.
pub fn index() -> impl Strategy<Value = (String, String)> {
    (prop_oneof![5 => pattern(), 1 => hashed_pattern(), 1 => place_pattern()], options())
}

pub fn find() -> impl Strategy<Value = Find> {
    let asked = prop_oneof![3 => (filter(), sort()), 1 => telling_find()];
    (asked, 0..3_u8, prop::option::weighted(0.3, 1..5_u8)).prop_map(|((filter, sort), skip, limit)| Find {
        filter,
        sort,
        skip,
        limit,
    })
}

/// Filters and sorts that fit some of the indexes: lists before the field of the sort, alternatives with an index each,
/// and conditions that keys are checked for.
fn telling_find() -> impl Strategy<Value = (String, Sort)> {
    let order = prop::sample::select(vec!["{t: 1}", "{t: -1}", "{t: -1, s: 1}"]);
    let lists = (vec(0..6_i32, 2..4), order.clone())
        .prop_map(|(list, order)| (format!("{{s: {{$in: {list:?}}}}}"), Sort::By(order.to_owned())));
    let test = || prop::sample::select(vec!["{$mod: [2, 0]}", "{$mod: [3, 1]}", "{$gte: 1}", "{$in: [1, 2]}", "2"]);
    let alternatives =
        (0..3_i32, test(), 0..6_i32, 0..3_i32, test(), order).prop_map(|(s, one, t, again, other, order)| {
            let filter = format!("{{$or: [{{s: {s}, t: {one}}}, {{t: {t}}}, {{s: {again}, t: {other}}}]}}");
            (filter, Sort::By(order.to_owned()))
        });
    let checked = (prop::sample::select(vec!["a", "s", "t"]), tests_of_values()).prop_map(|(path, [one, other])| {
        (format!("{{$and: [{{{path}: {{{one}}}}}, {{{path}: {{{other}}}}}]}}"), Sort::None)
    });
    let missing = prop::sample::select(vec!["a.b", "a.b", "a.c", "s", "t"]);
    let absent = missing.prop_map(|path| (format!("{{'{path}': {{$exists: false}}}}"), Sort::None));
    prop_oneof![2 => lists, 2 => alternatives, 2 => checked, 1 => absent]
}

/// A document with an `_id` before its fields.
pub fn with_id(id: usize, text: &str) -> String {
    let mut whole = DocumentBuf::new().with("_id", id as i32);
    whole.extend(document(text).as_ref());
    shell::print(ValueRef::Document(whole.as_ref()))
}

/// Fills the collection of a scene: some documents before the indexes, the rest after.
pub fn populate(database: &Database, name: &str, scene: &Scene) {
    database.collection(name);
    let early = scene.early.min(scene.documents.len());
    let insert = |position: usize, text: &str| {
        // Fails if the indexes meet parallel arrays.
        let _ = database.insert(name, &with_id(position, text));
    };
    scene.documents[..early].iter().enumerate().for_each(|(position, text)| insert(position, text));
    for (index, options) in scene.indexes.iter().zip(&scene.options) {
        let _ = database.index(name, &document(index), &document(options));
    }
    scene.documents[early..].iter().enumerate().for_each(|(position, text)| insert(early + position, text));
}
