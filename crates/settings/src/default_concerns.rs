//! The read and write concerns of commands that name none. They belong to a replica set and are kept in
//! `config.settings`.
//!
//! Source: MongoDB manual 8.2, "setDefaultRWConcern", "Default MongoDB Read Concerns/Write Concerns".

use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef, number};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use bunko_request::write_concern::Replicas;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// The database that keeps the default concerns.
pub const DATABASE: &str = "config";
/// The collection that keeps the default concerns.
pub const COLLECTION: &str = "settings";
/// The `_id` of the document that keeps the default concerns.
pub const NAME: &str = "ReadWriteConcernDefaults";

/// The two defaults, as they were set. A default that was not set has an implied value.
#[derive(Debug)]
pub struct DefaultConcerns {
    set: Mutex<Option<Set>>,
    /// Held during a change, from reading the present defaults until the new ones are stored and applied.
    changing: Mutex<()>,
    /// Whether writes wait for the disk. In a set of one member, the write concern `majority` means just that.
    is_journaled: AtomicBool,
    /// The `w` that was set, as a byte: [`IMPLIED`], [`MAJORITY`], [`TAGGED`] or a number of members.
    w: AtomicU8,
    /// The `wtimeout` that was set, in milliseconds; 0 without a limit.
    timeout_ms: AtomicU32,
}

const IMPLIED: u8 = 0;
const MAJORITY: u8 = u8::MAX;
const TAGGED: u8 = u8::MAX - 1;

/// A change of the defaults, which excludes all others.
pub struct Changing<'d> {
    defaults: &'d DefaultConcerns,
    _alone: MutexGuard<'d, ()>,
}

/// The defaults that were set.
#[derive(Clone, Debug)]
pub struct Set {
    /// `{level: ...}`; `None` if no level was set.
    pub read: Option<DocumentBuf>,
    /// The write concern with `w` and `wtimeout`; `None` if none was set.
    pub write: Option<DocumentBuf>,
    /// When the defaults were set.
    pub time: Timestamp,
    /// When the defaults were set, in milliseconds since 1970.
    pub wall_clock_ms: i64,
}

impl Default for DefaultConcerns {
    fn default() -> Self {
        Self {
            set: Mutex::default(),
            changing: Mutex::default(),
            is_journaled: AtomicBool::new(true),
            w: AtomicU8::new(IMPLIED),
            timeout_ms: AtomicU32::new(0),
        }
    }
}

impl DefaultConcerns {
    /// Whether a write that names no concern waits for the disk.
    pub fn is_journaled(&self) -> bool {
        self.is_journaled.load(Ordering::Relaxed)
    }

    /// The members that must have a write that names no concern; `None` if no default was set.
    pub fn replicas(&self) -> Option<Replicas> {
        match self.w.load(Ordering::Relaxed) {
            IMPLIED => None,
            MAJORITY => Some(Replicas::Majority),
            TAGGED => Some(Replicas::Tagged),
            1 => Some(Replicas::Own),
            members => Some(Replicas::Members(members)),
        }
    }

    /// How long a write that names no concern waits for other members, in milliseconds; 0 waits without a limit.
    pub fn timeout_ms(&self) -> u32 {
        self.timeout_ms.load(Ordering::Relaxed)
    }

    /// The defaults that were set, if any.
    pub fn set(&self) -> Option<Set> {
        self.set.lock().clone()
    }

    /// Begins a change, once no other change is in progress.
    /// # Errors
    /// If the operation is interrupted while it waits.
    pub fn change(&self, operation: &dyn OperationSource) -> Result<Changing<'_>> {
        loop {
            let until = operation.operation().may_wait_until()?;
            if let Some(alone) = self.changing.try_lock_until(until) {
                return Ok(Changing { defaults: self, _alone: alone });
            }
        }
    }

    /// Applies defaults that have been stored.
    pub fn apply(&self, set: Set) {
        let is_journaled = set.write.as_ref().is_none_or(|write| {
            let write = write.as_ref();
            write.get("w").and_then(ValueRef::as_str) == Some("majority")
                || ["j", "fsync"].iter().any(|name| matches!(write.get(name), Some(ValueRef::Boolean(true))))
        });
        self.is_journaled.store(is_journaled, Ordering::Relaxed);
        let w = set.write.as_ref().and_then(|write| write.as_ref().get("w"));
        let w = w.map_or(IMPLIED, |w| match w {
            ValueRef::String("majority") => MAJORITY,
            ValueRef::String(_) | ValueRef::Document(_) => TAGGED,
            number => number::clamp_to_i64(number).unwrap_or(1).clamp(1, 50) as u8,
        });
        self.w.store(w, Ordering::Relaxed);
        let timeout = set.write.as_ref().and_then(|write| write.as_ref().get("wtimeout"));
        let timeout_ms = timeout.and_then(number::clamp_to_i64).unwrap_or(0).clamp(0, i64::from(i32::MAX)) as u32;
        self.timeout_ms.store(timeout_ms, Ordering::Relaxed);
        *self.set.lock() = Some(set);
    }
}

impl Changing<'_> {
    /// The defaults before the change; `None` if none were set.
    pub fn before(&self) -> Option<Set> {
        self.defaults.set()
    }

    /// Applies defaults that have been stored, and ends the change.
    pub fn apply(self, set: Set) {
        self.defaults.apply(set);
    }
}

impl Set {
    /// Parses the document of `config.settings`. Malformed fields count as not set.
    pub fn of_kept(kept: DocumentRef<'_>) -> Self {
        let concern = |name: &str| kept.get(name).and_then(ValueRef::as_document).map(DocumentRef::to_owned);
        let time = match kept.get("updateOpTime") {
            Some(ValueRef::Timestamp(time)) => time,
            _ => Timestamp { seconds: 0, increment: 0 },
        };
        let wall_clock_ms = match kept.get("updateWallClockTime") {
            Some(ValueRef::DateTime(milliseconds)) => milliseconds,
            _ => 0,
        };
        Self { read: concern("defaultReadConcern"), write: concern("defaultWriteConcern"), time, wall_clock_ms }
    }

    /// Whether reads that name no concern see what a majority of the members has.
    pub fn is_majority_read(&self) -> bool {
        let level = self.read.as_ref().and_then(|read| read.as_ref().get("level")).and_then(ValueRef::as_str);
        level == Some("majority")
    }

    /// The document of `config.settings`.
    pub fn kept(&self) -> DocumentBuf {
        let mut kept = DocumentBuf::new().with("_id", NAME);
        if let Some(read) = &self.read {
            kept.append("defaultReadConcern", read);
        }
        if let Some(write) = &self.write {
            kept.append("defaultWriteConcern", write);
        }
        kept.with("updateOpTime", ValueRef::Timestamp(self.time))
            .with("updateWallClockTime", ValueRef::DateTime(self.wall_clock_ms))
    }
}
