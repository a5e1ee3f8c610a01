//! Checks of the server's certificate that are weaker than rustls's default.

use super::Verification;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::sync::Arc;

/// Trusts certificates that `roots` issued, as strictly as `verification` asks.
pub(super) fn for_roots(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
    verification: Verification,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let strict = builder.build().map_err(|error| error.to_string())?;
    Ok(match verification {
        Verification::Certificate => Arc::new(Weaker::new(provider, Some(strict))),
        Verification::CertificateAndName | Verification::Nothing => strict,
    })
}

/// Accepts any certificate whose key the server holds.
pub(super) fn for_anybody(provider: &CryptoProvider) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Weaker::new(provider, None))
}

/// Checks that the server holds its certificate's key, but less of the rest than rustls does.
#[derive(Debug)]
struct Weaker {
    algorithms: WebPkiSupportedAlgorithms,
    /// Verifier for everything except the name; without it any certificate is accepted.
    but_for_the_name: Option<Arc<WebPkiServerVerifier>>,
}

impl Weaker {
    fn new(provider: &CryptoProvider, but_for_the_name: Option<Arc<WebPkiServerVerifier>>) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, but_for_the_name }
    }
}

impl ServerCertVerifier for Weaker {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(strict) = &self.but_for_the_name else { return Ok(ServerCertVerified::assertion()) };
        // rustls checks the name last, after chain, dates and purpose.
        match strict.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
