//! What an index keeps of a document, for `returnStoredSource`.

use crate::Reader;
use bunko_bson::ValueRef;
use bunko_errors::Result;

/// What `returnStoredSource` shows of a document; `_id` is always there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredSource {
    /// There is none.
    #[default]
    Nothing,
    /// The whole document.
    All,
    /// These paths alone.
    Include(Vec<String>),
    /// All but these paths.
    Exclude(Vec<String>),
}

impl StoredSource {
    /// Reads `storedSource`.
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
