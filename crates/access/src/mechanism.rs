//! The two SCRAM mechanisms and their differences.
//! Source: RFC 5802; RFC 7677; MongoDB authentication specification, "SCRAM-SHA-1" and "SCRAM-SHA-256".

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// A mechanism to log in with a password that the server does not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Uses the MD5 digest of the password that the older mechanism MONGODB-CR stored.
    ScramSha1,
    /// Uses the password normalized by SASLprep.
    ScramSha256,
}

impl Mechanism {
    /// All mechanisms, in the order in which they are offered.
    pub const ALL: [Self; 2] = [Self::ScramSha256, Self::ScramSha1];

    /// The mechanism's name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScramSha1 => "SCRAM-SHA-1",
            Self::ScramSha256 => "SCRAM-SHA-256",
        }
    }

    /// The mechanism of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Bytes of a salt, as on MongoDB: the salt and its counter fill one block of the hash function's output size.
    pub fn salt_bytes(self) -> usize {
        match self {
            Self::ScramSha1 => 16,
            Self::ScramSha256 => 28,
        }
    }

    /// Bytes of a key.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::ScramSha1 => 20,
            Self::ScramSha256 => 32,
        }
    }

    /// The password as the mechanism hashes it, in memory that is wiped.
    /// # Errors
    /// The password contains a character that SASLprep prohibits.
    pub fn prepare_password(self, user: &str, password: &str) -> Result<Zeroizing<String>, ProhibitedCharacter> {
        let prepared = match self {
            Self::ScramSha1 => mongodb_digest(user, password),
            Self::ScramSha256 => stringprep::saslprep(password).map_err(|_| ProhibitedCharacter)?.into(),
        };
        Ok(Zeroizing::new(prepared))
    }

    pub(crate) fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::ScramSha1 => Sha1::digest(bytes).to_vec(),
            Self::ScramSha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    /// HMAC by the mechanism's hash function.
    pub fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        const ANY_LENGTH: &str = "keys may have any length";
        match self {
            Self::ScramSha1 => {
                let mac = Hmac::<Sha1>::new_from_slice(key).expect(ANY_LENGTH);
                mac.chain_update(bytes).finalize().into_bytes().to_vec()
            }
            Self::ScramSha256 => {
                let mac = Hmac::<Sha256>::new_from_slice(key).expect(ANY_LENGTH);
                mac.chain_update(bytes).finalize().into_bytes().to_vec()
            }
        }
    }

    /// `Hi(text, salt, iterations)`, the expensive part.
    pub(crate) fn derive(self, password: &[u8], salt: &[u8], iterations: u32) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Self::ScramSha1 => pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, iterations).to_vec(),
            Self::ScramSha256 => pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec(),
        })
    }
}

/// The password contains a character that SASLprep prohibits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProhibitedCharacter;

/// The password digest of SCRAM-SHA-1. Clients send it with `digestPassword: false`.
fn mongodb_digest(user: &str, password: &str) -> String {
    let digest: [u8; 16] = Md5::digest(Zeroizing::new(format!("{user}:mongo:{password}")).as_bytes()).into();
    format!("{:032x}", u128::from_be_bytes(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_normalised_for_sha_256_alone() {
        let prepare = |password| Mechanism::ScramSha256.prepare_password("", password);
        let ix = Zeroizing::new("IX".to_owned());
        // Source: RFC 4013, section 3.
        assert_eq!(prepare("I\u{ad}X").as_ref(), Ok(&ix));
        assert_eq!(prepare("\u{2168}").as_ref(), Ok(&ix));
        assert_eq!(prepare("\u{7}"), Err(ProhibitedCharacter));
        assert!(Mechanism::ScramSha1.prepare_password("u", "\u{7}").is_ok());
    }
}
