use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field};

/// `{_id, d: string}`, the document of experiment E1.
pub(super) static SHAPE: Shape = Shape {
    name: "plain",
    about: "An _id and one string.",
    default_document_bytes: 1_000,
    default_id: IdKind::ObjectId,
    fields: &[Field { name: "d", content: Content::Pad }],
};
