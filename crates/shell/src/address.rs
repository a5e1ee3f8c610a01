//! The connection string of a script, with the options that concern the shell itself.

use bunko_client::{Uri, UriError, percent_encoded};
use std::time::Duration;

/// How long a server is looked for, if the connection string does not say.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(5);

/// A server, and how commands to it are sent.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The servers, and the client's own options.
    pub uri: Uri,
    /// The connection string as given.
    text: String,
    /// `readConcernLevel`.
    pub read_concern: Option<String>,
    /// `retryWrites`; on unless it is turned off.
    pub retries_writes: bool,
    /// `retryReads`; on unless it is turned off.
    pub retries_reads: bool,
}

impl Address {
    /// Reads a connection string. A single host without a set is used directly, whatever its role.
    /// # Errors
    /// As the client's, for options that it does not support.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let (front, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut kept, mut read_concern) = (Vec::new(), None);
        let (mut retries_writes, mut retries_reads) = (true, true);
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name.to_ascii_lowercase().as_str() {
                "retrywrites" => retries_writes = switch(name, value)?,
                "retryreads" => retries_reads = switch(name, value)?,
                "readconcernlevel" => read_concern = Some(value.to_owned()),
                "ssl" => kept.push(format!("tls={value}")),
                _ => kept.push(option.to_owned()),
            }
        }
        let has = |name: &str| {
            kept.iter().any(|option| option.split('=').next().is_some_and(|given| given.eq_ignore_ascii_case(name)))
        };
        let (is_patient, is_direct) =
            (has("connectTimeoutMS") || has("serverSelectionTimeoutMS"), has("directConnection"));
        let rest = if kept.is_empty() { front.to_owned() } else { format!("{front}?{}", kept.join("&")) };
        let mut uri: Uri = rest.parse()?;
        if !is_patient {
            (uri.connect_timeout, uri.server_selection_timeout) = (PATIENCE_DEFAULT, PATIENCE_DEFAULT);
        }
        if !is_direct {
            uri.direct_connection = uri.hosts.len() == 1 && uri.replica_set.is_none();
        }
        if uri.app_name.is_none() {
            uri.app_name = Some("bunko shell".to_owned());
        }
        Ok(Self { uri, text: text.to_owned(), read_concern, retries_writes, retries_reads })
    }

    /// This server with another user.
    /// # Errors
    /// As [`Self::parse`].
    pub fn with_user(&self, user: &[(&str, &str)], name: &str, password: &str) -> Result<Self, UriError> {
        let encoded = |text: &str| percent_encoded(text);
        let rest = self.text.strip_prefix("mongodb://").unwrap_or(&self.text);
        let (front, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, database) = front.split_once('/').unwrap_or((front, ""));
        let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
        let is_of_user = |option: &str| {
            let name = option.split('=').next().unwrap_or_default().to_ascii_lowercase();
            name == "authsource" || name == "authmechanism"
        };
        let others = query.split('&').filter(|option| !option.is_empty() && !is_of_user(option)).map(str::to_owned);
        let options: Vec<_> =
            others.chain(user.iter().map(|(name, value)| format!("{name}={}", encoded(value)))).collect();
        Self::parse(&format!(
            "mongodb://{}:{}@{hosts}/{database}?{}",
            encoded(name),
            encoded(password),
            options.join("&")
        ))
    }

    /// The connection string without passwords.
    pub fn shown(&self) -> String {
        Uri::redact(&self.text)
    }
}

fn switch(option: &str, value: &str) -> Result<bool, UriError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(UriError::BadValue { option: option.to_owned(), value: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_pools_are_without_object_and_others_are_refused() {
        let address = Address::parse("mongodb://h/?retryWrites=true&maxPoolSize=5&ssl=true&readConcernLevel=majority");
        let address = address.expect("a connection string");
        assert!(address.uri.tls.is_some() && address.retries_writes && address.uri.direct_connection);
        assert_eq!(address.read_concern.as_deref(), Some("majority"));
        assert!(!Address::parse("mongodb://h/?retryWrites=false").expect("parses").retries_writes);
        let without = Address::parse("mongodb://h/?retryReads=false").expect("parses");
        assert!(without.retries_writes && !without.retries_reads);
        assert!(Address::parse("mongodb://h/?retryWrites=no").is_err());
        assert!(!Address::parse("mongodb://a,b/").expect("parses").uri.direct_connection);
        assert!(!Address::parse("mongodb://a/?replicaSet=rs").expect("parses").uri.direct_connection);
        assert!(Address::parse("mongodb://h/?proxyPort=5").is_err());
    }

    #[test]
    fn a_login_replaces_the_user_and_nothing_else() {
        let address = Address::parse("mongodb://old:secret@h:5/shop?authSource=x&appName=me").expect("parses");
        let ann = address.with_user(&[("authSource", "admin")], "ann", "p:w/").expect("parses");
        let credential = ann.uri.credential.as_ref().expect("a user");
        assert_eq!((credential.user.as_str(), credential.source.as_str()), ("ann", "admin"));
        assert_eq!((ann.uri.address().as_str(), ann.uri.database.as_deref()), ("h:5", Some("shop")));
        assert_eq!(ann.uri.app_name.as_deref(), Some("me"));
        assert!(!ann.shown().contains("secret") && !ann.shown().contains("p%3Aw"));
    }
}
