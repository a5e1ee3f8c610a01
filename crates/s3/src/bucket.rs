//! The calls.

use crate::answers::{elements, escaped, text};
use crate::attempts::{Asked, Server};
use crate::error::{Kind, S3Error};
use crate::settings::Settings;
use crate::{Address, Result};
use bunko_host::Clock;
use std::fmt::Write;
use std::time::Duration;

/// A bucket, and a prefix in it. All names are below the prefix.
pub struct Bucket {
    server: Server,
}

/// When an object may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'c> {
    /// Always.
    None,
    /// If there is none of that name.
    IsNew,
    /// If the present one has this entity tag.
    Is(&'c str),
}

/// Which names a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// All.
    All,
    /// The part of each name up to the next `/`, once.
    Children,
}

/// Bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes; empty behind the object's end.
    pub bytes: Vec<u8>,
    /// The object.
    pub object: Stored,
}

/// A stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its entity tag, which another content does not have.
    pub tag: String,
    /// How long ago it was stored, by the server's clock.
    pub age: Option<Duration>,
}

impl Bucket {
    /// Opens a bucket. No request is sent yet.
    /// # Errors
    /// `Usage` with the setting.
    pub fn open(settings: Settings, clock: Clock) -> Result<Self> {
        Ok(Self { server: Server::new(settings, clock)? })
    }

    /// The bucket and the prefix.
    pub fn address(&self) -> &Address {
        &self.server.settings.address
    }

    pub(crate) fn place(&self, key: &str) -> String {
        self.server.place(Some(key))
    }

    /// Reads at most `length` bytes from `offset` on; `None` if there is no such object. With `tag`, the object must
    /// still be the one that has it.
    /// # Errors
    /// `ConditionFailed` if it is another one; errors of the server.
    pub fn get(&self, name: &str, (offset, length): (u64, u64), tag: Option<&str>) -> Result<Option<Part>> {
        let key = self.address().key(name);
        let mut asked = Asked::new("read", "GET", Some(&key));
        asked.headers.push(("range", format!("bytes={offset}-{}", offset + length.max(1) - 1)));
        asked.headers.extend(tag.map(|tag| ("if-match", tag.to_owned())));
        asked.object_bytes = length.max(1);
        let answer = match self.server.ask(&asked) {
            Ok(answer) => answer,
            Err(error) if error.kind == Kind::Missing => return Ok(None),
            // There are no bytes behind the offset: the object is empty if that is its beginning.
            Err(error) if error.code == "InvalidRange" => {
                let object = Stored { bytes: offset, tag: String::new(), age: None };
                return Ok(Some(Part { bytes: Vec::new(), object }));
            }
            Err(error) => return Err(error),
        };
        let total = answer.header("content-range").rsplit_once('/').and_then(|(_, total)| total.parse().ok());
        let bytes = match total {
            Some(total) => total,
            // The server has sent all of it.
            None if offset == 0 => answer.body.len() as u64,
            None => return Err(S3Error::at(Kind::Refused, &self.place(&key), "the server reads no ranges")),
        };
        let expected = bytes.saturating_sub(offset).min(length);
        if (answer.body.len() as u64) < expected {
            let found = format!("{} bytes instead of {expected} were read", answer.body.len());
            return Err(S3Error::at(Kind::Unavailable, &self.place(&key), found));
        }
        let object = Stored { bytes, tag: answer.header("etag").to_owned(), age: Server::age(&answer) };
        Ok(Some(Part { bytes: answer.body, object }))
    }

    /// Stores an object whole, and returns its entity tag.
    /// # Errors
    /// `ConditionFailed`; errors of the server: the object is as before, or has the new bytes.
    pub fn put(&self, name: &str, bytes: &[u8], condition: Condition<'_>) -> Result<String> {
        let key = self.address().key(name);
        let mut asked = Asked::new("write", "PUT", Some(&key));
        asked.headers.extend(match condition {
            Condition::None => None,
            Condition::IsNew => Some(("if-none-match", "*".to_owned())),
            Condition::Is(tag) => Some(("if-match", tag.to_owned())),
        });
        asked.body = Some(bytes);
        Ok(self.server.ask(&asked)?.header("etag").to_owned())
    }

    /// Removes an object, if it is there.
    /// # Errors
    /// Errors of the server.
    pub fn delete(&self, name: &str) -> Result<()> {
        let key = self.address().key(name);
        ignore_missing(self.server.ask(&Asked::new("remove", "DELETE", Some(&key))).map(|_| ()))
    }

    /// Removes an object, if the server does so at once.
    pub fn try_to_delete(&self, name: &str) {
        let _ = self.server.attempt(&Asked::new("remove", "DELETE", Some(&self.address().key(name))));
    }

