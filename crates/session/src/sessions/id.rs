//! The ids of sessions.

use bunko_bson::{BinarySubtype, DocumentRef, ValueRef, base64, hexadecimal};
use bunko_catalog::{SessionName, SessionUuid};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;

/// The id of a session: the UUID and the user that it belongs to.
pub type SessionId = SessionName;

/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// A session as a client names it: by a UUID, and perhaps the digest of its user.
#[derive(Clone, Copy, Debug)]
pub struct NamedSession {
    id: SessionUuid,
    user: Option<Digest>,
    /// Whether the id has a `txnNumber` without the `txnUUID` that must accompany it.
    has_bare_number: bool,
}

impl NamedSession {
    /// The session id, if the client named the user.
    pub(super) fn whole(self) -> Option<SessionId> {
        self.user.map(|user| SessionId { id: self.id, user })
    }

    /// The session id, for an asker who may name only their own sessions.
    /// # Errors
    /// As [`Self::of_any`]; `Unauthorized` for another user's session.
    pub fn of(self, asker: Digest) -> Result<SessionId> {
        let session = self.of_any(asker)?;
        if session.user != asker {
            let message = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Failure::new(ErrorCode::UNAUTHORIZED, message));
        }
        Ok(session)
    }

    /// The session id. Without a named user, the session is the asker's own.
    /// # Errors
    /// `InvalidOptions` for a `txnNumber` without a `txnUUID`.
    pub fn of_any(self, asker: Digest) -> Result<SessionId> {
        if self.has_bare_number {
            let message = "Cannot specify txnNumber in lsid without specifying txnUUID";
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
        Ok(SessionId { id: self.id, user: self.user.unwrap_or(asker) })
    }
}

/// A session id in messages, as MongoDB prints it.
pub fn text(session: SessionId) -> String {
    format!("{} - {} -  - ", hexadecimal::uuid(&session.id), base64::encode(&session.user))
}

/// Parses a session id `{id: UUID, uid: ...}`. `place` is its path for messages.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse`, `IDLUnknownField` and `InvalidUUID`, with the path; `UnsupportedFormat` for a
/// `uid` that is not a digest.
pub fn parse(place: &str, value: ValueRef<'_>) -> Result<NamedSession> {
    let lsid = value.as_document().ok_or_else(|| wrong_type(place, value, "object"))?;
    if let Some(id) = usual(lsid) {
        return Ok(NamedSession { id, user: None, has_bare_number: false });
    }
    let (mut id, mut user) = (None, None);
    let (mut has_number, mut has_uuid) = (false, false);
    for element in lsid {
        match element.name {
            "id" | "uid" | "txnNumber" | "txnUUID" if element.value.is_nullish() => {}
            "id" => id = Some(element.value),
            "uid" => user = Some(parse_user(&format!("{place}.uid"), element.value)?),
            "txnNumber" if matches!(element.value, ValueRef::Int64(_)) => has_number = true,
            "txnNumber" => return Err(wrong_type(&format!("{place}.txnNumber"), element.value, "long")),
            "txnUUID" if matches!(element.value, ValueRef::Binary { subtype: BinarySubtype::UUID, .. }) => {
                has_uuid = true;
            }
            "txnUUID" => return Err(wrong_type(&format!("{place}.txnUUID"), element.value, "binData")),
            other => return Err(Failure::unknown_field(format_args!("{place}.{other}"))),
        }
    }
    let id = id.ok_or_else(|| Failure::missing_field(format_args!("{place}.id")))?;
    let id = match id {
        ValueRef::Binary { subtype: BinarySubtype::UUID, bytes } => bytes.try_into().map_err(|_| {
            Failure::new(ErrorCode::INVALID_UUID, format!("BSON field '{place}.id' must be a UUID of 16 bytes"))
        }),
        _ => Err(wrong_type(&format!("{place}.id"), id, "binData")),
    };
    Ok(NamedSession { id: id?, user, has_bare_number: has_number && !has_uuid })
}

/// The UUID of `{id: UUID}`, the form that all drivers send with every command; `None` for any other form.
fn usual(lsid: DocumentRef<'_>) -> Option<SessionUuid> {
    const BEFORE: &[u8] = b"\x1e\0\0\0\x05id\0\x10\0\0\0\x04";
    let bytes = lsid.as_bytes().strip_prefix(BEFORE)?;
    bytes.first_chunk().copied().filter(|_| bytes.len() == size_of::<SessionUuid>() + 1)
}

/// Parses the digest of a session's user.
/// # Errors
/// `TypeMismatch`, `UnsupportedFormat`.
pub(super) fn parse_user(place: &str, value: ValueRef<'_>) -> Result<Digest> {
    let ValueRef::Binary { subtype, bytes } = value else { return Err(wrong_type(place, value, "binData")) };
    if subtype != BinarySubtype::GENERIC {
        let message = format!("BSON field '{place}' is the wrong binData type, expected type 'general'");
        return Err(Failure::type_mismatch(message));
    }
    bytes.try_into().map_err(|_| {
        let message = format!("Unsupported SHABlock hash length: {} in BSON field '{place}'", bytes.len());
        Failure::new(ErrorCode::UNSUPPORTED_FORMAT, message)
    })
}
