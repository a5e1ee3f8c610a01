//! How the members of a set prove to each other that they are members.

use super::in_force::Configuration;
use super::table::{AUTHORIZATION, CLUSTER_AUTH_MODE, KEY_FILE, TLS_MODE};
use std::path::PathBuf;

const BY_CERTIFICATE: &str = "x509";

/// The proof that members ask of each other.
#[derive(Debug, PartialEq, Eq)]
pub enum ClusterAuth {
    /// None: all members run on one machine, without authorization.
    None,
    /// A key of this file.
    KeyFile(PathBuf),
    /// A certificate like the server's own.
    Certificate,
}

/// The proof in force.
/// # Errors
/// A sentence that names the settings that contradict each other.
pub fn options(configuration: &Configuration) -> Result<ClusterAuth, String> {
    let (mode, key_file) = (&CLUSTER_AUTH_MODE, configuration.text(&KEY_FILE));
    let auth = match (configuration.text(mode).as_deref(), key_file) {
        (Some(BY_CERTIFICATE), Some(_)) => {
            let (key_file, mode) = (configuration.name_of(&KEY_FILE), configuration.name_of(mode));
            return Err(format!("{key_file} has no use where {mode} is {BY_CERTIFICATE}; give one of them"));
        }
        (Some(BY_CERTIFICATE), None) => {
            let tls = configuration.text(&TLS_MODE).unwrap_or_default();
            if !["preferTLS", "requireTLS"].contains(&tls.as_str()) {
                return Err(format!(
                    "{}: {BY_CERTIFICATE} needs {} preferTLS or requireTLS, and it is {tls}",
                    configuration.name_of(mode),
                    TLS_MODE.key()
                ));
            }
            ClusterAuth::Certificate
        }
        (_, Some(path)) => ClusterAuth::KeyFile(path.into()),
        (_, None) => ClusterAuth::None,
    };
    let is_off = configuration.given(&AUTHORIZATION).is_some() && !configuration.is_on(&AUTHORIZATION);
    if is_off && auth != ClusterAuth::None {
        let by = if auth == ClusterAuth::Certificate { mode } else { &KEY_FILE };
        let (off, on) = (configuration.name_of(&AUTHORIZATION), configuration.name_of(by));
        return Err(format!("{off}: disabled contradicts {on}, which turns authorization on"));
    }
    Ok(auth)
}
