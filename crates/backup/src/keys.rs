//! Keys of encrypted backups.
//!
//! ```text
//! file of keys ──first: wraps; all: unwrap──► data key of a backup ──HKDF, object's salt and name──► key of one object
//! ```
//! Each backup has a random data key, which the object `keys/ID.json` has in wrapped form. A rotation wraps the data keys
//! anew, and leaves all other objects as they are.

use crate::{Result, of_storage};
use base64::Engine;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bunko_store::files;
use bunko_tools::ToolError;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str;
use zeroize::{Zeroize, Zeroizing};

/// Length of every key in bytes.
pub(crate) const KEY_BYTES: usize = 32;
/// Maximum number of keys in a file.
const KEYS_MAX: usize = 100;
/// Longest file in bytes. The buffer has this length from the beginning, so that no copy of the keys is left in memory.
const FILE_BYTES_MAX: usize = 64 << 10;
/// Permissions of a file of keys that no other user may have.
const OTHERS: u32 = 0o007;
/// Version of the wrapped form.
const FORMAT: u32 = 1;

/// The random key of one backup.
pub(crate) struct DataKey(pub Zeroizing<[u8; KEY_BYTES]>);

/// A file's keys. The first encrypts, all decrypt.
pub struct KeyRing(Vec<MasterKey>);

struct MasterKey {
    wrapping: LessSafeKey,
    /// Its name in messages and in the wrapped form: 16 hexadecimal digits, which do not tell the key.
    fingerprint: String,
}

/// A wrapped data key, as `keys/ID.json` has it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyObject {
    format: u32,
    /// Fingerprint of the key that wraps.
    wrapped_by: String,
    nonce: String,
    key: String,
}

