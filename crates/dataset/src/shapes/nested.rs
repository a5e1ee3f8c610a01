use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field, Position};

/// A customer's record as applications store it: most types, a sub-document, arrays.
pub(super) static SHAPE: Shape = Shape {
    name: "nested",
    about: "A customer's record: strings, numbers, a date, a boolean, a sub-document, arrays and a note for the size.",
    default_document_bytes: 1_000,
    default_id: IdKind::ObjectId,
    fields: &[
        Field { name: "name", content: Content::Text(24) },
        Field { name: "email", content: Content::Text(32) },
        Field { name: "created", content: Content::DateTime(created_ms) },
        Field { name: "active", content: Content::Boolean(|at| !at.random("active").is_multiple_of(4)) },
        Field { name: "score", content: Content::Int32(|at| (at.random("score") % 100_000) as i32) },
        Field { name: "balance", content: Content::Double(|at| (at.random("balance") % 10_000_000) as f64 / 100.0) },
        Field { name: "address", content: Content::Document(ADDRESS) },
        Field { name: "tags", content: Content::Array(&[Content::Text(8), Content::Text(8), Content::Text(8)]) },
        Field { name: "note", content: Content::Pad },
    ],
};

static ADDRESS: &[Field] = &[
    Field { name: "street", content: Content::Text(28) },
    Field { name: "city", content: Content::Text(14) },
    Field { name: "postcode", content: Content::Int32(|at| (at.random("postcode") % 100_000) as i32) },
    Field {
        name: "location",
        content: Content::Array(&[
            Content::Double(|at| degrees(at.random("longitude"), 180)),
            Content::Double(|at| degrees(at.random("latitude"), 90)),
        ]),
    },
];

/// A number from -`limit` to `limit` with five decimals.
fn degrees(random: u64, limit: i64) -> f64 {
    const PARTS: i64 = 100_000;
    // Subtracted as integers, because the difference of two doubles would have twelve more decimals.
    ((random % (2 * limit * PARTS) as u64) as i64 - limit * PARTS) as f64 / PARTS as f64
}

/// 2020-01-01.
const FIRST_DAY_MS: u64 = 1_577_836_800_000;
const FIVE_YEARS_MS: u64 = 5 * 365 * 86_400_000;

fn created_ms(at: &Position) -> i64 {
    (FIRST_DAY_MS + at.random("created") % FIVE_YEARS_MS) as i64
}
