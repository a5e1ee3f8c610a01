//! Verification of client certificates.

use bunko_certificates::is_for_clients;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// Text of the error from webpki, inside rustls's error, for a client that shows the certificate of an authority.
const USED_BY_AUTHORITY: &str = "CaUsedAsEndEntity";

/// Whether a certificate was refused because it is the certificate of an authority.
pub(super) fn is_of_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string().contains(USED_BY_AUTHORITY))
}

/// Accepts the certificates that rustls accepts. It also accepts a certificate with `CA:TRUE` that is itself in the
/// file of authorities, as `openssl req -x509` makes it and OpenSSL accepts it: the owner of its key could issue
/// another certificate that is accepted anyway.
///
/// A certificate with `CA:TRUE` that an authority of the file issued stays refused. Accepting it would mean to build
/// the chain here, with the authorities' name constraints, as rustls does for all other certificates.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    pub usual: Arc<dyn ClientCertVerifier>,
    /// The authorities of the file. Empty where revocation lists are used: no list is checked for these certificates.
    pub trusted_itself: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for ClientVerifier {
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // rustls checks form, critical extensions and dates before it refuses an authority's certificate.
        match self.usual.verify_client_cert(end_entity, intermediates, now) {
            Err(Error::InvalidCertificate(error))
                if is_of_authority(&error)
                    && self.trusted_itself.iter().any(|trusted| trusted == end_entity)
                    && is_for_clients(end_entity) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            usual => usual,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn offer_client_auth(&self) -> bool {
        self.usual.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.usual.client_auth_mandatory()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.usual.requires_raw_public_keys()
    }
}
