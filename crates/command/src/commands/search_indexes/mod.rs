//! The commands for search indexes: `createSearchIndexes`, `updateSearchIndex`, `dropSearchIndex`, `listSearchIndexes`.

mod create;
mod drop;
mod list;
mod update;

pub(super) use create::COMMAND as CREATE;
pub(super) use drop::COMMAND as DROP;
pub(super) use list::COMMAND as LIST;
pub(super) use update::COMMAND as UPDATE;

use crate::invocation::Invocation;
use crate::target::Target;
use bunko_bson::ObjectId;
use bunko_catalog::{Collection, Namespace, SearchIndex};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
use std::sync::Arc;

/// The default name of a search index.
const NAME_USUAL: &str = "default";

/// The search index that a command names.
enum Wanted<'a> {
    Name(&'a str),
    Id(&'a str),
}

impl<'a> Wanted<'a> {
    /// Reads `name` or `id`.
    /// # Errors
    /// `InvalidOptions` if both are given; `TypeMismatch` if one is not a string.
    fn parse(fields: &Fields<'a>) -> Result<Option<Self>> {
        match (fields.string("name")?, fields.string("id")?) {
            (Some(_), Some(_)) => {
                let command = fields.command;
                Err(Failure::new(ErrorCode::INVALID_OPTIONS, format!("Cannot set both 'name' and 'id' for {command}.")))
            }
            (Some(name), None) => Ok(Some(Self::Name(name))),
            (None, Some(id)) => Ok(Some(Self::Id(id))),
            (None, None) => Ok(None),
        }
    }

    /// Reads `name` or `id`, and fails with `InvalidOptions` if neither is given.
    fn parse_required(fields: &Fields<'a>) -> Result<Self> {
        Self::parse(fields)?.ok_or_else(|| {
            let command = fields.command;
            Failure::new(ErrorCode::INVALID_OPTIONS, format!("Must specify one of 'name' and 'id' for {command}."))
        })
    }

    fn is(&self, index: &SearchIndex) -> bool {
        match self {
            Self::Name(name) => index.name == *name,
            Self::Id(id) => ObjectId::parse_hex(id) == Some(index.id),
        }
    }

    /// The position of the index in the collection's list.
    /// # Errors
    /// `IndexNotFound`.
    fn position(&self, indexes: &[Arc<SearchIndex>], namespace: &Namespace) -> Result<usize> {
        indexes.iter().position(|index| self.is(index)).ok_or_else(|| {
            let (Self::Name(text) | Self::Id(text)) = self;
            Failure::new(ErrorCode::INDEX_NOT_FOUND, format!("Search index {namespace}.{text} cannot be found"))
        })
    }
}

/// The collection whose search indexes a command changes.
/// # Errors
/// `NamespaceNotFound`; `CommandNotSupported` for views and time series.
fn collection(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<Arc<Collection>> {
    match Target::of(&invocation.service.catalog, invocation, namespace)? {
        Target::Collection(collection) => Ok(collection),
        Target::TimeSeries(_) => Err(Failure::not_supported_yet("a search index on a time series")),
        Target::View => Err(Failure::not_supported_yet("a search index on a view")),
        Target::Unstored(_) | Target::Absent => {
            let message = format!("Collection '{namespace}' does not exist.");
            Err(Failure::new(ErrorCode::NAMESPACE_NOT_FOUND, message))
        }
    }
}
