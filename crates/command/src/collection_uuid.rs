//! `collectionUUID`: the UUID that a client expects a collection to have.

use bunko_bson::{BinarySubtype, DocumentBuf, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::Fields;
pub(crate) use bunko_request::stable_api::COLLECTION_UUID as NAME;

/// The value of the field, if it is present.
/// # Errors
/// `TypeMismatch`; `InvalidUUID` for a UUID of another length.
pub(crate) fn parse(fields: &Fields<'_>) -> Result<Option<[u8; 16]>> {
    let Some(value) = fields.field(NAME) else { return Ok(None) };
    required(fields, NAME, value).map(Some)
}

/// The UUID in the value of a field that must be one.
/// # Errors
/// As [`parse`].
pub(crate) fn required(fields: &Fields<'_>, name: &str, value: ValueRef<'_>) -> Result<[u8; 16]> {
    of_value(value)?.ok_or_else(|| fields.mismatch(name, value, "type 'UUID'"))
}

/// The UUID in a value, if it is one.
/// # Errors
/// `InvalidUUID` for a UUID of another length.
pub(crate) fn of_value(value: ValueRef<'_>) -> Result<Option<[u8; 16]>> {
    let ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } = value else { return Ok(None) };
    bytes.try_into().map(Some).map_err(|_| {
        let length = bytes.len();
        Failure::new(
            ErrorCode::INVALID_UUID,
            format!("uuid must be a 16-byte binary field with UUID (4) subtype, and has {length} bytes"),
        )
    })
}

/// Parses the field, and checks that the collection has that UUID.
/// # Errors
/// As [`parse`] and [`check`].
pub(crate) fn check_field(catalog: &Catalog, fields: &Fields<'_>, namespace: &Namespace) -> Result<()> {
    check(catalog, namespace, parse(fields)?)
}

/// Checks that a collection has the expected UUID, if there is one.
/// # Errors
/// `CollectionUUIDMismatch`.
pub(crate) fn check(catalog: &Catalog, namespace: &Namespace, uuid: Option<[u8; 16]>) -> Result<()> {
    let Some(uuid) = uuid else { return Ok(()) };
    if catalog.collection(namespace).is_some_and(|collection| collection.uuid == uuid) {
        return Ok(());
    }
    let actual = catalog
        .collection_by_uuid(uuid)
        .map(|collection| collection.namespace())
        .filter(|actual| actual.database() == namespace.database());
    let actual = actual.as_ref().map_or(ValueRef::Null, |actual| ValueRef::String(actual.collection()));
    let details = DocumentBuf::new()
        .with("db", namespace.database())
        .with(NAME, ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &uuid })
        .with("expectedCollection", namespace.collection())
        .with("actualCollection", actual);
    let message = format!("Collection UUID does not match that specified, for {namespace}");
    Err(Failure::new(ErrorCode::COLLECTION_UUID_MISMATCH, message).with_details(details.as_ref()))
}
