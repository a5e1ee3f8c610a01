//! Replies, with the headers that keep the page from being framed, changed or read by others.

use crate::guard::Refusal;
use bunko_bson::{DocumentBuf, ValueRef, extended_json};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY};
use hyper::{Response, StatusCode};

pub type Reply = Response<Full<Bytes>>;

/// Headers of every reply.
///
/// The policy allows scripts, styles and requests of this origin only, none of them written into the page, and no
/// frames. `require-trusted-types-for` makes browsers refuse text that a script would let them read as HTML.
/// Source: Content Security Policy Level 3; Trusted Types.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    // Not `no-referrer`, with which browsers send `Origin: null` to this very site.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// The content security policy of a report's page, in place of the console's. Only the scripts of our own reports run,
/// by their hashes. With `sandbox` the page has an origin of its own, other than the console's, and no forms and no
/// windows.
fn report_policy() -> String {
    let scripts = bunko_report::html::script_sources();
    format!(
        "sandbox allow-scripts; default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    )
}

/// A reply with a report.
pub fn report_reply(body: Bytes) -> Reply {
    let mut reply = reply(StatusCode::OK, "text/html; charset=utf-8", body);
    let headers = reply.headers_mut();
    // Never fails: the sources are ASCII.
    if let Ok(policy) = HeaderValue::from_str(&report_policy()) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    // Browsers refuse this header together with `sandbox`.
    // Source: HTML standard, "Cross-origin opener policies".
    headers.remove("cross-origin-opener-policy");
    // The address is a secret.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

pub fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}

/// A reply with a document as JSON.
pub fn json(document: &DocumentBuf) -> Reply {
    let text = extended_json::to_relaxed(ValueRef::Document(document.as_ref()));
    reply(StatusCode::OK, "application/json", text)
}

/// A refusal, after which the connection ends: the request's body may not have been read.
pub fn refusal(refusal: &Refusal) -> Reply {
    let document = DocumentBuf::new().with("refused", refusal.reason.as_str());
    let mut reply = json(&document);
    *reply.status_mut() = refusal.status;
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}
