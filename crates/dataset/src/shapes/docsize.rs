use super::Shape;
use crate::id::IdKind;
use crate::layout::{Content, Field, Position};

/// Number of values of `value1`, and of documents with the same `value2`: the experiment fetches this many at once.
const GROUP: u64 = 2_500;

/// The document of experiment E4: two numbers to index, three fields to update in place, and a pad of any length.
pub(super) static SHAPE: Shape = Shape {
    name: "docsize",
    about: "Two numbers to index, a number and two strings to update in place, and a pad for the size.",
    default_document_bytes: 400,
    default_id: IdKind::Int64,
    fields: &[
        Field { name: "value1", content: Content::Int32(|at| (at.number % GROUP) as i32) },
        Field { name: "value2", content: Content::Int32(value2) },
        // Never negative, and the number itself if it fits.
        Field { name: "number", content: Content::Int32(|at| (at.number & i32::MAX as u64) as i32) },
        Field { name: "text30", content: Content::Text(30) },
        Field { name: "text100", content: Content::Text(100) },
        Field { name: "pad", content: Content::Pad },
    ],
};

fn value2(at: &Position) -> i32 {
    (at.number % (at.documents / GROUP).max(1)) as i32
}
