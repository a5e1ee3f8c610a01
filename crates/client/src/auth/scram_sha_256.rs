//! SCRAM-SHA-256: the password is normalised first, so that it does not matter how it was typed.

use super::scram::Variant;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub(super) const VARIANT: Variant = Variant {
    prepare_password: |_, password| {
        // Source: MongoDB authentication specification, "SCRAM-SHA-256": SASLprep for the password, not for the user.
        let prepared = stringprep::saslprep(password);
        prepared.map(Into::into).map_err(|_| "the password holds characters that SASLprep prohibits".into())
    },
    hash: |bytes| Sha256::digest(bytes).to_vec(),
    hmac: |key, bytes| {
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("keys may have any length");
        mac.chain_update(bytes).finalize().into_bytes().to_vec()
    },
    derive: |password, salt, iterations| pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec(),
};

#[cfg(test)]
mod tests {
    use super::VARIANT;

    #[test]
    fn passwords_are_normalised() {
        let prepare = VARIANT.prepare_password;
        // Source: MongoDB authentication specification, "SCRAM-SHA-256 and MONGODB-CR", users IX and IV.
        assert_eq!(prepare("", "I\u{ad}X").as_deref(), Ok("IX"));
        assert_eq!(prepare("", "\u{2168}").as_deref(), Ok("IX"));
        assert_eq!(prepare("", "\u{2163}").as_deref(), Ok("IV"));
        assert!(prepare("", "\u{7}").is_err());
    }
}
