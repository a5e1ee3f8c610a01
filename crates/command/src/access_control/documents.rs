//! The documents of users and roles, as commands list and change them.

use crate::commands::insert;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::{Name, names_of};
use bunko_authority::{DATABASE, ROLES, Role, USERS, documents_of};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::Result;
use bunko_query::{FindQuery, plan};
use bunko_session::Halt;
use bunko_settings::find_stored;

/// The collection that holds the version of their format.
const VERSIONS: &str = "system.version";
/// Version of MongoDB's format with SCRAM credentials.
const SCHEMA_VERSION: i32 = 5;

/// The users that match a filter, ordered by `_id`.
/// # Errors
/// Errors of a find.
pub(crate) fn users_where(invocation: &Invocation<'_>, filter: &DocumentBuf) -> Result<Vec<DocumentBuf>> {
    documents_where(invocation, USERS, filter)
}

/// The documents of a collection of `admin` that match a filter, ordered by `_id`.
pub(crate) fn documents_where(
    invocation: &Invocation<'_>,
    collection: &str,
    filter: &DocumentBuf,
) -> Result<Vec<DocumentBuf>> {
    documents_in(invocation, &Namespace::new(DATABASE, collection)?, filter)
}

/// The documents of any collection that match a filter, ordered by `_id`.
/// # Errors
/// Errors of a find.
pub(crate) fn documents_in(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    filter: &DocumentBuf,
) -> Result<Vec<DocumentBuf>> {
    let Some(collection) = invocation.collection_not_view(namespace)? else { return Ok(Vec::new()) };
    let mut query = FindQuery::new(filter.as_ref(), invocation.scope())?;
    query.set_sort(DocumentBuf::new().with("_id", 1).as_ref())?;
    let mut execution = plan(&collection, query)?.open()?;
    let mut found = Vec::new();
    while let Some(document) = execution.next()? {
        found.push(DocumentRef::to_owned(document));
    }
    Ok(found)
}

/// Stores a new user. Also stores the version of the format, which tools look for, unless it is there.
/// # Errors
/// Errors of an insert.
pub(crate) fn insert_user(invocation: &mut Invocation<'_>, document: &DocumentBuf) -> Result<(), Halt> {
    keep_version(invocation)?;
    let documents: ArrayBuf = [document].into_iter().collect();
    let body = DocumentBuf::new().with("insert", USERS).with("documents", &documents);
    stored_settings::write(invocation, &insert::COMMAND, DATABASE, &body).map(drop)
}

/// Stores a user or a role, and replaces one of that name. Stores the version of the format as [`insert_user`] does.
/// # Errors
/// Errors of an update.
pub(crate) fn keep_document(
    invocation: &mut Invocation<'_>,
    collection: &str,
    document: &DocumentBuf,
) -> Result<(), Halt> {
    keep_version(invocation)?;
    stored_settings::keep(invocation, DATABASE, collection, document)
}

fn keep_version(invocation: &mut Invocation<'_>) -> Result<(), Halt> {
    let version = DocumentBuf::new().with("_id", "authSchema").with("currentVersion", SCHEMA_VERSION);
    if find_stored(&invocation.service.catalog, DATABASE, VERSIONS, "authSchema")?.is_none() {
        stored_settings::keep(invocation, DATABASE, VERSIONS, &version)?;
    }
    Ok(())
}

/// The stored roles of a database, after the built-in ones if they are asked for.
/// # Errors
/// Errors of reading roles.
pub(crate) fn roles_of_database(
    invocation: &Invocation<'_>,
    database: &str,
    builtin: BuiltinShown,
) -> Result<Vec<Role>> {
    let filter = DocumentBuf::new().with("db", database);
    let mut roles = Vec::new();
    if builtin == BuiltinShown::Yes {
        roles.extend(Role::builtin_of(database));
    }
    for document in documents_where(invocation, ROLES, &filter)? {
        if let Some(name) = document.as_ref().get("role").and_then(ValueRef::as_str).map(str::to_owned) {
            roles.push(Role::stored(Name::new(name, database), document));
        }
    }
    Ok(roles)
}

/// Whether a list of roles includes the built-in ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltinShown {
    Yes,
    No,
}

/// Takes roles that are about to be dropped away from all users and roles that have them.
/// # Errors
/// Errors of the updates.
pub(crate) fn take_roles_away(invocation: &mut Invocation<'_>, gone: &[Name]) -> Result<(), Halt> {
    let names: ArrayBuf = gone.iter().map(|name| name.to_document("role")).collect::<Vec<_>>().iter().collect();
    let filter = DocumentBuf::new().with("roles", &DocumentBuf::new().with("$in", &names));
    for collection in [USERS, ROLES] {
        for document in documents_where(invocation, collection, &filter)? {
            let mut left = names_of(document.as_ref(), "roles", "role");
            left.retain(|name| !gone.contains(name));
            let left = documents_of(&left);
            let changed = with_field(document.as_ref(), "roles", Some((&left).into()));
            stored_settings::keep(invocation, DATABASE, collection, &changed)?;
        }
    }
    Ok(())
}

/// The document with the field `name` set to `value`, or without that field.
pub(crate) fn with_field(document: DocumentRef<'_>, name: &str, value: Option<ValueRef<'_>>) -> DocumentBuf {
    let mut changed = DocumentBuf::new();
    for field in document {
        match value {
            _ if field.name != name => drop(changed.append(field.name, field.value)),
            Some(value) => drop(changed.append(name, value)),
            None => {}
        }
    }
    if let (Some(value), None) = (value, document.get(name)) {
        changed.append(name, value);
    }
    changed
}
