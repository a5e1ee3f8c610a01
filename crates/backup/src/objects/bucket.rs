//! Objects in a bucket of S3.
//!
//! The right to write is an object too: S3 has no locks. It names the process and is written anew every 15 seconds at
//! most, before other writes. A process takes it over when it was not written for five minutes by the server's clock, or
//! at once if its process ran on this machine and has ended.
//!
//! **Invariant:** no object is written or removed more than 15 seconds, and the attempts of one request, after this process
//! was last seen to have the right.

use super::{Objects, Take, Upload};
use crate::Result;
use bunko_host::{Clock, host_name, process_space, process_started};
use bunko_s3::{Bucket, Condition, Depth, Kind, S3Error};
use bunko_tools::ToolError;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LOCK: &str = "lock";
/// Number of bytes that are read at a time.
const PIECE_BYTES: u64 = 8 << 20;
/// The right to write is confirmed before a write if that was longer ago.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(15);
/// A process that has not written its right for this time has lost it.
const LEASE: Duration = Duration::from_mins(5);
/// Longest text of a right in bytes.
const HOLDER_BYTES_MAX: u64 = 4096;

/// A bucket with objects.
pub(crate) struct BucketObjects {
    bucket: Bucket,
    clock: Clock,
    lock: RefCell<Option<Held>>,
}

/// The right to write.
struct Held {
    holder: Holder,
    /// Entity tag of the object that names this process.
    tag: String,
    confirmed: Instant,
}

/// A process that writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    host: String,
    /// The machine's start and the namespace of its process ids: ids of others cannot be compared with it.
    machine: String,
    process: u32,
    /// When the process started, in ticks since the machine's start.
    started: u64,
    /// How often the right was written, so that each text is another one.
    turn: u64,
}

impl Holder {
    fn this_process() -> Self {
        let process = std::process::id();
        let started = process_started(process).unwrap_or_default();
        Self { host: host_name(), machine: process_space(), process, started, turn: 0 }
    }

    fn text(&self) -> String {
        let Self { host, machine, process, started, turn } = self;
        format!("{process} {started} {turn} {machine} {host}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.trim_end().splitn(5, ' ');
        let mut word = || words.next();
        let (process, started, turn) = (word()?.parse().ok()?, word()?.parse().ok()?, word()?.parse().ok()?);
        Some(Self { machine: word()?.to_owned(), host: word()?.to_owned(), process, started, turn })
    }

    fn is_same_process(&self, other: &Self) -> bool {
        (self.process, self.started, &self.machine) == (other.process, other.started, &other.machine)
    }

    /// Whether the process ran on this machine and has ended.
    fn has_ended(&self) -> bool {
        self.machine == process_space() && process_started(self.process) != Some(self.started)
    }
}

/// The error of a call, for the user.
pub(crate) fn of_s3(error: S3Error) -> ToolError {
    match error.kind {
        Kind::Usage => ToolError::Usage(error.into()),
        _ => ToolError::Failed(error.into()),
    }
}

impl BucketObjects {
    /// The objects of a bucket.
    pub fn new(bucket: Bucket, clock: Clock) -> Self {
        Self { bucket, clock, lock: RefCell::default() }
    }

    /// Makes sure that this process may still write.
    /// # Errors
    /// `Failed` if another process has taken over; errors of the server.
    fn confirm(&self) -> Result<()> {
        let mut lock = self.lock.borrow_mut();
        let Some(held) = lock.as_mut() else { return Ok(()) };
        if self.clock.since(held.confirmed) < CONFIRM_INTERVAL {
            return Ok(());
        }
        let now = self.clock.now();
        held.holder.turn += 1;
        let written = self.write(&held.holder, Condition::Is(&held.tag));
        match written {
            Ok(tag) => (held.tag, held.confirmed) = (tag, now),
            Err(error) => {
                let is_lost = error.kind == Kind::ConditionFailed || error.kind == Kind::Missing;
                if is_lost {
                    *lock = None;
                    let address = self.bucket.address();
                    let message = format!("{address}: another process has begun to write backups there meanwhile");
                    return Err(ToolError::Failed(message));
                }
                return Err(of_s3(error));
            }
        }
        Ok(())
    }

    /// Writes the right. An attempt whose answer was lost may have succeeded, so the object decides.
    fn write(&self, holder: &Holder, condition: Condition<'_>) -> Result<String, S3Error> {
        let text = holder.text();
        let refused = match self.bucket.put(LOCK, text.as_bytes(), condition) {
            Ok(tag) => return Ok(tag),
            Err(error) if error.kind == Kind::ConditionFailed => error,
            Err(error) => return Err(error),
        };
        match self.bucket.get(LOCK, (0, HOLDER_BYTES_MAX), None)? {
            Some(part) if part.bytes == text.as_bytes() => Ok(part.object.tag),
            _ => Err(refused),
        }
    }

    /// The error for a target to which another process writes.
    fn in_use(&self, other: Option<&Holder>, age: Option<Duration>) -> ToolError {
        let address = self.bucket.address();
        let process = other.map_or_else(String::new, |other| format!(": process {} of {}", other.process, other.host));
        let left = age.map_or(LEASE, |age| LEASE.saturating_sub(age)).as_secs() + 1;
        ToolError::Failed(format!(
            "{address}: another process writes backups there{process}; if it is gone, begin again in {left} s"
        ))
    }
}

impl Objects for BucketObjects {
    fn shown(&self, name: &str) -> PathBuf {
        let address = self.bucket.address();
        PathBuf::from(format!("s3://{}/{}", address.bucket, address.key(name)))
    }

