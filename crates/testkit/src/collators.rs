//! Orders of strings without ICU.

use bunko_bson::{Collator, DocumentRef};
use std::cmp::Ordering;

/// A collation that compares letters without their case.
#[derive(Debug)]
pub struct WithoutCase;

impl Collator for WithoutCase {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        a.to_lowercase().cmp(&b.to_lowercase())
    }

    fn write_sort_key(&self, text: &str, key: &mut Vec<u8>) {
        key.extend_from_slice(text.to_lowercase().as_bytes());
    }

    fn specification(&self) -> DocumentRef<'_> {
        DocumentRef::EMPTY
    }
}