    /// Shows the names that begin with `below`, and the lengths of their objects. `take` returns whether it wants more.
    /// # Errors
    /// Errors of the server.
    pub fn list(&self, below: &str, depth: Depth, take: &mut dyn FnMut(String, u64) -> bool) -> Result<()> {
        let prefix = self.address().key(below);
        let cut = prefix.len() - below.len();
        let mut further: Option<String> = None;
        loop {
            let mut asked = Asked::new("list", "GET", None);
            asked.query = vec![("list-type", "2".to_owned()), ("prefix", prefix.clone())];
            if depth == Depth::Children {
                asked.query.push(("delimiter", "/".to_owned()));
            }
            asked.query.extend(further.take().map(|token| ("continuation-token", token)));
            let answer = self.server.ask(&asked)?.text();
            let contents = elements(&answer, "Contents")
                .filter_map(|object| Some((text(object, "Key")?, text(object, "Size")?.parse().ok()?)));
            let common = elements(&answer, "CommonPrefixes").filter_map(|common| Some((text(common, "Prefix")?, 0)));
            for (key, bytes) in contents.chain(common) {
                if let Some(name) = key.get(cut..)
                    && key.starts_with(&prefix)
                    && !take(name.to_owned(), bytes)
                {
                    return Ok(());
                }
            }
            further = text(&answer, "NextContinuationToken").filter(|token| !token.is_empty());
            if text(&answer, "IsTruncated").as_deref() != Some("true") || further.is_none() {
                return Ok(());
            }
        }
    }

    /// Aborts all uploads in parts below the prefix, which other processes have left. Returns their number.
    /// # Errors
    /// Errors of the server.
    pub fn abort_uploads(&self) -> Result<u64> {
        let mut asked = Asked::new("list uploads", "GET", None);
        asked.query = vec![("uploads", String::new()), ("prefix", self.address().key(""))];
        let mut aborted = 0;
        loop {
            let answer = self.server.ask(&asked)?.text();
            let mut found = Vec::new();
            for upload in elements(&answer, "Upload") {
                found.extend(text(upload, "Key").zip(text(upload, "UploadId")));
            }
            for (key, id) in &found {
                self.abort_upload(key, id)?;
            }
            aborted += found.len() as u64;
            // The next answer begins after the uploads that are aborted now.
            if found.is_empty() || text(&answer, "IsTruncated").as_deref() != Some("true") {
                return Ok(aborted);
            }
        }
    }

    pub(crate) fn begin_upload(&self, key: &str) -> Result<String> {
        let mut asked = Asked::new("begin an upload", "POST", Some(key));
        asked.query = vec![("uploads", String::new())];
        asked.body = Some(&[]);
        let answer = self.server.ask(&asked)?.text();
        text(&answer, "UploadId")
            .filter(|id| !id.is_empty())
            .ok_or_else(|| S3Error::at(Kind::Refused, &self.place(key), "begin an upload: the answer has no UploadId"))
    }

    /// Stores a part of an upload, whose numbers begin at 1. Returns its entity tag.
    pub(crate) fn put_part(&self, (key, id): (&str, &str), number: usize, bytes: &[u8]) -> Result<String> {
        let mut asked = Asked::new("write a part", "PUT", Some(key));
        asked.query = vec![("partNumber", number.to_string()), ("uploadId", id.to_owned())];
        asked.body = Some(bytes);
        Ok(self.server.ask(&asked)?.header("etag").to_owned())
    }

    /// Makes an object of the parts with these entity tags.
    pub(crate) fn complete_upload(&self, (key, id): (&str, &str), tags: &[String], bytes: u64) -> Result<()> {
        let mut parts = String::new();
        for (index, tag) in tags.iter().enumerate() {
            let _ = write!(parts, "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", index + 1, escaped(tag));
        }
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let mut asked = Asked::new("complete an upload", "POST", Some(key));
        (asked.query, asked.body) = (vec![("uploadId", id.to_owned())], Some(body.as_bytes()));
        match self.server.ask(&asked) {
            Ok(_) => Ok(()),
            // An attempt before this one may have succeeded, and its answer was lost.
            Err(error) if error.kind == Kind::Missing && self.has(key, bytes)? => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn has(&self, key: &str, bytes: u64) -> Result<bool> {
        let cut = self.address().key("").len();
        let part = self.get(key.get(cut..).unwrap_or_default(), (0, 1), None)?;
        Ok(part.is_some_and(|part| part.object.bytes == bytes))
    }

    fn abort_upload(&self, key: &str, id: &str) -> Result<()> {
        ignore_missing(self.server.ask(&aborting(key, id)).map(|_| ()))
    }

    /// Aborts an upload, if the server does so at once.
    pub(crate) fn try_to_abort(&self, key: &str, id: &str) {
        // The next process aborts it otherwise.
        let _ = self.server.attempt(&aborting(key, id));
    }
}

fn aborting<'a>(key: &'a str, id: &str) -> Asked<'a> {
    let mut asked = Asked::new("abort an upload", "DELETE", Some(key));
    asked.query = vec![("uploadId", id.to_owned())];
    asked
}

fn ignore_missing(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if error.kind == Kind::Missing => Ok(()),
        outcome => outcome,
    }
}
