//! Stretches of a part that are sent in one command each.

use super::pool::Loan;
use super::target::RestoredNamespace;
use bunko_archive::{each_document, split_document};
use bunko_bson::DocumentRef;
use std::ops::Range;
use std::sync::Arc;

/// Limits of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Maximum number of bytes of documents; a single longer document is a batch of its own.
    pub(super) bytes: usize,
    /// Maximum number of documents.
    pub(super) count: usize,
}

/// Whether the server may have these documents already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The documents were never sent.
    None,
    /// This run or the one that it continues sent the documents, and the result is unknown.
    MayBeThere,
}

/// Documents for one command. The bytes stay in the part into which they were read.
#[derive(Clone)]
pub(super) struct Batch {
    pub(super) target: Arc<RestoredNamespace>,
    pub(super) part: Arc<Loan>,
    pub(super) bytes: Range<usize>,
    pub(super) count: usize,
    /// Position of the documents in the namespace, in bytes.
    pub(super) stretch: Range<u64>,
    pub(super) doubt: Doubt,
}

impl Batch {
    /// The encoded documents.
    pub(super) fn documents(&self) -> &[u8] {
        &self.part.documents().bytes[self.bytes.clone()]
    }

    /// Whether the server may have these documents already and some of them have no `_id` to look for.
    pub(super) fn may_be_doubled(&self) -> bool {
        let has_no_id = |document| DocumentRef::trusted(document).get("_id").is_none();
        self.doubt == Doubt::MayBeThere && each_document(self.documents()).any(has_no_id)
    }

    /// The encoded document with this number.
    pub(super) fn document(&self, number: usize) -> Option<&[u8]> {
        each_document(self.documents()).nth(number)
    }
}

/// Cuts documents into stretches within `limits`; yields each one's range and number of documents.
pub(super) fn cut(documents: &[u8], limits: Limits) -> Cuts<'_> {
    Cuts { documents, at: 0, limits }
}

/// The iterator of [`cut`].
pub(super) struct Cuts<'a> {
    documents: &'a [u8],
    at: usize,
    limits: Limits,
}

impl Iterator for Cuts<'_> {
    type Item = (Range<usize>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let mut count = 0;
        while count < self.limits.count {
            let Ok(Some((document, _))) = split_document(&self.documents[self.at..]) else { break };
            if count > 0 && self.at + document.len() - start > self.limits.bytes {
                break;
            }
            self.at += document.len();
            count += 1;
        }
        (count > 0).then_some((start..self.at, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(lengths: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &length in lengths {
            let document = bunko_bson::DocumentBuf::new().with("a", "x".repeat(length).as_str());
            bytes.extend(document.into_bytes());
        }
        bytes
    }

    #[test]
    fn a_long_document_goes_alone() {
        let bytes = encoded(&[0, 100, 0]);
        let cuts: Vec<_> = cut(&bytes, Limits { bytes: 40, count: 9 }).map(|(_, count)| count).collect();
        assert_eq!(cuts, [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn cuts_cover_all_and_keep_to_the_limits(
            lengths in proptest::collection::vec(0_usize..60, 0..40),
            bytes_max in 20_usize..300,
            count_max in 1_usize..10,
        ) {
            let bytes = encoded(&lengths);
            let (mut at, mut documents) = (0, 0);
            for (range, count) in cut(&bytes, Limits { bytes: bytes_max, count: count_max }) {
                prop_assert_eq!(range.start, at);
                prop_assert!(count <= count_max && (count == 1 || range.len() <= bytes_max));
                at = range.end;
                documents += count;
            }
            prop_assert_eq!((at, documents), (bytes.len(), lengths.len()));
        }
    }
}
