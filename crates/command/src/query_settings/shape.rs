//! The shape of a reading command: queries that differ only in values have one shape.
//! Source: MongoDB manual 8.2, "Query Shapes".

use super::expression_shape::placeholder;
use super::{expression_shape, filter_shape, pipeline_shape, projection_shape};
use crate::command_entry::Command;
use bunko_bson::{DocumentBuf, DocumentRef, Value, ValueRef};
use bunko_request::fields::truth;
use bunko_request::query_shape::ShapePart;
use sha2::{Digest, Sha256};
use std::fmt;

/// Identifies a shape. It differs from the hash that MongoDB computes for the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeHash([u8; 32]);

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
pub(crate) enum NoHash {
    NotHexadecimal,
    OfAnotherLength,
}

impl fmt::Display for ShapeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// The shape of a command that has one, on a collection of a database. Its entry lists the fields that belong to the
/// shape; hints, batch sizes and time limits do not.
pub(crate) fn of(command: &Command, database: &str, body: DocumentRef<'_>) -> DocumentBuf {
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
    use crate::commands;
    use bunko_testkit::shell;

    fn shape(command: &str) -> String {
        let body = shell::parse_document(command).expect("a command");
        let name = body.as_ref().first().expect("a name").name.to_owned();
        shell::print(ValueRef::Document(of(commands::find(&name).expect("a command"), "d", body.as_ref()).as_ref()))
    }

    #[test]
    fn values_hints_and_batches_do_not_count() {
        for (one, other) in [
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: 2.5}, hint: 'a_1', batchSize: 3}"),
            ("{find: 'c'}", "{find: 'c', filter: {}, sort: {}, limit: null}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: {$eq: 7}}}"),
            ("{find: 'c', filter: {a: {$in: [1]}}}", "{find: 'c', filter: {a: {$in: [2, 3]}}}"),
            ("{find: 'c', limit: 1}", "{find: 'c', limit: 2}"),
            ("{find: 'c', projection: {a: 1}}", "{find: 'c', projection: {a: true}}"),
            ("{find: 'c', filter: {$expr: {$gt: ['$a', 1]}}}", "{find: 'c', filter: {$expr: {$gt: ['$a', 2]}}}"),
            (
                "{aggregate: 'c', pipeline: [{$match: {a: 1}}]}",
                "{aggregate: 'c', pipeline: [{$match: {a: 2}}], cursor: {}}",
            ),
            ("{distinct: 'c', key: 'a', query: {b: 'x'}}", "{distinct: 'c', key: 'a', query: {b: 'y'}}"),
            (
                "{find: 'c', filter: {$expr: {$in: ['$a', [1, 2]]}}}",
                "{find: 'c', filter: {$expr: {$in: ['$a', [3, 4, 5]]}}}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [0, 5], default: 1}}]}",
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [1, 9], default: 2}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$densify: {field: 'a', range: {step: 1, bounds: [0, 9]}}}]}",
                "{aggregate: 'c', pipeline: [{$densify: {field: 'a', range: {step: 2, bounds: [3, 4]}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {value: 1}}}}]}",
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {value: 2}}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: [-1, 0]}}}}}]}",
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 2, window: {documents: [-3, 4]}}}}}]}",
            ),
        ] {
            assert_eq!(shape(one), shape(other));
        }
    }

    #[test]
    fn paths_operators_types_and_orders_do() {
        for (one, other) in [
            ("{find: 'c', filter: {a: 1}}", "{find: 'd', filter: {a: 1}}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {b: 1}}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: 'x'}}"),
            ("{find: 'c', filter: {a: 1}}", "{find: 'c', filter: {a: {$gt: 1}}}"),
            ("{find: 'c', filter: {a: {$gt: 1}}}", "{find: 'c', filter: {a: {$not: {$gt: 1}}}}"),
            ("{find: 'c', sort: {a: 1}}", "{find: 'c', sort: {a: -1}}"),
            ("{find: 'c', projection: {a: 1}}", "{find: 'c', projection: {a: 0}}"),
            ("{find: 'c'}", "{find: 'c', limit: 2}"),
            ("{aggregate: 'c', pipeline: []}", "{aggregate: 'c', pipeline: [{$sort: {a: 1}}]}"),
            ("{distinct: 'c', key: 'a'}", "{distinct: 'c', key: 'b'}"),
            (
                "{find: 'c', filter: {$expr: {$in: ['$a', ['$b']]}}}",
                "{find: 'c', filter: {$expr: {$in: ['$a', ['$b', '$c']]}}}",
            ),
            ("{find: 'c', filter: {a: {$all: [1]}}}", "{find: 'c', filter: {a: {$all: [1, 2]}}}"),
            (
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [0, 5]}}]}",
                "{aggregate: 'c', pipeline: [{$bucket: {groupBy: '$a', boundaries: [0, 5, 9]}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {method: 'linear'}}}}]}",
                "{aggregate: 'c', pipeline: [{$fill: {output: {a: {method: 'locf'}}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: [-1, 0]}}}}}]}",
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {range: [-1, 0]}}}}}]}",
            ),
            (
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: ['unbounded', 0]}}}}}]}",
                "{aggregate: 'c', pipeline: [{$setWindowFields: {output: {b: {$sum: 1, window: {documents: ['current', 0]}}}}}]}",
            ),
        ] {
            assert_ne!(shape(one), shape(other));
        }
    }

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
