//! The read and the write concern of commands that name none. They are a set's, and kept in `config.settings`.
//!
//! Source: MongoDB manual 8.2, "setDefaultRWConcern", "Default MongoDB Read Concerns/Write Concerns".

use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_errors::Result;
use bunko_operation::OperationSource;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const DATABASE: &str = "config";
pub(crate) const COLLECTION: &str = "settings";
/// The `_id` of the document.
pub(crate) const NAME: &str = "ReadWriteConcernDefaults";

/// The two defaults, as they were set; what was not set is implied.
#[derive(Debug)]
pub(crate) struct DefaultConcerns {
    set: Mutex<Option<Set>>,
    /// Held by who changes them, from reading what is set until it has been kept and applied.
    changing: Mutex<()>,
    /// Whether writes wait for the disk: that of a set of one member is its majority.
    is_journaled: AtomicBool,
}

/// A change of the defaults; nobody else makes one meanwhile.
pub(crate) struct Changing<'d> {
    defaults: &'d DefaultConcerns,
    _alone: MutexGuard<'d, ()>,
}

/// What was set.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// `{level: ...}`, where a level was set.
    pub read: Option<DocumentBuf>,
    /// With `w` and `wtimeout`, where it was set.
    pub write: Option<DocumentBuf>,
    /// When.
    pub time: Timestamp,
    /// The same in milliseconds since 1970.
    pub wall_clock_ms: i64,
}

impl Default for DefaultConcerns {
    fn default() -> Self {
        Self { set: Mutex::default(), changing: Mutex::default(), is_journaled: AtomicBool::new(true) }
    }
}

impl DefaultConcerns {
    /// Whether a write that names no concern waits for the disk.
    pub(crate) fn is_journaled(&self) -> bool {
        self.is_journaled.load(Ordering::Relaxed)
    }

    /// What was set, if anything.
    pub(crate) fn set(&self) -> Option<Set> {
        self.set.lock().clone()
    }

    /// Begins a change, once no other is being made.
    /// # Errors
    /// What the operation says while it waits.
    pub(crate) fn change(&self, operation: &dyn OperationSource) -> Result<Changing<'_>> {
        loop {
            let until = operation.operation().may_wait_until()?;
            if let Some(alone) = self.changing.try_lock_until(until) {
                return Ok(Changing { defaults: self, _alone: alone });
            }
        }
    }

    /// Takes what has been kept.
    pub(crate) fn apply(&self, set: Set) {
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
    /// What is set until now.
    pub(crate) fn before(&self) -> Option<Set> {
        self.defaults.set()
    }

    /// Takes what has been kept.
    pub(crate) fn apply(self, set: Set) {
        self.defaults.apply(set);
    }
}

impl Set {
    /// Reads the document of `config.settings`; what is malformed in it counts as not set.
    pub(crate) fn of_kept(kept: DocumentRef<'_>) -> Self {
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
    pub(crate) fn kept(&self) -> DocumentBuf {
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
