//! Which `system.` collections clients may make.

use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

/// Refuses the names that belong to the server.
/// # Errors
/// `InvalidNamespace`.
pub(crate) fn check_creatable(namespace: &Namespace) -> Result<()> {
    if is_creatable(namespace) {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::INVALID_NAMESPACE, format!("Invalid system namespace: {namespace}")))
}

/// `system.js` and `admin`'s users and roles are what dumps of other servers bring along.
fn is_creatable(namespace: &Namespace) -> bool {
    match namespace.collection() {
        "system.js" => true,
        "system.users" | "system.roles" | "system.version" => namespace.database() == "admin",
        name => !name.starts_with("system."),
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
        ] {
            let namespace = Namespace::parse(name).expect("well formed");
            assert_eq!(check_creatable(&namespace).is_ok(), is_ok, "{name}");
        }
    }
}
