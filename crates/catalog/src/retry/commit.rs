//! Records that a transaction is committed, so that a repeated commit gets its answer.

use super::history::COMMIT;
use super::record::Ranges;
use super::retryable_write::{commit_with, tell};
use super::{Outcome, SessionName, WriteHistory};
use crate::Catalog;
use bunko_store::planted::{self, Bug};
use bunko_store::{Batch, Keeping, Lsn};

/// Commits the changes of a session's transaction, one batch or a chain of batches, and records with them that it is
/// committed.
/// # Errors
/// As `Store::commit`.
pub(crate) fn commit_transaction(
    catalog: &Catalog,
    history: &mut WriteHistory,
    (session, number): (SessionName, i64),
    parts: &mut [Batch<'_>],
) -> bunko_store::Result<Lsn> {
    history.turn_to(number);
    if planted::active(Bug::TornCommit) {
        for part in parts.iter() {
            catalog.store.commit(part)?;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        return commit_with(
            catalog,
            history,
            (session, number),
            &Ranges::one(COMMIT),
            &Outcome::One,
            &mut Batch::new(),
        );
    }
    let _whole = catalog.store.commit_whole();
    if let [batch] = parts {
        return commit_with(catalog, history, (session, number), &Ranges::one(COMMIT), &Outcome::One, batch);
    }
    if parts.iter().all(|part| catalog.store.keeping(part) == Keeping::Place) {
        // Nothing can be lost between the two commits: a restart recovers the changes too.
        let (written, _) = catalog.store.commit_chain(parts)?;
        commit_with(catalog, history, (session, number), &Ranges::one(COMMIT), &Outcome::One, &mut Batch::new())?;
        return Ok(written);
    }
    let ranges = Ranges::one(COMMIT);
    let last = parts.last_mut().expect("a chain has two at least");
    let word = tell(catalog, history, (session, number), (&ranges, &Outcome::One), last);
    let (lsn, location) = catalog.store.commit_chain(parts)?;
    word.note(history, &ranges, location, lsn);
    Ok(lsn)
}
