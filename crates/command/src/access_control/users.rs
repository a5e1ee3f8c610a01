//! The documents of `admin.system.users`.

use super::{DATABASE, SCHEMA_VERSION, USERS, VERSIONS};
use crate::dispatch::Halt;
use crate::invocation::Invocation;
use crate::stored_settings;
use bunko_access::Name;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::{FindQuery, plan};
use bunko_settings::find_stored;

/// The document of a user.
/// # Errors
/// Errors of reading the document.
pub(crate) fn find_user(catalog: &Catalog, name: &Name) -> Result<Option<DocumentBuf>> {
    find_document(catalog, USERS, "user", name)
}

/// The document of a user or of a role, whose name is in the field `key`.
///
/// The `_id` is ambiguous: role `x.y` of database `d` and role `y` of database `d.x` have an equal one. No database can
/// be called `d.x`, but a client may ask for it, so the name and the database are compared too.
/// # Errors
/// Errors of reading the document.
pub(crate) fn find_document(
    catalog: &Catalog,
    collection: &str,
    key: &str,
    name: &Name,
) -> Result<Option<DocumentBuf>> {
    let document = find_stored(catalog, DATABASE, collection, &name.id())?;
    Ok(document.filter(|document| {
        let text = |field| document.as_ref().get(field).and_then(ValueRef::as_str);
        text(key) == Some(&name.name) && text("db") == Some(&name.database)
    }))
}

/// The error for a user that does not exist.
pub(crate) fn user_not_found(name: &Name) -> Failure {
    Failure::new(ErrorCode::USER_NOT_FOUND, format!("User '{name}' not found"))
}

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
    stored_settings::write(invocation, DATABASE, &body).map(drop)
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
