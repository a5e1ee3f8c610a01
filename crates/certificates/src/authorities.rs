//! The authorities that the system trusts.

use crate::certificates;
use rustls_pki_types::CertificateDer;
use std::path::PathBuf;

/// Variable that names a file to use instead of the system's. Source: OpenSSL, "SSL_CTX_set_default_verify_paths".
const VARIABLE: &str = "SSL_CERT_FILE";
/// Files in which Linux distributions and BSDs keep all certificates.
const BUNDLES: [&str; 5] = [
    // Debian, Ubuntu, Arch, Gentoo, Alpine.
    "/etc/ssl/certs/ca-certificates.crt",
    // Fedora, RHEL.
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    // openSUSE.
    "/etc/ssl/ca-bundle.pem",
    // Alpine, the BSDs.
    "/etc/ssl/cert.pem",
];

/// The file with the system's authorities, and their certificates.
/// # Errors
/// A sentence, if there is no such file, or it cannot be read.
pub fn system_authorities() -> Result<(PathBuf, Vec<CertificateDer<'static>>), String> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let path = named.or_else(|| BUNDLES.iter().map(PathBuf::from).find(|path| path.exists()));
    let path = path.ok_or(
        "the system has no file of trusted certificates: name one in tlsCAFile, or in the variable SSL_CERT_FILE",
    )?;
    let trusted = certificates(&path)?;
    Ok((path, trusted))
}
