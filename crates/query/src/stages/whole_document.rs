//! Documents for filters: whole, and as they are stored.

use crate::find_query::FindQuery;
use bunko_bson::DocumentRef;
use bunko_errors::Result;

/// A document read from its record. Filters accept only this type: their answer would be wrong for a document made from
/// keys, cut to the fields that a reader needs, or never read.
#[derive(Clone, Copy)]
pub(crate) struct WholeDocument<'d>(DocumentRef<'d>);

impl<'d> WholeDocument<'d> {
    /// The document in the bytes of a record.
    pub fn of_record(bytes: &'d [u8]) -> Self {
        Self(DocumentRef::trusted(bytes))
    }

    /// The fields of the document.
    pub fn fields(self) -> DocumentRef<'d> {
        self.0
    }

    /// Whether it matches the query's filter.
    /// # Errors
    /// Errors of the filter's expressions, and `Interrupted` if the operation is killed.
    #[inline]
    pub fn matches(self, query: &FindQuery) -> Result<bool> {
        query.filter.try_matches(self.0)
    }
}
