use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field};

/// `{_id: text, field0 .. field9: string}`, YCSB's record: ten fields of 100 characters unless another size is
/// requested.
pub(super) static SHAPE: Shape = Shape {
    name: "ycsb",
    about: "YCSB's record: a text key and ten strings.",
    default_document_bytes: 1_169,
    default_id: IdKind::Text,
    fields: &[
        Field { name: "field0", content: Content::Pad },
        Field { name: "field1", content: Content::Pad },
        Field { name: "field2", content: Content::Pad },
        Field { name: "field3", content: Content::Pad },
        Field { name: "field4", content: Content::Pad },
        Field { name: "field5", content: Content::Pad },
        Field { name: "field6", content: Content::Pad },
        Field { name: "field7", content: Content::Pad },
        Field { name: "field8", content: Content::Pad },
        Field { name: "field9", content: Content::Pad },
    ],
};
