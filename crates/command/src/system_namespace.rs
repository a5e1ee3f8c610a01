//! Which `system.` collections clients may make and write to.

use crate::session_collections::SessionCollection;
use crate::unstored;
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};

/// Whether a write makes its collection where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Creation {
    /// It may.
    Implied,
    /// It never does.
    None,
}

/// Refuses writes to what the server alone writes, and such as would make what [`check_creatable`] refuses. What is
/// there under such a name already may be written to.
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

/// Refuses the names that belong to the server.
/// # Errors
/// `InvalidNamespace`.
pub(crate) fn check_creatable(namespace: &Namespace) -> Result<()> {
    if is_creatable(namespace) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("Invalid system namespace: {namespace}")))
}

/// The same for commands that make a collection by its name: it may be one that the server reads where it is there.
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

/// Refuses to take away what holds users, roles and the version of their format: they go with their commands only. A copy
/// that is capped would forget some.
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

/// `system.js` and `admin`'s users and roles are what dumps of other servers bring along.
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
