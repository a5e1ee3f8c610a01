//! The fields of `createUser` and `updateUser`.

use crate::access_control::EXTERNAL_DATABASE;
use crate::authority::Authority;
use crate::role_fields::{restrictions, role_names};
use bunko_access::{Mechanism, Name, ScramCredential};
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef};
use bunko_errors::{Failure, Result};
use bunko_request::fields::{Fields, elements};
use std::sync::atomic::Ordering;

/// The fields that a command sets. The type has no `Debug`, so that a password cannot be printed.
pub struct UserFields<'a> {
    /// The `roles` of the command, if given.
    pub roles: Option<Vec<Name>>,
    /// The `customData` of the command, if given.
    pub custom_data: Option<DocumentRef<'a>>,
    /// The `authenticationRestrictions` of the command, if given.
    pub restrictions: Option<ArrayRef<'a>>,
    /// The `mechanisms` of the command, if given.
    pub mechanisms: Option<Vec<Mechanism>>,
    password: Option<Password<'a>>,
}

#[derive(Clone, Copy)]
enum Password<'a> {
    Plain(&'a str),
    /// The digest that the client made of the password, as SCRAM-SHA-1 needs it.
    Digested(&'a str),
}

impl<'a> UserFields<'a> {
    /// Reads the fields.
    /// # Errors
    /// `TypeMismatch`, `BadValue`. No message contains a password.
    pub fn parse(fields: &Fields<'a>, database: &str) -> Result<Self> {
        let text = fields.string("pwd")?;
        if text == Some("") {
            return Err(Failure::bad_value("Password cannot be empty"));
        }
        let is_plain = fields.boolean("digestPassword", true)?;
        let parsed = Self {
            roles: role_names(fields, "roles", database)?,
            custom_data: fields.document("customData")?,
            restrictions: restrictions(fields)?,
            mechanisms: mechanisms(fields)?,
            password: text.map(if is_plain { Password::Plain } else { Password::Digested }),
        };
        if database == EXTERNAL_DATABASE {
            parsed.refuse_passwords()?;
        }
        let has_sha_256 =
            parsed.mechanisms.as_ref().is_none_or(|mechanisms| mechanisms.contains(&Mechanism::ScramSha256));
        if !is_plain && has_sha_256 {
            return Err(Failure::bad_value("Use of SCRAM-SHA-256 requires undigested passwords"));
        }
        Ok(parsed)
    }

    /// Refuses a password and mechanisms for a user of `$external`, whose credentials the server does not have.
    fn refuse_passwords(&self) -> Result<()> {
        if self.password.is_some() {
            let message = "Cannot set the password for users defined on the '$external' database";
            return Err(Failure::bad_value(message));
        }
        if self.mechanisms.is_some() {
            let message = "Cannot set mechanisms for users defined on the '$external' database";
            return Err(Failure::bad_value(message));
        }
        Ok(())
    }

    /// Whether the command sets a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether the command sets no field.
    pub fn are_missing(&self) -> bool {
        self.roles.is_none()
            && self.custom_data.is_none()
            && self.restrictions.is_none()
            && self.mechanisms.is_none()
            && self.password.is_none()
    }

    /// The credentials of the password for each mechanism, as `system.users` has them; `None` if the command sets none.
    /// # Errors
    /// `BadValue` for a password with characters that SASLprep prohibits.
    pub fn credentials(&self, authority: &Authority, user: &str) -> Result<Option<DocumentBuf>> {
        let Some(password) = self.password else { return Ok(None) };
        let mut credentials = DocumentBuf::new();
        for &mechanism in self.mechanisms.as_deref().unwrap_or(&[Mechanism::ScramSha1, Mechanism::ScramSha256]) {
            let iterations = authority.access.iterations(mechanism).load(Ordering::Relaxed) as u32;
            let random = || (authority.random)().to_le_bytes();
            let salt = std::iter::repeat_with(random).flatten().take(mechanism.salt_bytes()).collect();
            let of = |prepared: &str| ScramCredential::of_password(mechanism, prepared, salt, iterations);
            let credential = match (mechanism, password) {
                (Mechanism::ScramSha1, Password::Digested(digest)) => of(digest),
                (_, Password::Plain(text) | Password::Digested(text)) => {
                    of(&mechanism.prepare_password(user, text).map_err(|_| {
                        Failure::bad_value("the password holds characters that SASLprep (RFC 4013) prohibits")
                    })?)
                }
            };
            credentials.append(mechanism.name(), &credential.to_document());
        }
        Ok(Some(credentials))
    }
}

fn mechanisms(fields: &Fields<'_>) -> Result<Option<Vec<Mechanism>>> {
    let Some(names) = fields.array("mechanisms")? else { return Ok(None) };
    let mut mechanisms = Vec::new();
    for (index, value) in elements(names) {
        let place = format!("mechanisms.{index}");
        let name = value.as_str().ok_or_else(|| fields.mismatch(&place, value, "type 'string'"))?;
        let mechanism = Mechanism::named(name);
        let mechanism = mechanism.ok_or_else(|| Failure::bad_value(format!("Unknown auth mechanism '{name}'")))?;
        if !mechanisms.contains(&mechanism) {
            mechanisms.push(mechanism);
        }
    }
    if mechanisms.is_empty() {
        return Err(Failure::bad_value("mechanisms field must not be empty"));
    }
    Ok(Some(mechanisms))
}
