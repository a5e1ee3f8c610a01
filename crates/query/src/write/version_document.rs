//! The feature compatibility version document: clients may neither remove it nor set an unknown version.
//! Source: MongoDB manual 8.2, `setFeatureCompatibilityVersion`; codes of MongoDB 8.2.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_catalog::{Namespace, Verdict};
use bunko_errors::{ErrorCode, Failure, Result};

/// The versions that may be set; the last is the default of a new server.
pub const VERSIONS: [&str; 2] = ["8.0", "8.2"];

/// The `_id` of the document.
pub const ID: &str = "featureCompatibilityVersion";

/// Whether the collection is the one that holds the document.
pub(super) fn is_kept_in(namespace: &Namespace) -> bool {
    namespace.as_str() == Namespace::VERSIONS
}

/// The version with that name.
/// # Errors
/// 4926900 for an unknown version.
pub fn version(name: &str) -> Result<&'static str> {
    VERSIONS.into_iter().find(|version| *version == name).ok_or_else(|| {
        let versions = VERSIONS.join("' or '");
        let message = format!("Invalid feature compatibility version value '{name}'; expected '{versions}'");
        Failure::new(ErrorCode(4_926_900), message)
    })
}

/// Refuses a change of the document.
/// # Errors
/// 40670 for its removal; as [`version`] for another version.
pub(super) fn check(document: DocumentRef<'_>, verdict: &Verdict) -> Result<()> {
    if document.get("_id").and_then(ValueRef::as_str) != Some(ID) {
        return Ok(());
    }
    match verdict {
        Verdict::Keep => Ok(()),
        Verdict::Delete => {
            let message = "removing FeatureCompatibilityVersion document is not allowed";
            Err(Failure::new(ErrorCode(40_670), message))
        }
        Verdict::Replace(next) | Verdict::Modify(next, _) | Verdict::Derive(next) => {
            let name = next.as_ref().get("version").and_then(ValueRef::as_str);
            version(name.unwrap_or_default()).map(drop)
        }
    }
}
