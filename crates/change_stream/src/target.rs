//! The part of the server that a stream watches.

use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};

/// The part of the server that a stream watches.
#[derive(Clone, Debug)]
pub enum Target {
    Collection { full: String, commands: String },
    Database { prefix: String },
    Cluster,
}

/// The collection with a database's view definitions.
pub const SYSTEM_VIEWS: &str = "system.views";

impl Target {
    /// The target that the command names.
    /// # Errors
    /// `InvalidNamespace` for the server's own databases and collections; `InvalidOptions` for the whole cluster,
    /// except on `admin`.
    pub fn of(namespace: &Namespace, is_whole: bool, all_changes: bool) -> Result<Self> {
        let database = namespace.database();
        if all_changes {
            if is_whole && database == "admin" {
                return Ok(Self::Cluster);
            }
            let message = format!(
                "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no \
                 collection name; found {namespace}"
            );
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        if matches!(database, "admin" | "local" | "config") {
            let message = format!("$changeStream may not be opened on the internal {database} database");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        }
        if is_whole {
            return Ok(Self::Database { prefix: format!("{database}.") });
        }
        if namespace.collection().starts_with("system.") {
            let message = format!("$changeStream may not be opened on the internal {namespace} collection");
            return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
        }
        Ok(Self::Collection { full: namespace.as_str().to_owned(), commands: format!("{database}.$cmd") })
    }

    /// The prefix of the namespaces that the stream follows.
    pub fn scope(&self) -> &str {
        match self {
            Self::Collection { full, .. } => full,
            Self::Database { prefix } => prefix,
            Self::Cluster => "",
        }
    }

    /// Whether entries of that namespace may concern the stream.
    pub fn wants(&self, namespace: &str) -> bool {
        match self {
            Self::Collection { full, commands } => namespace == full || namespace == commands,
            Self::Database { prefix } => namespace.strip_prefix(prefix.as_str()).is_some_and(is_told),
            Self::Cluster => namespace.split_once('.').is_some_and(|(database, collection)| {
                !matches!(database, "admin" | "local" | "config") && is_told(collection)
            }),
        }
    }

    /// Whether the stream watches that collection.
    pub fn watches(&self, full: &str) -> bool {
        !matches!(full.split_once('.'), Some((_, "$cmd" | SYSTEM_VIEWS))) && self.wants(full)
    }
}

/// Whether a collection has events: the server's own collections have none, except `system.views`, whose writes are
/// events of the views.
fn is_told(collection: &str) -> bool {
    collection == SYSTEM_VIEWS || !collection.starts_with("system.")
}
