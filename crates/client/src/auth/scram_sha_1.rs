//! SCRAM-SHA-1 as MongoDB does it: over the MD5 digest that its older mechanism kept of each password.

use super::scram::Variant;
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;

pub(super) const VARIANT: Variant = Variant {
    prepare_password: |user, password| {
        let digest: [u8; 16] = Md5::digest(format!("{user}:mongo:{password}")).into();
        Ok(format!("{:032x}", u128::from_be_bytes(digest)))
    },
    hash: |bytes| Sha1::digest(bytes).to_vec(),
    hmac: |key, bytes| {
        let mac = Hmac::<Sha1>::new_from_slice(key).expect("keys may have any length");
        mac.chain_update(bytes).finalize().into_bytes().to_vec()
    },
    derive: |password, salt, iterations| pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, iterations).to_vec(),
};
