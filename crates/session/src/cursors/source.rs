//! The source of a cursor's documents.

use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef};
use bunko_errors::Result;
use bunko_operation::Examined;
use bunko_query::{Execution, PlanReport, Standing};
use bunko_store::{Bell, Lsn};
use std::sync::Arc;

/// Limits of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// Maximum number of documents.
    pub documents: u64,
    /// Maximum total bytes of the documents.
    pub bytes: usize,
}

/// Source of a cursor's documents. Each document is lent until the next call.
pub trait CursorSource: Send {
    /// The next document, or `None` at the end.
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>>;

    /// The next documents as a whole batch within `limits`, and their number. `None` if no batch is ready; the caller
    /// then asks for single documents.
    /// # Errors
    /// As [`Self::next`].
    fn next_batch(&mut self, _limits: BatchLimits) -> Result<Option<(ArrayRef<'_>, u64)>> {
        Ok(None)
    }

    /// Whether the source knows, without a search, that no document is left.
    fn is_over(&self) -> bool {
        false
    }

    /// Keys and documents examined so far, if the source counts them. Pipelines count in their operation instead.
    fn examined(&self) -> Option<Examined> {
        None
    }

    /// The report of the source's plan; `None` if it has no plan.
    fn report(&self) -> Option<PlanReport> {
        None
    }

    /// Called before each batch except the first.
    /// # Errors
    /// `QueryPlanKilled` if its collection no longer exists.
    fn resume(&mut self) -> Result<()> {
        Ok(())
    }

    /// The snapshot that the source reads; `None` if storage engines retain none for it.
    fn snapshot(&self) -> Option<Lsn> {
        None
    }

    /// The collection, name and indexes that must still exist before documents read earlier are returned after a pause.
    fn standing(&self) -> Option<Standing> {
        None
    }

    /// Whether documents may be read ahead of the client, unless another check forbids it.
    fn may_be_read_ahead(&self) -> bool {
        true
    }

    /// Whether more documents may come after the present end, as for tailable cursors.
    fn stays_open(&self) -> bool {
        false
    }

    /// The token with which a client resumes after the last document, if the source can be resumed.
    fn resume_token(&self) -> Option<DocumentBuf> {
        None
    }

    /// The resume token after the document before the last, if documents do not carry it themselves.
    fn resume_token_before(&self) -> Option<DocumentBuf> {
        None
    }

    /// Rings when there may be more documents, if a `getMore` that finds none should wait.
    fn bell(&self) -> Option<&Arc<Bell>> {
        None
    }
}

impl CursorSource for Execution {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        Execution::next(self)
    }

    fn is_over(&self) -> bool {
        Execution::is_over(self)
    }

    fn examined(&self) -> Option<Examined> {
        let statistics = self.statistics();
        Some(Examined { keys: statistics.keys_examined, documents: statistics.docs_examined })
    }

    fn report(&self) -> Option<PlanReport> {
        Some(Execution::report(self))
    }

    fn resume(&mut self) -> Result<()> {
        self.footing().check()
    }

    fn snapshot(&self) -> Option<Lsn> {
        Some(Execution::snapshot(self).lsn())
    }

    fn standing(&self) -> Option<Standing> {
        Some(self.footing().standing())
    }
}

/// A source without documents, for a collection that does not exist.
pub struct NoDocuments;

impl CursorSource for NoDocuments {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        Ok(None)
    }

    fn is_over(&self) -> bool {
        true
    }

    fn report(&self) -> Option<PlanReport> {
        Some(PlanReport::of_tree(DocumentBuf::new().with("stage", "EOF")))
    }
}
