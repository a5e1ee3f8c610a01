//! Commands that are audit events, and the content of those events.

use super::named;
use crate::access_control::Shown;
use crate::command_entry::Command;
use crate::commands::update_user;
use crate::connection::ClientConnection;
use crate::service::Service;
use bunko_access::Name;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::ErrorCode;
use bunko_request::Request;
use bunko_request::secret_names::without_named;

/// The events that a finished command leaves in the audit log.
#[derive(Clone, Copy)]
pub(crate) enum AuditEvent {
    /// Nothing.
    None,
    /// The events that the function derives from the request.
    Of(fn(&Request<'_>) -> Vec<Event>),
    /// An event with the command's name about the database that it is sent to.
    Database,
    /// An event with the command's name about the user or role that its first value names.
    Account(Account),
    /// The end of the server, if the command succeeds.
    EndOfServer,
}

/// An event about a user or a role.
#[derive(Clone, Copy)]
pub(crate) struct Account {
    /// The parameter with its name.
    pub kind: &'static str,
    /// Fields of the command that the event shows, besides `roles`.
    pub shows: &'static [&'static str],
    pub password: PasswordNote,
}

impl Account {
    /// An event about a user that shows no further fields.
    pub(crate) const USER: Self = Self { kind: "user", shows: &[], password: PasswordNote::None };
    /// An event about a role that shows no further fields.
    pub(crate) const ROLE: Self = Self { kind: "role", ..Self::USER };

    /// The event's parameters.
    fn param(&self, request: &Request<'_>) -> DocumentBuf {
        let (body, database) = (request.body, request.database);
        let mut param = DocumentBuf::new().with(self.kind, argument(body)).with("db", database);
        if self.password == PasswordNote::WhetherChanged {
            param.append("passwordChanged", body.get("pwd").is_some());
        }
        if let Some(roles) = body.get("roles").and_then(ValueRef::as_array) {
            param.append("roles", &whole_names(roles, database));
        }
        with(param, body, self.shows)
    }
}

/// Whether an event about a user says that the password was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordNote {
    None,
    /// In the parameter `passwordChanged`.
    WhetherChanged,
}

/// The name and parameters of an event.
pub(crate) struct Event {
    pub name: &'static str,
    pub param: DocumentBuf,
}

impl Event {
    /// An event about the collection that a command's first value names.
    pub(crate) fn of_collection(name: &'static str, request: &Request<'_>) -> Self {
        Self::of_namespace(name, &full_name(request))
    }

    /// An event about a namespace.
    pub(crate) fn of_namespace(name: &'static str, namespace: &str) -> Self {
        Self { name, param: DocumentBuf::new().with("ns", namespace) }
    }

    /// The event with those fields of the command that are present.
    pub(crate) fn with_fields(self, body: DocumentRef<'_>, fields: &[&str]) -> Self {
        Self { param: with(self.param, body, fields), ..self }
    }
}

/// Writes the events of a finished command, if it has any.
pub(crate) fn note_command(
    service: &Service,
    connection: &ClientConnection,
    command: &Command,
    request: &Request<'_>,
    failure: Option<ErrorCode>,
) {
    let result = failure.map_or(0, |code| code.0);
    let note = |event: &str, param: &DocumentBuf| service.note_event(Some(connection), event, param, result);
    match command.audit {
        AuditEvent::None => {}
        AuditEvent::Of(events) => events(request).iter().for_each(|event| note(event.name, &event.param)),
        AuditEvent::Database => note(command.name, &DocumentBuf::new().with("db", request.database)),
        AuditEvent::Account(account) => note(command.name, &without_named(account.param(request).as_ref())),
        AuditEvent::EndOfServer if failure.is_none() => service.note_end(Some(connection)),
        AuditEvent::EndOfServer => {}
    }
}

/// Writes events for collections that a command created implicitly.
pub(crate) fn note_created(service: &Service, connection: &ClientConnection, namespaces: Vec<String>) {
    for namespace in namespaces {
        let param = DocumentBuf::new().with("ns", namespace.as_str());
        service.note_event(Some(connection), "createCollection", &param, 0);
    }
}

