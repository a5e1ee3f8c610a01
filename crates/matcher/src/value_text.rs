//! Values as error messages print them: `$size: "x"`, `{ $gte: 3.0 }`.

use bunko_bson::{DocumentRef, ValueRef};
use std::fmt;

/// Prints a value in the server's own notation, which is not JSON.
pub(crate) struct ValueText<'a>(pub ValueRef<'a>);

impl fmt::Display for ValueText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRef::Double(number) => write_double(f, number),
            ValueRef::String(text) | ValueRef::Symbol(text) => write!(f, "\"{text}\""),
            ValueRef::Document(document) if document.is_empty() => f.write_str("{}"),
            ValueRef::Document(document) => write_fields(f, document),
            ValueRef::Array(array) if array.is_empty() => f.write_str("[]"),
            ValueRef::Array(array) => {
                for (index, value) in array.iter().enumerate() {
                    f.write_str(if index == 0 { "[ " } else { ", " })?;
                    write!(f, "{}", ValueText(value))?;
                }
                f.write_str(" ]")
            }
            ValueRef::Binary { subtype, bytes } => {
                write!(f, "BinData({subtype}, ")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
                f.write_str(")")
            }
            ValueRef::Undefined => f.write_str("undefined"),
            ValueRef::ObjectId(id) => write!(f, "ObjectId('{id}')"),
            ValueRef::Boolean(boolean) => write!(f, "{boolean}"),
            ValueRef::DateTime(milliseconds) => write!(f, "new Date({milliseconds})"),
            ValueRef::Null => f.write_str("null"),
            ValueRef::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
            ValueRef::DbPointer { namespace, id } => write!(f, "DBRef('{namespace}', {id})"),
            ValueRef::JavaScript(code) => f.write_str(code),
            ValueRef::JavaScriptWithScope { code, scope } => {
                write!(f, "CodeWScope( {code}, {})", ValueText(ValueRef::Document(scope)))
            }
            ValueRef::Int32(number) => write!(f, "{number}"),
            ValueRef::Timestamp(timestamp) => write!(f, "Timestamp({}, {})", timestamp.seconds, timestamp.increment),
            ValueRef::Int64(number) => write!(f, "{number}"),
            ValueRef::Decimal128(number) => write!(f, "{number}"),
            ValueRef::MinKey => f.write_str("MinKey"),
            ValueRef::MaxKey => f.write_str("MaxKey"),
        }
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, document: DocumentRef<'_>) -> fmt::Result {
    for (index, element) in document.iter().enumerate() {
        f.write_str(if index == 0 { "{ " } else { ", " })?;
        write!(f, "{}: {}", element.name, ValueText(element.value))?;
    }
    f.write_str(" }")
}

/// Doubles always show a point, even `nan.0` and `inf.0`.
fn write_double(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    if number.is_nan() {
        f.write_str("nan.0")
    } else if number.is_finite() {
        write!(f, "{number:?}")
    } else {
        write!(f, "{number}.0")
    }
}
