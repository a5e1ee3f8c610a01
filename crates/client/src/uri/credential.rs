//! User, password and mechanism of authentication.

use super::UriError;
use super::percent;
use std::fmt;

/// How a client proves its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM with SHA-1, over MongoDB's MD5 digest of user name and password.
    ScramSha1,
    /// SCRAM with SHA-256.
    ScramSha256,
    /// The password in clear text (LDAP); only over TLS.
    Plain,
    /// The certificate that the client shows in its TLS handshake.
    X509,
}

impl Mechanism {
    /// MongoDB's name of the mechanism.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::Plain => "PLAIN",
            Self::X509 => "MONGODB-X509",
        }
    }

    /// The mechanism of that name, which is case-sensitive; `None` for names that are not supported.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::ScramSha1, Self::ScramSha256, Self::Plain, Self::X509]
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
    }

    /// The database that knows the user, if the connection string names none.
    pub(super) fn default_source(self) -> &'static str {
        match self {
            Self::ScramSha1 | Self::ScramSha256 => "admin",
            Self::Plain | Self::X509 => "$external",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A user, the password, and how and against which database they are checked. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user's name; empty if the certificate names the user.
    pub user: String,
    pub(crate) password: String,
    /// `authSource`: the database that knows the user.
    pub source: String,
    /// `authMechanism`; `None` is the strongest variant of SCRAM that the server supports for this user.
    pub mechanism: Option<Mechanism>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, password: _, source, mechanism } = self;
        f.debug_struct("Credential")
            .field("user", user)
            .field("source", source)
            .field("mechanism", mechanism)
            .finish_non_exhaustive()
    }
}

/// The part before the `@`.
pub(super) struct UserInfo {
    pub user: String,
    pub password: Option<String>,
}

impl UserInfo {
    /// Splits and decodes the text. Errors show none of it.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (text, None),
        };
        let reserved = |part: &str| part.contains([':', '/', '?', '#', '[', ']', '@']);
        if reserved(user) || password.is_some_and(reserved) {
            return Err(UriError::ReservedCharacter);
        }
        let decode = |part: &str| percent::decode(part).ok_or(UriError::BadUserInfoEscape);
        let user = decode(user)?;
        if user.is_empty() {
            return Err(UriError::MissingUser);
        }
        Ok(Self { user, password: password.map(decode).transpose()? })
    }
}
