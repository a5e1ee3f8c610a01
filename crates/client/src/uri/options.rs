//! The options after the question mark.

use super::credential::UserInfo;
use super::{Credential, Mechanism, ReadPreference, UriError, percent};
use crate::tls::{TlsOptions, Verification};
use crate::write_concern::{Acknowledgement, WriteConcern};
use bunko_certificates::Password;
use std::time::Duration;

/// Longest `appName` that servers accept, in bytes.
/// Source: MongoDB handshake specification, "client.application.name".
const APP_NAME_BYTES_MAX: usize = 128;

/// Options that concern a driver's pool, monitors and compression. The client has none of these, so it has nothing to
/// do for them, and connection strings of applications can be used as they are.
const WITHOUT_OBJECT: [&str; 12] = [
    "compressors",
    "heartbeatfrequencyms",
    "localthresholdms",
    "maxconnecting",
    "maxidletimems",
    "maxpoolsize",
    "minpoolsize",
    "servermonitoringmode",
    "srvmaxhosts",
    "uuidrepresentation",
    "waitqueuetimeoutms",
    "zlibcompressionlevel",
];

/// All options as given, before they are combined.
#[derive(Default)]
pub(super) struct Options {
    pub app_name: Option<String>,
    auth_mechanism: Option<Mechanism>,
    auth_source: Option<String>,
    pub connect_timeout: Option<Duration>,
    pub direct_connection: Option<bool>,
    journal: Option<bool>,
    pub read_preference: Option<ReadPreference>,
    pub replica_set: Option<String>,
    pub server_selection_timeout: Option<Duration>,
    pub socket_timeout: Option<Duration>,
    tls: Option<bool>,
    tls_allow_invalid_certificates: Option<bool>,
    tls_allow_invalid_hostnames: Option<bool>,
    tls_ca_file: Option<String>,
    tls_certificate_key_file: Option<String>,
    tls_certificate_key_password: Option<Password>,
    tls_insecure: Option<bool>,
    w: Option<Acknowledgement>,
    w_timeout: Option<Duration>,
}

/// Why a value is refused.
enum Refusal {
    BadValue,
    Unsupported(String),
}

impl From<()> for Refusal {
    fn from((): ()) -> Self {
        Self::BadValue
    }
}

/// One option: its name in lower case and what it sets.
struct UriOption {
    name: &'static str,
    apply: fn(&mut Options, &str) -> Result<(), Refusal>,
}

const fn option(name: &'static str, apply: fn(&mut Options, &str) -> Result<(), Refusal>) -> UriOption {
    UriOption { name, apply }
}

