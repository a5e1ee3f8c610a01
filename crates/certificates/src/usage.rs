//! Whether a certificate may be used by a client.
//! Source: RFC 5280, sections 4.2.1.3 and 4.2.1.12.

use crate::der::{BIT_STRING, BOOLEAN, EXTENSIONS, INTEGER, Items, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, VERSION};
use rustls_pki_types::CertificateDer;

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const CLIENT_AUTH: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// `digitalSignature` and `keyAgreement`: the first and the fifth bit from the left.
const PROVES_ITSELF: u8 = 0b1000_1000;

/// Whether a client may show the certificate: true unless its key usage or its purposes exclude client authentication.
/// False for bytes that are not a certificate.
///
/// OpenSSL applies this check too (`X509_PURPOSE_SSL_CLIENT`), so a client cannot use the certificate of an authority
/// whose key only signs others.
pub fn is_for_clients(certificate: &CertificateDer<'_>) -> bool {
    judge(certificate).unwrap_or(false)
}

fn judge(certificate: &[u8]) -> Option<bool> {
    let mut fields = Items(certificate).next_of(SEQUENCE)?.next_of(SEQUENCE)?;
    fields.next_of(VERSION);
    fields.next_of(INTEGER)?;
    // Skips algorithm, issuer, validity, subject and key.
    for _ in 0..5 {
        fields.next_of(SEQUENCE)?;
    }
    let Some(mut extensions) = fields.find(|field| field.tag == EXTENSIONS).map(|found| Items(found.content)) else {
        return Some(true);
    };
    for extension in extensions.next_of(SEQUENCE)? {
        let mut parts = Items(extension.content);
        let Items(kind) = parts.next_of(OBJECT_IDENTIFIER)?;
        parts.next_of(BOOLEAN);
        let mut value = parts.next_of(OCTET_STRING)?;
        let is_fine = match kind {
            // The first byte says how many of the last bits are unused.
            KEY_USAGE => value.next_of(BIT_STRING)?.0.get(1)? & PROVES_ITSELF != 0,
            EXTENDED_KEY_USAGE => value.next_of(SEQUENCE)?.any(|purpose| purpose.content == CLIENT_AUTH),
            _ => true,
        };
        if !is_fine {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};

    fn certificate(usages: &[KeyUsagePurpose], purposes: &[ExtendedKeyUsagePurpose]) -> CertificateDer<'static> {
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = usages.to_vec();
        parameters.extended_key_usages = purposes.to_vec();
        parameters.self_signed(&KeyPair::generate().expect("a key")).expect("signed").der().clone()
    }

    #[test]
    fn a_certificate_says_what_it_is_for() {
        use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
        use KeyUsagePurpose::{CrlSign, DigitalSignature, KeyAgreement, KeyCertSign};
        for (usages, purposes, expected) in [
            (&[][..], &[][..], true),
            (&[DigitalSignature, KeyCertSign], &[ServerAuth, ClientAuth], true),
            (&[KeyCertSign, KeyAgreement], &[], true),
            (&[KeyCertSign, CrlSign], &[ClientAuth], false),
            (&[], &[ServerAuth], false),
            // OpenSSL refuses this one, too.
            (&[], &[Any], false),
        ] {
            assert_eq!(is_for_clients(&certificate(usages, purposes)), expected, "{usages:?} {purposes:?}");
        }
    }

    #[test]
    fn a_truncated_certificate_serves_no_purpose() {
        let whole = certificate(&[KeyUsagePurpose::DigitalSignature], &[ExtendedKeyUsagePurpose::ClientAuth]);
        assert!(is_for_clients(&whole));
        for length in 0..whole.len() {
            assert!(!is_for_clients(&CertificateDer::from(&whole[..length])));
        }
    }
}
