//! Sends requests, again if the server is overloaded or the connection breaks.
//!
//! ```text
//! sign ─► send ─┬─ 2xx ─► answer
//!               ├─ 5xx, 429, no answer, cut answer ─► wait, twice as long each time ─► sign ...
//!               ├─ expired credentials ─► read them again; if they are new ─► sign ...
//!               └─ refused ─► error
//! ```

use crate::answers::text;
use crate::credentials::Credentials;
use crate::error::{Kind, Refusal, S3Error};
use crate::settings::Settings;
use crate::signature::{Unsigned, encoded_path, encoded_query, sign};
use crate::transport::{Answer, Ready, Transport};
use crate::{Patience, Result};
use bunko_host::Clock;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use std::cell::RefCell;
use std::thread;
use std::time::Duration;

/// Longest answer of a request that reads no object, in bytes: a list has at most 1000 keys of 1 KiB.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Codes of credentials that are valid no more.
const EXPIRED: [&str; 4] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"];

/// A request to the bucket.
pub(crate) struct Asked<'a> {
    /// The request in two or three words, for messages.
    pub action: &'static str,
    pub method: &'static str,
    /// `None` for the bucket itself.
    pub key: Option<&'a str>,
    pub query: Vec<(&'a str, String)>,
    pub headers: Vec<(&'a str, String)>,
    pub body: Option<&'a [u8]>,
    /// Number of bytes of the object that the answer may have.
    pub object_bytes: u64,
}

impl<'a> Asked<'a> {
    pub fn new(action: &'static str, method: &'static str, key: Option<&'a str>) -> Self {
        Self { action, method, key, query: Vec::new(), headers: Vec::new(), body: None, object_bytes: 0 }
    }
}

/// A server that is asked as often as patience lasts.
pub(crate) struct Server {
    pub settings: Settings,
    transport: Transport,
    clock: Clock,
    credentials: RefCell<Credentials>,
}

impl Server {
    /// # Errors
    /// `Usage` with the setting.
    pub fn new(settings: Settings, clock: Clock) -> Result<Self> {
        let transport = Transport::new(&settings)?;
        let credentials = RefCell::new(settings.credentials.read()?);
        Ok(Self { settings, transport, clock, credentials })
    }

    /// The place of an object, for messages.
    pub fn place(&self, key: Option<&str>) -> String {
        let bucket = &self.settings.address.bucket;
        key.map_or_else(|| format!("s3://{bucket}"), |key| format!("s3://{bucket}/{key}"))
    }

    /// Asks until there is an answer.
    /// # Errors
    /// A refusal of the server; `Unavailable` when patience is over.
    pub fn ask(&self, asked: &Asked<'_>) -> Result<Answer> {
        let Patience { attempts, mut pause, pause_max, .. } = self.settings.patience;
        let mut attempt = 1;
        loop {
            let error = match self.attempt(asked) {
                Ok(answer) => return Ok(answer),
                Err(error) if EXPIRED.contains(&error.code.as_str()) && self.renew_credentials() => {
                    attempt += 1;
                    continue;
                }
                Err(error) => error,
            };
            if error.kind != Kind::Unavailable {
                return Err(error);
            }
            if attempt >= attempts {
                let place = self.place(None);
                let message = format!("{error}; {place} is given up after {attempts} attempts");
                return Err(S3Error { message, ..error });
            }
            // Several clients that were refused together come back apart.
            let spread = self.clock.since_1970().subsec_nanos() % 256;
            thread::sleep(pause / 2 + pause / 2 * spread / 256);
            pause = (pause * 2).min(pause_max);
            attempt += 1;
        }
    }

    /// Asks once.
    /// # Errors
    /// As [`Self::ask`].
    pub fn attempt(&self, asked: &Asked<'_>) -> Result<Answer> {
        let Settings { address, authority, scheme, region, .. } = &self.settings;
        let key = asked.key.unwrap_or_default();
        let bucket = if self.settings.is_path_style { format!("/{}", address.bucket) } else { String::new() };
        let path = encoded_path(&format!("{bucket}/{key}"));
        let body = asked.body.unwrap_or_default();
        let Asked { method, query, .. } = asked;
        let unsigned = Unsigned { method, host: authority, path: &path, query, headers: &asked.headers, body };
        let mut headers = asked.headers.clone();
        headers.extend(sign(&unsigned, &self.credentials.borrow(), region, self.clock.now_ms()));
        let query = if query.is_empty() { String::new() } else { format!("?{}", encoded_query(query)) };
        let ready = Ready {
            method,
            url: format!("{scheme}://{authority}{path}{query}"),
            headers: &headers,
            body: asked.body,
            answer_bytes_max: asked.object_bytes + ANSWER_BYTES_MAX,
        };
        let answer = self.transport.send(&ready).map_err(|message| {
            let message = format!("{}: {scheme}://{authority}: {message}", asked.action);
            S3Error::at(Kind::Unavailable, &self.place(asked.key), message)
        })?;
        // A server that works for long on a request may begin its answer with 200 and then send an error.
        let is_late_error = answer.status == 200 && asked.object_bytes == 0 && answer.text().contains("<Error>");
        if (200..300).contains(&answer.status) && !is_late_error {
            return Ok(answer);
        }
        Err(self.refused(asked, &answer, if is_late_error { 500 } else { answer.status }))
    }

    fn refused(&self, asked: &Asked<'_>, answer: &Answer, status: u16) -> S3Error {
        let xml = answer.text();
        let read = |name: &str| text(&xml, name).unwrap_or_default();
        let region = match answer.header("x-amz-bucket-region") {
            "" => read("Region"),
            region => region.to_owned(),
        };
        let server_s = DateTimeParser::new().parse_timestamp(answer.header("date")).map(Timestamp::as_second);
        let own_s = (self.clock.now_ms() / 1000) as i64;
        let refusal = Refusal {
            status,
            code: &read("Code"),
            message: &read("Message"),
            region: &region,
            ahead_s: server_s.ok().map(|server_s| own_s - server_s),
        };
        S3Error::refused(&self.place(asked.key), asked.action, &refusal)
    }

    /// Reads the credentials again. Returns whether they are others than before.
    fn renew_credentials(&self) -> bool {
        let Ok(read) = self.settings.credentials.read() else { return false };
        let is_new = *self.credentials.borrow() != read;
        *self.credentials.borrow_mut() = read;
        is_new
    }

    /// How long ago the server stored an object, by the server's own clock; `None` if its answer does not tell.
    pub fn age(answer: &Answer) -> Option<Duration> {
        let seconds = |name| DateTimeParser::new().parse_timestamp(answer.header(name)).ok().map(Timestamp::as_second);
        let age_s = seconds("date")? - seconds("last-modified")?;
        Some(Duration::from_secs(age_s.max(0) as u64))
    }
}
