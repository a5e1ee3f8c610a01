//! The option `hint` of commands, which chooses an index.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::Result;
use bunko_query::Hint;
use bunko_request::fields::Fields;

/// The hint of a command.
#[derive(Clone, Copy, Default)]
pub(crate) struct HintOption<'a>(Option<ValueRef<'a>>);

impl<'a> HintOption<'a> {
    pub(crate) fn parse(fields: &Fields<'a>) -> Self {
        Self(fields.field("hint"))
    }

    /// The hint as the client sent it.
    pub(crate) fn sent(self) -> Option<ValueRef<'a>> {
        self.0
    }

    /// # Errors
    /// As [`Hint::parse`].
    pub(crate) fn read(self) -> Result<Option<Hint>> {
        self.0.map_or(Ok(None), Hint::parse)
    }

    /// The hint for the source below a name. Over a time series, a key pattern of measurements becomes one of buckets.
    /// # Errors
    /// As [`Hint::parse`].
    pub(crate) fn read_over(self, catalog: &Catalog, namespace: &Namespace) -> Result<Option<Hint>> {
        let hint = self.read()?;
        let Some(Hint::KeyPattern(key)) = &hint else { return Ok(hint) };
        match bunko_series::find(catalog, namespace)? {
            Some(series) => Ok(Some(Hint::KeyPattern(bunko_series::bucket_key(key.as_ref(), &series.options)?))),
            None => Ok(hint),
        }
    }

    /// As [`Self::read_over`], for a command with a sort: a sort by `$natural` counts as a hint if there is no other.
    /// # Errors
    /// As [`Hint::parse`].
    pub(crate) fn read_with_sort(
        self,
        sort: Option<DocumentRef<'_>>,
        catalog: &Catalog,
        namespace: &Namespace,
    ) -> Result<Option<Hint>> {
        let natural = sort.filter(|sort| sort.get("$natural").is_some());
        match (self.read_over(catalog, namespace)?, natural) {
            (None, Some(natural)) => Hint::parse(ValueRef::Document(natural)),
            (given, _) => Ok(given),
        }
    }
}