/// Roles with their databases, added where a command leaves them out.
fn whole_names(roles: ArrayRef<'_>, database: &str) -> ArrayBuf {
    let mut whole = ArrayBuf::new();
    for role in roles.iter() {
        match role {
            ValueRef::String(role) => drop(whole.push(&DocumentBuf::new().with("role", role).with("db", database))),
            other => drop(whole.push(other)),
        }
    }
    whole
}

fn with(mut param: DocumentBuf, body: DocumentRef<'_>, fields: &[&str]) -> DocumentBuf {
    for field in body.iter().filter(|field| fields.contains(&field.name)) {
        param.append(field.name, field.value);
    }
    param
}

/// The namespace of the collection that a command's first value names.
fn full_name(request: &Request<'_>) -> String {
    format!("{}.{}", request.database, argument(request.body))
}

fn argument(body: DocumentRef<'_>) -> &str {
    body.first().and_then(|first| first.value.as_str()).unwrap_or_default()
}

/// Writes the event of a user or role that restoring a dump created, changed or removed.
pub(crate) fn note_merged(
    service: &Service,
    connection: &ClientConnection,
    event: &str,
    key: &str,
    name: &Name,
    document: DocumentRef<'_>,
) {
    if !service.audit.is_on() {
        return;
    }
    let mut param = DocumentBuf::new().with(key, name.name.as_str()).with("db", name.database.as_str());
    if event == update_user::COMMAND.name {
        param.append("passwordChanged", true);
    }
    let param = with(param, document, &["roles", "privileges", "customData"]);
    service.note_event(Some(connection), event, &without_named(param.as_ref()), 0);
}

/// Writes the event of a successful or refused login.
pub(crate) fn note_login(
    service: &Service,
    connection: &ClientConnection,
    user: &Name,
    mechanism: &str,
    result: Option<ErrorCode>,
) {
    if !service.audit.is_on() {
        return;
    }
    let param = DocumentBuf::new()
        .with("user", user.name.as_str())
        .with("db", user.database.as_str())
        .with("mechanism", mechanism);
    service.note_event(Some(connection), "authenticate", &param, result.map_or(0, |code| code.0));
}

/// Writes the event of a logout.
pub(crate) fn note_logout(service: &Service, connection: &ClientConnection) {
    let Some(user) = connection.user.as_ref().filter(|_| service.audit.is_on()) else { return };
    let mut initial = ArrayBuf::new();
    initial.push(&named("user", &user.name));
    let param = DocumentBuf::new()
        .with("reason", "Client has explicitly logged out")
        .with("initialUsers", &initial)
        .with("updatedUsers", &ArrayBuf::new());
    service.note_event(Some(connection), "logout", &param, 0);
}

/// Writes the event of a command refused for missing privileges.
pub(crate) fn note_refusal(service: &Service, connection: &ClientConnection, command: &Command, request: &Request<'_>) {
    if service.audit.is_on() {
        note_check(service, connection, command, request, ErrorCode::UNAUTHORIZED.0);
    }
}

/// Writes the event of a successful privilege check, if those are wanted.
pub(crate) fn note_success(service: &Service, connection: &ClientConnection, command: &Command, request: &Request<'_>) {
    if service.audit.notes_successes() {
        note_check(service, connection, command, request, 0);
    }
}

fn note_check(service: &Service, connection: &ClientConnection, command: &Command, request: &Request<'_>, result: i32) {
    let shown = Shown::of_any(command, request);
    let param = of_collection_or_database(request)
        .with("command", command.name)
        .with("args", ValueRef::Document(shown.as_ref()));
    service.note_event(Some(connection), "authCheck", &param, result);
}

fn of_collection_or_database(request: &Request<'_>) -> DocumentBuf {
    if argument(request.body).is_empty() {
        DocumentBuf::new().with("ns", request.database)
    } else {
        DocumentBuf::new().with("ns", &full_name(request))
    }
}
