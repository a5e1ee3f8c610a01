//! TLS of a tool: the flags of mongosh, with mongodump's names as aliases.

use clap::Args;

/// TLS of the connection. Each flag is an option of a connection string.
#[derive(Args)]
pub struct TlsArguments {
    /// Use TLS
    #[arg(long, visible_alias = "ssl")]
    tls: bool,
    /// PEM file with the authorities to trust instead of the system's
    #[arg(long = "tlsCAFile", visible_alias = "sslCAFile", value_name = "FILE", requires = "tls")]
    tls_ca_file: Option<String>,
    /// PEM file with the client's certificate and its key
    #[arg(long = "tlsCertificateKeyFile", visible_alias = "sslPEMKeyFile", value_name = "FILE", requires = "tls")]
    tls_certificate_key_file: Option<String>,
    /// Password of that key, if it is encrypted
    #[arg(
        long = "tlsCertificateKeyFilePassword",
        visible_alias = "sslPEMKeyPassword",
        value_name = "PASSWORD",
        requires = "tls_certificate_key_file"
    )]
    tls_certificate_key_password: Option<String>,
    /// Accept any certificate: another machine may then pose as the server
    #[arg(long = "tlsAllowInvalidCertificates", visible_alias = "sslAllowInvalidCertificates", requires = "tls")]
    tls_allow_invalid_certificates: bool,
    /// Accept a certificate that names another host
    #[arg(long = "tlsAllowInvalidHostnames", visible_alias = "sslAllowInvalidHostnames", requires = "tls")]
    tls_allow_invalid_hostnames: bool,
    /// As --tlsAllowInvalidCertificates and --tlsAllowInvalidHostnames together
    #[arg(
        long = "tlsInsecure",
        requires = "tls",
        conflicts_with_all = ["tls_allow_invalid_certificates", "tls_allow_invalid_hostnames"]
    )]
    tls_insecure: bool,
}

impl TlsArguments {
    /// The flags as options of a connection string.
    pub fn options(&self) -> [(&'static str, Option<&str>); 7] {
        let on = |flag: bool| flag.then_some("true");
        [
            ("tls", on(self.tls)),
            ("tlsCAFile", self.tls_ca_file.as_deref()),
            ("tlsCertificateKeyFile", self.tls_certificate_key_file.as_deref()),
            ("tlsCertificateKeyFilePassword", self.tls_certificate_key_password.as_deref()),
            ("tlsAllowInvalidCertificates", on(self.tls_allow_invalid_certificates)),
            ("tlsAllowInvalidHostnames", on(self.tls_allow_invalid_hostnames)),
            ("tlsInsecure", on(self.tls_insecure)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        tls: TlsArguments,
    }

    #[test]
    fn both_spellings_mean_the_same() {
        let options = |line: &str| {
            let line = Line::try_parse_from(std::iter::once("tool").chain(line.split_whitespace())).ok()?;
            let given = line.tls.options().into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
            Some(given.collect::<Vec<_>>().join("&"))
        };
        let ours = options(
            "--tls --tlsCAFile ca --tlsCertificateKeyFile me --tlsCertificateKeyFilePassword p --tlsAllowInvalidHostnames",
        );
        assert_eq!(
            ours.as_deref(),
            Some(
                "tls=true&tlsCAFile=ca&tlsCertificateKeyFile=me&tlsCertificateKeyFilePassword=p&tlsAllowInvalidHostnames=true"
            )
        );
        assert_eq!(
            ours,
            options("--ssl --sslCAFile ca --sslPEMKeyFile me --sslPEMKeyPassword p --sslAllowInvalidHostnames")
        );
        assert_eq!(options("--tls --tlsInsecure").as_deref(), Some("tls=true&tlsInsecure=true"));
        assert_eq!(options("").as_deref(), Some(""));
        for refused in ["--tlsCAFile ca", "--tlsInsecure", "--tls --tlsInsecure --tlsAllowInvalidHostnames"] {
            assert_eq!(options(refused), None, "{refused}");
        }
    }
}
