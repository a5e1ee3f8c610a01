//! The feature compatibility version: the release to which a server may be downgraded with its data. Here it is only
//! displayed, since files have versions of their own.

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_bson::DocumentBuf;
use bunko_catalog::Catalog;
use bunko_errors::Result;
use bunko_query::write::version_document::{ID, VERSIONS};

/// The collection that keeps it, as in `MongoDB`.
pub(crate) const DATABASE: &str = "admin";
pub(crate) const COLLECTION: &str = "system.version";

/// The version that was set last.
/// # Errors
/// If it cannot be read.
pub(crate) fn version(catalog: &Catalog) -> Result<&'static str> {
    let kept = stored_settings::find(catalog, DATABASE, COLLECTION, ID)?;
    let kept = kept.as_ref().and_then(|kept| kept.as_ref().get("version")?.as_str());
    let known = VERSIONS.into_iter().find(|version| Some(*version) == kept);
    Ok(known.unwrap_or(VERSIONS[VERSIONS.len() - 1]))
}

/// Stores another version.
/// # Errors
/// Errors of an update.
pub(crate) fn set(invocation: &mut Invocation<'_>, version: &'static str) -> Result<(), Halt> {
    stored_settings::keep(invocation, DATABASE, COLLECTION, &document(version))
}

/// The document that stores a version.
pub(crate) fn document(version: &str) -> DocumentBuf {
    DocumentBuf::new().with("_id", ID).with("version", version)
}
