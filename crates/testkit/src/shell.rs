//! Documents in the syntax of the mongosh shell, for tests that a person can read.
//!
//! ```text
//! {_id: 1, a: [1, 2.5], s: "x", o: ObjectId('5f0000010102030405abcdef'), n: NumberLong(5), r: /^a/i}
//! ```
//! JSON, plus unquoted names, either kind of quotes, trailing commas, regular expressions, and the constructors
//! `ObjectId('hex')`, `ISODate('...')`, `Date(ms)`, `NumberInt(n)`, `NumberLong(n)`, `NumberDecimal('1.5')`,
//! `Timestamp(seconds, increment)`, `BinData(subtype, 'base64')`, `UUID('...')`, `RegExp('pattern', 'options')`,
//! `Code('...', scope)`, `Symbol('...')`, `DBPointer('namespace', ObjectId('hex'))`, `MinKey` and `MaxKey`.
//! Numbers written as integers are int32 where they fit, else int64; with a point or exponent they are doubles.
//! Field order and duplicate names are kept.

mod constructor;
mod literal;
mod parser;
mod printer;

use bunko_bson::{DocumentBuf, Value, ValueRef};
use parser::Parser;

/// Deepest nesting that is read: beyond what a server accepts, so that tests can ask for too much.
pub const MAX_DEPTH: usize = 500;

/// Reads one document; nothing may follow it.
/// # Errors
/// A text that names what was expected and the line and column (in characters, both from 1) where it was not.
pub fn parse_document(text: &str) -> Result<DocumentBuf, String> {
    let mut parser = Parser::new(text);
    match parser.whole()? {
        Value::Document(document) => Ok(document),
        _ => Err("expected a document".to_owned()),
    }
}

/// Reads one value; nothing may follow it.
/// # Errors
/// As [`parse_document`].
pub fn parse_value(text: &str) -> Result<Value, String> {
    Parser::new(text).whole()
}

/// The text of a value on one line; [`parse_value`] reads the same value back.
pub fn print(value: ValueRef<'_>) -> String {
    let mut text = String::new();
    printer::print(&mut text, value);
    text
}

#[cfg(test)]
mod tests;
