//! The option `collation` of commands, which chooses a string order.

use bunko_bson::{DocumentRef, StringOrder};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{Failure, Result};
use bunko_pipelines::overrides_view;
use bunko_request::fields::Fields;

/// The collation of a collection that is created.
/// # Errors
/// `BadValue` for an empty document; as [`bunko_collation::parse`].
pub(crate) fn of_collection(fields: &Fields<'_>) -> Result<StringOrder> {
    match fields.document("collation")? {
        Some(collation) if collation.is_empty() => Err(Failure::bad_value("'collation' cannot be an empty document.")),
        Some(collation) => bunko_collation::parse(collation),
        None => Ok(StringOrder::default()),
    }
}

/// The collation that a command asks for. An empty document asks for none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Collation<'a>(Option<DocumentRef<'a>>);

impl<'a> Collation<'a> {
    /// # Errors
    /// `TypeMismatch`.
    pub(crate) fn parse(fields: &Fields<'a>) -> Result<Self> {
        Ok(Self(fields.document("collation")?.filter(|collation| !collation.is_empty())))
    }

    /// Parses the collation; `None` if the command gives none, so that the collection's default applies.
    /// # Errors
    /// As [`bunko_collation::parse`].
    pub(crate) fn order(self) -> Result<Option<StringOrder>> {
        self.0.map(bunko_collation::parse).transpose()
    }

    /// The string order of a command on a collection or view: as requested, or else the default. A time series is not
    /// bound to its view's order, so any order may be requested.
    /// # Errors
    /// As [`Self::order`]; `OptionNotSupportedOnView` for an order other than the view's; errors of the storage.
    pub(crate) fn order_over(self, catalog: &Catalog, namespace: &Namespace) -> Result<StringOrder> {
        let Some(asked) = self.order()? else { return catalog.default_strings(namespace) };
        match catalog.view_strings(namespace)? {
            Some(own) if own != asked && bunko_series::find(catalog, namespace)?.is_none() => {
                Err(overrides_view(namespace))
            }
            _ => Ok(asked),
        }
    }
}
