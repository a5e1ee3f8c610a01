//! The client that sent a command, and its privileges.

use super::localhost_exception;
use crate::authority::Authority;
use crate::client::Client;
use crate::logged_in::LoggedIn;
use bunko_access::{Action, ActionSet, Authorization, Name};
use bunko_bson::{BinarySubtype, ValueRef};
use bunko_request::Request;
use std::ptr;

/// The client of a connection, on a server that checks privileges.
pub struct Asker<'a> {
    authority: &'a Authority,
    user: Option<&'a LoggedIn>,
    authorization: &'a Authorization,
    named: Option<Named<'a>>,
}

/// Privileges on the collection that the command names. The names are borrowed from the command itself.
#[derive(Clone, Copy)]
struct Named<'a> {
    database: &'a str,
    collection: &'a str,
    actions: ActionSet,
}

impl<'a> Asker<'a> {
    /// The client of a command, with its privileges on the collection that the command's first value names.
    pub(crate) fn of_command(authority: &'a Authority, client: &'a mut Client, request: &Request<'a>) -> Option<Self> {
        let named = match (&mut client.user, request.argument()) {
            (Some(user), ValueRef::String(collection)) => {
                let database = request.database;
                Some(Named { database, collection, actions: user.rights_on(database, collection) })
            }
            _ => None,
        };
        Self::of(authority, client).map(|asker| Self { named, ..asker })
    }

    /// The connection's client: the logged-in user, or a client without a user under the localhost exception; `None`
    /// for any other client.
    pub fn of(authority: &'a Authority, client: &'a Client) -> Option<Self> {
        if let Some(user) = &client.user {
            return Some(Self { authority, user: Some(user), authorization: &user.authorization, named: None });
        }
        let authorization = localhost_exception::of(authority, client)?;
        Some(Self { authority, user: None, authorization, named: None })
    }

    /// The name of the logged-in user; `None` under the localhost exception.
    pub fn user(&self) -> Option<&'a Name> {
        self.user.map(|user| &user.name)
    }

    /// The logged-in user; `None` under the localhost exception.
    pub fn logged_in(&self) -> Option<&'a LoggedIn> {
        self.user
    }

    /// Whether the client is logged in as that user.
    pub fn is(&self, name: &Name) -> bool {
        self.user().is_some_and(|user| user == name)
    }

    /// Whether the user has that role, perhaps by inheritance.
    pub fn has_role(&self, name: &Name) -> bool {
        self.user.is_some_and(|user| user.roles.contains(name))
    }

    /// Whether an action is allowed on a collection.
    pub fn on_collection(&self, database: &str, collection: &str, action: Action) -> bool {
        match self.named {
            // Most checks are for the names in the command itself, which need no comparison of their text.
            Some(named) if ptr::eq(named.collection, collection) && ptr::eq(named.database, database) => {
                named.actions.allows(action)
            }
            _ => self.authorization.on_collection(database, collection, action),
        }
    }

    /// Whether an action is allowed on a database.
    pub fn on_database(&self, database: &str, action: Action) -> bool {
        self.authorization.on_database(database, action)
    }

    /// Whether an action is allowed on the server as a whole.
    pub fn on_cluster(&self, action: Action) -> bool {
        self.authorization.on_cluster(action)
    }

    /// Whether an action is allowed on all databases that are not the server's own.
    pub fn on_all_databases(&self, action: Action) -> bool {
        self.authorization.on_all_databases(action)
    }

    /// Whether everything is allowed, also on the server's own data.
    pub fn may_do_everything(&self) -> bool {
        self.authorization.allows_everything()
    }

    /// Whether any action is allowed on a collection, so that its name need not be hidden.
    pub fn knows_collection(&self, database: &str, collection: &str) -> bool {
        Action::ALL.iter().any(|action| self.on_collection(database, collection, *action))
    }

    /// Whether any action is allowed on a database or in it.
    pub fn knows_database(&self, database: &str) -> bool {
        Action::ALL.iter().any(|action| self.authorization.somewhere_in(database, *action))
    }

    /// Whether an action is allowed on the collection that the first value of a command names.
    pub fn on_named(&self, request: &Request<'_>, action: Action) -> bool {
        let uuid = match request.argument() {
            ValueRef::String(collection) => return self.on_collection(request.database, collection, action),
            ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => bytes.try_into().ok(),
            _ => None,
        };
        match uuid {
            Some(uuid) => self.on_identified(request.database, uuid, action),
            // The command refuses such a value. Until it does, the value may stand for any collection of the database.
            None => self.on_database(request.database, action),
        }
    }

    /// Whether an action is allowed on the collection of a database that a UUID names. A UUID without a collection may
    /// get one soon, so the action must then be allowed on the whole database.
    fn on_identified(&self, database: &str, uuid: [u8; 16], action: Action) -> bool {
        let collection = self.authority.catalog.collection_by_uuid(uuid).map(|collection| collection.namespace());
        let named = collection.filter(|namespace| namespace.database() == database);
        self.on_cluster(Action::UseUuid)
            && match named {
                Some(namespace) => self.on_collection(database, namespace.collection(), action),
                None => self.on_database(database, action),
            }
    }
}