/// The outcome of unwrapping a data key.
pub(crate) enum Unwrapped {
    /// The data key, and whether the first key of the file wraps it.
    Key(DataKey, bool),
    /// The file does not have the key with this fingerprint.
    Unknown(String),
    /// The wrapped form is damaged.
    Damaged,
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

impl KeyRing {
    /// Reads a file of keys: on each line 32 bytes in base64 or in hexadecimal digits. Lines that begin with `#` and empty
    /// ones are left out.
    /// # Errors
    /// `Usage` with the line that is no key; `File` if it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |cause| ToolError::File { path: path.to_owned(), cause };
        let refused = |why: &str| Err(ToolError::Usage(format!("{}: {why}", path.display())));
        let file = files::open(path).map_err(of_storage)?;
        if file.metadata().map_err(failed)?.mode() & OTHERS != 0 {
            return refused("other users may read or change these keys: chmod 600");
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_BYTES_MAX));
        Read::take(file, FILE_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
        let Ok(text) = str::from_utf8(&bytes) else { return refused("is not text") };
        let mut keys: Vec<MasterKey> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some(bytes) = decoded(line) else {
                let number = number + 1;
                return refused(&format!("line {number} is not a key of 32 bytes in base64 or hexadecimal digits"));
            };
            if keys.len() == KEYS_MAX {
                return refused(&format!("has more than {KEYS_MAX} keys"));
            }
            keys.push(MasterKey::new(&bytes));
        }
        if keys.is_empty() { refused("has no key") } else { Ok(Self(keys)) }
    }

    /// Wraps the data key of the backup `id` with the first key.
    /// # Errors
    /// `Failed` if the system has no random numbers.
    pub(crate) fn wrap(&self, id: &str, key: &DataKey) -> Result<String> {
        let nonce: [u8; NONCE_LEN] = random()?;
        let mut wrapped = key.0.to_vec();
        let master = &self.0[0];
        let sealed = master.wrapping.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(id.as_bytes()),
            &mut wrapped,
        );
        if sealed.is_err() {
            wrapped.zeroize();
            return Err(ToolError::Failed("the data key could not be encrypted".to_owned()));
        }
        let wrapped = KeyObject {
            format: FORMAT,
            wrapped_by: master.fingerprint.clone(),
            nonce: hex(&nonce),
            key: hex(&wrapped),
        };
        Ok(serde_json::to_string(&wrapped).unwrap_or_default() + "\n")
    }

    /// Unwraps the data key of the backup `id`.
    pub(crate) fn unwrap(&self, id: &str, text: &[u8]) -> Unwrapped {
        let wrapped = text.strip_suffix(b"\n").and_then(|json| serde_json::from_slice::<KeyObject>(json).ok());
        let Some(wrapped) = wrapped else { return Unwrapped::Damaged };
        let nonce = unhex(&wrapped.nonce).and_then(|nonce| Nonce::try_assume_unique_for_key(&nonce).ok());
        let (Some(nonce), Some(mut key), FORMAT) = (nonce, unhex(&wrapped.key), wrapped.format) else {
            return Unwrapped::Damaged;
        };
        let Some(at) = self.0.iter().position(|master| master.fingerprint == wrapped.wrapped_by) else {
            let name: String = wrapped.wrapped_by.chars().filter(char::is_ascii_hexdigit).take(16).collect();
            return Unwrapped::Unknown(name);
        };
        let opened = self.0[at].wrapping.open_in_place(nonce, Aad::from(id.as_bytes()), &mut key);
        let opened = opened.ok().and_then(|bytes| <[u8; KEY_BYTES]>::try_from(&*bytes).ok());
        let unwrapped = opened.map_or(Unwrapped::Damaged, |bytes| Unwrapped::Key(DataKey(bytes.into()), at == 0));
        key.zeroize();
        unwrapped
    }

    /// The fingerprints of all keys, for messages.
    pub(crate) fn fingerprints(&self) -> String {
        self.0.iter().map(|key| key.fingerprint.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The fingerprint of the key that encrypts.
    pub(crate) fn first(&self) -> &str {
        &self.0[0].fingerprint
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({})", self.fingerprints())
    }
}

impl MasterKey {
    fn new(bytes: &[u8; KEY_BYTES]) -> Self {
        let (mut wrapping, mut name) = (Zeroizing::new([0; KEY_BYTES]), [0; 8]);
        derive(bytes, &[], &[b"bunko backup: wrap data keys"], &mut *wrapping);
        derive(bytes, &[], &[b"bunko backup: fingerprint"], &mut name);
        Self { wrapping: aes(&wrapping), fingerprint: hex(&name) }
    }
}

impl DataKey {
    /// A new key.
    /// # Errors
    /// `Failed` if the system has no random numbers.
    pub fn new() -> Result<Self> {
        random().map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// The key of one object. The salt is random, so that an object that is written again has another key.
    pub fn of_object(&self, salt: &[u8], name: &str) -> LessSafeKey {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        derive(&*self.0, salt, &[b"bunko backup: object ", name.as_bytes()], &mut *key);
        aes(&key)
    }
}

/// Random bytes of the system.
/// # Errors
/// `Failed` if the system has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ToolError::Failed("the system has no random numbers".to_owned()))?;
    Ok(bytes)
}

fn aes(key: &[u8; KEY_BYTES]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has AES-256's length"))
}

/// Source: RFC 5869, HKDF with SHA-256.
fn derive(key: &[u8], salt: &[u8], purpose: &[&[u8]], into: &mut [u8]) {
    let expanded = Salt::new(HKDF_SHA256, salt).extract(key);
    let expanded = expanded.expand(purpose, Length(into.len())).expect("at most 8160 bytes are derived");
    expanded.fill(into).expect("the length is the same");
}

fn decoded(line: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = if line.len() == KEY_BYTES * 2 {
        unhex(line)
    } else {
        GeneralPurpose::new(&base64::alphabet::STANDARD, lenient).decode(line).ok()
    };
    let bytes = Zeroizing::new(bytes?);
    <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok().map(Zeroizing::new)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len().is_multiple_of(2) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    if is_hex { (0..text.len()).step_by(2).map(pair).collect() } else { None }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    pub(crate) const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    pub(crate) const TWO: &str = "gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp8=";

    /// A file of keys with that text.
    pub(crate) fn ring(text: &str) -> Result<KeyRing> {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        fs::write(file.path(), text).expect("written");
        KeyRing::read(file.path())
    }

    #[test]
    fn a_file_has_keys_in_base64_and_in_hexadecimal_digits() {
        let text = format!("# the present key\n{TWO}\n\n  {ONE}  \n{}\n", TWO.trim_end_matches('='));
        let keys = ring(&text).expect("keys");
        assert_eq!(keys.0.len(), 3);
        assert_eq!(keys.first(), keys.0[2].fingerprint);
        assert_ne!(keys.first(), keys.0[1].fingerprint);
        assert_eq!(keys.0[1].fingerprint, ring(&ONE.to_uppercase()).expect("a key").first());
        for (text, why) in [("", "has no key"), ("abc", "line 1"), (&format!("{ONE}\n{ONE}0"), "line 2")] {
            let refused = ring(text).expect_err("refused").to_string();
            assert!(refused.contains(why) && !refused.contains(ONE), "{refused}");
        }
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        fs::write(file.path(), ONE).expect("written");
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(KeyRing::read(file.path()).expect_err("refused").to_string().contains("chmod 600"));
    }

    #[test]
    fn a_data_key_is_unwrapped_by_each_key_of_the_file_and_for_its_backup_only() {
        let (old, new) = (ring(ONE).expect("keys"), ring(&format!("{TWO}\n{ONE}")).expect("keys"));
        let key = DataKey::new().expect("random");
        let wrapped = old.wrap("a", &key).expect("wrapped");
        let is_key = |ring: &KeyRing, is_first| matches!(ring.unwrap("a", wrapped.as_bytes()), Unwrapped::Key(found, first) if *found.0 == *key.0 && first == is_first);
        assert!(is_key(&old, true) && is_key(&new, false));
        assert!(matches!(old.unwrap("b", wrapped.as_bytes()), Unwrapped::Damaged), "another backup's key");
        let other = ring(TWO).expect("keys");
        assert!(
            matches!(other.unwrap("a", wrapped.as_bytes()), Unwrapped::Unknown(fingerprint) if fingerprint == old.first())
        );
        for at in 0..wrapped.len() {
            assert!(matches!(old.unwrap("a", &wrapped.as_bytes()[..at]), Unwrapped::Damaged), "{at}");
            let mut damaged = wrapped.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(!matches!(old.unwrap("a", &damaged), Unwrapped::Key(..)), "{at}");
        }
    }
}
