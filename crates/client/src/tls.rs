//! TLS: which servers a connection trusts, and how the client identifies itself.

mod stream;
mod verifier;

pub(crate) use stream::TlsStream;

use bunko_certificates::{Password, certificate_and_key, certificates, system_authorities};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use std::path::PathBuf;
use std::sync::Arc;

/// How much of the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// A trusted authority issued it, and for the host's name.
    CertificateAndName,
    /// A trusted authority issued it: `tlsAllowInvalidHostnames`.
    Certificate,
    /// Nothing is checked, so that any machine on the way can pose as the server: `tlsAllowInvalidCertificates`,
    /// `tlsInsecure`.
    Nothing,
}

/// TLS options of a connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// `tlsCAFile`: PEM certificates of the trusted authorities; `None` trusts the system's authorities.
    pub ca_file: Option<PathBuf>,
    /// `tlsCertificateKeyFile`: PEM file with this client's certificate chain and its key.
    pub certificate_key_file: Option<PathBuf>,
    /// `tlsCertificateKeyFilePassword`: password of that key, if it is encrypted.
    pub certificate_key_password: Option<Password>,
    /// How much of the server's certificate is checked.
    pub verification: Verification,
}

/// Reads the files and makes the configuration that all connections share.
/// # Errors
/// A sentence that names the file.
pub(crate) fn configuration(options: &TlsOptions) -> Result<Arc<ClientConfig>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier(options, &provider)?);
    let configuration = match &options.certificate_key_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let (chain, key) = certificate_and_key(path, options.certificate_key_password.as_ref())?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("tlsCertificateKeyFile {}: {error}", path.display()))?
        }
    };
    Ok(Arc::new(configuration))
}

fn verifier(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, String> {
    if options.verification == Verification::Nothing {
        return Ok(verifier::for_anybody(provider));
    }
    let (path, trusted) = match &options.ca_file {
        Some(path) => (path.clone(), certificates(path)?),
        None => system_authorities()?,
    };
    let mut roots = RootCertStore::empty();
    for certificate in trusted {
        // A system's bundle may contain certificates that rustls rejects; a file that the user names should not.
        let added = roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()));
        if options.ca_file.is_some() {
            added?;
        }
    }
    verifier::for_roots(roots, provider, options.verification).map_err(|error| format!("{}: {error}", path.display()))
}
