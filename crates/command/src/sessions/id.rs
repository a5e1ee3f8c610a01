//! What a client calls its sessions.

use crate::fields::wrong_type;
use bunko_access::Name;
use bunko_bson::{BinarySubtype, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::fmt::Write;

/// A session's UUID.
pub type SessionId = [u8; 16];

/// A SHA-256.
pub(crate) type Digest = [u8; 32];

/// The SHA-256 of nothing: whose sessions they are while there are no users.
/// Source: MongoDB manual, "Server Sessions".
pub(crate) const UID: Digest = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// Whose sessions those of a user are; of nobody where there is none.
pub(crate) fn digest_of(owner: Option<&Name>) -> Digest {
    owner.map_or(UID, Name::digest)
}

/// The same in base 64.
const UID_BASE64: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

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

/// A session in messages, as MongoDB prints it.
pub(crate) fn text(session: SessionId) -> String {
    let mut text = String::new();
    for (index, byte) in session.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    format!("{text} - {UID_BASE64} -  - ")
}

/// Reads a session's id, `{id: UUID, uid: ...}`, which stands at `place`.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse`, `IDLUnknownField` and `InvalidUUID` name the place.
pub(crate) fn parse(place: &str, value: ValueRef<'_>) -> Result<SessionId> {
    parse_with_user(place, value).map(|(session, _)| session)
}

/// The same, and whose it says to be.
/// # Errors
/// Besides, `UnsupportedFormat` for a `uid` that is no digest.
pub(crate) fn parse_with_user(place: &str, value: ValueRef<'_>) -> Result<(SessionId, Option<Digest>)> {
    let lsid = value.as_document().ok_or_else(|| wrong_type(place, value, "object"))?;
    if let Some(id) = usual(lsid) {
        return Ok((id, None));
    }
    let (mut id, mut user) = (None, None);
    for element in lsid {
        match element.name {
            "id" => id = Some(element.value),
            "uid" if !element.value.is_nullish() => user = Some(parse_user(&format!("{place}.uid"), element.value)?),
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
    let id = match id {
        ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => bytes.try_into().map_err(|_| {
            Failure::new(ErrorCode::INVALID_UUID, format!("BSON field '{place}.id' must be a UUID of 16 bytes"))
        }),
        _ => Err(wrong_type(&format!("{place}.id"), id, "binData")),
    };
    Ok((id?, user))
}

/// The UUID of `{id: UUID}`, as all drivers send it with every command.
fn usual(lsid: DocumentRef<'_>) -> Option<SessionId> {
    const BEFORE: &[u8] = b"\x1e\0\0\0\x05id\0\x10\0\0\0\x04";
    let bytes = lsid.as_bytes().strip_prefix(BEFORE)?;
    bytes.first_chunk().copied().filter(|_| bytes.len() == size_of::<SessionId>() + 1)
}

/// Reads whose a session is.
/// # Errors
/// `TypeMismatch`, `UnsupportedFormat`.
pub(super) fn parse_user(place: &str, value: ValueRef<'_>) -> Result<Digest> {
    let ValueRef::Binary { bytes, .. } = value else { return Err(wrong_type(place, value, "binData")) };
    bytes.try_into().map_err(|_| {
        let message = format!("Unsupported SHABlock hash length: {} in BSON field '{place}'", bytes.len());
        Failure::new(ErrorCode::UNSUPPORTED_FORMAT, message)
    })
}
