//! The URL of a collector.

/// The path of a URL without one. Source: OTLP specification, "OTLP/HTTP Request".
const DEFAULT_PATH: &str = "/v1/traces";

/// Where a collector takes spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Whether the collector is reached by TLS.
    pub is_encrypted: bool,
    /// Name or address; an IPv6 address without its brackets.
    pub host: String,
    /// The port, 1 to 65535.
    pub port: u16,
    /// The host and the port as the URL has them.
    authority: String,
    /// The path, with the query if there is one.
    path: String,
}

impl Endpoint {
    /// Reads a URL. Without a path it is that of OTLP, `/v1/traces`; without a port it is the scheme's, 80 or 443.
    /// # Errors
    /// A sentence that names the text, except for a URL with a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let refused = |why: &str| Err(format!("'{url}' {why}, such as http://localhost:4318/v1/traces"));
        let Some((scheme, rest)) = url.split_once("://") else { return refused("is not a URL") };
        let is_encrypted = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return refused("is not a URL of HTTP"),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("a user or password in the URL of a collector is not supported yet".to_owned());
        }
        if path.contains('#') || url.contains(|character: char| !character.is_ascii_graphic()) {
            return refused("has characters that a URL of a collector may not have");
        }
        let default_port = if is_encrypted { 443 } else { 80 };
        let Some((host, port)) = host_and_port(authority, default_port) else {
            return refused("does not have HOST or HOST:PORT behind the scheme");
        };
        let path = match path {
            "" | "/" => DEFAULT_PATH.to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        Ok(Self { is_encrypted, host, port, authority: authority.to_owned(), path })
    }

    /// The host and the port, for the header `Host`.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The path, with the query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The whole URL.
    pub fn url(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }
}

fn host_and_port(authority: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (address, port)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            let is_of_name = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
            if host.is_empty() || host.contains(|character: char| !is_of_name(character)) {
                return None;
            }
            (host, port)
        }
    };
    let port = match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok()?,
        Some(_) => return None,
        None if port.is_empty() => default_port,
        None => return None,
    };
    (port != 0).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (String, u16, String) {
        let endpoint = Endpoint::parse(url).expect(url);
        (endpoint.host.clone(), endpoint.port, endpoint.url())
    }

    #[test]
    fn urls_are_completed() {
        for (url, host, port, whole) in [
            ("http://localhost:4318/v1/traces", "localhost", 4318, "http://localhost:4318/v1/traces"),
            ("http://localhost:4318", "localhost", 4318, "http://localhost:4318/v1/traces"),
            ("HTTP://Collector/", "collector", 80, "http://Collector/v1/traces"),
            ("https://[::1]:4318/otlp?team=a", "::1", 4318, "https://[::1]:4318/otlp?team=a"),
            ("https://10.0.0.1?team=a", "10.0.0.1", 443, "https://10.0.0.1/?team=a"),
        ] {
            assert_eq!(parsed(url), (host.to_owned(), port, whole.to_owned()));
        }
        assert!(Endpoint::parse("https://a").expect("valid").is_encrypted);
    }

    #[test]
    fn other_texts_are_named() {
        for url in [
            "",
            "localhost:4318",
            "grpc://localhost:4317",
            "http://",
            "http://:4318",
            "http:///v1/traces",
            "http://a:0",
            "http://a:65536",
            "http://a:+1",
            "http://a:",
            "http://a:1:2",
            "http://[::1",
            "http://[::1]4318",
            "http://[a]:1",
            "http://a b/",
            "http://a/\r\nX: y",
            "http://a/#part",
            "http://ä/",
        ] {
            let refused = Endpoint::parse(url).expect_err(url);
            assert!(refused.starts_with(&format!("'{url}' ")), "{refused}");
        }
        let refused = Endpoint::parse("http://user:secret@a/").expect_err("a password");
        assert!(refused.contains("not supported yet") && !refused.contains("secret"), "{refused}");
    }
}
