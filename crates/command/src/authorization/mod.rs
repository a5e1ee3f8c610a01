//! Checks privileges. Each command declares its privileges in its entry of the table, and one function checks them
//! before anything else of the command is parsed.
//!
//! **Invariant:** a command without a declaration does not compile.
//! **Invariant:** malformed input never avoids a check: it is checked as strictly as anything it could be taken for.
//! Source: MongoDB manual 8.2, "Privilege Actions" and "Required Access" of each command.

pub(crate) mod administration;
mod asker;
pub(crate) mod collections;
pub(crate) mod cursors;
pub(crate) mod localhost_exception;
pub(crate) mod own_sessions;
pub(crate) mod pipelines;
pub(crate) mod users;
pub(crate) mod writes;

pub use asker::Asker;
pub(crate) use pipelines::{PipelinePlace, StagePrivileges};

use crate::access_control::Shown;
use crate::audit::{note_refusal, note_success};
use crate::collection_uuid;
use crate::command_entry::Command;
use crate::commands::coll_mod;
use crate::connection::ClientConnection;
use crate::service::Service;
use bunko_access::Action;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::Request;
use bunko_store::planted::{Bug, active};

/// The privileges that a command needs.
#[derive(Clone, Copy)]
pub enum Privileges {
    /// Not declared: the entry lacks its privileges, and does not compile.
    Undeclared,
    /// None: it also runs before a login.
    BeforeLogin,
    /// A login.
    Login,
    /// The action on the collection that its first value names.
    OnCollection(Action),
    /// The action on the database that it is sent to.
    OnDatabase(Action),
    /// The action on the server as a whole.
    OnCluster(Action),
    /// As the request demands.
    By(fn(&Asker<'_>, &Request<'_>) -> bool),
}

/// Refuses a command that its client may not run.
/// # Errors
/// `Unauthorized`, which is logged as well.
pub(crate) fn authorize(
    service: &Service,
    connection: &mut ClientConnection,
    command: &Command,
    request: &Request<'_>,
) -> Result<()> {
    if matches!(command.privileges, Privileges::BeforeLogin) {
        return Ok(());
    }
    let asker = Asker::of_command(service, connection, request);
    let is_allowed = asker.as_ref().is_some_and(|asker| asker.may(command, request));
    let is_logged_in = asker.is_some_and(|asker| asker.user().is_some());
    match (is_allowed, is_logged_in) {
        (true, _) => {
            note_success(service, connection, command, request);
            Ok(())
        }
        (false, true) => {
            note_refusal(service, connection, command, request);
            let shown = Shown::of_any(command, request);
            let body = ValueRef::Document(shown.as_ref());
            Err(refused(
                connection,
                format!("not authorized on {} to execute command {}", request.database, ValueText(body)),
            ))
        }
        (false, false) => {
            note_refusal(service, connection, command, request);
            Err(refused(connection, format!("Command {} requires authentication", command.name)))
        }
    }
}

fn refused(connection: &ClientConnection, message: String) -> Failure {
    let client = format!("conn{}", connection.id);
    let (user, database) =
        connection.user.as_ref().map_or(("", ""), |user| (user.name.name.as_str(), user.name.database.as_str()));
    tracing::info!(target: "ACCESS", id = 20_436, ctx = client, remote = %connection.peer, user, db = database, error = message, "Checking authorization failed");
    Failure::new(ErrorCode::UNAUTHORIZED, message)
}

impl Asker<'_> {
    /// Whether the command as it was sent is allowed.
    fn may(&self, command: &Command, request: &Request<'_>) -> bool {
        if active(Bug::CheckLeftOut) && command.name == coll_mod::COMMAND.name {
            return self.user().is_some();
        }
        match command.privileges {
            Privileges::Undeclared => false,
            Privileges::BeforeLogin => true,
            Privileges::Login => self.user().is_some(),
            Privileges::OnCollection(action) => self.on_named(request, action),
            Privileges::OnDatabase(action) => self.on_database(request.database, action),
            Privileges::OnCluster(action) => self.on_cluster(action),
            Privileges::By(ask) => ask(self, request),
        }
    }

    /// Whether an action is allowed on the collection that the first value of a command names.
    fn on_named(&self, request: &Request<'_>, action: Action) -> bool {
        match request.argument().as_str() {
            Some(collection) => self.on_collection(request.database, collection, action),
            None => match collection_uuid::of_value(request.argument()) {
                Ok(Some(uuid)) => self.on_identified(request.database, uuid, action),
                // The command refuses such a value. Until then it may stand for any collection.
                _ => self.on_database(request.database, action),
            },
        }
    }

    /// Whether an action is allowed on a collection of a database that is named by its UUID. If no collection has the
    /// UUID now, one may have it soon, so the database counts.
    fn on_identified(&self, database: &str, uuid: [u8; 16], action: Action) -> bool {
        let collection = self.service.catalog.collection_by_uuid(uuid).map(|collection| collection.namespace());
        let named = collection.filter(|namespace| namespace.database() == database);
        self.on_cluster(Action::UseUuid)
            && match named {
                Some(namespace) => self.on_collection(database, namespace.collection(), action),
                None => self.on_database(database, action),
            }
    }
}

/// Whether an option may be on. Any value but a boolean, null or zero counts as on.
fn is_on(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Boolean(is_on) => is_on,
        other => !other.is_nullish() && number::as_i64_exact(other) != Some(0),
    }
}

/// Whether an option of a document may be on, in any of its occurrences.
pub(crate) fn has_on(document: DocumentRef<'_>, name: &str) -> bool {
    // Most documents lack the option, which this finds without decoding a value.
    document.get(name).is_some() && document.iter().any(|field| field.name == name && is_on(field.value))
}

/// The documents of an array field, from the body or a document sequence.
pub(crate) fn entries<'r>(request: &Request<'r>, name: &str) -> Vec<DocumentRef<'r>> {
    let in_body = request.body.iter().filter(|field| field.name == name).filter_map(|field| field.value.as_array());
    let in_body = in_body.flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
    let sequence = request.sequence(name).map(|sequence| sequence.documents.clone());
    in_body.chain(sequence.into_iter().flatten()).collect()
}

/// Database and collection of a full name. A name without a dot is a database with no collection.
fn split(namespace: &str) -> (&str, &str) {
    namespace.split_once('.').unwrap_or((namespace, ""))
}

/// The command's first value as text; empty if it is not a string.
fn argument<'r>(request: &Request<'r>) -> &'r str {
    request.argument().as_str().unwrap_or_default()
}
