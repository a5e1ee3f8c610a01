//! The settings of a bucket, of the variables that AWS's own tools read.

use crate::credentials::{CredentialSource, profile_value};
use crate::{Address, Result, S3Error};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The region where none is set.
const REGION: &str = "us-east-1";

/// The settings of a bucket.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The bucket and the prefix.
    pub address: Address,
    pub(crate) region: String,
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// Host and port that requests are sent to.
    pub(crate) authority: String,
    /// Whether the path begins with the bucket's name, which is else in the host's.
    pub(crate) is_path_style: bool,
    pub(crate) credentials: CredentialSource,
    /// PEM file of the trusted authorities; `None` trusts the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// How long a server is waited for.
    pub patience: Patience,
}

/// Limits of the waits for a server.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Number of attempts of one request.
    pub attempts: u32,
    /// Wait before the second attempt. Each further wait is twice as long.
    pub pause: Duration,
    /// Longest wait between two attempts.
    pub pause_max: Duration,
    /// Longest time to connect.
    pub connect: Duration,
    /// Longest time without a byte from the server, or without room for a byte to it.
    pub silence: Duration,
}

impl Default for Patience {
    /// Eight attempts, with about half a minute of waits between them.
    fn default() -> Self {
        Self {
            attempts: 8,
            pause: Duration::from_millis(250),
            pause_max: Duration::from_secs(15),
            connect: Duration::from_secs(10),
            silence: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// The settings of the bucket at `address`, of environment variables:
    ///
    /// | Variable | Setting |
    /// |---|---|
    /// | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` | credentials |
    /// | `AWS_SHARED_CREDENTIALS_FILE`, `AWS_PROFILE` | a file with credentials, `~/.aws/credentials` by default, and its section |
    /// | `AWS_REGION`, `AWS_DEFAULT_REGION` | region; then that of the profile in `AWS_CONFIG_FILE`, then `us-east-1` |
    /// | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` | another server than AWS's, with `http://` or `https://` |
    /// | `AWS_VIRTUAL_HOSTED_STYLE_REQUEST` | `true` or `false`; the default is `false` with an endpoint, and `true` without |
    /// | `AWS_CA_BUNDLE` | PEM file of trusted authorities |
    /// # Errors
    /// `Usage` with the variable or the file.
    pub fn of_environment(address: Address, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = &|name: &str| variable(name).filter(|value| !value.is_empty());
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = region.or_else(|| region_of_profile(variable)).unwrap_or_else(|| REGION.to_owned());
        if !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(S3Error::usage(format!("AWS_REGION: '{region}' is no region")));
        }
        let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let (scheme, host) = match &endpoint {
            Some(endpoint) => split_endpoint(endpoint)?,
            None => {
                let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
                ("https".to_owned(), format!("s3.{region}.{domain}"))
            }
        };
        let is_path_style = match variable("AWS_VIRTUAL_HOSTED_STYLE_REQUEST").as_deref() {
            Some("true") => false,
            Some("false") => true,
            Some(other) => {
                let refused = format!("AWS_VIRTUAL_HOSTED_STYLE_REQUEST: '{other}' is neither true nor false");
                return Err(S3Error::usage(refused));
            }
            // A certificate for *.s3.amazonaws.com does not cover names with further dots.
            None => endpoint.is_some() || address.bucket.contains('.'),
        };
        let authority = if is_path_style { host } else { format!("{}.{host}", address.bucket) };
        let credentials = CredentialSource::find(variable)?;
        let ca_file = variable("AWS_CA_BUNDLE").map(PathBuf::from);
        let patience = Patience::default();
        Ok(Self { address, region, scheme, authority, is_path_style, credentials, ca_file, patience })
    }
}

/// The scheme and the authority of an endpoint.
fn split_endpoint(endpoint: &str) -> Result<(String, String)> {
    let refused =
        || S3Error::usage(format!("AWS_ENDPOINT_URL: '{endpoint}' is not http://HOST:PORT or https://HOST:PORT"));
    let (scheme, rest) = endpoint.split_once("://").ok_or_else(refused)?;
    let authority = rest.trim_end_matches('/');
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    if !["http", "https"].contains(&scheme) || authority.is_empty() || !authority.bytes().all(may_be) {
        return Err(refused());
    }
    // The port is left out of the host that is signed if it is the scheme's own.
    let own = if scheme == "http" { ":80" } else { ":443" };
    Ok((scheme.to_owned(), authority.strip_suffix(own).unwrap_or(authority).to_ascii_lowercase()))
}

fn region_of_profile(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let file = variable("AWS_CONFIG_FILE").map(PathBuf::from);
    let file = file.or_else(|| Some(Path::new(&variable("HOME")?).join(".aws/config")))?;
    profile_value(&fs::read_to_string(file).ok()?, &name, "region")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(set: &[(&str, &str)]) -> Result<Settings> {
        let keys = [("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "very secret")];
        let variable = |name: &str| {
            let known = set.iter().chain(&keys).find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).to_owned())
        };
        Settings::of_environment(Address::parse("s3://bucket/db").expect("an address"), &variable)
    }

    #[test]
    fn variables_name_the_server_and_how_the_bucket_is_addressed() {
        let place = |set: &[(&str, &str)]| {
            let found = settings(set).expect("settings");
            assert!(!format!("{found:?}").contains("very secret"));
            format!("{}://{} {} {}", found.scheme, found.authority, found.region, found.is_path_style)
        };
        assert_eq!(place(&[]), "https://bucket.s3.us-east-1.amazonaws.com us-east-1 false");
        let region = ("AWS_REGION", "eu-central-1");
        assert_eq!(place(&[region]), "https://bucket.s3.eu-central-1.amazonaws.com eu-central-1 false");
        let endpoint = ("AWS_ENDPOINT_URL", "http://Localhost:8333/");
        assert_eq!(place(&[endpoint, region]), "http://localhost:8333 eu-central-1 true");
        let [style, tls] =
            [("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true"), ("AWS_ENDPOINT_URL_S3", "https://s3.example:443")];
        assert_eq!(place(&[endpoint, tls, style]), "https://bucket.s3.example us-east-1 false");
        for (name, value) in [
            ("AWS_ENDPOINT_URL", "localhost:8333"),
            ("AWS_ENDPOINT_URL", "ftp://localhost"),
            ("AWS_ENDPOINT_URL", "http://host/path"),
            ("AWS_REGION", "eu west"),
            ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "yes"),
        ] {
            let refused = settings(&[(name, value)]).expect_err("refused").to_string();
            assert!(refused.contains(name) && refused.contains(value), "{refused}");
        }
    }
}
