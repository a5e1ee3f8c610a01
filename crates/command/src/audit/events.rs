//! Commands that are audit events, and the content of those events.

use super::named;
use crate::access_control::{Shown, without_named};
use crate::connection::ClientConnection;
use crate::dispatch::{Command, Request};
use crate::service::Service;
use bunko_access::Name;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::ErrorCode;

/// Writes the event of a finished command, if it has one.
pub(crate) fn note_command(
    service: &Service,
    connection: &ClientConnection,
    name: &str,
    request: &Request<'_>,
    failure: Option<ErrorCode>,
) {
    let result = failure.map_or(0, |code| code.0);
    let (body, database) = (request.body, request.database);
    let note = |event: &str, param: &DocumentBuf| service.note_event(Some(connection), event, param, result);
    match name {
        "create" => note("createCollection", &with(of_collection(request), body, &["viewOn", "pipeline"])),
        "drop" => note("dropCollection", &of_collection(request)),
        "dropDatabase" => note("dropDatabase", &DocumentBuf::new().with("ns", database)),
        "renameCollection" => {
            let new = text(body, "to");
            note("renameCollection", &DocumentBuf::new().with("old", argument(body)).with("new", new));
        }
        "createIndexes" => {
            for spec in indexes(request) {
                let param = of_collection(request).with("indexName", text(spec, "name"));
                note("createIndex", &param.with("indexSpec", ValueRef::Document(spec)));
            }
        }
        "dropIndexes" => {
            let mut param = of_collection(request);
            if let Some(index) = body.get("index") {
                param.append("indexName", index);
            }
            note("dropIndex", &param);
        }
        "dropAllUsersFromDatabase" | "dropAllRolesFromDatabase" => {
            note(name, &DocumentBuf::new().with("db", database));
        }
        "shutdown" if failure.is_none() => service.note_end(Some(connection)),
        _ => {
            if let Some(param) = of_user_or_role(name, request) {
                note(name, &without_named(param.as_ref()));
            }
        }
    }
}

/// Writes events for collections that a command created implicitly.
pub(crate) fn note_created(service: &Service, connection: &ClientConnection, namespaces: Vec<String>) {
    for namespace in namespaces {
        let param = DocumentBuf::new().with("ns", namespace.as_str());
        service.note_event(Some(connection), "createCollection", &param, 0);
    }
}

/// The event's parameters for a command on a user or role; `None` for other commands.
fn of_user_or_role(name: &str, request: &Request<'_>) -> Option<DocumentBuf> {
    let (what, fields): (_, &[_]) = match name {
        "createUser" | "updateUser" => ("user", &["customData"]),
        "dropUser" | "grantRolesToUser" | "revokeRolesFromUser" => ("user", &[]),
        "createRole" | "updateRole" | "grantPrivilegesToRole" | "revokePrivilegesFromRole" => ("role", &["privileges"]),
        "dropRole" | "grantRolesToRole" | "revokeRolesFromRole" => ("role", &[]),
        _ => return None,
    };
    let (body, database) = (request.body, request.database);
    let mut param = DocumentBuf::new().with(what, argument(body)).with("db", database);
    if name == "updateUser" {
        param.append("passwordChanged", body.get("pwd").is_some());
    }
    if let Some(roles) = body.get("roles").and_then(ValueRef::as_array) {
        param.append("roles", &whole_names(roles, database));
    }
    Some(with(param, body, fields))
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

fn of_collection(request: &Request<'_>) -> DocumentBuf {
    DocumentBuf::new().with("ns", format!("{}.{}", request.database, argument(request.body)).as_str())
}

/// The indexes that a command creates, from the body or a document sequence.
fn indexes<'r>(request: &Request<'r>) -> Vec<DocumentRef<'r>> {
    let array = request.body.get("indexes").and_then(ValueRef::as_array);
    let in_body = array.into_iter().flat_map(ArrayRef::iter).filter_map(ValueRef::as_document);
    let sequence = request.sequence("indexes").map(|sequence| sequence.documents.clone());
    in_body.chain(sequence.into_iter().flatten()).collect()
}

fn argument(body: DocumentRef<'_>) -> &str {
    body.first().and_then(|first| first.value.as_str()).unwrap_or_default()
}

fn text<'r>(body: DocumentRef<'r>, field: &str) -> &'r str {
    body.get(field).and_then(ValueRef::as_str).unwrap_or_default()
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
    if event == "updateUser" {
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
        of_collection(request)
    }
}
