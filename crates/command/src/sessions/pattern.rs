//! What `killAllSessionsByPattern` chooses sessions by.

use super::SessionId;
use super::id::{self, UID};
use crate::fields::{Fields, wrong_type};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// One pattern of a list.
pub(crate) enum SessionPattern {
    /// All sessions of everybody.
    All,
    /// One session.
    Session(SessionId),
    /// None: it names whom this server does not know.
    None,
}

/// What messages call a pattern.
const PLACE: &str = "KillAllSessionsByPattern";

impl SessionPattern {
    /// Reads `{}`, `{lsid: {id, uid}}` or `{uid}`.
    /// # Errors
    /// `IDLUnknownField`, `IDLFailedToParse`, `TypeMismatch` and `InvalidUUID` name the place; `CommandNotSupported` for
    /// users and roles, which are those of somebody else who is to be impersonated.
    pub(crate) fn parse(pattern: DocumentRef<'_>) -> Result<Self> {
        for field in pattern {
            match field.name {
                "lsid" | "uid" => {}
                "users" | "roles" => {
                    return Err(Fields::new("killAllSessionsByPattern", pattern).unsupported(field.name));
                }
                other => {
                    let message = format!("BSON field '{PLACE}.{other}' is an unknown field.");
                    return Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message));
                }
            }
        }
        let fields = Fields::new(PLACE, pattern);
        if let Some(lsid) = fields.field("lsid") {
            let place = format!("{PLACE}.lsid");
            let session = id::parse(&place, lsid)?;
            let uid = lsid.as_document().and_then(|lsid| lsid.get("uid"));
            let uid = uid.ok_or_else(|| {
                let message = format!("BSON field '{place}.uid' is missing but a required field");
                Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
            })?;
            return Ok(if is_own(&format!("{place}.uid"), uid)? { Self::Session(session) } else { Self::None });
        }
        match fields.field("uid") {
            Some(uid) if !is_own(&format!("{PLACE}.uid"), uid)? => Ok(Self::None),
            _ => Ok(Self::All),
        }
    }

    /// Whether it chooses that session.
    pub(crate) fn chooses(&self, session: SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Session(chosen) => *chosen == session,
            Self::None => false,
        }
    }
}

/// Whether it is the digest of whose sessions there are.
fn is_own(place: &str, uid: ValueRef<'_>) -> Result<bool> {
    match uid {
        ValueRef::Binary { bytes, .. } => Ok(bytes == UID),
        other => Err(wrong_type(place, other, "binData")),
    }
}
