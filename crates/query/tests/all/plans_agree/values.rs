//! Random values and documents.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;

pub fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        24 => (0..6_i32).prop_map(|number| number.to_string()),
        2 => fraction().prop_map(str::to_owned),
        6 => prop::sample::select(vec!["'a'", "'ab'", "'abc'", "'b'", "''", "'A'", "'Ab'"]).prop_map(str::to_owned),
        3 => Just("null".to_owned()),
        5 => prop::sample::select(vec!["NaN", "Infinity", "NumberLong(3)", "NumberDecimal('2.5')", "true", "MinKey",
            "MaxKey", "/^ab/", "ISODate('2020-01-01T00:00:00Z')", "BinData(0, 'AQID')", "{}", "[]"])
            .prop_map(str::to_owned),
    ]
}

/// Numbers whose types lose their fractions in different ways, and equal numbers of other types.
pub fn fraction() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "2.5",
        "NumberDecimal('2.5')",
        "1.5",
        "NumberDecimal('1.5')",
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

/// Values of fields without arrays.
fn single() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => (0..4_i32).prop_map(|number| number.to_string()),
        3 => fraction().prop_map(str::to_owned),
        4 => prop::sample::select(vec!["'a'", "'ab'", "'ab'", "'abc'", "'Ab'", "'B'"]).prop_map(str::to_owned),
        3 => prop::sample::select(vec!["null", "null", "NaN", "NaN", "/^ab/", "ISODate('2020-01-01T00:00:00Z')", "true",
            "NumberLong('5000000000')", "5000000000.0"]).prop_map(str::to_owned),
    ]
}

/// Documents with the fields that compound indexes are on, so that the same few values often meet.
fn alike() -> impl Strategy<Value = String> {
    let number = || 0..4_i32;
    let numbers = (number(), number(), number(), number());
    (numbers, 0..4_u8, single()).prop_map(|((one, two, three, four), form, single)| match form {
        0 => format!("{{s: {one}, t: {two}}}"),
        1 => format!("{{s: {single}, t: {single}, d: {one}}}"),
        2 => format!("{{a: [{one}, {two}], s: {three}, t: {single}}}"),
        _ => format!("{{a: [{{b: {one}, c: {two}}}, {{b: {three}, c: {four}}}], t: {one}}}"),
    })
}

/// Documents whose elements, and arrays inside these, have the few values that conditions on elements ask for.
pub fn with_elements() -> impl Strategy<Value = String> {
    (vec(0..3_i32, 4), 0..7_u8).prop_map(|(numbers, form)| {
        let [one, two, three, four] = numbers[..] else { unreachable!("four numbers") };
        let pairs = format!("[{{c: {one}, d: {two}}}, {{c: {three}, d: {four}}}]");
        match form {
            0 => format!("{{a: [{{b: {one}, c: {two}}}, {{b: {three}, c: {four}}}]}}"),
            1 => format!("{{a: [{{b: [{one}, {two}], c: {three}}}, {{b: {four}}}]}}"),
            2 => format!("{{a: [{{b: {pairs}, c: {one}}}]}}"),
            3 => format!("{{a: {{b: {pairs}, c: {one}}}}}"),
            4 => format!("{{a: [{{b: {{c: {one}, d: {two}}}}}, {{b: {{c: {three}, d: {four}}}}}]}}"),
            5 => format!("{{a: {{b: {one}, c: {two}}}}}"),
            _ => format!("{{a: [[{{b: {one}, c: {two}}}], {{b: {three}}}, {{c: {four}}}]}}"),
        }
    })
}

/// Documents. Fields `a`, `d` and `e` hold any value, `s` and `t` no arrays, so that their indexes can give an order;
/// `g` and `h` are locations.
pub fn stored() -> impl Strategy<Value = String> {
    let any = (prop::sample::select(vec!["a", "a", "a", "d", "d", "e"]), value());
    let pairs = vec((0..4_i32, 0..4_i32), 1..3).prop_map(|pairs| {
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
    let plain = (prop::sample::select(vec!["s", "t"]), single());
    let two = (0..3_i32, 0..3_i32).prop_map(|(one, other)| ("a", format!("[{one}, {other}]")));
    let inner = (0..4_i32, 0..4_i32, 0..7_u8).prop_map(|(one, other, form)| {
        let inner = match form {
            0 => format!("[[{{b: {one}}}], {{c: {other}}}]"),
            1 => format!("[{{b: [{one}, {other}]}}]"),
            2 => format!("[{{b: [{one}, {other}]}}, {{b: {one}}}]"),
            3 => format!("[{{b: []}}, [{one}]]"),
            4 => format!("['ab', {one}]"),
            5 => format!("[/^ab/, {one}]"),
            _ => "[]".to_owned(),
        };
        ("a", inner)
    });
    let places = prop_oneof![pair().prop_map(|pair| ("g", pair)), geometry().prop_map(|geometry| ("h", geometry))];
    let field = prop_oneof![3 => any, 1 => two, 1 => inner, 1 => pairs, 1 => deep, 4 => plain, 2 => places];
    let some = vec(field, 0..6).prop_map(|fields| {
        let mut names = BTreeSet::new();
        braced(
            fields.into_iter().filter(|(name, _)| names.insert(*name)).map(|(name, value)| format!("{name}: {value}")),
        )
    });
    prop_oneof![2 => some, 1 => alike()]
}
