//! Writes shell syntax on one line.

use super::literal;
use bunko_bson::{ArrayRef, BinarySubtype, DocumentRef, ValueRef, base64, datetime, hexadecimal};
use std::fmt::Write;

/// Appends a value's text.
pub(super) fn print(out: &mut String, value: ValueRef<'_>) {
    match value {
        ValueRef::Double(number) => double(out, number),
        ValueRef::String(text) => quoted(out, text, '"'),
        ValueRef::Document(document) => self::document(out, document),
        ValueRef::Array(array) => self::array(out, array),
        ValueRef::Binary { subtype, bytes } => binary(out, subtype, bytes),
        ValueRef::Undefined => out.push_str("undefined"),
        ValueRef::ObjectId(id) => put(out, format_args!("ObjectId('{id}')")),
        ValueRef::Boolean(boolean) => put(out, format_args!("{boolean}")),
        ValueRef::DateTime(ms) => put(out, format_args!("ISODate('{}')", datetime::format_iso8601(ms))),
        ValueRef::Null => out.push_str("null"),
        ValueRef::Regex { pattern, options } => regex(out, pattern, options),
        ValueRef::DbPointer { namespace, id } => {
            out.push_str("DBPointer(");
            quoted(out, namespace, '\'');
            put(out, format_args!(", ObjectId('{id}'))"));
        }
        ValueRef::JavaScript(code) => constructor(out, "Code", code, None),
        ValueRef::Symbol(text) => constructor(out, "Symbol", text, None),
        ValueRef::JavaScriptWithScope { code, scope } => constructor(out, "Code", code, Some(scope)),
        ValueRef::Int32(number) => put(out, format_args!("{number}")),
        ValueRef::Timestamp(timestamp) => {
            put(out, format_args!("Timestamp({}, {})", timestamp.seconds, timestamp.increment));
        }
        ValueRef::Int64(number) => put(out, format_args!("NumberLong({number})")),
        ValueRef::Decimal128(number) => put(out, format_args!("NumberDecimal('{number}')")),
        ValueRef::MinKey => out.push_str("MinKey"),
        ValueRef::MaxKey => out.push_str("MaxKey"),
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all");
}

/// The shortest digits that read back as the same number, never without point or exponent.
fn double(out: &mut String, number: f64) {
    if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        put(out, format_args!("{number:?}"));
    }
}

fn document(out: &mut String, document: DocumentRef<'_>) {
    out.push('{');
    for (index, element) in document.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        if literal::is_identifier(element.name) {
            out.push_str(element.name);
        } else {
            quoted(out, element.name, '"');
        }
        out.push_str(": ");
        print(out, element.value);
    }
    out.push('}');
}

fn array(out: &mut String, array: ArrayRef<'_>) {
    out.push('[');
    for (index, value) in array.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        print(out, value);
    }
    out.push(']');
}

fn binary(out: &mut String, subtype: u8, bytes: &[u8]) {
    if subtype != BinarySubtype::UUID || bytes.len() != 16 {
        return put(out, format_args!("BinData({subtype}, '{}')", base64::encode(bytes)));
    }
    put(out, format_args!("UUID('{}')", hexadecimal::uuid(bytes)));
}

fn regex(out: &mut String, pattern: &str, options: &str) {
    let closed = format!("{pattern}/");
    let fits_literal = !pattern.is_empty()
        && literal::regex_length(&closed) == Some(pattern.len())
        && options.bytes().all(|byte| byte.is_ascii_lowercase());
    if fits_literal {
        return put(out, format_args!("/{pattern}/{options}"));
    }
    out.push_str("RegExp(");
    quoted(out, pattern, '\'');
    out.push_str(", ");
    quoted(out, options, '\'');
    out.push(')');
}

fn constructor(out: &mut String, name: &str, text: &str, scope: Option<DocumentRef<'_>>) {
    put(out, format_args!("{name}("));
    quoted(out, text, '\'');
    if let Some(scope) = scope {
        out.push_str(", ");
        document(out, scope);
    }
    out.push(')');
}

fn quoted(out: &mut String, text: &str, quote: char) {
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            _ if character == quote => {
                out.push('\\');
                out.push(quote);
            }
            _ if character.is_control() => put(out, format_args!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push(quote);
}
