//! The part of a document that an index stores, for `returnStoredSource`.

use crate::Reader;
use bunko_bson::ValueRef;
use bunko_errors::Result;

/// The stored part of a document; `_id` is always included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredSource {
    /// Nothing.
    #[default]
    Nothing,
    /// The whole document.
    All,
    /// Only these paths.
    Include(Vec<String>),
    /// All except these paths.
    Exclude(Vec<String>),
}

impl StoredSource {
    /// Parses `storedSource`.
    pub(crate) fn parse(reader: &Reader<'_>) -> Result<Self> {
        match reader.value("storedSource") {
            None | Some(ValueRef::Boolean(false)) => return Ok(Self::Nothing),
            Some(ValueRef::Boolean(true)) => return Ok(Self::All),
            Some(ValueRef::Document(_)) => {}
            Some(_) => return Err(reader.wrong("storedSource", "must be a boolean or a document")),
        }
        let reader = reader.required(reader.inner("storedSource")?, "storedSource")?;
        let (include, exclude) = (reader.strings("include")?, reader.strings("exclude")?);
        reader.done()?;
        match (include, exclude) {
            (Some(paths), None) => Ok(Self::Include(paths)),
            (None, Some(paths)) => Ok(Self::Exclude(paths)),
            _ => Err(reader.failure("must have one of [include, exclude]")),
        }
    }
}
