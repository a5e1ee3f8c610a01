use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field, Position};
use crate::random::mix;
use bunko_bson::{DocumentBuf, Value};

/// `{_id, kuku: {"1": {"1": 1, ... "9": 9}, ... "9": {...}}, time: Date}`, the document of experiment E5.
pub(super) static SHAPE: Shape = Shape {
    name: "multiplication-table",
    about: "The 9x9 multiplication table as 81 numbers in nine sub-documents, and a date.",
    default_document_bytes: 686,
    default_id: IdKind::ObjectId,
    fields: &[
        Field { name: "kuku", content: Content::Constant(|| Value::Document(table())) },
        Field { name: "time", content: Content::DateTime(time_ms) },
    ],
};

fn table() -> DocumentBuf {
    let row = |a: i32| (1..=9).fold(DocumentBuf::new(), |row, b| row.with(&b.to_string(), a * b));
    (1..=9).fold(DocumentBuf::new(), |table, a| table.with(&a.to_string(), &row(a)))
}

/// 2020-01-01.
const FIRST_DAY_MS: i64 = 1_577_836_800_000;
const DAY_MS: u64 = 86_400_000;

/// One document each millisecond, from a seeded time of the first day; independent of the clock.
fn time_ms(at: &Position) -> i64 {
    FIRST_DAY_MS + (mix(at.seed) % DAY_MS) as i64 + at.number as i64
}
