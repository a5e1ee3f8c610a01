//! Names of databases and collections.

use bunko_errors::{ErrorCode, Failure, Result};
use std::fmt;

/// Longest database name, in bytes.
const DATABASE_BYTES_MAX: usize = 63;

/// A database and a collection in it, as `database.collection`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    full: String,
    dot: usize,
}

impl Namespace {
    /// Maximum number of bytes in the namespace of a new collection or view.
    /// Source: MongoDB limits, "Namespace Length".
    pub const BYTES_MAX: usize = 255;
    /// The database of the oplog.
    pub const OPLOG_DATABASE: &str = "local";
    /// The collection with the versions of the server's own formats.
    pub const VERSIONS: &str = "admin.system.version";
    /// The name of the oplog's collection.
    pub const OPLOG_COLLECTION: &str = "oplog.rs";
    /// The collection of a database's view definitions.
    /// Source: MongoDB manual, "Views".
    pub const VIEWS_COLLECTION: &str = "system.views";
    /// The collection that a database's profiler writes.
    pub const PROFILE_COLLECTION: &str = "system.profile";

    /// Checks both names.
    /// # Errors
    /// `InvalidNamespace`, which names the bad one.
    pub fn new(database: &str, collection: &str) -> Result<Self> {
        check_database(database)?;
        check_collection(collection)?;
        let mut full = String::with_capacity(database.len() + 1 + collection.len());
        full.push_str(database);
        full.push('.');
        full.push_str(collection);
        Ok(Self { full, dot: database.len() })
    }

    /// A namespace as cursors name it: `$cmd.listCollections` and the like are allowed.
    /// # Errors
    /// `InvalidNamespace` for a bad database name or an empty collection name.
    pub fn of_cursor(database: &str, collection: &str) -> Result<Self> {
        if collection.starts_with("$cmd.") {
            check_database(database)?;
            return Ok(Self { full: format!("{database}.{collection}"), dot: database.len() });
        }
        Self::new(database, collection)
    }

    /// Splits `database.collection` at its first dot.
    /// # Errors
    /// `InvalidNamespace` as [`Self::new`].
    pub fn parse(full: &str) -> Result<Self> {
        let (database, collection) = full.split_once('.').unwrap_or((full, ""));
        Self::new(database, collection)
    }

    /// Refuses a name that is too long for a new collection or view. Lookups accept longer names, which no collection
    /// has. Names in the server's own databases may be longer.
    /// # Errors
    /// `InvalidNamespace`.
    pub fn check_length(&self) -> Result<()> {
        if self.full.len() <= Self::BYTES_MAX || matches!(self.database(), "admin" | "config" | "local") {
            return Ok(());
        }
        Err(invalid(format!("Fully qualified namespace is too long. Namespace: {self} Max: {}", Self::BYTES_MAX)))
    }

    /// Whether this is the name of the oplog.
    pub fn is_oplog(&self) -> bool {
        self.database() == Self::OPLOG_DATABASE && self.collection() == Self::OPLOG_COLLECTION
    }

    /// Whether this is the name of a database's collection of view definitions.
    pub fn holds_views(&self) -> bool {
        self.collection() == Self::VIEWS_COLLECTION
    }

    /// Whether the database is one of the server's own. Names in it may be longer than [`Self::BYTES_MAX`].
    pub fn is_in_server_database(&self) -> bool {
        matches!(self.database(), "admin" | "config" | "local")
    }

    /// Whether this is the name of a system collection, whose indexes cannot be hidden. Collections of buckets
    /// (`system.buckets.*`) are the users' and do not count.
    pub fn is_of_system(&self) -> bool {
        self.collection().strip_prefix("system.").is_some_and(|name| !name.starts_with("buckets."))
    }

    /// Whether the oplog records changes to this collection. Private data of a server is excluded: the database
    /// `local`, the profiler's entries, and the versions of the server's own formats.
    pub fn is_replicated(&self) -> bool {
        self.database() != Self::OPLOG_DATABASE
            && self.collection() != Self::PROFILE_COLLECTION
            && self.full != Self::VERSIONS
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        &self.full[..self.dot]
    }

    /// The collection's name.
    pub fn collection(&self) -> &str {
        &self.full[self.dot + 1..]
    }

    /// The full name, `database.collection`.
    pub fn as_str(&self) -> &str {
        &self.full
    }
}

fn invalid(message: String) -> Failure {
    Failure::new(ErrorCode::INVALID_NAMESPACE, message)
}

/// Checks that a database may have this name.
/// # Errors
/// `InvalidNamespace`.
pub fn check_database(name: &str) -> Result<()> {
    let is_bad = |byte| matches!(byte, b'/' | b'\\' | b'.' | b' ' | b'"' | b'$' | 0);
    if name.is_empty() || name.len() > DATABASE_BYTES_MAX || name.bytes().any(is_bad) {
        return Err(invalid(format!("Invalid database name: '{name}'")));
    }
    Ok(())
}

fn check_collection(name: &str) -> Result<()> {
    let is_bad = |byte| matches!(byte, b'$' | 0);
    if name.is_empty() || name.starts_with('.') || name.bytes().any(is_bad) {
        return Err(invalid(format!("Invalid collection name: {name}")));
    }
    Ok(())
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let namespace = Namespace::new("db", "a.b").expect("valid");
        assert_eq!((namespace.database(), namespace.collection(), namespace.as_str()), ("db", "a.b", "db.a.b"));
        for (database, collection) in [("", "a"), ("a b", "c"), ("a", ""), ("a", "b$c"), ("a", ".b"), ("x.y", "z")] {
            let failure = Namespace::new(database, collection).expect_err("invalid");
            assert_eq!(failure.code(), ErrorCode::INVALID_NAMESPACE, "{database} {collection}");
        }
        let long = |database| Namespace::new(database, &"x".repeat(300)).expect("readable").check_length();
        assert_eq!(long("db").expect_err("too long").code(), ErrorCode::INVALID_NAMESPACE);
        assert!(["admin", "config", "local"].into_iter().all(|database| long(database).is_ok()));
        assert!(Namespace::new(&"d".repeat(64), "c").is_err());
    }
}
