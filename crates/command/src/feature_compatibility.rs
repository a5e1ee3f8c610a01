//! The feature compatibility version: which release's data a server may be downgraded to. It changes nothing here but
//! what is said of it, since files have versions of their own.

use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Catalog;
use bunko_errors::Result;

/// The versions that may be set; the last is that of a new server.
pub(crate) const VERSIONS: [&str; 2] = ["8.0", "8.2"];

/// Where it is kept, as in `MongoDB`.
const DATABASE: &str = "admin";
const COLLECTION: &str = "system.version";
const ID: &str = "featureCompatibilityVersion";

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
    let document = DocumentBuf::new().with("_id", ID).with("version", ValueRef::String(version));
    stored_settings::keep(invocation, DATABASE, COLLECTION, &document)
}
