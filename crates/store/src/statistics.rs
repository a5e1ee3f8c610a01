//! Exact counts for each keyspace, updated as records are applied and saved at checkpoints.

use crate::{Effect, Effects, KeyspaceId, KeyspaceMap, Presence};
use parking_lot::Mutex;

/// Counts of a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceStatistics {
    /// Records of a record store, or keys of an index.
    pub entries: u64,
    /// Bytes of its documents or keys.
    pub bytes: u64,
}

/// A change of a keyspace's counts.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    entries: i64,
    bytes: i64,
}

impl KeyspaceStatistics {
    fn add(&mut self, change: Change) {
        self.entries = self.entries.saturating_add_signed(change.entries);
        self.bytes = self.bytes.saturating_add_signed(change.bytes);
    }
}

/// The change that an effect makes to the counts of its keyspace; `None` if it changes none, or drops the keyspace.
fn change(effect: &Effect<'_>) -> Option<Change> {
    let (entries, bytes) = match *effect {
        // A replacement of equal length changes no count.
        Effect::PutRecord { location, replaced: Some(replaced), .. } if replaced.length == location.length => {
            return None;
        }
        Effect::PutRecord { location, replaced: Some(replaced), .. } => {
            (0, i64::from(location.length) - i64::from(replaced.length))
        }
        Effect::PutRecord { location, .. } | Effect::PlaceRecord { location, .. } => (1, i64::from(location.length)),
        Effect::DeleteRecord { replaced, .. } => (-1, -i64::from(replaced.length)),
        Effect::CreateKeyspace { .. }
        | Effect::AdoptFile { .. }
        | Effect::DropKeyspace { .. }
        | Effect::PutKey { presence: Presence::Taken, .. }
        | Effect::PutPrimaryKey { presence: Presence::Moved | Presence::Taken, .. } => return None,
        Effect::PutKey { key, .. } | Effect::PutPrimaryKey { key, .. } => (1, key.len() as i64),
        Effect::DeleteKey { key, .. } => (-1, -(key.len() as i64)),
    };
    Some(Change { entries, bytes })
}

/// The changes that all parts of a chain make to the counts.
#[derive(Default)]
pub(crate) struct CountChanges {
    changed: KeyspaceMap<Change>,
    dropped: Vec<KeyspaceId>,
}

impl CountChanges {
    pub(crate) fn add(&mut self, effects: Effects<'_>) {
        for effect in effects {
            if let Effect::DropKeyspace { keyspace } = effect {
                self.dropped.push(keyspace);
            } else if let Some(change) = change(&effect) {
                let sum = self.changed.get_or_default(effect.keyspace());
                sum.entries += change.entries;
                sum.bytes += change.bytes;
            }
        }
    }
}

/// Statistics of all keyspaces. Replay starts from the state that the checkpoint saved, so nothing is counted twice.
#[derive(Default)]
pub(crate) struct Statistics {
    keyspaces: Mutex<KeyspaceMap<KeyspaceStatistics>>,
}

impl Statistics {
    pub(crate) fn restore(saved: impl IntoIterator<Item = (KeyspaceId, KeyspaceStatistics)>) -> Self {
        Self { keyspaces: Mutex::new(saved.into_iter().collect()) }
    }

    pub(crate) fn apply(&self, effects: Effects<'_>) {
        let mut keyspaces = self.keyspaces.lock();
        for effect in effects {
            if let Effect::DropKeyspace { keyspace } = effect {
                keyspaces.remove(keyspace);
            } else if let Some(change) = change(&effect) {
                keyspaces.get_or_default(effect.keyspace()).add(change);
            }
        }
    }

    /// Applies the changes of a chain. A reader sees the counts before all of them or after all of them: a query that asks
    /// for the number of documents gets it from here.
    pub(crate) fn apply_changes(&self, changes: CountChanges) {
        let mut keyspaces = self.keyspaces.lock();
        for (keyspace, change) in changes.changed.iter() {
            keyspaces.get_or_default(keyspace).add(*change);
        }
        for keyspace in changes.dropped {
            keyspaces.remove(keyspace);
        }
    }

    pub(crate) fn keyspace(&self, keyspace: KeyspaceId) -> KeyspaceStatistics {
        self.keyspaces.lock().get(keyspace).copied().unwrap_or_default()
    }

    pub(crate) fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.keyspaces.lock().get(keyspace).map_or(0, |statistics| statistics.entries)
    }

    pub(crate) fn copy(&self) -> KeyspaceMap<KeyspaceStatistics> {
        self.keyspaces.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, RecordId};

    #[test]
    fn the_parts_of_a_chain_count_as_they_do_one_by_one() {
        let part = |record: u64| {
            let mut batch = Batch::new();
            batch.insert_record(KeyspaceId(7), RecordId(record), vec![7; 100]);
            batch
        };
        let (one_by_one, together, mut changes) =
            (Statistics::default(), Statistics::default(), CountChanges::default());
        for part in [part(1), part(2)] {
            one_by_one.apply(part.effects(0));
            changes.add(part.effects(0));
        }
        together.apply_changes(changes);
        assert_eq!(together.entries(KeyspaceId(7)), 2);
        assert_eq!(together.keyspace(KeyspaceId(7)), one_by_one.keyspace(KeyspaceId(7)));
    }
}
