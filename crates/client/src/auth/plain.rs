//! PLAIN: the password itself, for servers that ask LDAP.
//! Source: RFC 4616.

use crate::uri::Credential;

/// The only message.
pub(super) fn message(credential: &Credential) -> Vec<u8> {
    format!("\0{}\0{}", credential.user, credential.password).into_bytes()
}
