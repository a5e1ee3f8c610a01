//! Tells requests of our own page from those that another site, or a program that knows only half of HTTP, makes.
//!
//! | Attack | Stopped by |
//! |---|---|
//! | a name that another site points at this address (DNS rebinding) | the names allowed in `Host` |
//! | a form or script of another site (CSRF) | `Origin`, `Sec-Fetch-Site`, the header [`OWN_HEADER`], the content type |
//! | two readings of one request's length (smuggling) | no `Transfer-Encoding`, one `Content-Length` |
//! | a request for a proxy | only paths are requested |
//!
//! Sources: RFC 9110, RFC 9112 section 6.3; Fetch standard, `Sec-Fetch-Site`.

use bunko_http_port::Arrival;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, ORIGIN, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{StatusCode, Version};
use std::net::IpAddr;

/// A header that a browser sends to another origin only if that origin agrees, which this one never does.
pub const OWN_HEADER: HeaderName = HeaderName::from_static("x-bunko-console");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Maximum number of bytes in a request's body.
pub const BODY_BYTES_MAX: u64 = 256 << 10;

/// Why a request is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub reason: String,
}

impl Refusal {
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }
}

/// Checks what holds for all requests. `own_name` is the name of the host that the settings give.
/// # Errors
/// The refusal of a request that is not for this page.
pub fn check(request: &Parts, arrival: Arrival, own_name: &str) -> Result<(), Refusal> {
    let refuse = |status, reason: &str| Err(Refusal::new(status, reason));
    if !arrival.is_encrypted && !arrival.client.ip().to_canonical().is_loopback() {
        return refuse(StatusCode::FORBIDDEN, "clients on other machines need https");
    }
    if request.version != Version::HTTP_11 {
        return refuse(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.1 is supported");
    }
    if request.uri.authority().is_some() || request.uri.scheme().is_some() {
        return refuse(StatusCode::BAD_REQUEST, "the request must name a path only");
    }
    if request.headers.contains_key(TRANSFER_ENCODING) {
        return refuse(StatusCode::BAD_REQUEST, "Transfer-Encoding is not supported");
    }
    if request.headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        return refuse(StatusCode::BAD_REQUEST, "there are two Content-Length");
    }
    let Some(host) = only(request, &HOST) else {
        return refuse(StatusCode::BAD_REQUEST, "there must be one Host");
    };
    if !is_own_host(host, own_name) {
        let reason = format!(
            "Host '{host}' is not this server's: use an address, localhost, or the name that net.console gives"
        );
        return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, reason));
    }
    Ok(())
}

/// Checks that our own page made a request that may do something, after [`check`] has passed. Returns the length of the
/// body in bytes.
/// # Errors
/// The refusal of any other request.
pub fn check_own_page(request: &Parts, arrival: Arrival) -> Result<u64, Refusal> {
    let refuse = |status, reason: &str| Err(Refusal::new(status, reason));
    let scheme = if arrival.is_encrypted { "https" } else { "http" };
    let origin = only(request, &HOST).map(|host| format!("{scheme}://{host}"));
    if origin.is_none() || only(request, &ORIGIN) != origin.as_deref() {
        return refuse(StatusCode::FORBIDDEN, "Origin is not this page");
    }
    if request.headers.contains_key(FETCH_SITE) && only(request, &FETCH_SITE) != Some("same-origin") {
        return refuse(StatusCode::FORBIDDEN, "Sec-Fetch-Site is not same-origin");
    }
    if only(request, &OWN_HEADER) != Some("1") {
        return refuse(StatusCode::FORBIDDEN, "the header X-Bunko-Console is missing");
    }
    if only(request, &CONTENT_TYPE) != Some("application/json") {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json");
    }
    match only(request, &CONTENT_LENGTH).map(str::parse::<u64>) {
        Some(Ok(bytes)) if bytes <= BODY_BYTES_MAX => Ok(bytes),
        Some(Ok(_)) => {
            let reason = format!("the body is longer than {BODY_BYTES_MAX} bytes");
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason))
        }
        _ => refuse(StatusCode::LENGTH_REQUIRED, "Content-Length is missing"),
    }
}

/// The value of a header that occurs once; `None` if it is missing, repeated or not ASCII.
pub fn only<'r>(request: &'r Parts, name: &HeaderName) -> Option<&'r str> {
    let mut values = request.headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

/// Whether `Host` names this server. The port may be another one, as a tunnel has it. An address cannot be pointed
/// elsewhere, as a name can.
fn is_own_host(host: &str, own_name: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => (address, port.strip_prefix(':').or_else(|| port.is_empty().then_some("0"))),
            None => return false,
        },
        None => host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port))),
    };
    let has_port = port.is_some_and(|port| port.parse::<u16>().is_ok() && !port.starts_with('+'));
    let is_address = name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6() == host.starts_with('['));
    let is_name = !host.starts_with('[') && ["localhost", own_name].iter().any(|own| name.eq_ignore_ascii_case(own));
    has_port && (is_address || (is_name && !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;
    use std::net::SocketAddr;

    fn status(client: &str, is_encrypted: bool) -> Option<StatusCode> {
        let request = Request::builder().uri("/").header(HOST, "10.0.0.5:8081").body(()).expect("a request");
        let server = SocketAddr::from(([10, 0, 0, 5], 8081));
        let arrival = Arrival { client: client.parse().expect("an address"), server, is_encrypted };
        check(&request.into_parts().0, arrival, "").err().map(|refusal| refusal.status)
    }

    #[test]
    fn only_this_machine_comes_without_tls() {
        for own in ["127.0.0.1:5", "[::1]:5", "[::ffff:127.0.0.1]:5"] {
            assert_eq!(status(own, false), None, "{own}");
        }
        for other in ["10.0.0.9:5", "[fe80::1]:5", "[::ffff:10.0.0.9]:5"] {
            assert_eq!(status(other, false), Some(StatusCode::FORBIDDEN), "{other}");
            assert_eq!(status(other, true), None, "{other}");
        }
    }

    #[test]
    fn only_addresses_and_own_names_are_hosts() {
        for own in ["127.0.0.1:8081", "localhost:9000", "LOCALHOST", "[::1]:8081", "[::1]", "10.1.2.3", "db.example:1"]
        {
            assert!(is_own_host(own, "db.example"), "{own}");
        }
        let others = [
            "",
            ":8081",
            "evil.example",
            "localhost.evil.example",
            "evil.example:8081",
            "db.example.evil:1",
            "::1",
            "[::1",
            "[127.0.0.1]",
            "[localhost]",
            "[::1]x",
            "127.0.0.1:80:80",
            "127.0.0.1:+80",
            "localhost:",
            "x@localhost",
        ];
        for other in others {
            assert!(!is_own_host(other, "db.example"), "{other}");
        }
        assert!(!is_own_host("", ""));
    }
}
