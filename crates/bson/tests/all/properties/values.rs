//! Generators: any value, and numbers near the limits of types, widths and encodings.

use bunko_bson::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::ops::Range;

/// Doubles around which rounding, widths or classes change.
const CORNERS: [f64; 18] = [
    0.0,
    5e-324,
    2.225_073_858_507_201e-308,
    f64::MIN_POSITIVE,
    1e-300,
    0.1,
    0.5,
    1.0,
    1.5,
    63.0,
    128.0,
    2_147_483_648.0,
    9_007_199_254_740_992.0,
    4_611_686_018_427_387_904.0,
    9_223_372_036_854_775_808.0,
    18_446_744_073_709_551_616.0,
    1e300,
    f64::MAX,
];

const DECIMALS: [&str; 16] = [
    "0",
    "-0E+10",
    "0E-6176",
    "0.1",
    "-0.1",
    "1.0",
    "1.00",
    "1E+6000",
    "-1E+6000",
    "1E-6176",
    "-1E-6176",
    "9.999999999999999999999999999999999E+6144",
    "1E-400",
    "9223372036854775807.5",
    "9223372036854775808.5",
    "4611686018427387904.5",
];

pub fn parse(text: &str) -> Decimal128 {
    Decimal128::parse(text).unwrap_or_else(|| panic!("{text} is a decimal"))
}

fn double() -> impl Strategy<Value = f64> {
    let corner = (select(&CORNERS[..]), -3..4, any::<bool>())
        .prop_map(|(corner, by, negative)| if negative { -step(corner, by) } else { step(corner, by) });
    prop_oneof![
        4 => corner,
        2 => any::<u64>().prop_map(f64::from_bits),
        2 => (-1000..1000, 0..12).prop_map(|(number, halvings)| f64::from(number) / f64::from(1 << halvings)),
        1 => select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]),
    ]
}

fn integer() -> impl Strategy<Value = i64> {
    let corner = (0_u32..64, -2_i64..3, any::<bool>()).prop_map(|(bit, by, negative)| {
        let number = (1_i64 << bit).wrapping_add(by);
        if negative { number.wrapping_neg() } else { number }
    });
    prop_oneof![3 => corner, 1 => any::<i64>(), 1 => -300_i64..300]
}

/// Finite decimals with any digits and exponent.
pub fn finite_decimal() -> impl Strategy<Value = Decimal128> {
    let coefficient = prop_oneof![
        any::<u128>().prop_map(|number| number % 10_u128.pow(34)),
        (any::<u128>(), 1_u32..35).prop_map(|(number, digits)| number % 10_u128.pow(digits)),
        (0_u32..34, 1_u128..10).prop_map(|(zeros, digit)| digit * 10_u128.pow(zeros)),
        (1_u32..35).prop_map(|digits| 10_u128.pow(digits) - 1),
    ];
    let exponent = prop_oneof![4 => -40..10, 2 => -370..320, 1 => -6176..6112, 1 => -6176..-6100, 1 => 6050..6112];
    (coefficient, exponent, any::<bool>()).prop_map(|(coefficient, exponent, negative)| {
        parse(&format!("{}{coefficient}E{exponent}", if negative { "-" } else { "" }))
    })
}

fn decimal() -> impl Strategy<Value = Decimal128> {
    // 34 digits of a double or integer, and the neighbours in the last digit.
    let near_double = (double(), -1..2).prop_map(|(number, by)| {
        let text = format!("{number:.33e}");
        let last = text.split_once('e').map_or(0, |(_, exponent)| exponent.parse::<i32>().expect("an exponent") - 33);
        parse(&text).add(parse(&format!("{by}E{last}")))
    });
    let near_integer = (integer(), 0..15, -1..2)
        .prop_map(|(number, places, by)| Decimal128::from_i64(number).add(parse(&format!("{by}E-{places}"))));
    let short_double = (-1000_i32..1000, 1_u32..9)
        .prop_map(|(number, halvings)| parse(&number.to_string()).divide(Decimal128::from_i64(1 << halvings)));
    prop_oneof![
        3 => near_double,
        3 => near_integer,
        2 => finite_decimal(),
        2 => short_double,
        2 => select(&DECIMALS[..]).prop_map(parse),
        1 => select(vec![Decimal128::NAN, Decimal128::INFINITY, Decimal128::NEG_INFINITY]),
    ]
}

