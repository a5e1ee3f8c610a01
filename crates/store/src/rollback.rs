//! Rollback: takes back records that this member has applied and that the other members do not have, because it was the
//! primary of an earlier term.
//!
//! ```text
//! begin_rollback ──► records: the caller keeps the documents ──► intend: durable ──► the directory is opened again
//! ```
//! Engines cannot undo what they have applied. So the next start begins at the last checkpoint, which must be at or
//! below the position where the logs part, and reads the log up to there only: the intent is that of a truncation.
//!
//! **Invariant:** nothing is changed before the intent is durable, and from then on the store takes nothing more.

use crate::log::OpenChain;
use crate::manifest::Manifest;
use crate::{Direction, History, Log, Lsn, Position, Result, StorageError, Store};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A rollback that has begun, and has changed nothing yet. While it exists, the log and the applied part stay as they
/// are.
pub struct Rollback<'s> {
    store: &'s Store,
    log: &'s Arc<Log>,
    to: Lsn,
    _no_foreign_record: MutexGuard<'s, ()>,
    _no_application: MutexGuard<'s, (Lsn, OpenChain)>,
    _no_checkpoint: MutexGuard<'s, ()>,
}

impl Store {
    /// Begins to take back the records after `to`, which the other members do not have.
    ///
    /// # Errors
    /// [`StorageError::NotSecondary`]; [`StorageError::Diverged`] if this log never had that position;
    /// [`StorageError::CommittedAbove`]; [`StorageError::NeedsInitialSync`] if the last checkpoint is behind `to`.
    pub fn begin_rollback(&self, to: Position) -> Result<Rollback<'_>> {
        let appending = self.appending.lock();
        let unapplied = self.unapplied.lock();
        let log = self.secondary_log()?;
        self.check_was_at(to)?;
        let end = Lsn(to.end);
        self.check_not_committed(end)?;
        let running = self.checkpointer.running.lock();
        let checkpoint = self.files_end()?;
        if end < checkpoint {
            return Err(StorageError::NeedsInitialSync { position: end.0, checkpoint: checkpoint.0 });
        }
        Ok(Rollback {
            store: self,
            log,
            to: end,
            _no_foreign_record: appending,
            _no_application: unapplied,
            _no_checkpoint: running,
        })
    }

    /// Exclusive upper bound of the positions that the manifest and the engines' files know of.
    fn files_end(&self) -> Result<Lsn> {
        let manifest = match &self.directory {
            Some(directory) => Manifest::read(&directory.path)?,
            None => None,
        };
        let watermark = manifest.map_or(Lsn(0), |manifest| manifest.watermark);
        Ok(self.engines.files_end().max(watermark))
    }
}

impl Rollback<'_> {
    /// The applied records that will be taken back.
    pub fn records(&self) -> History {
        History::new(Arc::clone(self.log), self.to..self.store.visible_end().max(self.to), Direction::Forward)
    }

    /// Makes the rollback durable. The store takes nothing more; the next start of the directory carries the rollback
    /// out.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if no record begins at the position; errors of the files. The log has failed if the
    /// next start may carry the rollback out nevertheless.
    pub fn intend(self) -> Result<()> {
        self.log.intend_truncation(self.to)?;
        self.store.is_rolled_back.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
