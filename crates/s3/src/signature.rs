//! AWS Signature Version 4, in the header `Authorization`.
//! Source: Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header".

use crate::credentials::Credentials;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;
use std::fmt::Write;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "s3";

/// A request that is to be signed.
pub(crate) struct Unsigned<'r> {
    pub method: &'r str,
    /// Host and port, as the header `Host` has them.
    pub host: &'r str,
    /// The path, percent-encoded.
    pub path: &'r str,
    /// Names and values of the query, not encoded.
    pub query: &'r [(&'r str, String)],
    /// Names in lower case, and values, of further headers.
    pub headers: &'r [(&'r str, String)],
    pub body: &'r [u8],
}

/// Returns the headers that sign a request, as of a time in milliseconds since 1970.
pub(crate) fn sign(
    request: &Unsigned<'_>,
    credentials: &Credentials,
    region: &str,
    now_ms: u64,
) -> Vec<(&'static str, String)> {
    let now = i64::try_from(now_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    let (moment, day) = (now.strftime("%Y%m%dT%H%M%SZ").to_string(), now.strftime("%Y%m%d").to_string());
    let hash = hex(digest(&SHA256, request.body).as_ref());
    let mut added = vec![("x-amz-content-sha256", hash.clone()), ("x-amz-date", moment.clone())];
    added.extend(credentials.session_token.clone().map(|token| ("x-amz-security-token", token)));

    let mut headers: Vec<(&str, &str)> =
        request.headers.iter().chain(&added).map(|(name, value)| (*name, value.trim())).collect();
    headers.push(("host", request.host));
    headers.sort_unstable();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines = headers.iter().fold(String::new(), |mut lines, (name, value)| {
        let _ = writeln!(lines, "{name}:{value}");
        lines
    });
    let Unsigned { method, path, query, .. } = request;
    let canonical = format!("{method}\n{path}\n{}\n{lines}\n{names}\n{hash}", encoded_query(query));
    let scope = format!("{day}/{region}/{SERVICE}/aws4_request");
    let to_sign = format!("{ALGORITHM}\n{moment}\n{scope}\n{}", hex(digest(&SHA256, canonical.as_bytes()).as_ref()));

    let first = format!("AWS4{}", credentials.secret_key);
    let key = [day.as_str(), region, SERVICE, "aws4_request"]
        .iter()
        .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, to_sign.as_bytes()));
    let access_key = &credentials.access_key;
    let authorization =
        format!("{ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}");
    added.push(("authorization", authorization));
    added
}

/// The query, with its names in order and percent-encoded.
pub(crate) fn encoded_query(query: &[(&str, String)]) -> String {
    let mut pairs: Vec<_> = query.iter().map(|(name, value)| (encoded(name), encoded(value))).collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// A path, percent-encoded part by part.
pub(crate) fn encoded_path(path: &str) -> String {
    path.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Amazon S3 API Reference, "Signature Calculations for the Authorization Header".
    #[test]
    fn the_examples_of_the_documentation_have_these_signatures() {
        let credentials = Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        };
        let signature = |path: &str, query: &[(&str, String)], headers: &[(&str, String)]| {
            let host = "examplebucket.s3.amazonaws.com";
            let request = Unsigned { method: "GET", host, path, query, headers, body: b"" };
            let headers = sign(&request, &credentials, "us-east-1", 1_369_353_600_000);
            headers.last().expect("the signature").1.rsplit_once('=').expect("a signature").1.to_owned()
        };
        assert_eq!(
            signature("/test.txt", &[], &[("range", "bytes=0-9".to_owned())]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        assert_eq!(
            signature("/", &[("lifecycle", String::new())], &[]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            signature("/", &[("prefix", "J".to_owned()), ("max-keys", "2".to_owned())], &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn paths_and_queries_are_percent_encoded() {
        assert_eq!(encoded_path("/a b/ü+c~.txt"), "/a%20b/%C3%BC%2Bc~.txt");
        assert_eq!(encoded_query(&[("b", "x/y".to_owned()), ("a", String::new())]), "a=&b=x%2Fy");
    }
}
