//! A privilege: some actions on a resource.
//! Source: MongoDB manual 8.2, "Resource Document".

use crate::action::{Action, ActionSet};
use bunko_bson::number::Number;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};

/// The resource of a privilege.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Everything, including the server's own databases and collections.
    Any,
    /// The server as a whole.
    Cluster,
    /// All databases except `local` and `config`, and their collections except `system.` ones.
    AnyNormal,
    /// A database and its collections except `system.` ones.
    Database(String),
    /// The collection of that name in every database.
    CollectionName(String),
    /// One collection.
    Collection(String, String),
    /// Buckets of time series. The database and the collection are optional.
    SystemBuckets(Option<String>, Option<String>),
}

/// Some actions on a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// The resource.
    pub resource: Resource,
    /// The actions.
    pub actions: ActionSet,
}

impl Resource {
    /// Parses a resource document. As on MongoDB, unknown fields and null are ignored.
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(document: DocumentRef<'_>) -> Result<Self, String> {
        let field = |name: &str| document.get(name).filter(|value| !value.is_nullish());
        let flag = |name: &str| field(name).map(is_on);
        let text = |name: &str| match field(name) {
            None => Ok(None),
            Some(ValueRef::String(text)) => Ok(Some(text.to_owned())),
            Some(other) => Err(format!("resource field '{name}' must be a string, but got {}", other.kind().alias())),
        };
        let (database, collection, buckets) = (text("db")?, text("collection")?, text("system_buckets")?);
        let named = |name: Option<String>| name.filter(|name| !name.is_empty());
        match (database, collection, buckets, flag("cluster"), flag("anyResource")) {
            (None, None, None, Some(true), None) => Ok(Self::Cluster),
            (None, None, None, None, Some(true)) => Ok(Self::Any),
            (database, None, Some(buckets), None, None) => {
                Ok(Self::SystemBuckets(named(database), named(Some(buckets))))
            }
            (Some(database), Some(collection), None, None, None) => {
                Ok(match (database.is_empty(), collection.is_empty()) {
                    (true, true) => Self::AnyNormal,
                    (false, true) => Self::Database(database),
                    (true, false) => Self::CollectionName(collection),
                    (false, false) => Self::Collection(database, collection),
                })
            }
            _ => Err("a resource is one of {cluster: true}, {anyResource: true}, {db: <name>, collection: <name>}, \
                      {db: <name>, system_buckets: <name>}"
                .to_owned()),
        }
    }

    /// The resource document, as [`Self::parse`] reads it.
    pub fn to_document(&self) -> DocumentBuf {
        let of =
            |database: &str, collection: &str| DocumentBuf::new().with("db", database).with("collection", collection);
        match self {
            Self::Any => DocumentBuf::new().with("anyResource", true),
            Self::Cluster => DocumentBuf::new().with("cluster", true),
            Self::AnyNormal => of("", ""),
            Self::Database(database) => of(database, ""),
            Self::CollectionName(collection) => of("", collection),
            Self::Collection(database, collection) => of(database, collection),
            Self::SystemBuckets(database, collection) => {
                let mut document = DocumentBuf::new();
                if let Some(database) = database {
                    document.append("db", database);
                }
                document.with("system_buckets", collection.as_deref().unwrap_or_default())
            }
        }
    }

    /// Whether the resource concerns only that database, so that roles of the database may have the privilege.
    pub fn is_within(&self, database: &str) -> bool {
        match self {
            Self::Database(own) | Self::Collection(own, _) | Self::SystemBuckets(Some(own), _) => own == database,
            Self::Any | Self::Cluster | Self::AnyNormal | Self::CollectionName(_) | Self::SystemBuckets(None, _) => {
                false
            }
        }
    }
}

/// Whether a flag of a resource is true, or a number other than zero.
fn is_on(value: ValueRef<'_>) -> bool {
    let is_number = |value| Number::of(value).is_some_and(|number| number.compare(Number::Integer(0)).is_ne());
    matches!(value, ValueRef::Boolean(true)) || is_number(value)
}

