//! Names of users and roles. Each belongs to a database.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use sha2::{Digest, Sha256};
use std::fmt;

/// The field of a user's name.
const USER: &str = "user";

/// The name of a user or a role, with the database that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The user's or role's own name.
    pub name: String,
    /// The database.
    pub database: String,
}

impl Name {
    /// A name in a database.
    pub fn new(name: impl Into<String>, database: impl Into<String>) -> Self {
        Self { name: name.into(), database: database.into() }
    }

    /// The `uid` in the ids of the user's sessions.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(format!("{}@{}", self.name, self.database)).into()
    }

    /// Parses `name`, which then belongs to `database`, or `{<key>: name, db: database}`. Like MongoDB, it ignores
    /// other fields for a role and refuses them for a user.
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(value: ValueRef<'_>, key: &str, database: &str) -> Result<Self, String> {
        match value {
            ValueRef::String(name) => Ok(Self::new(name, database)),
            ValueRef::Document(document) => Self::parse_document(document, key),
            other => {
                Err(format!("names of {key}s must be either strings or objects, but got {}", other.kind().alias()))
            }
        }
    }

    fn parse_document(document: DocumentRef<'_>, key: &str) -> Result<Self, String> {
        let part = |field: &str| match document.get(field) {
            Some(ValueRef::String(text)) => Ok(text.to_owned()),
            Some(other) => Err(format!("'{field}' must be a string, but got {}", other.kind().alias())),
            None => Err(format!("'{field}' is missing")),
        };
        let unknown = document.iter().find(|field| field.name != key && field.name != "db");
        if let Some(other) = unknown.filter(|_| key == USER) {
            return Err(format!("'{}' is an unknown field of a name", other.name));
        }
        Ok(Self { name: part(key)?, database: part("db")? })
    }

    /// The `_id` of its document in `system.users` or `system.roles`.
    pub fn id(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// `{<key>: name, db: database}`.
    pub fn to_document(&self, key: &str) -> DocumentBuf {
        DocumentBuf::new().with(key, &self.name).with("db", &self.database)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.database)
    }
}

/// The names in an array field of a stored document; malformed ones are skipped.
pub fn names_of(document: DocumentRef<'_>, field: &str, key: &str) -> Vec<Name> {
    let Some(names) = document.get(field).and_then(ValueRef::as_array) else { return Vec::new() };
    names.iter().filter_map(|name| Name::parse_document(name.as_document()?, key).ok()).collect()
}
