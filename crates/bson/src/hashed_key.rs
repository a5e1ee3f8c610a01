//! The hash of values for hashed indexes and `$toHashedIndexKey`.
//!
//! Numbers are hashed as whole numbers, without their fraction, so that equal numbers of different types mostly have
//! one hash.
//! Source: MongoDB manual, "Hashed Indexes" and "$toHashedIndexKey".

use crate::{DocumentBuf, DocumentRef, Type, ValueRef, number};
use md5::{Digest, Md5};

/// The first eight bytes, little endian, of the MD5 of the value, in a form that is the same for equal values.
pub fn hashed_key(value: ValueRef<'_>) -> i64 {
    let mut md5 = Md5::new();
    // The seed is 0 in every index.
    md5.update(0_i32.to_le_bytes());
    add(&mut md5, None, value);
    let digest = md5.finalize();
    i64::from_le_bytes(std::array::from_fn(|byte| digest[byte]))
}

/// The hashes of all values that equal this one. The way in which a number loses its fraction depends on its type, so
/// that an equal `Double` and `Decimal128` may have different hashes. `None` if a number with two hashes is inside a
/// document or array.
pub fn hashed_keys_of_equals(value: ValueRef<'_>) -> Option<Vec<i64>> {
    match value {
        ValueRef::Document(document) => is_alike(document).then(|| vec![hashed_key(value)]),
        ValueRef::Array(array) => is_alike(array.as_document()).then(|| vec![hashed_key(value)]),
        ValueRef::JavaScriptWithScope { scope, .. } => is_alike(scope).then(|| vec![hashed_key(value)]),
        value if value.is_number() => {
            let [cut, rounded] = wholes(value).map(|whole| hashed_key(ValueRef::Int64(whole)));
            Some(if cut == rounded { vec![cut] } else { vec![cut, rounded] })
        }
        value => Some(vec![hashed_key(value)]),
    }
}

/// Whether every number inside has the same hash as a `Double` and as a `Decimal128`.
fn is_alike(document: DocumentRef<'_>) -> bool {
    document.iter().all(|element| match element.value {
        ValueRef::Document(inner) => is_alike(inner),
        ValueRef::Array(inner) => is_alike(inner.as_document()),
        ValueRef::JavaScriptWithScope { scope, .. } => is_alike(scope),
        value if value.is_number() => {
            let [cut, rounded] = wholes(value);
            cut == rounded
        }
        _ => true,
    })
}

/// The whole numbers by which a number is hashed, as a `Double` and as a `Decimal128`.
fn wholes(value: ValueRef<'_>) -> [i64; 2] {
    let double = match value {
        ValueRef::Decimal128(decimal) if decimal.is_nan() => 0,
        ValueRef::Decimal128(decimal) => match number::truncate_to_i64(value) {
            Some(cut) => cut,
            // A `Double` beyond 64 bits is hashed as the smallest number, whatever its sign.
            None => whole(ValueRef::Double(if decimal.is_negative() { f64::NEG_INFINITY } else { f64::INFINITY })),
        },
        value => whole(value),
    };
    let decimal = match value {
        ValueRef::Double(double) => double.round_ties_even() as i64,
        value => whole(value),
    };
    [double, decimal]
}

fn add(md5: &mut Md5, name: Option<&str>, value: ValueRef<'_>) {
    md5.update(canonical(value.kind()).to_le_bytes());
    if let Some(name) = name {
        md5.update(name.as_bytes());
        md5.update([0]);
    }
    match value {
        ValueRef::Document(document) => add_fields(md5, document),
        ValueRef::Array(array) => add_fields(md5, array.as_document()),
        ValueRef::JavaScriptWithScope { code, scope } => {
            md5.update(code.as_bytes());
            md5.update([0]);
            add_fields(md5, scope);
        }
        value if value.is_number() => md5.update(whole(value).to_le_bytes()),
        value => md5.update(stored_bytes(&DocumentBuf::new().with("", value))),
    }
}

fn add_fields(md5: &mut Md5, document: DocumentRef<'_>) {
    for element in document {
        add(md5, Some(element.name), element.value);
    }
    // The end of a document counts as an element of type 0.
    md5.update(0_i32.to_le_bytes());
}

/// The bytes of the value in a document whose only name is empty.
fn stored_bytes(document: &DocumentBuf) -> &[u8] {
    let bytes = document.as_ref().as_bytes();
    // Before the value are the length, the type and the end of the name; after it is the end of the document.
    &bytes[6..bytes.len() - 1]
}