pub fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        integer().prop_map(|number| Value::Int32(number as i32)),
        integer().prop_map(Value::Int64),
        double().prop_map(Value::Double),
        decimal().prop_map(Value::Decimal128),
    ]
}

/// Numbers of all types within a few last digits of one corner, where rounding conversions would be caught.
pub fn neighbours(count: Range<usize>) -> impl Strategy<Value = Vec<Value>> {
    let corner = prop_oneof![double(), integer().prop_map(|number| number as f64)];
    corner.prop_flat_map(move |corner| vec(neighbour(corner), count.clone()))
}

fn neighbour(corner: f64) -> impl Strategy<Value = Value> {
    let decimal = move |digits: usize, by: i32| {
        let text = format!("{corner:.digits$e}");
        let last = text.split_once('e').map_or(0, |(_, exponent)| exponent.parse().expect("an exponent"));
        Value::Decimal128(parse(&text).add(parse(&format!("{by}E{}", last - digits as i32))))
    };
    prop_oneof![
        2 => (-1..2).prop_map(move |by| Value::Double(step(corner, by))),
        1 => (-1_i64..2).prop_map(move |by| Value::Int64((corner as i64).saturating_add(by))),
        1 => Just(Value::Int32(corner as i32)),
        3 => (select(vec![0_usize, 14, 16, 33]), -1..2).prop_map(move |(digits, by)| decimal(digits, by)),
        1 => (0_i64..40).prop_map(move |twentieths| {
            let fraction = parse("0.05").multiply(Decimal128::from_i64(twentieths));
            Value::Decimal128(Decimal128::from_i64(corner as i64).add(fraction))
        }),
        1 => (-1..2, 30..33).prop_map(move |(by, places)| {
            Value::Decimal128(Decimal128::from_i64(corner as i64).add(parse(&format!("{by}E-{places}"))))
        }),
    ]
}

fn step(number: f64, steps: i32) -> f64 {
    (0..steps.abs()).fold(number, |number, _| if steps > 0 { number.next_up() } else { number.next_down() })
}

/// Text of few letters, so that prefixes and equal texts are common. The lowest two are escaped in keys.
fn text() -> impl Strategy<Value = String> {
    vec(select(vec!['\0', '\u{1}', '\u{2}', 'a', 'b', 'é', '\u{10ffff}']), 0..4).prop_map(String::from_iter)
}

/// Text without zero bytes: names and regular expressions.
fn name() -> impl Strategy<Value = String> {
    vec(select(vec!['\u{1}', 'a', 'b', 'ß']), 0..3).prop_map(String::from_iter)
}

fn object_id() -> impl Strategy<Value = ObjectId> {
    any::<[u8; 12]>().prop_map(ObjectId)
}

fn scalar() -> impl Strategy<Value = Value> {
    let bytes = prop_oneof![4 => vec(select(vec![0_u8, 1, 254, 255]), 0..4), 1 => vec(any::<u8>(), 253..258)];
    prop_oneof![
        6 => number(),
        2 => text().prop_map(Value::String),
        1 => text().prop_map(Value::Symbol),
        1 => (select(vec![0_u8, 4, 255]), bytes).prop_map(|(subtype, bytes)| Value::Binary { subtype, bytes }),
        1 => select(vec![Value::MinKey, Value::Undefined, Value::Null, Value::MaxKey]),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => object_id().prop_map(Value::ObjectId),
        1 => integer().prop_map(Value::DateTime),
        1 => any::<(u32, u32)>().prop_map(|(seconds, increment)| Value::Timestamp(Timestamp { seconds, increment })),
        1 => (name(), name()).prop_map(|(pattern, options)| Value::Regex { pattern, options }),
        1 => (text(), object_id()).prop_map(|(namespace, id)| Value::DbPointer { namespace, id }),
        1 => text().prop_map(Value::JavaScript),
    ]
}

/// Any value, nested up to three levels.
pub fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let document = vec((name(), inner.clone()), 0..4)
            .prop_map(|fields| {
                let mut document = DocumentBuf::new();
                for (name, value) in &fields {
                    document.append(name, value);
                }
                document
            })
            .boxed();
        let array = vec(inner, 0..4).prop_map(|values| values.iter().collect::<ArrayBuf>());
        prop_oneof![
            3 => document.clone().prop_map(Value::Document),
            3 => array.prop_map(Value::Array),
            1 => (text(), document).prop_map(|(code, scope)| Value::JavaScriptWithScope { code, scope }),
        ]
    })
}
