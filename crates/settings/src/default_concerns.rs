//! The read and write concerns of commands that name none. They belong to a replica set and are kept in
//! `config.settings`.
//!
//! Source: MongoDB manual 8.2, "setDefaultRWConcern", "Default MongoDB Read Concerns/Write Concerns".

use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};

/// The database that keeps them.
pub const DATABASE: &str = "config";
/// The collection that keeps them.
pub const COLLECTION: &str = "settings";
/// The `_id` of the document that keeps them.
pub const NAME: &str = "ReadWriteConcernDefaults";

/// The two defaults, as they were set. A default that was not set has an implied value.
#[derive(Debug)]
pub struct DefaultConcerns {
    set: Mutex<Option<Set>>,
    /// Held during a change, from reading the present defaults until the new ones are stored and applied.
    changing: Mutex<()>,
    /// Whether writes wait for the disk. In a set of one member, that is what majority means.
    is_journaled: AtomicBool,
}

/// A change of the defaults, which excludes all others.
pub struct Changing<'d> {
    defaults: &'d DefaultConcerns,
    _alone: MutexGuard<'d, ()>,
}

/// The defaults that were set.
#[derive(Clone, Debug)]
pub struct Set {
    /// `{level: ...}`, if a level was set.
    pub read: Option<DocumentBuf>,
    /// With `w` and `wtimeout`, if it was set.
    pub write: Option<DocumentBuf>,
    /// When the defaults were set.
    pub time: Timestamp,
    /// When the defaults were set, in milliseconds since 1970.
    pub wall_clock_ms: i64,
}

impl Default for DefaultConcerns {
    fn default() -> Self {
        Self { set: Mutex::default(), changing: Mutex::default(), is_journaled: AtomicBool::new(true) }
    }
}

impl DefaultConcerns {
    /// Whether a write that names no concern waits for the disk.
    pub fn is_journaled(&self) -> bool {
        self.is_journaled.load(Ordering::Relaxed)
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
        *self.set.lock() = Some(set);
    }
}

impl Changing<'_> {
    /// The defaults before the change.
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