/// The whole number by which a number is hashed. A `Double` too large for 64 bits becomes the smallest, as in MongoDB.
fn whole(value: ValueRef<'_>) -> i64 {
    /// 2 to the 63rd.
    const ABOVE_ALL: f64 = 9_223_372_036_854_775_808.0;
    match value {
        ValueRef::Double(double) if double >= ABOVE_ALL => i64::MIN,
        value => number::clamp_to_i64(value).unwrap_or(0),
    }
}

/// The number by which a type is hashed. Types that can be equal have one number.
fn canonical(kind: Type) -> i32 {
    match kind {
        Type::MinKey => -1,
        Type::Undefined => 0,
        Type::Null => 5,
        Type::Double | Type::Int32 | Type::Int64 | Type::Decimal128 => 10,
        Type::String | Type::Symbol => 15,
        Type::Document => 20,
        Type::Array => 25,
        Type::Binary => 30,
        Type::ObjectId => 35,
        Type::Boolean => 40,
        Type::DateTime => 45,
        Type::Timestamp => 47,
        Type::Regex => 50,
        Type::DbPointer => 55,
        Type::JavaScript => 60,
        Type::JavaScriptWithScope => 65,
        Type::MaxKey => 127,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decimal128, Value, order};

    #[test]
    fn equal_numbers_and_cut_fractions_have_one_hash() {
        let one = hashed_key(ValueRef::Int32(1));
        assert_eq!(hashed_key(ValueRef::Int64(1)), one);
        assert_eq!(hashed_key(ValueRef::Double(1.0)), one);
        assert_eq!(hashed_key(ValueRef::Double(1.9)), one);
        assert_ne!(hashed_key(ValueRef::Int32(2)), one);
        assert_ne!(hashed_key(ValueRef::String("1")), one);
        assert_ne!(hashed_key(ValueRef::Null), hashed_key(ValueRef::Undefined));
    }

    /// Numbers of all types, near places where their conversions to whole numbers differ.
    #[test]
    fn equal_numbers_have_a_hash_that_each_of_them_asks_for() {
        let mut texts: Vec<String> =
            ["NaN", "Infinity", "-Infinity", "-0", "1E400", "-1E400", "1E-400"].map(str::to_owned).into();
        for whole in [0_i64, 1, 2, 3, 1 << 31, (1 << 52) - 1, 1 << 53, 1 << 62, i64::MAX - 1023, i64::MAX] {
            for sign in ["", "-"] {
                for fraction in ["", ".25", ".5", ".75"] {
                    texts.push(format!("{sign}{whole}{fraction}"));
                }
            }
        }
        texts.extend(
            ["9223372036854775808", "-9223372036854775808", "18446744073709551616", "1E19", "-1E19"].map(str::to_owned),
        );
        let mut values = Vec::new();
        for text in &texts {
            values.push(Value::Decimal128(Decimal128::parse(text).expect(text)));
            values.extend(text.parse().ok().map(Value::Double));
            values.extend(text.parse().ok().map(Value::Int64));
            values.extend(text.parse().ok().map(Value::Int32));
        }
        let mut pairs = 0;
        for stored in &values {
            for asked in &values {
                if order::compare(stored.as_ref(), asked.as_ref()).is_eq() {
                    let hashes = hashed_keys_of_equals(asked.as_ref()).expect("a number");
                    assert!(hashes.contains(&hashed_key(stored.as_ref())), "{stored:?} is not found by {asked:?}");
                    pairs += 1;
                }
            }
        }
        assert!(pairs > 2 * values.len());
    }

    #[test]
    fn a_fraction_inside_a_document_leaves_its_hash_open() {
        let inside = |value: Value| DocumentBuf::new().with("a", &DocumentBuf::new().with("b", value.as_ref()));
        let hashes = |document: &DocumentBuf| hashed_keys_of_equals(ValueRef::Document(document.as_ref()));
        assert_eq!(hashes(&inside(Value::Double(1.75))), None);
        assert_eq!(hashes(&inside(Value::Double(1.25))).map(|hashes| hashes.len()), Some(1));
    }

    #[test]
    fn nested_values_count_with_their_names() {
        let of = |name: &str| hashed_key(ValueRef::Document(DocumentBuf::new().with(name, 1_i32).as_ref()));
        assert_eq!(of("a"), of("a"));
        assert_ne!(of("a"), of("b"));
    }
}
