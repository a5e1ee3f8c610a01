//! Values as MongoDB's error messages print them: `{ a: 1, b: [ "x" ] }`.

use bunko_bson::{ArrayRef, BinarySubtype, DocumentRef, Element, ValueRef};
use std::fmt::{self, Write};

/// Strings longer than this are cut in messages, in bytes.
const STRING_BYTES_MAX: usize = 160;
/// What is left of a string that is cut, in bytes.
const STRING_BYTES_KEPT: usize = 70;

/// A value without its name.
pub(crate) struct Printed<'a>(pub ValueRef<'a>);

/// A name and its value: `a: 1`.
pub(crate) struct PrintedElement<'a> {
    pub name: &'a str,
    pub value: ValueRef<'a>,
}

impl<'a> From<Element<'a>> for PrintedElement<'a> {
    fn from(element: Element<'a>) -> Self {
        Self { name: element.name, value: element.value }
    }
}

impl fmt::Display for PrintedElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, Printed(self.value))
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRef::Double(number) => write!(f, "{number:?}"),
            ValueRef::String(text) | ValueRef::Symbol(text) => print_string(f, text),
            ValueRef::Document(document) => print_document(f, document),
            ValueRef::Array(array) => print_array(f, array),
            ValueRef::Binary { subtype, bytes } => print_binary(f, subtype, bytes),
            ValueRef::Undefined => f.write_str("undefined"),
            ValueRef::ObjectId(id) => write!(f, "ObjectId('{id}')"),
            ValueRef::Boolean(boolean) => write!(f, "{boolean}"),
            ValueRef::DateTime(milliseconds) => write!(f, "new Date({milliseconds})"),
            ValueRef::Null => f.write_str("null"),
            ValueRef::Regex { pattern, options } => write!(f, "/{pattern}/{options}"),
            ValueRef::DbPointer { namespace, id } => write!(f, "DBRef('{namespace}',{id})"),
            ValueRef::JavaScript(code) => f.write_str(code),
            ValueRef::JavaScriptWithScope { code, scope } => {
                write!(f, "CodeWScope( {code}, ")?;
                print_document(f, scope)?;
                f.write_char(')')
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

fn print_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    if text.len() <= STRING_BYTES_MAX {
        return write!(f, "\"{text}\"");
    }
    write!(f, "\"{}...\"", &text[..text.floor_char_boundary(STRING_BYTES_KEPT)])
}

fn print_document(f: &mut fmt::Formatter<'_>, document: DocumentRef<'_>) -> fmt::Result {
    if document.is_empty() {
        return f.write_str("{}");
    }
    for (index, element) in document.iter().enumerate() {
        f.write_str(if index == 0 { "{ " } else { ", " })?;
        write!(f, "{}", PrintedElement::from(element))?;
    }
    f.write_str(" }")
}

fn print_array(f: &mut fmt::Formatter<'_>, array: ArrayRef<'_>) -> fmt::Result {
    if array.is_empty() {
        return f.write_str("[]");
    }
    for (index, value) in array.iter().enumerate() {
        f.write_str(if index == 0 { "[ " } else { ", " })?;
        write!(f, "{}", Printed(value))?;
    }
    f.write_str(" ]")
}

fn print_binary(f: &mut fmt::Formatter<'_>, subtype: u8, bytes: &[u8]) -> fmt::Result {
    let is_uuid = subtype == BinarySubtype::UUID && bytes.len() == 16;
    if is_uuid {
        f.write_str("UUID(\"")?;
    } else {
        write!(f, "BinData({subtype}, ")?;
    }
    for (index, byte) in bytes.iter().enumerate() {
        if is_uuid && matches!(index, 4 | 6 | 8 | 10) {
            f.write_char('-')?;
        }
        if is_uuid { write!(f, "{byte:02x}")? } else { write!(f, "{byte:02X}")? }
    }
    f.write_str(if is_uuid { "\")" } else { ")" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    #[test]
    fn nested_values_have_spaces_inside_their_braces() {
        let array: ArrayBuf = ["x"].into_iter().collect();
        let document =
            DocumentBuf::new().with("a", 1_i32).with("b", &array).with("c", 2.0).with("d", DocumentRef::EMPTY);
        assert_eq!(Printed((&document).into()).to_string(), "{ a: 1, b: [ \"x\" ], c: 2.0, d: {} }");
        assert_eq!(Printed(ArrayRef::EMPTY.into()).to_string(), "[]");
    }

    #[test]
    fn long_strings_are_cut() {
        let text = "x".repeat(161);
        assert_eq!(Printed(ValueRef::String(&text)).to_string(), format!("\"{}...\"", "x".repeat(70)));
    }
}
