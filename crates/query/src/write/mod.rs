//! Updates, deletes and findAndModify: find the records, lock each, look again, change.
//!
//! A search finds record ids in one snapshot. [`Catalog::change`] shows the newest version of each under its lock, and
//! that version must match again before it is changed. `{_id: value}` needs neither the search nor the second match.
//!
//! An update or deletion of many documents changes up to 16 records with one batch (`Catalog::change_several`). A
//! record that needs more than its own lock is changed alone: with a new unique key, inside a transaction, or while an
//! index is built.
//!
//! **Invariant:** [`Writes::written`] covers every record written, also if the statement failed half way.

mod all;
mod delete;
mod effort;
mod expire;
mod explain;
mod find_and_modify;
mod report;
mod search;
mod update;
mod upsert;
pub mod version_document;

pub use delete::DeleteStatement;
pub use effort::records_expected;
pub use expire::Expiring;
pub use explain::WriteExplanation;
pub use find_and_modify::{Action, FindAndModify, FindAndModifyOutcome, Modification, Returning};
pub use report::{Express, LastSearch};
pub use update::{UpdateOutcome, UpdateStatement, Upsert};

use crate::QueryScope;
use bunko_bson::{DocumentBuf, StringOrder};
use bunko_catalog::stored_document::{EmptyTimestamps, Stamps};
use bunko_catalog::{Catalog, Namespace, Outcome, RetryableWrite, Verdict};
use bunko_errors::Result;
use bunko_store::Lsn;
use bunko_update::{Telling, Update};
use std::sync::Arc;

/// Records the statement's answer for a retry, in case its next batch is committed.
fn note_answer(scope: &QueryScope, answer: impl FnOnce() -> Outcome) {
    if let Some(write) = RetryableWrite::of(&*scope.operation) {
        write.set_outcome(answer());
    }
}

/// The writes of one command against one namespace.
pub struct Writes<'w> {
    catalog: &'w Catalog,
    namespace: &'w Namespace,
    stamps: &'w dyn Stamps,
    empty_timestamps: EmptyTimestamps,
    scope: Arc<QueryScope>,
    /// Whether the collection holds the feature compatibility version document.
    has_version: bool,
    written: Option<Lsn>,
    /// The search of the last statement.
    last_search: Option<LastSearch>,
}

impl<'w> Writes<'w> {
    /// Creates the writes of a command. A failure of the scope's operation ends the statement and leaves earlier
    /// changes.
    pub fn new(catalog: &'w Catalog, namespace: &'w Namespace, stamps: &'w dyn Stamps, scope: Arc<QueryScope>) -> Self {
        let empty_timestamps = EmptyTimestamps::Filled;
        let has_version = version_document::is_kept_in(namespace);
        Self { catalog, namespace, stamps, empty_timestamps, scope, has_version, written: None, last_search: None }
    }

    /// A copy with another treatment of zero timestamps in replacements and upserts.
    #[must_use]
    pub fn with_empty_timestamps(self, empty_timestamps: EmptyTimestamps) -> Self {
        Self { empty_timestamps, ..self }
    }

    /// The LSN of the last record written, for an acknowledgement to wait for.
    pub fn written(&self) -> Option<Lsn> {
        self.written
    }

    /// Takes the search of the last statement; `None` if it made no search.
    pub fn take_last_search(&mut self) -> Option<LastSearch> {
        self.last_search.take()
    }

    /// Sets the string order of the next statement: this one, or the collection's.
    fn collate(&mut self, strings: Option<&StringOrder>) -> Result<()> {
        let wanted = match strings {
            Some(strings) => strings.clone(),
            None => self.catalog.default_strings(self.namespace)?,
        };
        if self.scope.strings != wanted {
            self.scope = Arc::new(self.scope.with_strings(&wanted));
        }
        Ok(())
    }

    /// Whether anything consumes the changes that operators make.
    fn telling(&self) -> Telling {
        if self.catalog.tells_of(self.namespace) { Telling::Delta } else { Telling::Nothing }
    }

    fn check_interrupt(&self) -> Result<()> {
        self.scope.operation.check()
    }

    fn note_written(&mut self, lsn: Option<Lsn>) {
        if lsn.is_some() {
            self.scope.operation.note_change();
        }
        self.written = self.written.max(lsn);
    }
}

/// The verdict for a changed document; the oplog records replacements, pipelines and operators differently.
fn verdict(update: &Update, next: DocumentBuf, delta: Option<DocumentBuf>) -> Verdict {
    if update.is_replacement() {
        Verdict::Replace(next)
    } else if update.is_pipeline() {
        Verdict::Derive(next)
    } else {
        Verdict::Modify(next, delta)
    }
}
