//! The limits of a capped collection.

use bunko_bson::{DocumentRef, ValueRef, number};

/// The limits of a capped collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cap {
    bytes: u64,
    documents: Option<u64>,
}

impl Cap {
    /// The limits in a collection's options, if it is capped.
    pub fn of(options: DocumentRef<'_>) -> Option<Self> {
        if !matches!(options.get("capped"), Some(ValueRef::Boolean(true))) {
            return None;
        }
        let limit = |name: &str| {
            let limit = options.get(name).and_then(number::as_i64_exact).and_then(|limit| u64::try_from(limit).ok());
            limit.filter(|limit| *limit > 0)
        };
        Some(Self { bytes: limit("size").unwrap_or(u64::MAX), documents: limit("max") })
    }

    pub fn holds(self, documents: u64, bytes: u64) -> bool {
        bytes <= self.bytes && self.documents.is_none_or(|most| documents <= most)
    }
}
