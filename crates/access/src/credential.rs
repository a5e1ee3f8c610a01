//! The stored form of a password: enough to check a client that knows it, not enough to log in.

use crate::mechanism::Mechanism;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, base64, number};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Maximum number of iterations of a stored credential: a few seconds of work for a client.
const ITERATIONS_MAX: i64 = 10_000_000;

/// The credential of one mechanism. It has no `Debug` on purpose, so that it cannot be printed.
#[derive(Clone)]
pub struct ScramCredential {
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

impl ScramCredential {
    /// Makes the credential of a password prepared by [`Mechanism::prepare_password`]. Takes milliseconds.
    pub fn of_password(mechanism: Mechanism, prepared: &str, salt: Vec<u8>, iterations: u32) -> Self {
        let salted = mechanism.derive(prepared.as_bytes(), &salt, iterations);
        let client_key = Zeroizing::new(mechanism.hmac(&salted, b"Client Key"));
        Self {
            iterations,
            salt,
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.hmac(&salted, b"Server Key"),
        }
    }

    /// The credential for a name without a user. A name always gets the same salt, which cannot be told from a real one
    /// without the server's secret.
    pub fn pretended(mechanism: Mechanism, secret: &[u8], name: &str, iterations: u32) -> Self {
        let derive = |purpose: &str| Mechanism::ScramSha256.hmac(secret, format!("{purpose} {name}").as_bytes());
        let mut salt = derive(mechanism.name());
        salt.truncate(mechanism.salt_bytes());
        let (mut stored_key, mut server_key) = (derive("stored key"), derive("server key"));
        stored_key.truncate(mechanism.key_bytes());
        server_key.truncate(mechanism.key_bytes());
        Self { iterations, salt, stored_key, server_key }
    }

    /// Whether the credential is of that password, prepared by [`Mechanism::prepare_password`]. Takes milliseconds.
    pub fn is_of(&self, mechanism: Mechanism, prepared: &str) -> bool {
        let other = Self::of_password(mechanism, prepared, self.salt.clone(), self.iterations);
        other.stored_key.ct_eq(&self.stored_key).into()
    }

    /// The document in `system.users`.
    pub fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new()
            .with("iterationCount", self.iterations as i32)
            .with("salt", &base64::encode(&self.salt))
            .with("storedKey", &base64::encode(&self.stored_key))
            .with("serverKey", &base64::encode(&self.server_key))
    }

    /// Reads the document, also one written by another server; `None` if it is malformed.
    pub fn parse(mechanism: Mechanism, document: DocumentRef<'_>) -> Option<Self> {
        let bytes = |name| document.get(name).and_then(ValueRef::as_str).and_then(base64::decode);
        let iterations = document.get("iterationCount").and_then(number::as_i64_exact)?;
        let credential = Self {
            iterations: u32::try_from(iterations).ok().filter(|_| (1..=ITERATIONS_MAX).contains(&iterations))?,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        };
        let is_sound = !credential.salt.is_empty()
            && credential.stored_key.len() == mechanism.key_bytes()
            && credential.server_key.len() == mechanism.key_bytes();
        is_sound.then_some(credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_credentials_are_read_back() {
        for mechanism in Mechanism::ALL {
            let kept = ScramCredential::of_password(mechanism, "pencil", vec![7; mechanism.salt_bytes()], 5000);
            let read = ScramCredential::parse(mechanism, kept.to_document().as_ref()).expect("sound");
            assert!(read.stored_key == kept.stored_key && read.server_key == kept.server_key);
            assert!(read.is_of(mechanism, "pencil") && !read.is_of(mechanism, "pencils"));
            assert_eq!((read.salt, read.iterations), (kept.salt.clone(), 5000));
            let other = Mechanism::ALL.into_iter().find(|other| *other != mechanism).expect("two");
            assert!(ScramCredential::parse(other, kept.to_document().as_ref()).is_none(), "keys of the wrong length");
        }
    }

    #[test]
    fn a_pretended_salt_looks_as_a_real_one_and_stays() {
        for mechanism in Mechanism::ALL {
            let pretend = |secret: &[u8], name| ScramCredential::pretended(mechanism, secret, name, 15_000).salt;
            assert_eq!(pretend(b"secret", "a"), pretend(b"secret", "a"));
            assert_eq!(pretend(b"secret", "a").len(), mechanism.salt_bytes());
            assert_ne!(pretend(b"secret", "a"), pretend(b"secret", "b"));
            assert_ne!(pretend(b"secret", "a"), pretend(b"other", "a"));
        }
    }
}
