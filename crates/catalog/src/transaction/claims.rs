//! Claims of a transaction: records and unique keys that it has to itself, and the check that nothing changed since its
//! snapshot.

use super::owners::{Claimed, Owned};
use super::turn::Obstacle;
use super::{Open, Transaction};
use crate::index_keys::own_part;
use crate::write::holder;
use crate::{Collection, Index, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::planted::{self, Bug};
use bunko_store::{Location, RecordId, View};

impl Transaction {
    /// Claims a record, which the transaction's view shows at `location`. The caller holds the record's lock.
    /// # Errors
    /// `WriteConflict` if another transaction has claimed the record, or if it was changed since the snapshot.
    pub(crate) fn claim_record(&self, collection: &Collection, record: RecordId, location: Location) -> Result<()> {
        if planted::active(Bug::LostUpdate) {
            return Ok(());
        }
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        if open.overlay.knows_record(collection.records, record)
            || self.claim(open, Owned::record(collection, record))? == Claimed::Before
        {
            return Ok(());
        }
        let mut document = Vec::new();
        let latest = self.catalog.store.latest().record(collection.records, record, &mut document);
        if latest.map_err(from_storage)? == Some(location) { Ok(()) } else { Err(self.overtaken()) }
    }

    /// Claims a record that is inserted, so that a writer that finds it in the middle of the commit waits for the
    /// commit to end.
    /// # Errors
    /// `WriteConflict` if another transaction has claimed the record; `NoSuchTransaction`.
    pub(crate) fn claim_new_record(&self, collection: &Collection, record: RecordId) -> Result<()> {
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        self.claim(open, Owned::record(collection, record)).map(drop)
    }

    /// Claims a stored key of a unique index, which is put or deleted. The caller holds the key's lock.
    /// # Errors
    /// `WriteConflict` if another transaction has claimed the key, or if it leads to another record than in the
    /// snapshot; `NoSuchTransaction`.
    pub(crate) fn claim_key(&self, index: &Index, key: &[u8]) -> Result<()> {
        let mut course = self.course.lock();
        let open = self.open(&mut course)?;
        if self.claim(open, Owned::key(index, own_part(index, key)))? == Claimed::Before {
            return Ok(());
        }
        let snapshot = open.snapshot.as_ref().expect("a statement reads before it writes");
        let holder_in = |view: &dyn View| holder(view, index, key).map_err(from_storage);
        if holder_in(self.catalog.store.latest())? == holder_in(&**snapshot)? { Ok(()) } else { Err(self.overtaken()) }
    }

    fn claim(&self, open: &mut Open, owned: Owned) -> Result<Claimed> {
        let claimed = self.catalog.owners.claim(&owned, &self.owner);
        match claimed {
            Claimed::Now => open.owned.push(owned),
            Claimed::Before => {}
            Claimed::ByOther => {
                *self.obstacle.lock() = Some(Obstacle::Owner(owned));
                return Err(write_conflict());
            }
        }
        Ok(claimed)
    }

    /// The failure of a statement whose document or key was changed by a finished write after the transaction's snapshot.
    fn overtaken(&self) -> Failure {
        self.catalog.owners.note_conflict();
        *self.obstacle.lock() = Some(Obstacle::Past);
        write_conflict()
    }
}

fn write_conflict() -> Failure {
    Failure::new(
        ErrorCode::WRITE_CONFLICT,
        "Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document \
         transaction.",
    )
}
