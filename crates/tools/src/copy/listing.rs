//! Collections, views and time series of a server.

use super::pair::End;
use super::scope::Scope;
use crate::ToolError;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};

/// Kind of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Collection,
    View,
    Series,
}

/// One namespace of a server.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) database: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) options: DocumentBuf,
}

impl Listed {
    fn read(database: &str, entry: DocumentRef<'_>) -> Option<Self> {
        let options = entry.get("options").and_then(ValueRef::as_document);
        let kind = match entry.get("type").and_then(ValueRef::as_str) {
            Some("view") => Kind::View,
            Some("timeseries") => Kind::Series,
            _ => Kind::Collection,
        };
        Some(Self {
            database: database.to_owned(),
            name: entry.get("name")?.as_str()?.to_owned(),
            kind,
            options: options.map(DocumentRef::to_owned).unwrap_or_default(),
        })
    }

    pub(super) fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    pub(super) fn is_series(&self) -> bool {
        self.kind == Kind::Series
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.options.as_ref().get("encryptedFields").is_some()
    }

    pub(super) fn is_capped(&self) -> bool {
        matches!(self.options.as_ref().get("capped"), Some(ValueRef::Boolean(true)))
    }

    /// Whether equal `_id`s may have different bytes beside those of numbers.
    pub(super) fn has_collation(&self) -> bool {
        self.options.as_ref().get("collation").is_some()
    }
}

/// All namespaces in the scope.
/// # Errors
/// The server's, or the connection's.
pub(super) fn all(end: &mut End, scope: &Scope) -> Result<Vec<Listed>, ToolError> {
    let command = DocumentBuf::new().with("listDatabases", 1_i32).with("nameOnly", true);
    let reply = end.run("admin", &command)?;
    let databases = reply.as_ref().get("databases").and_then(ValueRef::as_array);
    let names = databases.iter().flat_map(|list| list.iter()).filter_map(|database| {
        database.as_document()?.get("name")?.as_str().filter(|name| Scope::takes_database(name)).map(str::to_owned)
    });
    let names: Vec<_> = names.collect();
    let mut found = Vec::new();
    for database in &names {
        found.extend(of_database(end, scope, database)?);
    }
    Ok(found)
}

/// The namespaces of one database in the scope.
/// # Errors
/// The server's, or the connection's.
pub(super) fn of_database(end: &mut End, scope: &Scope, database: &str) -> Result<Vec<Listed>, ToolError> {
    let command = DocumentBuf::new().with("listCollections", 1_i32).with("cursor", &DocumentBuf::new());
    let listed = end.list(database, &command)?;
    let listed = listed.iter().filter_map(|entry| Listed::read(database, entry.as_ref()));
    Ok(listed.filter(|listed| scope.takes(database, &listed.name)).collect())
}

/// One namespace; `None` if it does not exist.
/// # Errors
/// The server's, or the connection's.
pub(super) fn one(end: &mut End, database: &str, name: &str) -> Result<Option<Listed>, ToolError> {
    let command = DocumentBuf::new()
        .with("listCollections", 1_i32)
        .with("filter", &DocumentBuf::new().with("name", name))
        .with("cursor", &DocumentBuf::new());
    let listed = end.list(database, &command)?;
    Ok(listed.first().and_then(|entry| Listed::read(database, entry.as_ref())))
}
