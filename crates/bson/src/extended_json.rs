//! MongoDB Extended JSON: every BSON type written as JSON and read back.
//!
//! Canonical text keeps all types: `{"_id":{"$numberInt":"1"}}`. Relaxed text reads better, and keeps the types that
//! JSON has: `{"_id":1}`. The reader accepts both, also mixed, and the forms of the first version that older tools
//! wrote: `{"$binary": "b64", "$type": "00"}`, `{"$date": ms}`, `{"$regex": "a", "$options": "i"}`.
//!
//! No text keeps the payload of a NaN, or the difference between a typed value and a document whose only field has the
//! type's name, such as `{$numberInt: "1"}`.
//! Source: MongoDB specifications, "Extended JSON" 2.1 and "MongoDB Extended JSON (v1)".

mod parser;
mod printer;
mod scanner;
mod typed;

use crate::{BsonError, DocumentBuf, DocumentRef, Value, ValueRef};
use std::fmt;

/// Why a text is not Extended JSON, and the place of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedJsonError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The error at this place.
    pub reason: String,
}

impl fmt::Display for ExtendedJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid Extended JSON at line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for ExtendedJsonError {}

/// Reads one document; only white space may follow it.
/// # Errors
/// If the text is not JSON, a `$` wrapper is malformed, the value is not a document, or the document is deeper or larger
/// than [`DocumentRef::parse`] accepts.
pub fn parse_document(text: &str) -> Result<DocumentBuf, ExtendedJsonError> {
    match parse_value(text)? {
        Value::Document(document) => Ok(document),
        other => {
            let reason = format!("expected a document, found a value of type {}", other.as_ref().kind().alias());
            Err(ExtendedJsonError { line: 1, column: 1, reason })
        }
    }
}

/// Reads one value of any type; only white space may follow it.
/// # Errors
/// As [`parse_document`], but any type of value is accepted.
pub fn parse_value(text: &str) -> Result<Value, ExtendedJsonError> {
    let mut scanner = scanner::Scanner::new(text);
    let value = parser::parse(&mut scanner)?;
    check(&value).map_err(|error| scanner.error_at_start(error.to_string()))?;
    Ok(value)
}

/// Checks the depth, at the end: a wrapper such as `{"$binary": {...}}` nests in JSON but not in BSON.
fn check(value: &Value) -> Result<(), BsonError> {
    match value {
        Value::Document(document) | Value::JavaScriptWithScope { scope: document, .. } => {
            DocumentRef::parse(document.as_ref().as_bytes()).map(drop)
        }
        Value::Array(array) => DocumentRef::parse(array.as_ref().as_document().as_bytes()).map(drop),
        _ => Ok(()),
    }
}

/// The canonical text, on one line without spaces: [`parse_value`] reads the same bytes back.
pub fn to_canonical(value: ValueRef<'_>) -> String {
    printer::print(value, printer::Form::Canonical)
}

/// The relaxed text, on one line without spaces: plain numbers, and dates of the years 1970 to 9999 as ISO 8601.
pub fn to_relaxed(value: ValueRef<'_>) -> String {
    printer::print(value, printer::Form::Relaxed)
}

#[cfg(test)]
mod tests;
