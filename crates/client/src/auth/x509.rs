//! MONGODB-X509: the certificate that the TLS handshake showed.
//! Source: MongoDB authentication specification, "MONGODB-X509".

use crate::uri::{Credential, Mechanism};
use bunko_bson::DocumentBuf;

/// The only message. The server reads the user's name from the certificate; a name that is given must match it.
pub(super) fn command(credential: &Credential) -> DocumentBuf {
    let command = DocumentBuf::new().with("authenticate", 1_i32).with("mechanism", Mechanism::X509.name());
    if credential.user.is_empty() { command } else { command.with("user", &credential.user) }
}
