//! The encrypted form of one object.
//!
//! ```text
//! "bunkoS01" │ salt, 32 bytes │ chunk 0 │ tag │ chunk 1 │ tag │ ... │ last chunk │ tag
//! ```
//! A chunk has 1 MiB, and the last one the rest; each is encrypted by AES-256-GCM. The key comes from the backup's data key, the
//! salt and the object's name, so an object under another name cannot be decrypted, and no key encrypts two objects. The
//! nonce is the number of the chunk and whether it is the last, so chunks cannot be left out, cut off, or put in another
//! order. Source: "STREAM" in Hoang, Reyhanitabar, Rogaway, Vizár, "Online Authenticated-Encryption and its Nonce-Reuse
//! Misuse-Resistance", 2015.

use crate::Result;
use crate::keys::{DataKey, random};
use bunko_tools::ToolError;
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};

const MAGIC: &[u8; 8] = b"bunkoS01";
const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// Length of magic and salt in bytes.
pub(crate) const HEADER_BYTES: usize = MAGIC.len() + SALT_BYTES;
/// Length of a chunk in bytes.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;
/// Length of an encrypted chunk in bytes.
pub(crate) const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// Whether a chunk ends its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inside,
    Last,
}

/// The key of one object, and the number of the next chunk.
pub(crate) struct Seal {
    key: LessSafeKey,
    next: u64,
}

impl Seal {
    /// Begins to encrypt an object. Returns its header too.
    /// # Errors
    /// `Failed` if the system has no random numbers.
    pub fn begin(key: &DataKey, name: &str) -> Result<(Self, Vec<u8>)> {
        let salt: [u8; SALT_BYTES] = random()?;
        let header = [&MAGIC[..], &salt].concat();
        Ok((Self { key: key.of_object(&salt, name), next: 0 }, header))
    }

    /// Begins to decrypt an object; `None` if that is not its header.
    pub fn resume(key: &DataKey, name: &str, header: &[u8]) -> Option<Self> {
        let salt = header.strip_prefix(MAGIC).filter(|salt| salt.len() == SALT_BYTES)?;
        Some(Self { key: key.of_object(salt, name), next: 0 })
    }

    /// Encrypts the next chunk in its place.
    /// # Errors
    /// `Failed` if the chunk is too long.
    pub fn seal(&mut self, chunk: &mut Vec<u8>, place: Place) -> Result<()> {
        let nonce = self.nonce(place);
        let sealed = self.key.seal_in_place_append_tag(nonce, Aad::empty(), chunk);
        sealed.map_err(|_| ToolError::Failed("a chunk could not be encrypted".to_owned()))
    }

    /// Decrypts the next chunk in its place; `None` if it is not that chunk of that object.
    pub fn open<'c>(&mut self, chunk: &'c mut [u8], place: Place) -> Option<&'c [u8]> {
        let nonce = self.nonce(place);
        self.key.open_in_place(nonce, Aad::empty(), chunk).ok().map(|chunk| &*chunk)
    }

    /// Offset of the next chunk in the encrypted object, in bytes.
    pub fn offset(&self) -> u64 {
        HEADER_BYTES as u64 + self.next * SEALED_CHUNK_BYTES as u64
    }

    fn nonce(&mut self, place: Place) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[3..11].copy_from_slice(&self.next.to_be_bytes());
        nonce[11] = u8::from(place == Place::Last);
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Length of the encrypted form of an object of that length, in bytes.
pub(crate) fn sealed_bytes(bytes: u64) -> u64 {
    let chunks = bytes.div_ceil(CHUNK_BYTES as u64).max(1);
    HEADER_BYTES as u64 + bytes + chunks * TAG_BYTES as u64
}

/// Length of the object whose encrypted form has that length, in bytes; 0 if there is none.
pub(crate) fn plain_bytes(sealed: u64) -> u64 {
    let chunks = sealed.saturating_sub(HEADER_BYTES as u64).div_ceil(SEALED_CHUNK_BYTES as u64);
    sealed.saturating_sub(HEADER_BYTES as u64 + chunks * TAG_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_objects_and_of_their_encrypted_forms_belong_together() {
        let chunk = CHUNK_BYTES as u64;
        for bytes in [0, 1, 15, 16, 17, chunk - 1, chunk, chunk + 1, 3 * chunk - 1, 3 * chunk, 3 * chunk + 1] {
            assert_eq!(plain_bytes(sealed_bytes(bytes)), bytes);
        }
        for sealed in [0, 7, 40, 55] {
            assert_eq!(plain_bytes(sealed), 0);
        }
    }
}
