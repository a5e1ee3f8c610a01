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

impl KeyspaceStatistics {
    fn shrink(&mut self, length_bytes: u32) {
        self.bytes = self.bytes.saturating_sub(u64::from(length_bytes));
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
            match effect {
                // A replacement of equal length changes no count.
                Effect::PutRecord { location, replaced: Some(replaced), .. } if replaced.length == location.length => {}
                Effect::PutRecord { keyspace, location, replaced, .. } => {
                    let statistics = keyspaces.get_or_default(keyspace);
                    statistics.bytes += u64::from(location.length);
                    match replaced {
                        Some(replaced) => statistics.shrink(replaced.length),
                        None => statistics.entries += 1,
                    }
                }
                Effect::PlaceRecord { keyspace, location, .. } => {
                    let statistics = keyspaces.get_or_default(keyspace);
                    statistics.bytes += u64::from(location.length);
                    statistics.entries += 1;
                }
                Effect::DeleteRecord { keyspace, replaced, .. } => {
                    let statistics = keyspaces.get_or_default(keyspace);
                    statistics.entries = statistics.entries.saturating_sub(1);
                    statistics.shrink(replaced.length);
                }
                Effect::CreateKeyspace { .. } | Effect::AdoptFile { .. } => {}
                Effect::PutKey { presence: Presence::Taken, .. }
                | Effect::PutPrimaryKey { presence: Presence::Moved | Presence::Taken, .. } => {}
                Effect::PutKey { keyspace, key, .. } | Effect::PutPrimaryKey { keyspace, key, .. } => {
                    let statistics = keyspaces.get_or_default(keyspace);
                    statistics.entries += 1;
                    statistics.bytes += key.len() as u64;
                }
                Effect::DeleteKey { keyspace, key } => {
                    let statistics = keyspaces.get_or_default(keyspace);
                    statistics.entries = statistics.entries.saturating_sub(1);
                    statistics.bytes = statistics.bytes.saturating_sub(key.len() as u64);
                }
                Effect::DropKeyspace { keyspace } => {
                    keyspaces.remove(keyspace);
                }
            }
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
