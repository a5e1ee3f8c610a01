//! Wrappers: documents whose first name begins with `$` and says that they stand for a value of another type.

use super::scanner;
use crate::{BinarySubtype, Decimal128, DocumentBuf, DocumentRef, ObjectId, Timestamp, Value, ValueRef};
use crate::{base64, datetime};

/// Treatment of a document that begins with a wrapper's name but does not have the wrapper's fields.
#[derive(Clone, Copy)]
enum Misfit {
    /// An error: the name has no other meaning.
    Refused,
    /// A plain document: the name is also a query operator, as in `{$type: "string"}`.
    Document,
}

/// Reads one kind of wrapper; `None` if the fields do not fit.
type Read = fn(DocumentRef<'_>) -> Option<Value>;

/// All wrappers by the name of their first field. If a wrapper has two fields, either may be first.
const WRAPPERS: [(&str, Misfit, Read); 20] = [
    ("$oid", Misfit::Refused, oid),
    ("$symbol", Misfit::Refused, symbol),
    ("$numberInt", Misfit::Refused, number_int),
    ("$numberLong", Misfit::Refused, number_long),
    ("$numberDouble", Misfit::Refused, number_double),
    ("$numberDecimal", Misfit::Refused, number_decimal),
    ("$binary", Misfit::Refused, binary),
    ("$type", Misfit::Document, binary),
    ("$uuid", Misfit::Refused, uuid),
    ("$code", Misfit::Refused, code),
    ("$scope", Misfit::Document, code),
    ("$timestamp", Misfit::Refused, timestamp),
    ("$regularExpression", Misfit::Refused, regular_expression),
    ("$regex", Misfit::Document, regex),
    ("$options", Misfit::Document, regex),
    ("$dbPointer", Misfit::Refused, db_pointer),
    ("$date", Misfit::Refused, date),
    ("$minKey", Misfit::Refused, min_key),
    ("$maxKey", Misfit::Refused, max_key),
    ("$undefined", Misfit::Refused, undefined),
];

/// The value that a document stands for: itself, unless it is a wrapper.
/// # Errors
/// A message that names the wrapper whose fields do not fit.
pub(super) fn unwrap(document: DocumentBuf) -> Result<Value, String> {
    let first = document.as_ref().first().map_or("", |element| element.name);
    let Some((name, misfit, read)) = WRAPPERS.iter().find(|(name, ..)| *name == first) else {
        return Ok(Value::Document(document));
    };
    match (read(document.as_ref()), misfit) {
        (Some(value), _) => Ok(value),
        (None, Misfit::Document) => Ok(Value::Document(document)),
        (None, Misfit::Refused) => Err(format!("malformed {name}")),
    }
}

/// The values of a document's fields, which must have exactly these names, in any order.
fn fields<'d, const N: usize>(document: DocumentRef<'d>, names: [&str; N]) -> Option<[ValueRef<'d>; N]> {
    if document.count() != N || names.iter().any(|name| document.get(name).is_none()) {
        return None;
    }
    Some(names.map(|name| document.get(name).unwrap_or(ValueRef::Undefined)))
}

/// The text of a document's only field.
fn only_text<'d>(document: DocumentRef<'d>, name: &str) -> Option<&'d str> {
    fields(document, [name])?[0].as_str()
}

fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int32(number) => Some(i64::from(number)),
        ValueRef::Int64(number) => Some(number),
        _ => None,
    }
}

fn oid(document: DocumentRef<'_>) -> Option<Value> {
    ObjectId::parse_hex(only_text(document, "$oid")?).map(Value::ObjectId)
}

fn symbol(document: DocumentRef<'_>) -> Option<Value> {
    only_text(document, "$symbol").map(|text| Value::Symbol(text.to_owned()))
}

fn number_int(document: DocumentRef<'_>) -> Option<Value> {
    only_text(document, "$numberInt")?.parse().ok().map(Value::Int32)
}

fn number_long(document: DocumentRef<'_>) -> Option<Value> {
    only_text(document, "$numberLong")?.parse().ok().map(Value::Int64)
}

fn number_double(document: DocumentRef<'_>) -> Option<Value> {
    let number = match only_text(document, "$numberDouble")? {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        digits if scanner::is_number(digits.as_bytes()) => digits.parse().ok()?,
        _ => return None,
    };
    Some(Value::Double(number))
}

fn number_decimal(document: DocumentRef<'_>) -> Option<Value> {
    Decimal128::parse(only_text(document, "$numberDecimal")?).map(Value::Decimal128)
}

/// `{$binary: {base64, subType}}`, or the first version's `{$binary: base64, $type: subtype}`.
fn binary(document: DocumentRef<'_>) -> Option<Value> {
    let (content, subtype) = match fields(document, ["$binary", "$type"]) {
        Some([content, subtype]) => (content, subtype),
        None => {
            let [inner] = fields(document, ["$binary"])?;
            let [content, subtype] = fields(inner.as_document()?, ["base64", "subType"])?;
            (content, subtype)
        }
    };
    let bytes = base64::decode(content.as_str()?)?;
    let subtype = binary_subtype(subtype)?;
    Some(Value::Binary { subtype, bytes: with_old_length(subtype, bytes) })
}