impl Privilege {
    /// Parses `{resource, actions}`. Unknown fields are ignored.
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(document: DocumentRef<'_>) -> Result<Self, String> {
        let resource = document.get("resource").and_then(ValueRef::as_document);
        let actions = document.get("actions").and_then(ValueRef::as_array);
        let (Some(resource), Some(names)) = (resource, actions) else {
            return Err("a privilege has a document 'resource' and an array 'actions'".to_owned());
        };
        let mut actions = ActionSet::NONE;
        // MongoDB ignores null among the names.
        for name in names.iter().filter(|name| !name.is_nullish()) {
            let action = name.as_str().and_then(Action::named);
            let action = action.ok_or_else(|| {
                let name = name.as_str().map_or_else(|| name.kind().alias().to_owned(), str::to_owned);
                format!("Unrecognized action privilege strings: {name}")
            })?;
            actions = actions.and(ActionSet::of(&[action]));
        }
        if actions.is_empty() {
            return Err("'actions' of a privilege must not be empty".to_owned());
        }
        Ok(Self { resource: Resource::parse(resource)?, actions })
    }

    /// The privilege as `{resource, actions}`.
    pub fn to_document(&self) -> DocumentBuf {
        let actions: ArrayBuf = self.actions.iter().map(Action::name).collect();
        DocumentBuf::new().with("resource", &self.resource.to_document()).with("actions", &actions)
    }
}

/// The privileges of a stored role. Malformed ones are skipped. Unknown actions are ignored, because another server may
/// have more actions.
pub fn privileges_of(role: DocumentRef<'_>) -> Vec<Privilege> {
    let Some(privileges) = role.get("privileges").and_then(ValueRef::as_array) else { return Vec::new() };
    let read = |privilege: ValueRef<'_>| {
        let privilege = privilege.as_document()?;
        let resource = Resource::parse(privilege.get("resource")?.as_document()?).ok()?;
        let names = privilege.get("actions")?.as_array()?;
        let known: Vec<_> = names.iter().filter_map(|name| Action::named(name.as_str()?)).collect();
        Some(Privilege { resource, actions: ActionSet::of(&known) })
    };
    privileges.iter().filter_map(read).collect()
}

/// Adds actions to the privilege on the same resource, or adds the privilege.
pub fn add(privileges: &mut Vec<Privilege>, privilege: Privilege) {
    match privileges.iter_mut().find(|other| other.resource == privilege.resource) {
        Some(other) => other.actions = other.actions.and(privilege.actions),
        None => privileges.push(privilege),
    }
}

/// Removes actions from the privilege on the same resource, and a privilege without actions.
pub fn take_off(privileges: &mut Vec<Privilege>, privilege: &Privilege) {
    for other in privileges.iter_mut().filter(|other| other.resource == privilege.resource) {
        other.actions = other.actions.without(privilege.actions);
    }
    privileges.retain(|privilege| !privilege.actions.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_they_are_written() {
        let of = |name: &str| Some(name.to_owned());
        for resource in [
            Resource::Any,
            Resource::Cluster,
            Resource::AnyNormal,
            Resource::Database("d".into()),
            Resource::CollectionName("c".into()),
            Resource::Collection("d".into(), "c".into()),
            Resource::SystemBuckets(None, None),
            Resource::SystemBuckets(of("d"), of("c")),
        ] {
            let privilege = Privilege { resource, actions: ActionSet::of(&[Action::Find, Action::KillOp]) };
            assert_eq!(Privilege::parse(privilege.to_document().as_ref()), Ok(privilege));
        }
    }

    #[test]
    fn malformed_resources_are_refused() {
        let document = DocumentBuf::new;
        for refused in [
            document(),
            document().with("db", "d"),
            document().with("cluster", false),
            document().with("cluster", true).with("db", "d").with("collection", "c"),
            document().with("db", 1).with("collection", "c"),
            document().with("db", "d").with("collection", "c").with("anyResource", false),
            document().with("db", "d").with("collection", "c").with("system_buckets", "c"),
            document().with("collection", "c"),
        ] {
            assert!(Resource::parse(refused.as_ref()).is_err(), "{refused:?}");
        }
    }
}
