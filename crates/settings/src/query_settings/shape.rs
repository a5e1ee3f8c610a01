//! The shape of a reading command: queries that differ only in values have one shape.
//! Source: MongoDB manual 8.2, "Query Shapes".

use super::expression_shape::placeholder;
use super::{expression_shape, filter_shape, pipeline_shape, projection_shape};
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_request::facts::CommandFacts;
use bunko_request::fields::truth;
use bunko_request::query_shape::ShapePart;
use sha2::{Digest, Sha256};
use std::fmt;

/// Identifies a shape. It differs from the hash that MongoDB computes for the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShapeHash([u8; 32]);

impl ShapeHash {
    /// The hash of a shape.
    pub fn of(shape: &DocumentBuf) -> Self {
        Self(Sha256::digest(shape.as_ref().as_bytes()).into())
    }

    /// Parses 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, NoHash> {
        let digits = text.bytes().map(|digit| char::from(digit).to_digit(16)).collect::<Option<Vec<_>>>();
        let digits = digits.ok_or(NoHash::NotHexadecimal)?;
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(NoHash::OfAnotherLength);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (pair[0] << 4 | pair[1]) as u8;
        }
        Ok(Self(bytes))
    }
}

/// Why a string is not a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHash {
    /// The string has another character than a hexadecimal digit.
    NotHexadecimal,
    /// The string does not have 64 digits.
    OfAnotherLength,
}

impl fmt::Display for ShapeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// The shape of a command that has one, on a collection of a database. Its entry lists the fields that belong to the
/// shape; hints, batch sizes and time limits do not.
pub fn of(command: &CommandFacts, database: &str, body: DocumentRef<'_>) -> DocumentBuf {
    let collection = body.first().and_then(|first| first.value.as_str()).unwrap_or("$cmd.aggregate");
    let namespace = DocumentBuf::new().with("db", database).with("coll", collection);
    let mut shape = DocumentBuf::new().with("cmdNs", &namespace).with("command", command.name);
    for (name, part) in command.query_shape {
        let value = body.get(name).filter(|value| !value.is_nullish());
        let is_empty = value.is_none_or(|value| value.as_document().is_some_and(DocumentRef::is_empty));
        match (part, value) {
            // An empty filter has the shape of a missing one.
            (ShapePart::Filter, _) if is_empty => {
                shape.append(name, &DocumentBuf::new());
            }
            (_, Some(value)) if !is_empty => {
                shape.append(name, &of_part(*part, value));
            }
            _ => {}
        }
    }
    shape
}

fn of_part(part: ShapePart, value: ValueRef<'_>) -> Value {
    match (part, value) {
        (ShapePart::Filter, ValueRef::Document(filter)) => Value::Document(filter_shape::of(filter)),
        (ShapePart::Projection, ValueRef::Document(projection)) => Value::Document(projection_shape::of(projection)),
        (ShapePart::Values, ValueRef::Document(values)) => Value::Document(filter_shape::values(values)),
        (ShapePart::Pipeline, ValueRef::Array(pipeline)) => pipeline_shape::of(pipeline),
        (ShapePart::Expressions, _) => expression_shape::of(value),
        (ShapePart::Flag, _) => Value::Boolean(truth(value)),
        (ShapePart::Value, _) => Value::String(placeholder(value)),
        _ => value.to_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_as_they_are_printed() {
        let hash = ShapeHash::of(&DocumentBuf::new());
        assert_eq!(ShapeHash::parse(&hash.to_string()), Ok(hash));
        assert_eq!(ShapeHash::parse(&hash.to_string().to_lowercase()), Ok(hash));
        for (text, why) in
            [("", NoHash::OfAnotherLength), ("ABC", NoHash::OfAnotherLength), ("tooshort", NoHash::NotHexadecimal)]
        {
            assert_eq!(ShapeHash::parse(text), Err(why));
        }
    }
}
