//! Postings of one path: for each token, the rows that have it.

use crate::bitmap::Bitmap;
use crate::token;
use crate::token_test::TokenTest;
use bunko_bson::DocumentRef;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Approximate memory of a token besides its bytes, in bytes.
const TOKEN_BYTES: usize = 96;

/// Rows by the values at a path. Removed rows stay in the postings: the caller knows which rows are alive.
#[derive(Debug, Default)]
pub(crate) struct FilterColumn {
    postings: BTreeMap<Box<[u8]>, Vec<u32>>,
    bytes: usize,
}

impl FilterColumn {
    /// Adds a document's values at the path. Rows come in ascending order.
    pub(crate) fn add(&mut self, row: u32, document: DocumentRef<'_>, path: &str) {
        for token in token::of_document(document, path) {
            self.bytes += size_of::<u32>();
            let bytes = &mut self.bytes;
            let rows = self.postings.entry(token).or_insert_with_key(|token| {
                *bytes += token.len() + TOKEN_BYTES;
                Vec::new()
            });
            rows.push(row);
        }
    }

    /// Returns the rows below `rows` that pass a test.
    pub(crate) fn rows(&self, test: &TokenTest, rows: usize) -> Bitmap {
        let mut found = Bitmap::empty(rows);
        let mut add = |posting: &Vec<u32>| posting.iter().for_each(|row| found.set(*row));
        match test {
            TokenTest::Exists => self.postings.get(token::PRESENT).into_iter().for_each(&mut add),
            TokenTest::AnyOf(tokens) => tokens.iter().filter_map(|token| self.postings.get(token)).for_each(&mut add),
            TokenTest::Within(from, to) => {
                let from = from.as_ref().map(Vec::as_slice);
                let to = to.as_ref().map(Vec::as_slice);
                if is_possible(from, to) {
                    self.postings.range::<[u8], _>((from, to)).for_each(|(_, posting)| add(posting));
                }
            }
        }
        found
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Whether a range is valid. `BTreeMap::range` panics on other ranges.
fn is_possible(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from < to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}
