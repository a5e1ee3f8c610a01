//! Connection strings.

mod credential;
mod error;
mod host;
mod options;
mod percent;
mod read_preference;

pub use credential::{Credential, Mechanism};
pub use error::UriError;
pub use host::{DEFAULT_PORT, Host};
pub use percent::percent_encoded;
pub use read_preference::ReadPreference;

use crate::tls::TlsOptions;
use crate::write_concern::WriteConcern;
use options::Options;
use std::fmt::Write;
use std::str::FromStr;
use std::time::Duration;

const SCHEME: &str = "mongodb://";
const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// Characters that cannot occur in a database name.
/// Source: MongoDB connection string specification, "Auth database".
const NOT_IN_DATABASE_NAMES: [char; 6] = ['/', '\\', ' ', '"', '$', '.'];

/// A parsed `mongodb://` connection string with every option that this client supports.
///
/// Its `Debug` form shows no password.
///
/// Source: MongoDB manual, "Connection Strings"; MongoDB specifications, "Connection String" and "URI Options".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// The servers in the listed order; at least one.
    pub hosts: Vec<Host>,
    /// The credential, if the client authenticates.
    pub credential: Option<Credential>,
    /// The database after the slash.
    pub database: Option<String>,
    /// `appName`: this client's name in the server's logs.
    pub app_name: Option<String>,
    /// `replicaSet`: the only set whose members are used.
    pub replica_set: Option<String>,
    /// `directConnection`: use the one given host, whatever its role.
    pub direct_connection: bool,
    /// TLS options; `None` is plain TCP.
    pub tls: Option<TlsOptions>,
    /// `readPreference`: the role of the server to connect to.
    pub read_preference: ReadPreference,
    /// `w`, `journal` and `wtimeoutMS`, if any was given.
    pub write_concern: Option<WriteConcern>,
    /// `connectTimeoutMS`: how long all servers may stay unreachable; 10 s by default.
    pub connect_timeout: Duration,
    /// `serverSelectionTimeoutMS`: how long servers that answer may lack the wanted role; by default
    /// [`Self::connect_timeout`].
    pub server_selection_timeout: Duration,
    /// `socketTimeoutMS`: longest wait for one reply of a blocking connection; `None` waits forever.
    pub socket_timeout: Option<Duration>,
}

impl Uri {
    /// `host:port` of every host, separated by commas, as messages name the target.
    pub fn address(&self) -> String {
        let mut address = String::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(address, "{comma}{host}");
        }
        address
    }

    /// A connection string for display: the user name, the password and the password of a key are replaced by `***`.
    ///
    /// Malformed strings are accepted, too; of these it hides rather too much than too little.
    pub fn redact(text: &str) -> String {
        let start = text.find("://").map_or(0, |at| at + "://".len());
        let rest = &text[start..];
        // In a malformed string the password may contain any character, so the last @ of the whole string ends it.
        let end = if text.parse::<Self>().is_ok() { authority_bytes(rest) } else { rest.len() };
        let shown = match rest[..end].rfind('@') {
            Some(at) => format!("{}***{}", &text[..start], &rest[at..]),
            None => text.to_owned(),
        };
        without_key_password(shown)
    }
}

fn without_key_password(mut text: String) -> String {
    const OPTION: &str = "tlscertificatekeyfilepassword=";
    let mut from = 0;
    // Only ASCII letters change, so offsets stay valid.
    while let Some(at) = text[from..].to_ascii_lowercase().find(OPTION) {
        let value = from + at + OPTION.len();
        let end = text[value..].find('&').map_or(text.len(), |length| value + length);
        text.replace_range(value..end, "***");
        from = value;
    }
    text
}

/// Offset of the end of the hosts, where the database or the options begin.
fn authority_bytes(rest: &str) -> usize {
    rest.find(['/', '?']).unwrap_or(rest.len())
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        if text.starts_with("mongodb+srv://") {
            return Err(UriError::Srv);
        }
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| UriError::scheme(text))?;
        let (authority, rest) = rest.split_at(authority_bytes(rest));
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let database = path.strip_prefix('/').unwrap_or(path);
        // A later @ means that a password contains an unencoded delimiter. No part of it may appear in a message.
        if database.contains('@') || path.is_empty() && query.contains('@') {
            return Err(UriError::ReservedCharacter);
        }
        let (user_info, hosts) = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => (Some(credential::UserInfo::parse(user_info)?), hosts),
            None => (None, authority),
        };
        let hosts = hosts.split(',').map(Host::from_encoded).collect::<Result<Vec<_>, _>>().map_err(|error| {
            // "user:pass/word@host" was cut at its slash: its "port" is half a password.
            if query.contains('@') { UriError::ReservedCharacter } else { error }
        })?;
        let database = parse_database(database)?;
        let options = Options::parse(query)?;
        if options.direct_connection == Some(true) && hosts.len() > 1 {
            return Err(UriError::Unsupported("directConnection=true with more than one host".into()));
        }
        let tls = options.tls_options()?;
        if tls.is_some() && hosts.iter().any(|host| matches!(host, Host::Unix(_))) {
            return Err(UriError::Unsupported("tls=true with a Unix domain socket".into()));
        }
        let connect_timeout = options.connect_timeout.unwrap_or(CONNECT_TIMEOUT_DEFAULT);
        Ok(Self {
            credential: options.credential(user_info, database.as_deref(), tls.as_ref())?,
            write_concern: options.write_concern()?,
            hosts,
            database,
            app_name: options.app_name,
            replica_set: options.replica_set,
            direct_connection: options.direct_connection.unwrap_or(false),
            tls,
            read_preference: options.read_preference.unwrap_or_default(),
            connect_timeout,
            server_selection_timeout: options.server_selection_timeout.unwrap_or(connect_timeout),
            socket_timeout: options.socket_timeout,
        })
    }
}

fn parse_database(encoded: &str) -> Result<Option<String>, UriError> {
    if encoded.is_empty() {
        return Ok(None);
    }
    let database = percent::decode(encoded).ok_or_else(|| UriError::BadEscape(format!("database '{encoded}'")))?;
    if database.contains(NOT_IN_DATABASE_NAMES) {
        return Err(UriError::BadDatabase(database));
    }
    Ok(Some(database))
}

#[cfg(test)]
mod tests;
