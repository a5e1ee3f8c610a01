//! The member's last vote. It lies beside the log, not in it, because each member votes for itself.
//!
//! **Invariant:** a vote is durable before another member hears of it, and before the term begins.

use crate::Result;
use crate::checked_documents::{self, Parts, number};
use bunko_bson::DocumentBuf;
use bunko_replica::{MemberId, Vote};
use std::path::{Path, PathBuf};

/// The vote's file.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join("vote")
}

/// Reads the vote of a data directory; `None` if none was saved.
///
/// # Errors
/// [`crate::StorageError::Corrupt`] for a damaged file: with a vote forgotten, two members could win one election.
pub(crate) fn read(directory: &Path) -> Result<Option<Vote>> {
    let path = path(directory);
    let Some(bytes) = crate::files::read(&path)? else { return Ok(None) };
    let mut parts = Parts::new(&path, &bytes);
    let document = parts.next()?;
    let term = number(document, "term").ok_or_else(|| parts.corrupt("has no term"))?;
    let candidate = number(document, "candidate").and_then(|id| u32::try_from(id).ok()).map(MemberId);
    if candidate.is_none() && document.get("candidate").is_some() {
        return Err(parts.corrupt("has a malformed vote"));
    }
    parts.end()?;
    Ok(Some(Vote { term, candidate }))
}

pub(crate) fn write(directory: &Path, vote: Vote) -> Result<()> {
    let mut document = DocumentBuf::new().with("term", vote.term as i64);
    if let Some(MemberId(id)) = vote.candidate {
        document.append("candidate", i64::from(id));
    }
    checked_documents::replace(&path(directory), &[document])
}
