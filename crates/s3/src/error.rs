//! Reasons why a call failed, with the server's code and advice.

use std::fmt;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A setting or an address makes no sense; no request was sent.
    Usage,
    /// The object, or the upload, does not exist.
    Missing,
    /// The object is not as the condition of the request asks.
    ConditionFailed,
    /// The server refuses: another attempt would fail too.
    Refused,
    /// The server could not be reached, or failed, in all attempts.
    Unavailable,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Error {
    /// Its kind.
    pub kind: Kind,
    /// The server's code, such as `AccessDenied`; empty if the server sent none.
    pub code: String,
    pub(crate) message: String,
}

/// A refusal, as the server's answer has it.
pub(crate) struct Refusal<'r> {
    pub status: u16,
    pub code: &'r str,
    pub message: &'r str,
    /// The region that the answer names; empty if it names none.
    pub region: &'r str,
    /// How far this machine's clock is ahead of the server's, in seconds.
    pub ahead_s: Option<i64>,
}

impl S3Error {
    /// The error of a setting.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, code: String::new(), message: message.into() }
    }

    /// The error of an object at `place`, such as `s3://bucket/key`, without a code of the server.
    pub(crate) fn at(kind: Kind, place: &str, message: impl fmt::Display) -> Self {
        Self { kind, code: String::new(), message: format!("{place}: {message}") }
    }

    /// The error of a refused request to `place`.
    pub(crate) fn refused(place: &str, action: &str, refusal: &Refusal<'_>) -> Self {
        let Refusal { status, code, message, .. } = *refusal;
        let kind = match (status, code) {
            (_, "NoSuchBucket") => Kind::Refused,
            (404, _) => Kind::Missing,
            (412, _) | (409, "ConditionalRequestConflict") => Kind::ConditionFailed,
            (429 | 500..=599, _) | (_, "RequestTimeout" | "SlowDown" | "InternalError") => Kind::Unavailable,
            _ => Kind::Refused,
        };
        let named = match (code, message) {
            ("", _) => format!("status {status}"),
            (code, "") => format!("{code} (status {status})"),
            (code, message) => format!("{code} (status {status}): {message}"),
        };
        let advice = refusal.advice().map_or_else(String::new, |advice| format!(": {advice}"));
        Self { kind, code: code.to_owned(), message: format!("{place}: {action}: {named}{advice}") }
    }
}

impl Refusal<'_> {
    fn advice(&self) -> Option<String> {
        let advice = match (self.status, self.code) {
            (_, "NoSuchBucket") => "create the bucket, or correct its name or AWS_ENDPOINT_URL",
            (_, "InvalidAccessKeyId") => {
                "the server does not know this access key: correct AWS_ACCESS_KEY_ID or the profile"
            }
            (_, "SignatureDoesNotMatch") => "the secret key is not that of the access key",
            (_, "ExpiredToken" | "TokenRefreshRequired") => "the credentials have expired: renew them",
            (_, "InvalidToken") => "the session token is wrong or has expired: renew the credentials",
            (_, "RequestTimeTooSkewed") => {
                return Some(match self.ahead_s {
                    Some(ahead_s) if ahead_s < 0 => {
                        format!("this machine's clock is {} s behind the server's: set it", -ahead_s)
                    }
                    Some(ahead_s) => format!("this machine's clock is {ahead_s} s ahead of the server's: set it"),
                    None => "this machine's clock is wrong: set it".to_owned(),
                });
            }
            (301 | 307, _)
            | (_, "PermanentRedirect" | "TemporaryRedirect" | "AuthorizationHeaderMalformed" | "InvalidRegion") => {
                return Some(match self.region {
                    "" => "the bucket is in another region, or at another endpoint: set AWS_REGION".to_owned(),
                    region => format!("the bucket is in the region {region}: set AWS_REGION={region}"),
                });
            }
            (403, _) => {
                "the credentials do not permit it: s3:ListBucket, GetObject, PutObject, DeleteObject, \
                ListBucketMultipartUploads and AbortMultipartUpload are needed"
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

impl fmt::Display for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for S3Error {}

impl From<S3Error> for String {
    fn from(error: S3Error) -> Self {
        error.message
    }
}
