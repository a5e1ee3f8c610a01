use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field};
use bunko_bson::Value;

/// `{_id, n: 0 (int64), d: string}`: has a number whose update does not change the size.
pub(super) static SHAPE: Shape = Shape {
    name: "counter",
    about: "A number to count up, and a string.",
    default_document_bytes: 1_000,
    default_id: IdKind::ObjectId,
    fields: &[
        Field { name: "n", content: Content::Constant(|| Value::Int64(0)) },
        Field { name: "d", content: Content::Pad },
    ],
};
