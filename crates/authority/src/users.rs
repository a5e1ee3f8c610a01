//! The documents of `admin.system.users`.

use crate::access_control::{DATABASE, USERS};
use bunko_access::{Mechanism, Name};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};

/// Key in `credentials` of a user who is known by a certificate.
pub const EXTERNAL: &str = "external";

/// The document of a user; `None` if there is no such user.
/// # Errors
/// Errors of reading the document.
pub fn find_user(catalog: &Catalog, name: &Name) -> Result<Option<DocumentBuf>> {
    find_document(catalog, USERS, "user", name)
}

/// The document of a user or of a role, whose name is in the field `key`; `None` if there is none.
///
/// The `_id` is ambiguous: role `x.y` of database `d` and role `y` of database `d.x` have the same `_id`. No database
/// can be called `d.x`, but a client may ask for it, so the name and the database are compared too.
/// # Errors
/// Errors of reading the document.
pub fn find_document(catalog: &Catalog, collection: &str, key: &str, name: &Name) -> Result<Option<DocumentBuf>> {
    let Some(collection) = catalog.collection(&Namespace::new(DATABASE, collection)?) else { return Ok(None) };
    let mut bytes = Vec::new();
    if collection.find_latest(ValueRef::String(&name.id()), &mut bytes)?.is_none() {
        return Ok(None);
    }
    let document = DocumentRef::trusted(&bytes);
    let text = |field| document.get(field).and_then(ValueRef::as_str);
    let is_it = text(key) == Some(&name.name) && text("db") == Some(&name.database);
    Ok(is_it.then(|| document.to_owned()))
}

/// The error for a user that does not exist.
pub fn user_not_found(name: &Name) -> Failure {
    Failure::new(ErrorCode::USER_NOT_FOUND, format!("User '{name}' not found"))
}

/// The names of a user's mechanisms, as `usersInfo` shows them.
pub fn mechanisms_of(user: DocumentRef<'_>) -> Vec<&'static str> {
    let credentials = user.get("credentials").and_then(ValueRef::as_document);
    let has = |mechanism: &Mechanism| credentials.is_some_and(|kept| kept.get(mechanism.name()).is_some());
    let all = [Mechanism::ScramSha1, Mechanism::ScramSha256];
    let is_external = credentials.is_some_and(|kept| kept.get(EXTERNAL).is_some());
    let scram = all.iter().filter(|mechanism| has(mechanism)).map(|mechanism| mechanism.name());
    scram.chain(is_external.then_some(EXTERNAL)).collect()
}
