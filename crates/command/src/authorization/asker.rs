//! The client that sent a command, and its privileges.

use super::localhost_exception;
use crate::access_control::LoggedIn;
use crate::connection::ClientConnection;
use crate::service::Service;
use bunko_access::{Action, ActionSet, Authorization, Name};
use bunko_bson::ValueRef;
use bunko_request::Request;
use std::ptr;

/// The client of a connection, on a server that checks privileges.
pub struct Asker<'a> {
    pub(super) service: &'a Service,
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
    pub(super) fn of_command(
        service: &'a Service,
        connection: &'a mut ClientConnection,
        request: &Request<'a>,
    ) -> Option<Self> {
        let named = match (&mut connection.user, request.argument()) {
            (Some(user), ValueRef::String(collection)) => {
                let database = request.database;
                Some(Named { database, collection, actions: user.rights_on(database, collection) })
            }
            _ => None,
        };
        Self::of(service, connection).map(|asker| Self { named, ..asker })
    }

    /// The connection's client: the logged-in user, or a user-less client under the localhost exception, or else
    /// `None`.
    pub(crate) fn of(service: &'a Service, connection: &'a ClientConnection) -> Option<Self> {
        if let Some(user) = &connection.user {
            return Some(Self { service, user: Some(user), authorization: &user.authorization, named: None });
        }
        let authorization = localhost_exception::of(service, connection)?;
        Some(Self { service, user: None, authorization, named: None })
    }

    /// The name of the logged-in user.
    pub(crate) fn user(&self) -> Option<&'a Name> {
        self.user.map(|user| &user.name)
    }

    /// The logged-in user.
    pub(super) fn logged_in(&self) -> Option<&'a LoggedIn> {
        self.user
    }

    pub(crate) fn is(&self, name: &Name) -> bool {
        self.user().is_some_and(|user| user == name)
    }

    pub(crate) fn has_role(&self, name: &Name) -> bool {
        self.user.is_some_and(|user| user.roles.contains(name))
    }

    pub(crate) fn on_collection(&self, database: &str, collection: &str, action: Action) -> bool {
        match self.named {
            // Most checks are for the names in the command itself, which need no comparison of their text.
            Some(named) if ptr::eq(named.collection, collection) && ptr::eq(named.database, database) => {
                named.actions.allows(action)
            }
            _ => self.authorization.on_collection(database, collection, action),
        }
    }

    pub(crate) fn on_database(&self, database: &str, action: Action) -> bool {
        self.authorization.on_database(database, action)
    }

    pub(crate) fn on_cluster(&self, action: Action) -> bool {
        self.authorization.on_cluster(action)
    }

    /// Whether an action is allowed on all databases that are not the server's own.
    pub(crate) fn on_all_databases(&self, action: Action) -> bool {
        self.authorization.on_all_databases(action)
    }

    /// Whether everything is allowed, also on the server's own data.
    pub(crate) fn may_do_everything(&self) -> bool {
        self.authorization.allows_everything()
    }

    /// Whether any action is allowed on a collection, so that its name need not be hidden.
    pub(crate) fn knows_collection(&self, database: &str, collection: &str) -> bool {
        Action::ALL.iter().any(|action| self.on_collection(database, collection, *action))
    }

    /// Whether any action is allowed on a database or in it.
    pub(crate) fn knows_database(&self, database: &str) -> bool {
        Action::ALL.iter().any(|action| self.authorization.somewhere_in(database, *action))
    }
}
