//! Takes documents from sources: checks and sums them, skips documents that are done, and queues the rest.

use super::batch::{Batch, Doubt, cut};
use super::collection;
use super::options::{Existing, Mode, ObjectCheck, Verify};
use super::pool::Loan;
use super::resume::{Before, ResumeLog};
use super::run::Run;
use super::target::{RestoredNamespace, Role};
use crate::{Link, ToolError};
use bunko_archive::each_document;
use bunko_bson::DocumentRef;
use std::path::Path;
use std::sync::Arc;

/// A reader's access to the run.
pub(super) struct Feed<'r> {
    pub(super) run: &'r Run<'r>,
    /// For preparing collections; opened for the first one.
    link: Option<Box<dyn Link>>,
}

/// Place from which a part was read.
#[derive(Clone, Copy)]
pub(super) struct PartEnd<'p> {
    pub(super) path: &'p Path,
    /// Offset after the part's last document, in bytes before compression.
    pub(super) end_bytes: u64,
}

impl<'r> Feed<'r> {
    pub(super) fn new(run: &'r Run<'r>) -> Self {
        Self { run, link: None }
    }

    /// A buffer for the next part; `None` if nothing more is to be read.
    pub(super) fn lend(&self) -> Option<Loan> {
        if self.run.is_read() { None } else { self.run.pool.lend(|| self.run.is_read()) }
    }

    /// Makes the collection ready for its documents. A refusal by the server is the target's failure, not the run's,
    /// unless the first error ends it.
    pub(super) fn begin(&mut self, target: &Arc<RestoredNamespace>) -> Result<(), ToolError> {
        // Views are made later, when the collections that they show exist.
        let is_later = target.role == Role::View || target.earlier.is_prepared;
        if self.run.options.mode != Mode::Restore || is_later {
            return Ok(());
        }
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(self.run.connect(&target.name)?),
        };
        collection::prepare(self.run, link, target)?;
        match &self.run.resume {
            Some(resume) if !target.has_failed() => resume.prepared(&target.source),
            _ => Ok(()),
        }
    }

    /// Takes the next documents of a target.
    pub(super) fn documents(
        &mut self,
        target: &Arc<RestoredNamespace>,
        part: Loan,
        place: PartEnd<'_>,
    ) -> Result<(), ToolError> {
        let run = self.run;
        if run.options.object_check == ObjectCheck::Deep {
            check(&part.documents().bytes, place)?;
        }
        if target.role == Role::View {
            let found = format!("documents of the view {}", target.source);
            return Err(ToolError::Damaged { path: place.path.to_owned(), offset_bytes: place.end_bytes, found });
        }
        if run.options.verify == Verify::Everything {
            target.sum.lock().add_all(part.documents());
        }
        if target.has_failed() {
            return Ok(());
        }
        let count = part.documents().count as u64;
        let stretch = target.ledger().hand_out(part.documents().bytes.len());
        let length = stretch.end - stretch.start;
        if run.options.mode != Mode::Restore || stretch.end <= target.earlier.done_bytes {
            target.counts.add(count, length);
            return Ok(());
        }
        let done_bytes = target.earlier.done_bytes.saturating_sub(stretch.start) as usize;
        let done = each_document(&part.documents().bytes[..done_bytes]).count();
        target.counts.add(done as u64, done_bytes as u64);
        self.queue(target, part, done_bytes, stretch.start);
        Ok(())
    }

    /// Queues the documents from offset `from` of a part on; `position` is their place among the target's documents.
    fn queue(&self, target: &Arc<RestoredNamespace>, part: Loan, from: usize, position: u64) {
        let doubt = self.doubt(target);
        let part = Arc::new(part);
        let limits = self.run.form.limits(self.run.options);
        let batches = cut(&part.documents().bytes[from..], limits).map(|(bytes, count)| {
            let bytes = bytes.start + from..bytes.end + from;
            let stretch = position + bytes.start as u64..position + bytes.end as u64;
            Batch { target: Arc::clone(target), part: Arc::clone(&part), bytes, count, stretch, doubt }
        });
        self.run.queue.push(batches);
    }

    /// Says whether documents may have been sent before the interruption: all that were not recorded as done may have
    /// been.
    fn doubt(&self, target: &RestoredNamespace) -> Doubt {
        let before = self.run.resume.as_ref().map_or(Before::Nothing, ResumeLog::before);
        let is_kept = self.run.options.existing == Existing::Keep && !target.role.is_temporary();
        if target.earlier.is_prepared || (before == Before::Unknown && is_kept) {
            Doubt::MayBeThere
        } else {
            Doubt::None
        }
    }

    /// Marks the end of the target's documents.
    pub(super) fn end(&mut self, target: &Arc<RestoredNamespace>) {
        if self.run.options.mode != Mode::Restore {
            target.finish();
        } else if target.role != Role::View {
            self.run.end(target);
        }
    }
}

/// Checks every document down to its leaves.
fn check(bytes: &[u8], place: PartEnd<'_>) -> Result<(), ToolError> {
    let mut offset_bytes = place.end_bytes - bytes.len() as u64;
    for document in each_document(bytes) {
        if let Err(error) = DocumentRef::parse(document) {
            return Err(ToolError::Damaged { path: place.path.to_owned(), offset_bytes, found: error.to_string() });
        }
        offset_bytes += document.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::DocumentBuf;

    #[test]
    fn a_deep_check_finds_the_document_and_its_offset() {
        let mut bytes = DocumentBuf::new().with("a", 1).into_bytes();
        let mut bad = DocumentBuf::new().with("b", true).into_bytes();
        bad[7] = 9;
        bytes.extend(&bad);
        let place = PartEnd { path: Path::new("x.bson"), end_bytes: 100 };
        let error = check(&bytes, place).expect_err("a boolean of 9");
        let expected_offset = 100 - bad.len() as u64;
        assert!(matches!(error, ToolError::Damaged { offset_bytes, .. } if offset_bytes == expected_offset), "{error}");
        assert_eq!(each_document(&bytes).count(), 2);
    }
}
