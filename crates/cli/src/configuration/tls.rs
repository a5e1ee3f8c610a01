//! TLS options from the settings.

use super::in_force::Configuration;
use super::setting::Setting;
use super::table::{
    TLS_CA_FILE, TLS_CERTIFICATE_KEY_FILE, TLS_CERTIFICATE_KEY_PASSWORD, TLS_CRL_FILE, TLS_DISABLED_PROTOCOLS,
    TLS_INVALID_HOSTNAMES, TLS_MODE, TLS_WITHOUT_CERTIFICATES,
};
use super::tls_versions::parse_disabled_protocols;
use bunko_client::Verification;
use bunko_observe::TlsVersion;
use bunko_server::{ClientCertificates, PlainClients, TlsOptions};
use std::path::PathBuf;

/// Settings that are refused while TLS is disabled.
const NEEDS_MODE: [&Setting; 7] = [
    &TLS_CERTIFICATE_KEY_FILE,
    &TLS_CERTIFICATE_KEY_PASSWORD,
    &TLS_CA_FILE,
    &TLS_CRL_FILE,
    &TLS_WITHOUT_CERTIFICATES,
    &TLS_DISABLED_PROTOCOLS,
    &TLS_INVALID_HOSTNAMES,
];

/// How much of the certificates of other members of the set is checked.
pub fn verification(configuration: &Configuration) -> Verification {
    if configuration.is_on(&TLS_INVALID_HOSTNAMES) {
        Verification::Certificate
    } else {
        Verification::CertificateAndName
    }
}

/// The TLS options; `None` if TLS is disabled.
/// # Errors
/// A sentence that names the setting that is missing, or that has no effect.
pub fn options(configuration: &Configuration) -> Result<Option<TlsOptions>, String> {
    let mode = configuration.text(&TLS_MODE).unwrap_or_default();
    if mode == "disabled" {
        return match NEEDS_MODE.iter().find(|setting| configuration.given(setting).is_some()) {
            Some(idle) => Err(format!("{} needs {}", configuration.name_of(idle), TLS_MODE.key())),
            None => Ok(None),
        };
    }
    let missing = |setting: &Setting, why: &str| {
        format!("{}: {mode} needs {}, {why}", configuration.name_of(&TLS_MODE), setting.key())
    };
    let path = |setting| configuration.text(setting).map(PathBuf::from);
    let certificate_key_file = path(&TLS_CERTIFICATE_KEY_FILE)
        .ok_or_else(|| missing(&TLS_CERTIFICATE_KEY_FILE, "a PEM file with the server's certificate and its key"))?;
    // As mongod since 7.0: without this file a server would accept any client where it was meant to ask for
    // certificates.
    let ca_file = path(&TLS_CA_FILE)
        .ok_or_else(|| missing(&TLS_CA_FILE, "a PEM file with the authorities that issue certificates of clients"))?;
    let disabled = match configuration.text(&TLS_DISABLED_PROTOCOLS) {
        Some(text) => parse_disabled_protocols(&text)?,
        None => Vec::new(),
    };
    let versions = [TlsVersion::V1_2, TlsVersion::V1_3].into_iter().filter(|version| !disabled.contains(version));
    Ok(Some(TlsOptions {
        plain_clients: if mode == "requireTLS" { PlainClients::Refused } else { PlainClients::Served },
        certificate_key_file,
        certificate_key_password: configuration.secret(&TLS_CERTIFICATE_KEY_PASSWORD),
        ca_file,
        crl_file: path(&TLS_CRL_FILE),
        client_certificates: if configuration.is_on(&TLS_WITHOUT_CERTIFICATES) {
            ClientCertificates::Optional
        } else {
            ClientCertificates::Required
        },
        versions: versions.collect(),
    }))
}
