//! The member's last vote. It lies beside the log, not in it, because each member votes for itself.
//!
//! **Invariant:** a vote is durable before another member hears of it, and before the term begins.

use crate::checked_documents::{self, Parts, number};
use crate::{Result, Store};
use bunko_bson::DocumentBuf;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "vote";

/// A vote in an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The term of the election, from 1.
    pub term: u64,
    /// The `_id` of the member that it is for.
    pub candidate: u64,
}

impl Vote {
    fn path(directory: &Path) -> PathBuf {
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
        let vote = number(document, "term").zip(number(document, "candidate"));
        let (term, candidate) = vote.ok_or_else(|| parts.corrupt("has no vote"))?;
        parts.end()?;
        Ok(Some(Self { term, candidate }))
    }

    fn write(self, directory: &Path) -> Result<()> {
        let document = DocumentBuf::new().with("term", self.term as i64).with("candidate", self.candidate as i64);
        checked_documents::replace(&Self::path(directory), &[document])
    }
}

impl Store {
    /// The last vote that was saved.
    pub fn vote(&self) -> Option<Vote> {
        *self.vote.lock()
    }

    /// Saves a vote in place of the last one; on return it is durable. A store without a directory keeps it for its
    /// life.
    ///
    /// # Errors
    /// Errors of the files; the last vote then stays, or the new one has taken its place.
    pub fn save_vote(&self, vote: Vote) -> Result<()> {
        let mut last = self.vote.lock();
        self.directory.as_ref().map_or(Ok(()), |directory| vote.write(&directory.path))?;
        *last = Some(vote);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StorageError;
    use crate::engines::fake::fake;
    use crate::{EngineTable, StoreOptions, Survival};

    #[test]
    fn a_vote_is_read_again_and_a_damaged_one_is_refused() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let open = || {
            let (own, _) = fake("own", Survival::Durable);
            Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own))
        };
        let store = open().expect("opens");
        assert_eq!(store.vote(), None);
        for term in [3, 4] {
            store.save_vote(Vote { term, candidate: 1 }).expect("saved");
        }
        store.close().expect("closes");
        drop(store);
        assert_eq!(open().expect("opens").vote(), Some(Vote { term: 4, candidate: 1 }));
        let path = Vote::path(directory.path());
        let bytes = std::fs::read(&path).expect("readable");
        for end in 0..bytes.len() {
            std::fs::write(&path, &bytes[..end]).expect("written");
            assert!(matches!(open(), Err(StorageError::Corrupt { .. })), "cut at {end}");
        }
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 1;
            std::fs::write(&path, &flipped).expect("written");
            assert!(matches!(open(), Err(StorageError::Corrupt { .. })), "flipped at {index}");
        }
        std::fs::write(&path, bytes).expect("written");
        open().expect("opens");
    }
}
