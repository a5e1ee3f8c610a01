//! Connection strings.

use crate::write_concern::{Acknowledgement, WriteConcern};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The port of a connection string that names none.
pub const DEFAULT_PORT: u16 = 27017;
const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// A parsed `mongodb://` connection string with every option that this client honours.
///
/// Source: MongoDB manual, "Connection Strings".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The database after the slash.
    pub database: Option<String>,
    /// `appName`: what the server's logs call this client.
    pub app_name: Option<String>,
    /// `w` and `journal`, if either was given.
    pub write_concern: Option<WriteConcern>,
    /// `connectTimeoutMS`; 10 s where not given.
    pub connect_timeout: Duration,
}

/// Why a connection string was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UriError {
    /// It does not start with `mongodb://`.
    Scheme(String),
    /// It names no host.
    MissingHost,
    /// A port outside 1..=65535.
    BadPort(String),
    /// A percent sign that is not followed by two hexadecimal digits, or bytes that are not UTF-8.
    BadEscape(String),
    /// An option without a value.
    MissingValue(String),
    /// An option's value that it does not take.
    BadValue {
        /// The option as written.
        option: String,
        /// Its value as written.
        value: String,
    },
    /// Valid in MongoDB, not honoured here: refused, because ignoring it would change what the caller asked for.
    Unsupported(String),
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(uri) => write!(f, "connection string '{uri}' does not start with mongodb://"),
            Self::MissingHost => f.write_str("connection string names no host"),
            Self::BadPort(port) => write!(f, "connection string: port '{port}' is not in 1..65535"),
            Self::BadEscape(text) => write!(f, "connection string: '{text}' is not percent-encoded UTF-8"),
            Self::MissingValue(option) => write!(f, "connection string: option '{option}' has no value"),
            Self::BadValue { option, value } => {
                write!(f, "connection string: option '{option}' does not take '{value}'")
            }
            Self::Unsupported(what) => write!(f, "connection string: {what} is not supported by this client"),
        }
    }
}

impl std::error::Error for UriError {}

impl Uri {
    /// `host:port`, as messages name the server.
    pub fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        if text.starts_with("mongodb+srv://") {
            return Err(UriError::Unsupported("mongodb+srv://".into()));
        }
        let rest = text.strip_prefix("mongodb://").ok_or_else(|| UriError::Scheme(text.into()))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(UriError::Unsupported("user:password@ (authentication)".into()));
        }
        if authority.contains(',') {
            return Err(UriError::Unsupported("more than one host (replica sets)".into()));
        }
        let (host, port) = parse_host(authority)?;
        let mut uri = Self {
            host,
            port,
            database: (!database.is_empty()).then(|| percent_decode(database)).transpose()?,
            app_name: None,
            write_concern: None,
            connect_timeout: CONNECT_TIMEOUT_DEFAULT,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| UriError::MissingValue(option.into()))?;
            uri.apply(name, &percent_decode(value)?)?;
        }
        Ok(uri)
    }
}

impl Uri {
    fn apply(&mut self, name: &str, value: &str) -> Result<(), UriError> {
        let bad = || UriError::BadValue { option: name.into(), value: value.into() };
        match name.to_ascii_lowercase().as_str() {
            // One host is all that there is: connecting to it directly is what we do either way.
            "directconnection" => parse_flag(value).map(|_| ()).ok_or_else(bad),
            "appname" => {
                self.app_name = Some(value.into());
                Ok(())
            }
            "connecttimeoutms" => {
                let milliseconds: u32 = value.parse().ok().filter(|&value| value > 0).ok_or_else(bad)?;
                self.connect_timeout = Duration::from_millis(milliseconds.into());
                Ok(())
            }
            "w" => {
                let members = value.parse().ok().filter(|&members| members <= 50).map(Acknowledgement::Members);
                let majority = (value == "majority").then_some(Acknowledgement::Majority);
                self.write_concern.get_or_insert_default().w = members.or(majority).ok_or_else(bad)?;
                Ok(())
            }
            "journal" | "j" => {
                self.write_concern.get_or_insert_default().journal = Some(parse_flag(value).ok_or_else(bad)?);
                Ok(())
            }
            _ => Err(UriError::Unsupported(format!("option '{name}'"))),
        }
    }
}

fn parse_flag(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn parse_host(authority: &str) -> Result<(String, u16), UriError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(UriError::MissingHost)?;
            (host.to_owned(), after.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (percent_decode(host)?, Some(port)),
            None => (percent_decode(authority)?, None),
        },
    };
    if host.is_empty() {
        return Err(UriError::MissingHost);
    }
    if host.starts_with('/') {
        return Err(UriError::Unsupported("a Unix domain socket".into()));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port.parse().ok().filter(|&port| port > 0).ok_or_else(|| UriError::BadPort(port.into()))?,
    };
    Ok((host, port))
}

fn percent_decode(text: &str) -> Result<String, UriError> {
    let bad = || UriError::BadEscape(text.into());
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(bad);
        decoded.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(decoded).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Uri>().expect_err(text).to_string()
    }

    #[test]
    fn options_are_read() {
        let uri: Uri = "mongodb://db.example:27100/app?directConnection=true&appName=load%20test&w=majority&journal=true&connectTimeoutMS=250"
            .parse()
            .expect("valid");
        assert_eq!(uri.address(), "db.example:27100");
        assert_eq!(uri.database.as_deref(), Some("app"));
        assert_eq!(uri.app_name.as_deref(), Some("load test"));
        assert_eq!(uri.write_concern, Some(WriteConcern { w: Acknowledgement::Majority, journal: Some(true) }));
        assert_eq!(uri.connect_timeout, Duration::from_millis(250));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let uri: Uri = "mongodb://localhost".parse().expect("valid");
        assert_eq!((uri.address().as_str(), uri.connect_timeout.as_secs()), ("localhost:27017", 10));
        assert_eq!((uri.database, uri.write_concern), (None, None));
        let uri: Uri = "mongodb://[::1]:27018/".parse().expect("valid");
        assert_eq!((uri.host.as_str(), uri.address().as_str()), ("::1", "[::1]:27018"));
    }

    #[test]
    fn what_is_not_honoured_is_refused_by_name() {
        assert!(refusal("mongodb://u:p@h").contains("authentication"));
        assert!(refusal("mongodb://a,b").contains("more than one host"));
        assert!(refusal("mongodb+srv://a").contains("mongodb+srv"));
        assert!(refusal("mongodb://a/?tls=true").contains("option 'tls'"));
        assert!(refusal("mongodb://a/?replicaSet=r").contains("option 'replicaSet'"));
        assert!(refusal("mongodb://%2Ftmp%2Fm.sock").contains("Unix domain socket"));
    }

    #[test]
    fn what_is_malformed_is_named() {
        assert!(refusal("http://a").contains("mongodb://"));
        assert!(refusal("mongodb://").contains("no host"));
        assert!(refusal("mongodb://a:0").contains("port '0'"));
        assert!(refusal("mongodb://a:99999").contains("port '99999'"));
        assert!(refusal("mongodb://a/?w=51").contains("option 'w' does not take '51'"));
        assert!(refusal("mongodb://a/?journal=yes").contains("'journal' does not take 'yes'"));
        assert!(refusal("mongodb://a/?w").contains("'w' has no value"));
        assert!(refusal("mongodb://a/%zz").contains("percent-encoded"));
    }
}
