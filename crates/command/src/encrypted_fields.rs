//! Queryable encryption: collections whose fields clients encrypt before they send them.
//!
//! A field that cannot be searched is the clients' concern: the server stores its values, and refuses plaintext there
//! (`EncryptedFields` of the catalog). A field that can be searched (`queries`) needs tokens that the server computes
//! with, and extra collections; that is not built. A collection may be created with such fields, but their values are
//! refused, with or without `encryptionInformation`: if they were stored as sent, all searches would find nothing.
//! Source: MongoDB manual, "Encrypted Collections", "Queryable Encryption: encryptedFieldsMap".

use crate::invocation::Invocation;
use crate::validation_options::ValidationOptions;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{EncryptedFields, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::encrypted_fields::{check, check_deployment, is_within};

/// The option of `create`, if it is given, completed with the names of the extra collections.
/// # Errors
/// Errors of the option; 6367301 for a capped collection; `BadValue` if validation does not refuse every invalid write;
/// 6346402 on a server that is not a member of a set.
pub(crate) fn of_collection(
    invocation: &Invocation<'_>,
    namespace: &Namespace,
    validation: &ValidationOptions<'_>,
) -> Result<Option<DocumentBuf>> {
    let Some(option) = invocation.document("encryptedFields")? else { return Ok(None) };
    check(option)?;
    if invocation.boolean("capped", false)? {
        let message = "Encrypted collections cannot be capped: 'encryptedFields' is not allowed with 'capped'";
        return Err(Failure::new(ErrorCode(6_367_301), message));
    }
    if !validation.refuse_all_invalid() {
        let message = "'encryptedFields' needs the validationLevel 'strict' and the validationAction 'error'";
        return Err(Failure::bad_value(message));
    }
    check_deployment(invocation.service.deployment())?;
    let names = [("escCollection", "esc"), ("ecocCollection", "ecoc")];
    let mut named = DocumentBuf::new();
    for (name, suffix) in names {
        let usual = format!("enxcol_.{}.{suffix}", namespace.collection());
        named.append(name, option.get(name).and_then(ValueRef::as_str).unwrap_or(&usual));
    }
    for field in option.iter().filter(|field| names.iter().all(|(name, _)| *name != field.name)) {
        named.append(field.name, field.value);
    }
    Ok(Some(named))
}

/// Refuses an index on an encrypted field, whose keys would be ciphertext.
/// # Errors
/// 6346502.
pub(crate) fn check_index(encrypted: &EncryptedFields, key: DocumentRef<'_>) -> Result<()> {
    for path in key.iter().map(|field| field.name) {
        if let Some(other) = encrypted.paths().find(|other| is_within(path, other) || is_within(other, path)) {
            let message = format!("Index not allowed on, or a prefix of, the encrypted field {other}");
            return Err(Failure::new(ErrorCode(6_346_502), message));
        }
    }
    Ok(())
}
