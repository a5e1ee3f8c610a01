//! Contents of documents: they follow from a document's `_id` and the number of the write that made it.

use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_testkit::random::scramble;

/// Number of documents in one collection.
pub const DOCUMENTS: i32 = 1_500;
/// One in this many writes gives its document a key that another document has.
const DUPLICATE_EVERY: u64 = 40;

/// A key that is unique for nearly all documents, so that builds of unique indexes sometimes succeed and sometimes
/// fail.
pub fn key(id: i32, number: i64) -> i32 {
    let random = scramble(number as u64);
    if random.is_multiple_of(DUPLICATE_EVERY) { (random >> 32) as i32 & i32::MAX } else { id }.rem_euclid(DOCUMENTS)
}

/// A document as the write with that number leaves it.
pub fn document(id: i32, number: i64) -> DocumentBuf {
    let mut document = DocumentBuf::new().with("_id", id);
    for field in fields(id, number).as_ref() {
        document.append(field.name, field.value);
    }
    document
}

/// All fields except the `_id`.
pub fn fields(id: i32, number: i64) -> DocumentBuf {
    let random = scramble(number as u64 ^ 0x5eed);
    let fields = DocumentBuf::new().with("n", number).with("k", key(id, number));
    let tag = |place: u64| (random >> (8 * place)) as i32 & 63;
    match random >> 60 {
        0..=2 => fields.with("tags", tag(0)),
        3..=12 => {
            let mut tags = ArrayBuf::new();
            (0..random >> 58 & 3).for_each(|place| _ = tags.push(tag(place)));
            fields.with("tags", &tags)
        }
        // Enough text to move a document to another place.
        _ => fields.with("tags", tag(1)).with("text", "x".repeat((random >> 40 & 1023) as usize).as_str()),
    }
}

/// Fields that the document must no longer have after an update, for its `$unset`.
pub fn missing(fields: &DocumentBuf) -> DocumentBuf {
    let lacks_text = fields.as_ref().get("text").is_none();
    if lacks_text { DocumentBuf::new().with("text", 1) } else { DocumentBuf::new() }
}
