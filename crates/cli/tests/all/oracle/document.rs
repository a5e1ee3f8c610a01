//! Documents that can be checked: a document's contents follow from its number.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_testkit::random::scramble;
use std::sync::LazyLock;

/// Bytes of text that does not repeat; every padding is a part of it.
const NOISE_BYTES: usize = 1 << 20;
/// Paddings of large documents, in bytes.
const LARGE_BYTES: std::ops::Range<u64> = 20_000..200_000;
/// Paddings of small documents, in bytes: many writers can share a system call for them.
const SMALL_BYTES: std::ops::Range<u64> = 100..1_000;

/// Text of digits, which can be compressed to half.
static NOISE: LazyLock<String> = LazyLock::new(|| {
    let numbers = (0..NOISE_BYTES as u64 / 16).map(|number| format!("{:016x}", scramble(number)));
    numbers.collect()
});

fn padding(number: i64) -> &'static str {
    let random = scramble(number as u64);
    let range = if number % 4 == 0 { SMALL_BYTES } else { LARGE_BYTES };
    let length = (range.start + random % (range.end - range.start)) as usize;
    let start = (random >> 20) as usize % (NOISE_BYTES - length);
    &NOISE[start..start + length]
}

/// The document with that number.
pub fn document(id: i32, number: i64) -> DocumentBuf {
    DocumentBuf::new().with("_id", id).with("n", number).with("pad", padding(number))
}

/// `_id` and number of a document, if it is complete.
pub fn parse(document: DocumentRef<'_>) -> Option<(i32, i64)> {
    let (Some(ValueRef::Int32(id)), Some(ValueRef::Int64(number))) = (document.get("_id"), document.get("n")) else {
        return None;
    };
    (document.get("pad")?.as_str()? == padding(number)).then_some((id, number))
}
