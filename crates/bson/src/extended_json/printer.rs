//! Writes Extended JSON in either form.

use crate::{ArrayRef, BinarySubtype, DocumentRef, ValueRef, base64, datetime};
use std::fmt::Write;

/// The last millisecond of the year 9999, up to which relaxed text has ISO 8601.
const LAST_ISO8601_MS: i64 = 253_402_300_799_999;

/// Which of the two forms is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Every type has its own text.
    Canonical,
    /// Numbers are plain if JSON has them.
    Relaxed,
}

/// Prints a value in one of the two forms.
pub(super) fn print(value: ValueRef<'_>, form: Form) -> String {
    let mut printer = Printer { out: String::new(), form };
    printer.value(value);
    printer.out
}

struct Printer {
    out: String,
    form: Form,
}

impl Printer {
    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Double(number) => self.double(number),
            ValueRef::String(text) => self.string(text),
            ValueRef::Document(document) => self.document(document),
            ValueRef::Array(array) => self.array(array),
            ValueRef::Binary { subtype, bytes } => self.binary(subtype, bytes),
            ValueRef::Undefined => self.put(format_args!(r#"{{"$undefined":true}}"#)),
            ValueRef::ObjectId(id) => self.put(format_args!(r#"{{"$oid":"{id}"}}"#)),
            ValueRef::Boolean(boolean) => self.put(format_args!("{boolean}")),
            ValueRef::DateTime(ms) => self.date(ms),
            ValueRef::Null => self.out.push_str("null"),
            ValueRef::Regex { pattern, options } => {
                self.out.push_str(r#"{"$regularExpression":{"pattern":"#);
                self.string(pattern);
                self.out.push_str(r#","options":"#);
                self.string(options);
                self.out.push_str("}}");
            }
            ValueRef::DbPointer { namespace, id } => {
                self.out.push_str(r#"{"$dbPointer":{"$ref":"#);
                self.string(namespace);
                self.put(format_args!(r#","$id":{{"$oid":"{id}"}}}}}}"#));
            }
            ValueRef::JavaScript(code) => self.wrapped_string("$code", code),
            ValueRef::Symbol(text) => self.wrapped_string("$symbol", text),
            ValueRef::JavaScriptWithScope { code, scope } => {
                self.out.push_str(r#"{"$code":"#);
                self.string(code);
                self.out.push_str(r#","$scope":"#);
                self.document(scope);
                self.out.push('}');
            }
            ValueRef::Int32(number) => self.integer("$numberInt", number.into()),
            ValueRef::Timestamp(timestamp) => {
                let (seconds, increment) = (timestamp.seconds, timestamp.increment);
                self.put(format_args!(r#"{{"$timestamp":{{"t":{seconds},"i":{increment}}}}}"#));
            }
            ValueRef::Int64(number) => self.integer("$numberLong", number),
            ValueRef::Decimal128(number) => self.put(format_args!(r#"{{"$numberDecimal":"{number}"}}"#)),
            ValueRef::MinKey => self.out.push_str(r#"{"$minKey":1}"#),
            ValueRef::MaxKey => self.out.push_str(r#"{"$maxKey":1}"#),
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a string takes all");
    }

    fn document(&mut self, document: DocumentRef<'_>) {
        self.out.push('{');
        for (index, element) in document.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.string(element.name);
            self.out.push(':');
            self.value(element.value);
        }
        self.out.push('}');
    }

    fn array(&mut self, array: ArrayRef<'_>) {
        self.out.push('[');
        for (index, value) in array.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.value(value);
        }
        self.out.push(']');
    }

    fn integer(&mut self, name: &str, number: i64) {
        match self.form {
            Form::Canonical => self.put(format_args!(r#"{{"{name}":"{number}"}}"#)),
            Form::Relaxed => self.put(format_args!("{number}")),
        }
    }

    fn double(&mut self, number: f64) {
        let text = double_text(number);
        match self.form {
            Form::Relaxed if number.is_finite() => self.out.push_str(&text),
            _ => self.put(format_args!(r#"{{"$numberDouble":"{text}"}}"#)),
        }
    }

    fn date(&mut self, ms: i64) {
        match self.form {
            Form::Relaxed if (0..=LAST_ISO8601_MS).contains(&ms) => {
                self.put(format_args!(r#"{{"$date":"{}"}}"#, datetime::format_iso8601(ms)));
            }
            _ => self.put(format_args!(r#"{{"$date":{{"$numberLong":"{ms}"}}}}"#)),
        }
    }

    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        // The second length of the old subtype is left out, because the base64 text implies it.
        let content = if subtype == BinarySubtype::OLD { bytes.get(4..).unwrap_or_default() } else { bytes };
        let text = base64::encode(content);
        self.put(format_args!(r#"{{"$binary":{{"base64":"{text}","subType":"{subtype:02x}"}}}}"#));
    }

    fn wrapped_string(&mut self, name: &str, text: &str) {
        self.put(format_args!(r#"{{"{name}":"#));
        self.string(text);
        self.out.push('}');
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\0'..='\u{1f}' => self.put(format_args!("\\u{:04x}", u32::from(character))),
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }
}

/// The shortest digits that read back as the same number: `1.0`, `0.1`, `1.5E+300`, `-Infinity`.
fn double_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let text = format!("{number:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{digits}{point}E{sign}{exponent}")
}
