//! The patterns by which `killAllSessionsByPattern` chooses sessions.

use super::id::{self, Digest, SessionId, parse_user};
use bunko_access::Name;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_request::fields::{Fields, wrong_type};

/// One pattern of a list.
pub enum SessionPattern {
    /// All sessions of all users.
    All,
    /// All sessions of one user.
    Of(Digest),
    /// One session of a user.
    Session(SessionId),
    /// All sessions of several users.
    OfOwners(Vec<Digest>),
    /// Sessions of users with certain roles. The pattern chooses none: without logins, sessions have no user.
    OfRoles,
}

/// The name of a pattern in messages.
const PLACE: &str = "KillAllSessionsByPattern";

impl SessionPattern {
    /// Reads `{}`, `{lsid: {id, uid}}`, `{uid}`, `{users: [{user, db}]}` or `{roles: [{role, db}]}`.
    /// # Errors
    /// `IDLUnknownField`, `IDLFailedToParse`, `TypeMismatch` and `InvalidUUID` name the place.
    pub fn parse(pattern: DocumentRef<'_>) -> Result<Self> {
        if let Some(unknown) = pattern.iter().find(|field| !matches!(field.name, "lsid" | "uid" | "users" | "roles")) {
            return Err(Failure::unknown_field(format_args!("{PLACE}.{}", unknown.name)));
        }
        let fields = Fields::new(PLACE, pattern);
        let owners = names(&fields, "users", "user")?;
        let roles = names(&fields, "roles", "role")?;
        if let Some(lsid) = fields.field("lsid") {
            let place = format!("{PLACE}.lsid");
            let named = id::parse(&place, lsid)?;
            let session = named.whole().ok_or_else(|| Failure::missing_field(format_args!("{place}.uid")))?;
            return Ok(Self::Session(session));
        }
        match (fields.field("uid"), owners, roles) {
            (Some(uid), ..) => parse_user(&format!("{PLACE}.uid"), uid).map(Self::Of),
            (None, Some(owners), _) => Ok(Self::OfOwners(owners.iter().map(Name::digest).collect())),
            (None, None, Some(_)) => Ok(Self::OfRoles),
            (None, None, None) => Ok(Self::All),
        }
    }

    /// Whether the pattern chooses that session.
    pub fn chooses(&self, session: SessionId) -> bool {
        match self {
            Self::All => true,
            Self::Of(user) => *user == session.user,
            Self::Session(chosen) => *chosen == session,
            Self::OfOwners(owners) => owners.contains(&session.user),
            Self::OfRoles => false,
        }
    }
}

/// The names in a list of documents of two strings; `None` without a list.
/// # Errors
/// `TypeMismatch`, `IDLFailedToParse`, `IDLUnknownField`.
fn names(fields: &Fields<'_>, list: &str, part: &str) -> Result<Option<Vec<Name>>> {
    let Some(value) = fields.field(list) else { return Ok(None) };
    let place = format!("{PLACE}.{list}");
    let values = value.as_array().ok_or_else(|| wrong_type(&place, value, "array"))?;
    let name = |(index, value): (usize, ValueRef<'_>)| {
        let place = format!("{place}.{index}");
        let name = value.as_document().ok_or_else(|| wrong_type(&place, value, "object"))?;
        if let Some(unknown) = name.iter().find(|field| field.name != part && field.name != "db") {
            return Err(Failure::unknown_field(format_args!("{place}.{}", unknown.name)));
        }
        let text = |field: &str| match name.get(field) {
            Some(ValueRef::String(text)) => Ok(text),
            Some(other) if !other.is_nullish() => Err(wrong_type(&format!("{place}.{field}"), other, "string")),
            _ => Err(Failure::missing_field(format_args!("{place}.{field}"))),
        };
        Ok(Name::new(text(part)?, text("db")?))
    };
    // Nulls in the list are skipped.
    let given = values.iter().enumerate().filter(|(_, value)| !value.is_nullish());
    given.map(name).collect::<Result<_>>().map(Some)
}
