//! Tests of the tokens that a document has at a path.

use std::ops::Bound;

/// A test of the tokens that a document has at a path.
#[derive(Clone, Debug, PartialEq)]
pub enum TokenTest {
    /// The path has a value.
    Exists,
    /// The document has one of these tokens.
    AnyOf(Vec<Box<[u8]>>),
    /// The document has a token within these bounds.
    Within(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl TokenTest {
    pub(crate) fn passes(&self, tokens: &[Box<[u8]>]) -> bool {
        match self {
            Self::Exists => !tokens.is_empty(),
            Self::AnyOf(wanted) => wanted.iter().any(|token| tokens.contains(token)),
            Self::Within(from, to) => tokens.iter().any(|token| {
                let is_behind = match from {
                    Bound::Included(from) => **token >= **from,
                    Bound::Excluded(from) => **token > **from,
                    Bound::Unbounded => true,
                };
                is_behind
                    && match to {
                        Bound::Included(to) => **token <= **to,
                        Bound::Excluded(to) => **token < **to,
                        Bound::Unbounded => true,
                    }
            }),
        }
    }
}