/// Every supported option.
static OPTIONS: &[UriOption] = &[
    option("appname", |options, value| {
        let short = value.len() <= APP_NAME_BYTES_MAX;
        set(&mut options.app_name, short.then(|| value.into()))
    }),
    option("authmechanism", |options, value| match Mechanism::from_name(value) {
        Some(mechanism) => set(&mut options.auth_mechanism, Some(mechanism)),
        None => Err(Refusal::Unsupported(format!("authMechanism '{value}'"))),
    }),
    option("authsource", |options, value| set(&mut options.auth_source, Some(value.into()))),
    option("connecttimeoutms", |options, value| set(&mut options.connect_timeout, positive_ms(value))),
    option("directconnection", |options, value| set(&mut options.direct_connection, flag(value))),
    option("journal", |options, value| set(&mut options.journal, flag(value))),
    // False is the default anyway; a connection through a load balancer would need another handshake.
    option("loadbalanced", |_, value| accept_only("false", "loadBalanced=true", value)),
    option("readpreference", |options, value| set(&mut options.read_preference, value.parse().ok())),
    option("replicaset", |options, value| set(&mut options.replica_set, Some(value.into()))),
    // `retryReads` and `retryWrites` permit a driver to retry. This client never does: the caller gets each failure.
    option("retryreads", |_, value| flag(value).map(drop).ok_or(Refusal::BadValue)),
    option("retrywrites", |_, value| flag(value).map(drop).ok_or(Refusal::BadValue)),
    option("serverselectiontimeoutms", |options, value| set(&mut options.server_selection_timeout, positive_ms(value))),
    option("sockettimeoutms", |options, value| {
        let timeout = milliseconds(value).ok_or(())?;
        options.socket_timeout = (!timeout.is_zero()).then_some(timeout);
        Ok(())
    }),
    option("tls", |options, value| set(&mut options.tls, flag(value))),
    option("tlsallowinvalidcertificates", |options, value| {
        set(&mut options.tls_allow_invalid_certificates, flag(value))
    }),
    option("tlsallowinvalidhostnames", |options, value| set(&mut options.tls_allow_invalid_hostnames, flag(value))),
    option("tlscafile", |options, value| set(&mut options.tls_ca_file, Some(value.into()))),
    option("tlscertificatekeyfile", |options, value| set(&mut options.tls_certificate_key_file, Some(value.into()))),
    option("tlscertificatekeyfilepassword", |options, value| {
        set(&mut options.tls_certificate_key_password, Some(Password::new(value)))
    }),
    option("tlsinsecure", |options, value| set(&mut options.tls_insecure, flag(value))),
    option("w", |options, value| {
        let members = value.parse().ok().filter(|&members| members <= 50).map(Acknowledgement::Members);
        set(&mut options.w, members.or((value == "majority").then_some(Acknowledgement::Majority)))
    }),
    option("wtimeoutms", |options, value| set(&mut options.w_timeout, milliseconds(value))),
];

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> Result<(), Refusal> {
    *slot = Some(value.ok_or(())?);
    Ok(())
}

/// Applies an option that has no effect at one of its values: only that value is accepted.
fn accept_only(accepted: &str, refused: &str, value: &str) -> Result<(), Refusal> {
    match flag(value) {
        Some(_) if value == accepted => Ok(()),
        Some(_) => Err(Refusal::Unsupported(refused.into())),
        None => Err(Refusal::BadValue),
    }
}

fn flag(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().map(|milliseconds: u32| Duration::from_millis(milliseconds.into()))
}

fn positive_ms(text: &str) -> Option<Duration> {
    milliseconds(text).filter(|duration| !duration.is_zero())
}

/// The current name of an option, in lower case.
fn canonical(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "ssl" => "tls".into(),
        "j" => "journal".into(),
        "wtimeout" => "wtimeoutms".into(),
        lower => lower.to_owned(),
    }
}

