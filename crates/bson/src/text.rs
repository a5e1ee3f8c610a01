//! Values in the text form of error messages, E11000 and explain: `$size: "x"`, `{ _id: 3.0 }`.

use crate::{ArrayRef, BinarySubtype, DocumentRef, Element, ValueRef, hexadecimal};
use std::fmt::{self, Write};

/// Length in bytes from which on strings are cut.
const CUT_STRING_BYTES: usize = 160;
/// Length in bytes to which a string is cut.
const KEPT_STRING_BYTES: usize = 150;
/// Greatest length of a printed value in bytes, without the dots after it: a message need not be as large as its
/// subject.
pub const PRINTED_BYTES_MAX: usize = 4096;
/// Significant digits of a double that are shown.
const DOUBLE_DIGITS: i32 = 16;

/// Prints a value in the server's own notation, which is not JSON.
pub struct ValueText<'a>(pub ValueRef<'a>);

/// Prints a name and its value: `a: 1`.
pub struct ElementText<'a>(pub Element<'a>);

impl fmt::Display for ElementText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        cut(f, |f| write_element(f, self.0))
    }
}

impl fmt::Display for ValueText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        cut(f, |f| write_value(f, self.0))
    }
}

/// Prints with `print`, and cuts text longer than [`PRINTED_BYTES_MAX`].
/// # Errors
/// The errors of `out`.
pub fn cut(out: &mut dyn Write, print: impl FnOnce(&mut dyn Write) -> fmt::Result) -> fmt::Result {
    let mut cut = Cut { out, left: PRINTED_BYTES_MAX, is_full: false };
    match print(&mut cut) {
        Err(fmt::Error) if cut.is_full => cut.out.write_str("..."),
        printed => printed,
    }
}

/// Passes on a limited number of bytes, and fails after that.
struct Cut<'o> {
    out: &'o mut dyn Write,
    left: usize,
    is_full: bool,
}

impl Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.floor_char_boundary(self.left);
        self.out.write_str(&text[..taken])?;
        self.left -= taken;
        self.is_full = taken < text.len();
        if self.is_full { Err(fmt::Error) } else { Ok(()) }
    }
}

fn write_element(f: &mut dyn Write, element: Element<'_>) -> fmt::Result {
    write!(f, "{}: ", element.name)?;
    write_value(f, element.value)
}

fn write_value(f: &mut dyn Write, value: ValueRef<'_>) -> fmt::Result {
    match value {
        ValueRef::Double(number) => f.write_str(&double_text(number)),
        ValueRef::String(text) | ValueRef::Symbol(text) => write_string(f, text),
        ValueRef::Document(document) => write_document(f, document),
        ValueRef::Array(array) => write_array(f, array),
        ValueRef::Binary { subtype, bytes } => write_binary(f, subtype, bytes),
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
            write_document(f, scope)?;
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

fn write_string(f: &mut dyn Write, text: &str) -> fmt::Result {
    if text.len() < CUT_STRING_BYTES {
        return write!(f, "\"{text}\"");
    }
    write!(f, "\"{}...\"", &text[..text.floor_char_boundary(KEPT_STRING_BYTES)])
}

fn write_document(f: &mut dyn Write, document: DocumentRef<'_>) -> fmt::Result {
    if document.is_empty() {
        return f.write_str("{}");
    }
    for (index, element) in document.iter().enumerate() {
        f.write_str(if index == 0 { "{ " } else { ", " })?;
        write_element(f, element)?;
    }
    f.write_str(" }")
}

fn write_array(f: &mut dyn Write, array: ArrayRef<'_>) -> fmt::Result {
    if array.is_empty() {
        return f.write_str("[]");
    }
    for (index, value) in array.iter().enumerate() {
        f.write_str(if index == 0 { "[ " } else { ", " })?;
        write_value(f, value)?;
    }
    f.write_str(" ]")
}

fn write_binary(f: &mut dyn Write, subtype: u8, bytes: &[u8]) -> fmt::Result {
    if subtype != BinarySubtype::UUID || bytes.len() != 16 {
        write!(f, "BinData({subtype}, ")?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))?;
        return f.write_char(')');
    }
    write!(f, "UUID(\"{}\")", hexadecimal::uuid(bytes))
}

/// C's `%.16g` and, if that shows no point, `.0`: `3.0`, `0.3`, `1e+30.0`, and even `nan.0`.
fn double_text(number: f64) -> String {
    let mut text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        number.to_string()
    } else {
        significant_digits(number)
    };
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// `%.16g` of a finite number.
fn significant_digits(number: f64) -> String {
    let scientific = format!("{number:.0$e}", DOUBLE_DIGITS as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DOUBLE_DIGITS).contains(&exponent) {
        let decimals = (DOUBLE_DIGITS - 1 - exponent) as usize;
        return without_trailing_zeros(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayBuf, DocumentBuf};

    #[test]
    fn nested_values_have_spaces_inside_their_braces() {
        let array: ArrayBuf = ["x"].into_iter().collect();
        let document =
            DocumentBuf::new().with("a", 1_i32).with("b", &array).with("c", 2.0).with("d", DocumentRef::EMPTY);
        assert_eq!(ValueText((&document).into()).to_string(), "{ a: 1, b: [ \"x\" ], c: 2.0, d: {} }");
        assert_eq!(ValueText(ArrayRef::EMPTY.into()).to_string(), "[]");
    }

    #[test]
    fn long_strings_are_cut() {
        let print = |length| ValueText(ValueRef::String(&"x".repeat(length))).to_string();
        assert_eq!(print(159), format!("\"{}\"", "x".repeat(159)));
        assert_eq!(print(160), format!("\"{}...\"", "x".repeat(150)));
    }

    #[test]
    fn long_values_are_cut() {
        let array: ArrayBuf = (0..100_000).collect();
        let printed = ValueText((&DocumentBuf::new().with("a", &array)).into()).to_string();
        assert!(printed.starts_with("{ a: [ 0, 1, 2, ") && printed.ends_with("..."), "{printed}");
        assert_eq!(printed.len(), PRINTED_BYTES_MAX + "...".len());
    }

    #[test]
    fn doubles_show_sixteen_digits_and_a_point() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (3.0, "3.0"),
            (0.1 + 0.2, "0.3"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16.0"),
            (1e30, "1e+30.0"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05.0"),
            (f64::NAN, "nan.0"),
            (f64::INFINITY, "inf.0"),
            (f64::NEG_INFINITY, "-inf.0"),
        ] {
            assert_eq!(ValueText(ValueRef::Double(number)).to_string(), text);
        }
    }

    #[test]
    fn identifiers_of_subtype_four_are_shown_as_such() {
        let bytes: Vec<u8> = (0..16).collect();
        let print = |subtype| ValueText(ValueRef::Binary { subtype, bytes: &bytes }).to_string();
        assert_eq!(print(4), "UUID(\"00010203-0405-0607-0809-0a0b0c0d0e0f\")");
        assert_eq!(print(0), "BinData(0, 000102030405060708090A0B0C0D0E0F)");
    }
}
