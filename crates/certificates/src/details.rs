//! Subject and expiry of a certificate.
//! Source: RFC 5280, section 4.1.

use crate::der::{GENERALIZED_TIME, INTEGER, Item, Items, SEQUENCE, UTC_TIME, VERSION};
use crate::subject::rfc_2253;
use rustls_pki_types::CertificateDer;

/// Subject and expiry of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// The subject's name as RFC 2253 writes it: the most specific part first.
    pub subject: String,
    /// End of the certificate's validity, in milliseconds since 1970.
    pub not_after_ms: i64,
}

impl Details {
    /// Reads both fields; `None` if the bytes are not a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let mut fields = Items(certificate).next_of(SEQUENCE)?.next_of(SEQUENCE)?;
        fields.next_of(VERSION);
        fields.next_of(INTEGER)?;
        // Skips the algorithm and the issuer.
        fields.next_of(SEQUENCE)?;
        fields.next_of(SEQUENCE)?;
        let not_after_ms = time_ms(fields.next_of(SEQUENCE)?.nth(1)?)?;
        Some(Self { subject: rfc_2253(fields.next_of(SEQUENCE)?)?, not_after_ms })
    }
}

/// Reads `YYMMDDHHMMSSZ`, or `YYYYMMDDHHMMSSZ`, as milliseconds since 1970; `None` for any other text.
fn time_ms(item: Item<'_>) -> Option<i64> {
    let text = std::str::from_utf8(item.content).ok()?.strip_suffix('Z')?;
    let (year, rest) = match item.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |place: usize| rest.get(2 * place..2 * place + 2)?.parse::<i64>().ok();
    let days = days_since_1970(year, part(0)?, part(1)?);
    Some((((days * 24 + part(2)?) * 60 + part(3)?) * 60 + part(4)?) * 1000)
}

/// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that a leap day is the year's last
/// day.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
        - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, date_time_ymd};

    fn certificate(parts: &[(DnType, DnValue)], year: i32) -> CertificateDer<'static> {
        let mut parameters = CertificateParams::new(Vec::new()).expect("no names");
        parameters.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            parameters.distinguished_name.push(kind.clone(), value.clone());
        }
        parameters.not_after = date_time_ymd(year, 2, 28);
        let key = KeyPair::generate().expect("a key");
        parameters.self_signed(&key).expect("signed").der().clone()
    }

    fn details(parts: &[(DnType, &str)]) -> Details {
        let parts: Vec<_> =
            parts.iter().map(|(kind, value)| (kind.clone(), DnValue::Utf8String((*value).to_owned()))).collect();
        Details::of(&certificate(&parts, 2036)).expect("a certificate")
    }

    #[test]
    fn subjects_are_written_backwards() {
        let found = details(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "Ada & Söhne, Inc."),
            (DnType::OrganizationalUnitName, "#1 "),
            (DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "a+b@c"),
            (DnType::CommonName, "ann"),
            (DnType::CustomDnType(vec![1, 2, 3]), "x"),
        ]);
        assert_eq!(
            found.subject,
            "1.2.3=#0C0178,CN=ann,emailAddress=a\\+b@c,OU=\\#1\\ ,O=Ada & S\\C3\\B6hne\\, Inc.,C=DE"
        );
    }

    #[test]
    fn kinds_and_strings_are_those_of_openssl() {
        let parts = [
            (DnType::CustomDnType(vec![2, 5, 4, 15]), DnValue::Utf8String("Private Organization".to_owned())),
            (
                DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 311, 60, 2, 1, 3]),
                DnValue::PrintableString("DE".try_into().expect("printable")),
            ),
            (DnType::CommonName, DnValue::UniversalString("ä𝄞".try_into().expect("any"))),
            (DnType::OrganizationName, DnValue::TeletexString("T".try_into().expect("ASCII"))),
            (DnType::LocalityName, DnValue::BmpString("ä".try_into().expect("two bytes"))),
        ];
        // Expected as `openssl x509 -noout -subject -nameopt RFC2253` prints it.
        assert_eq!(
            Details::of(&certificate(&parts, 2036)).expect("a certificate").subject,
            "L=\\C3\\A4,O=T,CN=\\C3\\A4\\F0\\9D\\84\\9E,jurisdictionC=DE,businessCategory=Private Organization"
        );
    }

    #[test]
    fn the_end_of_validity_is_read() {
        let days = |year| Details::of(&certificate(&[], year)).expect("a certificate").not_after_ms / 86_400_000;
        // 2036-02-28 has a year of two digits, 2101-02-28 one of four.
        assert_eq!(days(2036), 24_164);
        assert_eq!(days(2101), 47_905);
    }

    #[test]
    fn truncated_bytes_are_not_a_certificate() {
        let whole = certificate(&[(DnType::CommonName, DnValue::Utf8String("ann".into()))], 2036);
        assert!(Details::of(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(Details::of(&CertificateDer::from(&whole[..length])), None);
        }
    }
}
