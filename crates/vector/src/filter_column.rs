//! Which rows have which values at one path: postings, by token.

use crate::bitmap::Bitmap;
use crate::filter::Test;
use crate::token;
use bunko_bson::DocumentRef;
use std::collections::BTreeMap;
use std::ops::Bound;

/// About what a token costs beside its bytes.
const TOKEN_BYTES: usize = 96;

/// Rows by the values at a path. Rows that are gone stay in it: whoever asks knows which are alive.
#[derive(Debug, Default)]
pub(crate) struct FilterColumn {
    postings: BTreeMap<Box<[u8]>, Vec<u32>>,
    bytes: usize,
}

impl FilterColumn {
    /// Notes what a document has at the path. Rows come in ascending order.
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

    /// The rows below `rows` that pass a test.
    pub(crate) fn rows(&self, test: &Test, rows: usize) -> Bitmap {
        let mut found = Bitmap::empty(rows);
        let mut add = |posting: &Vec<u32>| posting.iter().for_each(|row| found.set(*row));
        match test {
            Test::Exists => self.postings.get(token::PRESENT).into_iter().for_each(&mut add),
            Test::AnyOf(tokens) => tokens.iter().filter_map(|token| self.postings.get(token)).for_each(&mut add),
            Test::Within(from, to) => {
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

/// Whether a range has any place, without which a tree panics.
fn is_possible(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from <= to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from < to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
    }
}
