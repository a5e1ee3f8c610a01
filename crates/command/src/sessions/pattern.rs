//! What `killAllSessionsByPattern` chooses sessions by.

use super::SessionId;
use super::id::{self, Digest, parse_user};
use crate::fields::Fields;
use bunko_bson::DocumentRef;
use bunko_errors::{ErrorCode, Failure, Result};

/// One pattern of a list.
pub(crate) enum SessionPattern {
    /// All sessions of everybody.
    All,
    /// Those of a user.
    Of(Digest),
    /// One session of a user.
    Session(SessionId),
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
            let named = id::parse(&place, lsid)?;
            let session = named.whole().ok_or_else(|| {
                let message = format!("BSON field '{place}.uid' is missing but a required field");
                Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message)
            })?;
            return Ok(Self::Session(session));
        }
        match fields.field("uid") {
            Some(uid) => parse_user(&format!("{PLACE}.uid"), uid).map(Self::Of),
            None => Ok(Self::All),
        }
    }

    /// Whether it chooses that session.
    pub(crate) fn chooses(&self, session: SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Of(user) => *user == session.user,
            Self::Session(chosen) => *chosen == session,
        }
    }
}
