//! The user of a tool, and its TLS.

use super::tls_arguments::TlsArguments;
use crate::local_server;
use crate::passwords::{Flag, KEYS_OF_SERVER, SecretFile, URI, complete};
use bunko_client::Uri;
use bunko_shell::{DEFAULT_HOST, Target, ask_at_terminal};
use clap::Args;
use std::cell::OnceCell;
use std::path::PathBuf;

/// Flags that a connection string replaces, or that a data directory has no use for. Every one is listed, because clap
/// does not ask for a flag that another flag requires if a conflict rules it out.
pub const HOST_AND_USER: [&str; 13] = [
    "host",
    "port",
    "username",
    "password",
    "authentication_database",
    "authentication_mechanism",
    "tls",
    "tls_ca_file",
    "tls_certificate_key_file",
    "tls_certificate_key_password",
    "tls_allow_invalid_certificates",
    "tls_allow_invalid_hostnames",
    "tls_insecure",
];

/// Flags that say who logs in, and how the connection is protected.
#[derive(Args)]
pub struct LoginArguments {
    /// The user who logs in
    #[arg(long, short = 'u', value_name = "NAME")]
    username: Option<String>,
    /// The user's password; without this flag, or without a value, it is read from --config or asked for
    #[arg(long, short = 'p', value_name = "PASSWORD", num_args = 0..=1, default_missing_value = "", requires = "username")]
    password: Option<String>,
    /// A YAML file with what must not stand on a command line: uri, password, sslPEMKeyPassword
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The database that the user is stored in
    #[arg(long = "authenticationDatabase", value_name = "DATABASE", requires = "username")]
    authentication_database: Option<String>,
    /// SCRAM-SHA-1, SCRAM-SHA-256, PLAIN or MONGODB-X509
    #[arg(long = "authenticationMechanism", value_name = "NAME")]
    authentication_mechanism: Option<String>,
    #[command(flatten)]
    tls: TlsArguments,
    /// The server, once it was found: a user is asked once.
    #[arg(skip)]
    found: OnceCell<Result<Uri, String>>,
}

/// A server as the other flags of a tool name it.
#[derive(Clone, Copy, Default)]
pub struct Named<'a> {
    /// A connection string, and the flag that has it, if it has one.
    pub address: Option<(&'a str, Option<&'static str>)>,
    /// A host, or several with commas between them.
    pub host: Option<&'a str>,
    /// The port of hosts that name none.
    pub port: Option<u16>,
}

impl LoginArguments {
    /// The server with its user. The first call asks for a password that neither a flag nor the file has.
    /// # Errors
    /// Names the flag and what is wrong with it.
    pub fn uri(&self, server: Named<'_>) -> Result<Uri, String> {
        self.found.get_or_init(|| self.find(server)).clone()
    }

    fn find(&self, server: Named<'_>) -> Result<Uri, String> {
        let file = self.config.as_deref().map(|path| SecretFile::read(path, KEYS_OF_SERVER)).transpose()?;
        let file = file.unwrap_or_default();
        let of_file = file.get(URI).filter(|_| server.address.is_none());
        let password = self.password.as_deref().filter(|given| !given.is_empty());
        let options = [
            ("authSource", self.authentication_database.as_deref()),
            ("authMechanism", self.authentication_mechanism.as_deref()),
        ];
        let named = |error: &dyn std::fmt::Display| match (server.address, of_file, server.host) {
            (Some((_, flag)), ..) => format!("{}: {error}", flag.unwrap_or("the connection string")),
            (None, Some(_), _) => file.refusal(URI, &error.to_string()),
            (None, None, host) => format!("--host {}: {error}", host.unwrap_or(DEFAULT_HOST)),
        };
        // A short form such as HOST may stand only without a flag.
        let whole = server.address.and_then(|(address, flag)| flag.map(|_| address)).or(of_file);
        if let Some(address) = whole.filter(|address| !address.contains("://")) {
            address.parse::<Uri>().map_err(|error| named(&error))?;
        }
        let target = Target {
            address: server.address.map(|(address, _)| address).or(of_file),
            host: server.host,
            port: server.port,
            user: self.username.as_deref(),
            password,
            options: options.into_iter().chain(self.tls.options()).collect(),
        };
        let reached = local_server::reached_by(&target.connection_string()?);
        let flag = if password.is_some() { Flag::Given } else { Flag::Absent };
        complete(&reached, flag, &file, ask_at_terminal)?.parse().map_err(|error| named(&error))
    }
}