/// One or two hexadecimal digits; the oldest tools wrote a number.
fn binary_subtype(value: ValueRef<'_>) -> Option<u8> {
    match value {
        ValueRef::String(digits) if matches!(digits.len(), 1 | 2) && !digits.starts_with('+') => {
            u8::from_str_radix(digits, 16).ok()
        }
        value => integer(value)?.try_into().ok(),
    }
}

/// Adds the length that the old subtype repeats in its bytes, and Extended JSON leaves out.
/// Source: BSON specification, "Binary (Old)".
fn with_old_length(subtype: u8, bytes: Vec<u8>) -> Vec<u8> {
    if subtype != BinarySubtype::OLD {
        return bytes;
    }
    let mut counted = (bytes.len() as u32).to_le_bytes().to_vec();
    counted.extend(bytes);
    counted
}

/// Thirty-two hexadecimal digits with hyphens in the usual places.
fn uuid(document: DocumentRef<'_>) -> Option<Value> {
    let text = only_text(document, "$uuid")?.as_bytes();
    let hyphens_in_place =
        text.len() == 36 && text.iter().enumerate().all(|(i, &c)| (c == b'-') == matches!(i, 8 | 13 | 18 | 23));
    let digits: Vec<u32> = text.iter().filter_map(|&character| char::from(character).to_digit(16)).collect();
    let bytes = digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    (hyphens_in_place && digits.len() == 32).then_some(Value::Binary { subtype: BinarySubtype::UUID, bytes })
}

fn code(document: DocumentRef<'_>) -> Option<Value> {
    if let Some([code, scope]) = fields(document, ["$code", "$scope"]) {
        let (code, scope) = (code.as_str()?.to_owned(), scope.as_document()?.to_owned());
        return Some(Value::JavaScriptWithScope { code, scope });
    }
    only_text(document, "$code").map(|code| Value::JavaScript(code.to_owned()))
}

fn timestamp(document: DocumentRef<'_>) -> Option<Value> {
    let [inner] = fields(document, ["$timestamp"])?;
    let [seconds, increment] = fields(inner.as_document()?, ["t", "i"])?;
    let (seconds, increment) = (integer(seconds)?.try_into().ok()?, integer(increment)?.try_into().ok()?);
    Some(Value::Timestamp(Timestamp { seconds, increment }))
}

fn regular_expression(document: DocumentRef<'_>) -> Option<Value> {
    let [inner] = fields(document, ["$regularExpression"])?;
    pattern_and_options(fields(inner.as_document()?, ["pattern", "options"])?)
}

/// The first version's form. `$regex` alone, or with a value of another type, is the query operator.
fn regex(document: DocumentRef<'_>) -> Option<Value> {
    pattern_and_options(fields(document, ["$regex", "$options"])?)
}

/// Reads both parts of a regular expression. BSON ends each with a zero byte, so neither may hold one.
fn pattern_and_options([pattern, options]: [ValueRef<'_>; 2]) -> Option<Value> {
    let (pattern, options) = (pattern.as_str()?, options.as_str()?);
    let whole = !pattern.contains('\0') && !options.contains('\0');
    whole.then(|| Value::Regex { pattern: pattern.to_owned(), options: options.to_owned() })
}

fn db_pointer(document: DocumentRef<'_>) -> Option<Value> {
    let [inner] = fields(document, ["$dbPointer"])?;
    match fields(inner.as_document()?, ["$ref", "$id"])? {
        [ValueRef::String(namespace), ValueRef::ObjectId(id)] => {
            Some(Value::DbPointer { namespace: namespace.to_owned(), id })
        }
        _ => None,
    }
}

/// Reads milliseconds (already unwrapped from `$numberLong`), or ISO 8601.
fn date(document: DocumentRef<'_>) -> Option<Value> {
    let [value] = fields(document, ["$date"])?;
    let ms = value.as_str().map_or_else(|| integer(value), datetime::parse_iso8601);
    ms.map(Value::DateTime)
}

fn min_key(document: DocumentRef<'_>) -> Option<Value> {
    matches!(fields(document, ["$minKey"])?, [ValueRef::Int32(1)]).then_some(Value::MinKey)
}

fn max_key(document: DocumentRef<'_>) -> Option<Value> {
    matches!(fields(document, ["$maxKey"])?, [ValueRef::Int32(1)]).then_some(Value::MaxKey)
}

fn undefined(document: DocumentRef<'_>) -> Option<Value> {
    matches!(fields(document, ["$undefined"])?, [ValueRef::Boolean(true)]).then_some(Value::Undefined)
}
