use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field, Position};

/// Number of different values of `key`.
const KEYS: u64 = 1_000;
/// Number of different values in `nested.values`.
const VALUES: u64 = 100;

/// For queries over a whole collection: small documents with fields to group, sort, unwind, join and search by.
pub(super) static SHAPE: Shape = Shape {
    name: "analytics",
    about: "A key, a double, a word, the number of another document, an array of four inside a document, and a text.",
    default_document_bytes: 230,
    default_id: IdKind::Int64,
    fields: &[
        Field { name: "key", content: Content::Int32(|at| (at.random("key") % KEYS) as i32) },
        Field { name: "value", content: Content::Double(|at| (at.random("value") % 1_000_000) as f64 / 1_000.0) },
        Field { name: "word", content: Content::Word(WORDS) },
        Field { name: "other", content: Content::Int32(other) },
        Field { name: "nested", content: Content::Document(NESTED) },
        Field { name: "text", content: Content::Pad },
    ],
};

static WORDS: &[&str] = &[
    "amber", "beech", "cedar", "delta", "ember", "flint", "grove", "heron", "inlet", "jetty", "knoll", "larch",
    "maple", "north", "ocean", "pearl",
];

static NESTED: &[Field] = &[
    Field { name: "active", content: Content::Boolean(|at| at.random("active").is_multiple_of(2)) },
    Field {
        name: "values",
        content: Content::Array(&[
            Content::Int32(|at| element(at, "first")),
            Content::Int32(|at| element(at, "second")),
            Content::Int32(|at| element(at, "third")),
            Content::Int32(|at| element(at, "fourth")),
        ]),
    },
];

fn element(at: &Position, which: &str) -> i32 {
    (at.random(which) % VALUES) as i32
}

/// A random document's `_id`, up to the largest 32-bit integer.
fn other(at: &Position) -> i32 {
    (at.random("other") % at.documents.clamp(1, i32::MAX as u64)) as i32
}
