//! The servers that a command line names.

use crate::tools::{HOST_AND_USER, LoginArguments, Named};
use bunko_client::Uri;
use clap::Args;

/// Flags that name servers, as for the classic tools.
#[derive(Args)]
#[command(next_help_heading = "Server")]
pub struct AddressArguments {
    /// A connection string, with credentials, TLS, replica set and read preference
    #[arg(long, value_name = "URI", conflicts_with_all = HOST_AND_USER)]
    uri: Option<String>,
    /// A host, HOST:PORT, or SET/HOST:PORT,HOST:PORT; may be repeated
    #[arg(long, short = 'h', value_name = "HOST")]
    host: Vec<String>,
    /// The port of hosts that name none [default: 27017]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    #[command(flatten)]
    login: LoginArguments,
}

impl AddressArguments {
    /// The connection string of `program`. `argument` is one that stands among the arguments without a flag.
    /// # Errors
    /// Names the flag and what is wrong with it.
    pub fn uri(&self, program: &str, argument: Option<&str>) -> Result<Uri, String> {
        if let (Some(_), Some(argument)) = (&self.uri, argument) {
            return Err(format!("--uri: {} is a second connection string", Uri::redact(argument)));
        }
        let hosts = self.host.join(",");
        let host = Some(hosts.as_str()).filter(|hosts| !hosts.is_empty());
        let address = match &self.uri {
            Some(uri) => Some((uri.as_str(), Some("--uri"))),
            None => argument.map(|argument| (argument, None)),
        };
        let mut uri = self.login.uri(Named { address, host, port: self.port })?;
        uri.app_name.get_or_insert_with(|| format!("bunko {program}"));
        Ok(uri)
    }
}

/// Arguments without a flag: a connection string and a number of seconds, in any order.
#[derive(Args)]
pub struct PositionalArguments {
    /// Seconds between two rows [default: 1], and a connection string instead of --uri or --host
    #[arg(value_name = "SECONDS|URI", num_args = 0..=2)]
    positional: Vec<String>,
}

/// Longest time between two rows.
const SECONDS_MAX: u64 = 86_400;

impl PositionalArguments {
    /// The seconds, and the connection string.
    /// # Errors
    /// Names an argument that is neither, or comes twice.
    pub fn parse(&self) -> Result<(u64, Option<&str>), String> {
        let (mut seconds, mut uri) = (None, None);
        for argument in &self.positional {
            let taken = if argument.contains("://") {
                uri.replace(argument.as_str()).is_some()
            } else {
                let number = argument.parse().ok().filter(|number| (1..=SECONDS_MAX).contains(number));
                let number: u64 = number.ok_or_else(|| {
                    format!("'{argument}' is neither a connection string nor a whole number of seconds from 1 to {SECONDS_MAX}")
                })?;
                seconds.replace(number).is_some()
            };
            if taken {
                return Err(format!("'{}' is one argument too many", Uri::redact(argument)));
            }
        }
        Ok((seconds.unwrap_or(1), uri))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        address: AddressArguments,
        #[command(flatten)]
        positional: PositionalArguments,
    }

    fn parsed(line: &str) -> Result<(String, u64), String> {
        let line = Line::try_parse_from(std::iter::once("tool").chain(line.split_whitespace()));
        let line = line.map_err(|error| error.to_string())?;
        let (seconds, argument) = line.positional.parse()?;
        line.address.uri("stat", argument).map(|uri| (uri.address(), seconds))
    }

    #[test]
    fn servers_are_named_by_flags_or_connection_strings() {
        let ok = |address: &str, seconds| Ok((address.to_owned(), seconds));
        assert_eq!(parsed(""), ok("localhost:27017", 1));
        assert_eq!(parsed("-h a --host b:5,c --port 6 10"), ok("a:6,b:5,c:6", 10));
        assert_eq!(parsed("--host rs/a,b"), ok("a:27017,b:27017", 1));
        assert_eq!(parsed("5 mongodb://h:9/?tls=true"), ok("h:9", 5));
        assert_eq!(parsed("mongodb://h:9/ -u me -p secret"), ok("h:9", 1));
        assert_eq!(parsed("--uri mongodb://h:9/"), ok("h:9", 1));
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        for (line, words) in [
            ("0", "'0' is neither"),
            ("soon", "'soon' is neither"),
            ("86401", "'86401' is neither"),
            ("1 2", "'2' is one argument too many"),
            ("mongodb://a mongodb://u:secret@b", "'mongodb://***@b' is one argument too many"),
            ("--uri mongodb://a mongodb://u:secret@b", "mongodb://***@b is a second connection string"),
            ("--host h mongodb://a", "--host h"),
            ("--host h --uri mongodb://a", "--uri"),
            ("--host a:b", "--host a:b"),
            ("-p secret", "--username"),
        ] {
            let error = parsed(line).expect_err(line);
            assert!(error.contains(words) && !error.contains("secret"), "{line}: {error}");
        }
    }
}
