//! Builds the rustls configuration from the files.

use super::client_verifier::ClientVerifier;
use super::{ClientCertificates, Current, TlsOptions};
use bunko_certificates::{Details, certificate_and_key, certificates, revocation_lists};
use bunko_observe::TlsVersion;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

pub(super) fn read(options: &TlsOptions) -> Result<Current, String> {
    let own = &options.certificate_key_file;
    let (chain, key) = certificate_and_key(own, options.certificate_key_password.as_ref())?;
    let certificate = chain.first().and_then(Details::of);
    let certificate = certificate.ok_or_else(|| at(own, &"the first certificate cannot be read"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: Vec<_> = options.versions.iter().copied().map(protocol).collect();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier(options, provider)?);
    let mut configuration = builder.with_single_cert(chain, key).map_err(|error| at(own, &error))?;
    // No sessions are resumed: resumption would skip the check of a certificate that was revoked since.
    configuration.session_storage = Arc::new(NoServerSessionStorage {});
    configuration.send_tls13_tickets = 0;
    Ok(Current { configuration: Arc::new(configuration), certificate })
}

/// Accepts certificates issued by an authority of `CAFile` that no list revokes. As with OpenSSL, the list of the
/// issuer of the client's own certificate must be present and current.
fn verifier(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    let authorities = certificates(&options.ca_file)?;
    for certificate in &authorities {
        roots.add(certificate.clone()).map_err(|error| at(&options.ca_file, &error))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if let Some(file) = &options.crl_file {
        let lists = revocation_lists(file)?;
        builder = builder.with_crls(lists).only_check_end_entity_revocation().enforce_revocation_expiration();
    }
    if options.client_certificates == ClientCertificates::Optional {
        builder = builder.allow_unauthenticated();
    }
    // The authorities have been read, so an error is about the revocation lists.
    let file = options.crl_file.as_ref().unwrap_or(&options.ca_file);
    let usual = builder.build().map_err(|error| at(file, &error))?;
    let trusted_itself = if options.crl_file.is_none() { authorities } else { Vec::new() };
    Ok(Arc::new(ClientVerifier { usual, trusted_itself }))
}

fn protocol(version: TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V1_2 => &rustls::version::TLS12,
        TlsVersion::V1_3 => &rustls::version::TLS13,
    }
}

fn at(file: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", file.display())
}
