//! Records at random places of a collection.

use crate::from_storage;
use bunko_errors::Result;
use bunko_store::{Direction, KeyspaceId, RecordId, RecordRange, View};

/// The record ids of a view from the first to the last. A place is one of these ids, each as likely as every other. A
/// place without a record is drawn again, so each document is as likely as every other too.
#[derive(Clone, Copy, Debug)]
pub struct RandomPlaces {
    first: u64,
    count: u64,
}

impl RandomPlaces {
    /// The places of a record store; one place if it has no records.
    /// # Errors
    /// Failures of the storage.
    pub fn of(view: &dyn View, records: KeyspaceId) -> Result<Self> {
        let end = |direction| {
            let mut cursor = view.records(records, RecordRange::ALL, direction);
            Ok(cursor.next().map_err(from_storage)?.map_or(0, |(record, ..)| record.0))
        };
        let (first, last) = (end(Direction::Forward)?, end(Direction::Backward)?);
        Ok(Self { first, count: last.saturating_sub(first) + 1 })
    }

    /// The place for a random number from 0 to below 1.
    pub fn draw(&self, random: f64) -> RecordId {
        let place = (random * self.count as f64) as u64;
        RecordId(self.first + place.min(self.count - 1))
    }
}
