//! `Name(arguments)`: the types that have no syntax of their own.

use bunko_bson::{BinarySubtype, Decimal128, ObjectId, Timestamp, Value, base64, datetime};

/// Makes the value of a constructor with its arguments.
pub(super) fn construct(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let made = match (name, arguments) {
        ("MinKey", []) => Some(Value::MinKey),
        ("MaxKey", []) => Some(Value::MaxKey),
        ("ObjectId", [Value::String(hex)]) => ObjectId::parse_hex(hex).map(Value::ObjectId),
        ("ISODate", [Value::String(text)]) => datetime::parse_iso8601(text).map(Value::DateTime),
        ("Date", [ms]) => integer(ms).map(Value::DateTime),
        ("NumberInt", [number]) => integer(number).and_then(|number| number.try_into().ok()).map(Value::Int32),
        ("NumberLong", [number]) => integer(number).map(Value::Int64),
        ("NumberDecimal", [number]) => decimal(number).map(Value::Decimal128),
        ("Timestamp", [seconds, increment]) => timestamp(seconds, increment),
        ("BinData", [subtype, Value::String(text)]) => binary(subtype, text),
        ("UUID", [Value::String(text)]) => uuid(text),
        ("RegExp", [Value::String(pattern)]) => regex(pattern, ""),
        ("RegExp", [Value::String(pattern), Value::String(options)]) => regex(pattern, options),
        ("Code", [Value::String(code)]) => Some(Value::JavaScript(code.clone())),
        ("Code", [Value::String(code), Value::Document(scope)]) => {
            Some(Value::JavaScriptWithScope { code: code.clone(), scope: scope.clone() })
        }
        ("Symbol", [Value::String(text)]) => Some(Value::Symbol(text.clone())),
        ("DBPointer", [Value::String(namespace), Value::ObjectId(id)]) => {
            Some(Value::DbPointer { namespace: namespace.clone(), id: *id })
        }
        _ => None,
    };
    made.ok_or_else(|| format!("no value is written {name} with the arguments {arguments:?}"))
}

/// An integer, or a string of its digits: script languages round numbers beyond 2^53.
fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    }
}

fn decimal(value: &Value) -> Option<Decimal128> {
    match value {
        Value::String(text) => Decimal128::parse(text),
        value => integer(value).map(Decimal128::from_i64),
    }
}

fn timestamp(seconds: &Value, increment: &Value) -> Option<Value> {
    let seconds = integer(seconds)?.try_into().ok()?;
    let increment = integer(increment)?.try_into().ok()?;
    Some(Value::Timestamp(Timestamp { seconds, increment }))
}

fn binary(subtype: &Value, text: &str) -> Option<Value> {
    let subtype = integer(subtype)?.try_into().ok()?;
    Some(Value::Binary { subtype, bytes: base64::decode(text)? })
}

/// Reads thirty-two hexadecimal digits, with hyphens anywhere; `None` for other text.
fn uuid(text: &str) -> Option<Value> {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|&character| character != '-').map(|character| character.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() == 32)?;
    let bytes = digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
    Some(Value::Binary { subtype: BinarySubtype::UUID, bytes })
}

/// Makes a regular expression. BSON ends both parts with a zero byte, so neither may contain one.
fn regex(pattern: &str, options: &str) -> Option<Value> {
    let whole = !pattern.contains('\0') && !options.contains('\0');
    whole.then(|| Value::Regex { pattern: pattern.to_owned(), options: options.to_owned() })
}
