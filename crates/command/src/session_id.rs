//! What a client calls its sessions.

use crate::fields::wrong_type;
use bunko_bson::{BinarySubtype, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// A session's UUID.
pub type SessionId = [u8; 16];

/// A new UUID of random bytes.
pub(crate) fn random_uuid(random: &dyn Fn() -> u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    // Version 4, variant 1. Source: RFC 9562, section 5.4.
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}

/// Reads a session's id, `{id: UUID, uid: ...}`, which stands at `place`.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse`, `IDLUnknownField` and `InvalidUUID` name the place.
pub(crate) fn parse(place: &str, value: ValueRef<'_>) -> Result<SessionId> {
    let lsid = value.as_document().ok_or_else(|| wrong_type(place, value, "object"))?;
    let mut id = None;
    for element in lsid {
        match element.name {
            "id" => id = Some(element.value),
            "uid" | "txnNumber" | "txnUUID" => {}
            other => {
                return Err(Failure::new(
                    ErrorCode::IDL_UNKNOWN_FIELD,
                    format!("BSON field '{place}.{other}' is an unknown field."),
                ));
            }
        }
    }
    let id = id.ok_or_else(|| {
        Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, format!("BSON field '{place}.id' is missing but a required field"))
    })?;
    match id {
        ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => bytes.try_into().map_err(|_| {
            Failure::new(ErrorCode::INVALID_UUID, format!("BSON field '{place}.id' must be a UUID of 16 bytes"))
        }),
        _ => Err(wrong_type(&format!("{place}.id"), id, "binData")),
    }
}
