//! The feature compatibility version: which release's data a server may be downgraded to. It changes nothing here but
//! what is said of it, since files have versions of their own.

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_bson::DocumentBuf;
use bunko_catalog::Catalog;
use bunko_errors::Result;
use bunko_query::write::version_document::{ID, VERSIONS};

/// Where it is kept, as in `MongoDB`.
pub(crate) const DATABASE: &str = "admin";
pub(crate) const COLLECTION: &str = "system.version";

/// The version that was set last.
/// # Errors
/// Where it cannot be read.
pub(crate) fn version(catalog: &Catalog) -> Result<&'static str> {
    let kept = stored_settings::find(catalog, DATABASE, COLLECTION, ID)?;
    let kept = kept.as_ref().and_then(|kept| kept.as_ref().get("version")?.as_str());
    let known = VERSIONS.into_iter().find(|version| Some(*version) == kept);
    Ok(known.unwrap_or(VERSIONS[VERSIONS.len() - 1]))
}

/// Keeps another one.
/// # Errors
/// Those of an update.
pub(crate) fn set(invocation: &mut Invocation<'_>, version: &'static str) -> Result<(), Halt> {
    stored_settings::keep(invocation, DATABASE, COLLECTION, &document(version))
}

/// The document that tells of a version.
pub(crate) fn document(version: &str) -> DocumentBuf {
    DocumentBuf::new().with("_id", ID).with("version", version)
}
