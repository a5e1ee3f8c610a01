//! That a transaction was committed, for whoever asks for it again.

use super::history::COMMIT;
use super::retryable_write::commit_with;
use super::{Outcome, SessionUuid, WriteHistory};
use crate::Catalog;
use bunko_store::{Batch, Lsn};

/// Commits the changes of a session's transaction together with the record that it is committed.
/// # Errors
/// As `Store::commit`.
pub(crate) fn commit_transaction(
    catalog: &Catalog,
    history: &mut WriteHistory,
    (session, number): (SessionUuid, i64),
    batch: &mut Batch<'_>,
) -> bunko_store::Result<Lsn> {
    history.turn_to(number);
    let _whole = catalog.store.commit_whole();
    commit_with(catalog, history, (session, number), &[COMMIT], &Outcome::One, batch)
}