impl Options {
    /// Reads `name=value&name=value`.
    pub fn parse(query: &str) -> Result<Self, UriError> {
        let (mut options, mut seen) = (Self::default(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let missing = || UriError::MissingValue(pair.trim_end_matches('=').into());
            let (name, value) = pair.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or_else(missing)?;
            // The error does not show the value, which may be secret.
            let value = percent::decode(value).ok_or_else(|| UriError::BadEscape(format!("the value of '{name}'")))?;
            let key = canonical(name);
            if WITHOUT_OBJECT.contains(&key.as_str()) {
                continue;
            }
            let Some(option) = OPTIONS.iter().find(|option| option.name == key) else {
                return Err(UriError::Unsupported(format!("option '{name}'")));
            };
            (option.apply)(&mut options, &value).map_err(|refusal| match refusal {
                Refusal::BadValue => UriError::BadValue { option: name.into(), value: value.clone() },
                Refusal::Unsupported(what) => UriError::Unsupported(what),
            })?;
            if seen.iter().any(|(other, earlier)| *other == key && *earlier != value) {
                return Err(UriError::Contradiction(format!("two values of '{name}'")));
            }
            seen.push((key, value));
        }
        Ok(options)
    }

    /// The credential that the options, the user info and the database give together.
    pub fn credential(
        &self,
        user_info: Option<UserInfo>,
        database: Option<&str>,
        tls: Option<&TlsOptions>,
    ) -> Result<Option<Credential>, UriError> {
        let mechanism = self.auth_mechanism;
        if mechanism == Some(Mechanism::X509) {
            return self.certificate_credential(user_info, tls).map(Some);
        }
        let Some(UserInfo { user, password }) = user_info else {
            return if mechanism.is_some() { Err(UriError::MissingUser) } else { Ok(None) };
        };
        if mechanism == Some(Mechanism::Plain) && tls.is_none() {
            return Err(UriError::Unsupported("authMechanism 'PLAIN' without tls=true (it sends the password)".into()));
        }
        let default_source = mechanism.unwrap_or(Mechanism::ScramSha256).default_source();
        let source = self.auth_source.as_deref().or(database).unwrap_or(default_source).to_owned();
        Ok(Some(Credential { user, password: password.ok_or(UriError::MissingPassword)?, source, mechanism }))
    }

    /// The credential for a client certificate. The certificate names the user, so the connection string may omit the
    /// name.
    fn certificate_credential(
        &self,
        user_info: Option<UserInfo>,
        tls: Option<&TlsOptions>,
    ) -> Result<Credential, UriError> {
        const NAME: &str = "authMechanism 'MONGODB-X509'";
        if tls.is_none_or(|tls| tls.certificate_key_file.is_none()) {
            return Err(UriError::Unsupported(format!("{NAME} without tls=true and tlsCertificateKeyFile")));
        }
        let source = Mechanism::X509.default_source();
        if self.auth_source.as_deref().is_some_and(|given| given != source) {
            return Err(UriError::Contradiction(format!("{NAME} and an authSource other than {source}")));
        }
        let (user, password) = user_info.map_or_else(Default::default, |info| (info.user, info.password));
        if password.is_some() {
            return Err(UriError::Contradiction(format!("{NAME} and a password")));
        }
        Ok(Credential { user, password: String::new(), source: source.to_owned(), mechanism: self.auth_mechanism })
    }

    /// TLS options, if TLS is used.
    pub fn tls_options(&self) -> Result<Option<TlsOptions>, UriError> {
        let given = [
            ("tlsAllowInvalidCertificates", self.tls_allow_invalid_certificates.is_some()),
            ("tlsAllowInvalidHostnames", self.tls_allow_invalid_hostnames.is_some()),
            ("tlsCAFile", self.tls_ca_file.is_some()),
            ("tlsCertificateKeyFile", self.tls_certificate_key_file.is_some()),
            ("tlsCertificateKeyFilePassword", self.tls_certificate_key_password.is_some()),
            ("tlsInsecure", self.tls_insecure.is_some()),
        ];
        if self.tls != Some(true) {
            return match given.into_iter().find(|(_, given)| *given) {
                Some((name, _)) => Err(UriError::Unsupported(format!("option '{name}' without tls=true"))),
                None => Ok(None),
            };
        }
        if self.tls_insecure.is_some() && (given[0].1 || given[1].1) {
            let what = "tlsInsecure and tlsAllowInvalidCertificates or tlsAllowInvalidHostnames";
            return Err(UriError::Contradiction(what.into()));
        }
        let insecure = self.tls_insecure == Some(true);
        let verification = if insecure || self.tls_allow_invalid_certificates == Some(true) {
            Verification::Nothing
        } else if self.tls_allow_invalid_hostnames == Some(true) {
            Verification::Certificate
        } else {
            Verification::CertificateAndName
        };
        Ok(Some(TlsOptions {
            ca_file: self.tls_ca_file.as_ref().map(Into::into),
            certificate_key_file: self.tls_certificate_key_file.as_ref().map(Into::into),
            certificate_key_password: self.tls_certificate_key_password.clone(),
            verification,
        }))
    }

    /// The write concern, if any option gives one.
    pub fn write_concern(&self) -> Result<Option<WriteConcern>, UriError> {
        if self.w.is_none() && self.journal.is_none() && self.w_timeout.is_none() {
            return Ok(None);
        }
        let w = self.w.clone().unwrap_or(Acknowledgement::Members(1));
        if w == Acknowledgement::Members(0) && self.journal == Some(true) {
            return Err(UriError::Contradiction("w=0 and journal=true".into()));
        }
        Ok(Some(WriteConcern { w, journal: self.journal, timeout: self.w_timeout }))
    }
}
