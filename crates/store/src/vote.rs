//! The member's last vote. It lies beside the log, not in it, because each member votes for itself.
//!
//! **Invariant:** a vote is durable before another member hears of it, and before the term begins.

use crate::Result;
use crate::checked_documents::{self, Parts, number};
use bunko_bson::DocumentBuf;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "vote";

/// The highest term that a member knows, and its vote in this term's election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The term, from 1.
    pub term: u64,
    /// The `_id` of the member that has the vote; `None` if the member has learned of the term and not voted in it.
    pub candidate: Option<u64>,
}

impl Vote {
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join(FILE_NAME)
    }

    /// Reads the vote of a data directory; `None` if none was saved.
    ///
    /// # Errors
    /// [`crate::StorageError::Corrupt`] for a damaged file: with a vote forgotten, two members could win one election.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>> {
        let path = Self::path(directory);
        let Some(bytes) = crate::files::read(&path)? else { return Ok(None) };
        let mut parts = Parts::new(&path, &bytes);
        let document = parts.next()?;
        let term = number(document, "term").ok_or_else(|| parts.corrupt("has no term"))?;
        let candidate = number(document, "candidate");
        if candidate.is_none() && document.get("candidate").is_some() {
            return Err(parts.corrupt("has a malformed vote"));
        }
        parts.end()?;
        Ok(Some(Self { term, candidate }))
    }

    pub(crate) fn write(self, directory: &Path) -> Result<()> {
        let mut document = DocumentBuf::new().with("term", self.term as i64);
        if let Some(candidate) = self.candidate {
            document.append("candidate", candidate as i64);
        }
        checked_documents::replace(&Self::path(directory), &[document])
    }
}
