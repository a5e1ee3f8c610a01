//! The `system.` collections that clients may create and write to. Privileges alone decide which users read
//! them (`Authorization::actions_on` of `access`): a privilege on a whole database does not reach its `system.`
//! collections.

use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_pipelines::session_collections::SessionCollection;
use bunko_pipelines::unstored;

/// Whether a write creates a missing collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creation {
    /// The write may create a missing collection.
    Implied,
    /// The write never creates a collection.
    None,
}

/// Refuses writes to collections that only the server writes, and writes that would create a collection that
/// [`check_creatable`] refuses. An existing collection under such a name may be written to.
/// # Errors
/// `InvalidNamespace`; `CommandNotSupported` for the collections of sessions.
pub(crate) fn check_writable(catalog: &Catalog, namespace: &Namespace, creation: Creation) -> Result<()> {
    if matches!(namespace.collection(), "system.profile" | "system.views") {
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("cannot write to {namespace}")));
    }
    unstored::refuse(catalog, namespace, "a write")?;
    match check_creatable(namespace) {
        Err(failure) if creation == Creation::Implied && catalog.collection(namespace).is_none() => Err(failure),
        _ => Ok(()),
    }
}

/// Refuses names that belong to the server.
/// # Errors
/// `InvalidNamespace`.
pub(crate) fn check_creatable(namespace: &Namespace) -> Result<()> {
    if is_creatable(namespace) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("Invalid system namespace: {namespace}")))
}

/// As [`check_creatable`], for commands that create a collection by its name. `system.profile` and `system.users` are
/// allowed in any database.
/// # Errors
/// `InvalidNamespace`; `IllegalOperation` for buckets without their time series.
pub(crate) fn check_creatable_by_name(namespace: &Namespace) -> Result<()> {
    match namespace.collection() {
        "system.profile" | "system.users" => Ok(()),
        name if name.starts_with("system.buckets.") => {
            let message = format!("Cannot create a bucket collection without its time series: {namespace}");
            Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
        }
        _ => check_creatable(namespace),
    }
}

/// Refuses to drop or replace the collections with users, roles and the version of their format: only their own
/// commands change them. A capped copy would lose some of them.
/// # Errors
/// `IllegalOperation`.
pub(crate) fn check_removable(action: &str, namespace: &Namespace) -> Result<()> {
    match namespace.as_str() {
        "admin.system.users" | "admin.system.roles" | "admin.system.version" => {
            let message = format!("can't {action} system collection {namespace}");
            Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message))
        }
        _ => Ok(()),
    }
}

/// `system.js` and the users and roles of `admin` are in dumps of other servers.
fn is_creatable(namespace: &Namespace) -> bool {
    match namespace.collection() {
        "system.js" => true,
        "system.replset" => namespace.database() == Namespace::OPLOG_DATABASE,
        "system.users" | "system.roles" | "system.version" => namespace.database() == "admin",
        name => !name.starts_with("system.") && SessionCollection::named(namespace).is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_names_are_the_servers() {
        for (name, is_ok) in [
            ("db.a", true),
            ("db.systematic", true),
            ("db.a.system.b", true),
            ("db.system.js", true),
            ("admin.system.users", true),
            ("db.system.users", false),
            ("db.system.views", false),
            ("db.system.buckets.a", false),
            ("config.transactions", false),
            ("db.transactions", true),
        ] {
            let namespace = Namespace::parse(name).expect("well formed");
            assert_eq!(check_creatable(&namespace).is_ok(), is_ok, "{name}");
        }
    }
}
