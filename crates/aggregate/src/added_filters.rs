//! Filters that rewrites put into a stage, one condition after the other.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use std::sync::OnceLock;

/// Filters that all must match.
#[derive(Clone, Default)]
pub(crate) struct AddedFilters {
    filters: Vec<DocumentBuf>,
    /// The conjunction of several filters, made when it is first asked for: a `$match` may have thousands of conditions.
    conjunction: OnceLock<DocumentBuf>,
}

impl AddedFilters {
    pub fn add(&mut self, filter: DocumentRef<'_>) {
        self.filters.push(filter.to_owned());
        self.conjunction = OnceLock::new();
    }

    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// One filter for all of them; `None` if there is none.
    pub fn all(&self) -> Option<DocumentRef<'_>> {
        match self.filters.as_slice() {
            [] => None,
            [only] => Some(only.as_ref()),
            several => {
                let conjunction = || {
                    let all: ArrayBuf = several.iter().map(ValueRef::from).collect();
                    DocumentBuf::new().with("$and", &all)
                };
                Some(self.conjunction.get_or_init(conjunction).as_ref())
            }
        }
    }

    /// The stage that applies all of them.
    pub fn stage(&self) -> Option<DocumentBuf> {
        self.all().map(|filter| DocumentBuf::new().with(bunko_stages::MATCH.name, filter))
    }
}
