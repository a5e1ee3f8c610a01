//! Commands that are audit events, and the content of those events.

use super::record::named;
use crate::authority::Authority;
use crate::client::Client;
use crate::redaction::Shown;
use bunko_access::Name;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::ErrorCode;
use bunko_request::Request;
use bunko_request::facts::CommandFacts;
use bunko_request::secret_names::without_named;

/// The events that a finished command leaves in the audit log.
#[derive(Clone, Copy)]
pub enum AuditEvent {
    /// The command leaves no event.
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
pub struct Account {
    /// Key of the parameter that has the name of the user or role.
    pub kind: &'static str,
    /// Fields of the command that the event shows, besides `roles`.
    pub shows: &'static [&'static str],
    /// Whether the event says that the password was changed.
    pub password: PasswordNote,
}

impl Account {
    /// An event about a user that shows no further fields.
    pub const USER: Self = Self { kind: "user", shows: &[], password: PasswordNote::None };
    /// An event about a role that shows no further fields.
    pub const ROLE: Self = Self { kind: "role", ..Self::USER };

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
pub enum PasswordNote {
    /// The event does not say whether the password was changed.
    None,
    /// The parameter `passwordChanged` says whether the password was changed.
    WhetherChanged,
}

/// The name and parameters of an event.
pub struct Event {
    /// The kind of event.
    pub name: &'static str,
    /// The parameters, in MongoDB's form.
    pub param: DocumentBuf,
}

impl Event {
    /// An event about the collection that a command's first value names.
    pub fn of_collection(name: &'static str, request: &Request<'_>) -> Self {
        Self::of_namespace(name, &full_name(request))
    }

    /// An event about a namespace.
    pub fn of_namespace(name: &'static str, namespace: &str) -> Self {
        Self { name, param: DocumentBuf::new().with("ns", namespace) }
    }

    /// An event about a user or a role, whose name has the key `kind`.
    pub fn of_account(event: &'static str, kind: &str, account: &Name) -> Self {
        Self { name: event, param: named(kind, account) }
    }

    /// The event with those fields of the command that are present.
    #[must_use]
    pub fn with_fields(self, body: DocumentRef<'_>, fields: &[&str]) -> Self {
        Self { param: with(self.param, body, fields), ..self }
    }
}

impl Authority {
    /// Writes the events of a finished command, if it has any.
    pub fn note_command(
        &self,
        client: &Client,
        command: &CommandFacts,
        audit: AuditEvent,
        request: &Request<'_>,
        failure: Option<ErrorCode>,
    ) {
        let result = failure.map_or(0, |code| code.0);
        let note = |event: &str, param: &DocumentBuf| self.note_event(Some(client), event, param, result);
        match audit {
            AuditEvent::None => {}
            AuditEvent::Of(events) => events(request).iter().for_each(|event| note(event.name, &event.param)),
            AuditEvent::Database => note(command.name, &DocumentBuf::new().with("db", request.database)),
            AuditEvent::Account(account) => note(command.name, &without_named(account.param(request).as_ref())),
            AuditEvent::EndOfServer if failure.is_none() => self.note_end(Some(client)),
            AuditEvent::EndOfServer => {}
        }
    }
}

/// Writes events for collections that a command created implicitly.
pub fn note_created(authority: &Authority, client: &Client, namespaces: Vec<String>) {
    for namespace in namespaces {
        let param = DocumentBuf::new().with("ns", namespace.as_str());
        authority.note_event(Some(client), "createCollection", &param, 0);
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

/// Writes the event of a user or role that restoring a dump created, changed or removed, with what the dump says.
pub fn note_merged(authority: &Authority, client: &Client, event: Event, document: DocumentRef<'_>) {
    let event = event.with_fields(document, &["roles", "privileges", "customData"]);
    authority.note_event(Some(client), event.name, &without_named(event.param.as_ref()), 0);
}

/// Writes the event of a successful or refused login.
pub fn note_login(authority: &Authority, client: &Client, user: &Name, mechanism: &str, result: Option<ErrorCode>) {
    if !authority.audit.is_on() {
        return;
    }
    let param = DocumentBuf::new()
        .with("user", user.name.as_str())
        .with("db", user.database.as_str())
        .with("mechanism", mechanism);
    authority.note_event(Some(client), "authenticate", &param, result.map_or(0, |code| code.0));
}

/// Writes the event of a logout.
pub fn note_logout(authority: &Authority, client: &Client) {
    let Some(user) = client.user.as_ref().filter(|_| authority.audit.is_on()) else { return };
    let mut initial = ArrayBuf::new();
    initial.push(&named("user", &user.name));
    let param = DocumentBuf::new()
        .with("reason", "Client has explicitly logged out")
        .with("initialUsers", &initial)
        .with("updatedUsers", &ArrayBuf::new());
    authority.note_event(Some(client), "logout", &param, 0);
}

/// Writes the event of a command refused for missing privileges.
pub fn note_refusal(authority: &Authority, client: &Client, command: &CommandFacts, request: &Request<'_>) {
    if authority.audit.is_on() {
        note_check(authority, client, command, request, ErrorCode::UNAUTHORIZED.0);
    }
}

/// Writes the event of a successful privilege check, if those are wanted.
pub fn note_success(authority: &Authority, client: &Client, command: &CommandFacts, request: &Request<'_>) {
    if authority.audit.notes_successes() {
        note_check(authority, client, command, request, 0);
    }
}

fn note_check(authority: &Authority, client: &Client, command: &CommandFacts, request: &Request<'_>, result: i32) {
    let shown = Shown::of_any(command, request);
    let param = of_collection_or_database(request)
        .with("command", command.name)
        .with("args", ValueRef::Document(shown.as_ref()));
    authority.note_event(Some(client), "authCheck", &param, result);
}

fn of_collection_or_database(request: &Request<'_>) -> DocumentBuf {
    if argument(request.body).is_empty() {
        DocumentBuf::new().with("ns", request.database)
    } else {
        DocumentBuf::new().with("ns", &full_name(request))
    }
}