    fn path(&self, _: &str) -> Option<PathBuf> {
        None
    }

    fn lock(&mut self) -> Result<()> {
        let holder = Holder::this_process();
        let present = self.bucket.get(LOCK, (0, HOLDER_BYTES_MAX), None).map_err(of_s3)?;
        let now = self.clock.now();
        let condition = match &present {
            None => Condition::IsNew,
            Some(part) => {
                let other = Holder::parse(&String::from_utf8_lossy(&part.bytes));
                let has_ended = other.as_ref().is_some_and(|other| other.has_ended() || other.is_same_process(&holder));
                if !has_ended && part.object.age.is_none_or(|age| age < LEASE) {
                    return Err(self.in_use(other.as_ref(), part.object.age));
                }
                Condition::Is(&part.object.tag)
            }
        };
        let tag = match self.write(&holder, condition) {
            Ok(tag) => tag,
            Err(error) if error.kind == Kind::ConditionFailed => return Err(self.in_use(None, None)),
            Err(error) => return Err(of_s3(error)),
        };
        *self.lock.borrow_mut() = Some(Held { holder, tag, confirmed: now });
        // Uploads that processes left before this one hold storage that no list shows.
        self.bucket.abort_uploads().map_err(of_s3).map(|_| ())
    }

    fn stranger(&self) -> Result<Option<String>> {
        let mut found = None;
        let listed = self.bucket.list("", Depth::Children, &mut |name, _| {
            if name != LOCK {
                found = Some(name);
            }
            found.is_none()
        });
        listed.map_err(of_s3)?;
        Ok(found)
    }

    fn list(&self, below: &str) -> Result<BTreeMap<String, u64>> {
        let mut listed = BTreeMap::new();
        let outcome = self.bucket.list(below, Depth::All, &mut |name, bytes| {
            listed.insert(name, bytes);
            true
        });
        outcome.map_err(of_s3)?;
        Ok(listed)
    }

    fn children(&self, below: &str) -> Result<BTreeSet<String>> {
        let mut children = BTreeSet::new();
        let outcome = self.bucket.list(below, Depth::Children, &mut |name, _| {
            children.insert(name[below.len()..].trim_end_matches('/').to_owned());
            true
        });
        outcome.map_err(of_s3)?;
        Ok(children)
    }

    fn show(&self, name: &str, take: Take<'_>) -> Result<bool> {
        let (mut offset, mut tag): (u64, Option<String>) = (0, None);
        loop {
            let part = self.bucket.get(name, (offset, PIECE_BYTES), tag.as_deref()).map_err(of_s3)?;
            let Some(part) = part else {
                if offset == 0 {
                    return Ok(false);
                }
                return Err(self.damaged_while_read(name, offset));
            };
            offset += part.bytes.len() as u64;
            if !part.bytes.is_empty() && take(&part.bytes)?.is_break() || offset >= part.object.bytes {
                return Ok(true);
            }
            tag = Some(part.object.tag);
        }
    }

    fn put(&self, name: &str, contents: &[u8]) -> Result<()> {
        self.confirm()?;
        self.bucket.put(name, contents, Condition::None).map_err(of_s3).map(|_| ())
    }

    fn create<'o>(&'o self, name: &str, bytes: u64) -> Result<Box<dyn Upload + 'o>> {
        self.confirm()?;
        Ok(Box::new(Unfinished { objects: self, upload: bunko_s3::Upload::new(&self.bucket, name, bytes) }))
    }

    fn settle(&self, _: &BTreeSet<String>) -> Result<()> {
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.confirm()?;
        self.bucket.delete(name).map_err(of_s3)
    }

    fn prune(&self) -> Result<()> {
        Ok(())
    }
}

impl BucketObjects {
    fn damaged_while_read(&self, name: &str, offset_bytes: u64) -> ToolError {
        let found = "was removed while it was read".to_owned();
        ToolError::Damaged { path: self.shown(name), offset_bytes, found }
    }
}

impl Drop for BucketObjects {
    fn drop(&mut self) {
        // Without this, the next process on another machine waits until the right is old.
        let is_held = self.lock.borrow().as_ref().is_some_and(|held| self.clock.since(held.confirmed) < LEASE);
        if is_held {
            self.bucket.try_to_delete(LOCK);
        }
    }
}

/// An object that is being uploaded.
struct Unfinished<'o> {
    objects: &'o BucketObjects,
    upload: bunko_s3::Upload<'o>,
}

impl Upload for Unfinished<'_> {
    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        self.objects.confirm()?;
        self.upload.add(bytes).map_err(of_s3)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.objects.confirm()?;
        self.upload.finish().map_err(of_s3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_on_this_machine_is_known() {
        let own = Holder::this_process();
        assert_eq!(Holder::parse(&own.text()).as_ref(), Some(&own));
        assert!(!own.has_ended() && own.started > 0);
        let earlier = Holder { started: own.started - 1, ..own.clone() };
        assert!(earlier.has_ended() && !earlier.is_same_process(&own));
        assert!(!Holder { machine: "another".to_owned(), ..earlier }.has_ended());
        assert_eq!(Holder::parse("nonsense"), None);
    }
}
