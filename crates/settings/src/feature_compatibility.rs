//! The feature compatibility version: the release to which a server may be downgraded with its data. Bunko only
//! displays it, because its files have versions of their own.

use crate::stored::find_stored;
use bunko_bson::DocumentBuf;
use bunko_catalog::Catalog;
use bunko_errors::Result;
use bunko_query::write::version_document::{ID, VERSIONS};

/// The database that keeps the version.
pub const DATABASE: &str = "admin";
/// The collection that keeps the version, as in `MongoDB`.
pub const COLLECTION: &str = "system.version";

/// The version that was set last.
/// # Errors
/// If it cannot be read.
pub fn version(catalog: &Catalog) -> Result<&'static str> {
    let kept = find_stored(catalog, DATABASE, COLLECTION, ID)?;
    let kept = kept.as_ref().and_then(|kept| kept.as_ref().get("version")?.as_str());
    let known = VERSIONS.into_iter().find(|version| Some(*version) == kept);
    Ok(known.unwrap_or(VERSIONS[VERSIONS.len() - 1]))
}

/// The document that stores a version.
pub fn document(version: &str) -> DocumentBuf {
    DocumentBuf::new().with("_id", ID).with("version", version)
}
