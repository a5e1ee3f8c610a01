//! PEM files.

use crate::{Password, key};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::fs;
use std::path::Path;
use zeroize::Zeroizing;

/// The contents of a file, which may contain a key: the memory is wiped after use.
fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    fs::read(path).map(Zeroizing::new).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn objects<T: PemObject>(path: &Path, what: &str) -> Result<Vec<T>, String> {
    let pem = read(path)?;
    let objects: Result<Vec<_>, _> = T::pem_slice_iter(&pem).collect();
    match objects {
        Ok(objects) if objects.is_empty() => Err(format!("{} holds no PEM {what}", path.display())),
        Ok(objects) => Ok(objects),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// All certificates of a file; at least one.
/// # Errors
/// A sentence that names the file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    objects(path, "certificate")
}

/// All revocation lists of a file; at least one.
/// # Errors
/// A sentence that names the file.
pub fn revocation_lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    objects(path, "revocation list (X509 CRL)")
}

/// A certificate chain, the own certificate first, and its key, which is decrypted with the password if necessary.
/// # Errors
/// A sentence that names the file.
pub fn certificate_and_key(
    path: &Path,
    password: Option<&Password>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = certificates(path)?;
    let key = key::read(&read(path)?, password).map_err(|what| format!("the key in {} {what}", path.display()))?;
    Ok((chain, key))
}
