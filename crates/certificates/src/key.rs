//! Private keys, plain or encrypted.

use crate::Password;
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
/// Line that marks a key in OpenSSL's older form of encryption.
const OLD_MARK: &str = "Proc-Type: 4,ENCRYPTED";

/// Reads the key in a PEM file and decrypts it with the password. A password given for a key that is not encrypted is
/// ignored, as OpenSSL does.
/// # Errors
/// A phrase that says what is wrong with the key, to follow "the key in FILE".
pub(crate) fn read(pem: &[u8], password: Option<&Password>) -> Result<PrivateKeyDer<'static>, String> {
    let place = |mark: &str| pem.windows(mark.len()).position(|window| window == mark.as_bytes());
    if let Some(begin) = place(BEGIN) {
        let needed = "is encrypted: it needs a password (tlsCertificateKeyFilePassword)";
        return open(pem, begin, password.ok_or(needed)?);
    }
    if place(OLD_MARK).is_some() {
        let instead = "openssl pkcs8 -topk8 -in OLD -out NEW encrypts it as PKCS#8";
        return Err(format!("is encrypted in a way that is not supported: {instead}"));
    }
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| "is missing or no PEM".to_owned())
}

/// Decrypts the key that starts at `begin`, as PKCS#5 describes: PBES2, by PBKDF2 or scrypt, with AES.
/// Source: RFC 8018, RFC 7914.
fn open(pem: &[u8], begin: usize, password: &Password) -> Result<PrivateKeyDer<'static>, String> {
    let text = std::str::from_utf8(pem).map_err(|error| format!("is not text: {error}"))?;
    let length = text[begin..].find(END).ok_or_else(|| format!("has no line '{END}'"))? + END.len();
    let (_, document) =
        SecretDocument::from_pem(&text[begin..begin + length]).map_err(|error| format!("cannot be read: {error}"))?;
    let key = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| format!("is encrypted in a way that is not supported (PBES2 with AES is): {error}"))?;
    let opened = key.decrypt(password.secret()).map_err(|error| format!("is not opened by the password: {error}"))?;
    Ok(PrivateKeyDer::Pkcs8(opened.as_bytes().to_vec().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = include_bytes!("../tests/keys/plain.pem");
    const SCRYPT: &[u8] = include_bytes!("../tests/keys/scrypt-aes256.pem");

    /// `tests/keys/*.pem` hold one key, in each of the forms that OpenSSL 3.0 writes.
    #[test]
    fn the_password_opens_what_openssl_wrote() {
        let right = Password::new("open");
        let key = read(PLAIN, None).expect("a key");
        assert_eq!(read(PLAIN, Some(&right)).expect("a key"), key);
        for pem in [
            include_bytes!("../tests/keys/pbkdf2-sha256-aes256.pem").as_slice(),
            include_bytes!("../tests/keys/pbkdf2-sha1-aes128.pem"),
            SCRYPT,
        ] {
            let with_certificate = [b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", pem].concat();
            assert_eq!(read(&with_certificate, Some(&right)).expect("a key"), key);
            let without = read(pem, None).expect_err("no password");
            assert!(without.contains("tlsCertificateKeyFilePassword"), "{without}");
            let wrong = read(pem, Some(&Password::new("shut"))).expect_err("another password");
            assert!(wrong.contains("is not opened by the password") && !wrong.contains("shut"), "{wrong}");
        }
    }

    #[test]
    fn keys_that_cannot_be_opened_say_why() {
        let password = Password::new("open");
        let of = |pem: &[u8]| read(pem, Some(&password)).expect_err("refused");
        assert!(of(include_bytes!("../tests/keys/old.pem")).contains("openssl pkcs8 -topk8"));
        let des = of(include_bytes!("../tests/keys/des3.pem"));
        assert!(des.contains("is encrypted in a way that is not supported"), "{des}");
        assert!(of(&SCRYPT[..SCRYPT.len() - 10]).contains("has no line '-----END ENCRYPTED PRIVATE KEY-----'"));
        assert!(of(b"").contains("is missing or no PEM"));
    }
}
