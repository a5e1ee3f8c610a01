//! Exact counts per keyspace and live bytes per log segment, kept as records are applied and saved at checkpoints.

use crate::log::segment_of;
use crate::{Effect, Effects, KeyspaceId, Location, Presence};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What a keyspace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceStatistics {
    /// Records of a record store, or keys of an index.
    pub entries: u64,
    /// Bytes of its documents or keys.
    pub bytes: u64,
    /// Live document bytes by log segment.
    pub(crate) live: BTreeMap<u64, u64>,
}

impl KeyspaceStatistics {
    fn put(&mut self, location: Location) {
        self.bytes += u64::from(location.length);
        *self.live.entry(segment_of(location.position)).or_insert(0) += u64::from(location.length);
    }

    fn take(&mut self, location: Location) {
        self.bytes = self.bytes.saturating_sub(u64::from(location.length));
        let segment = segment_of(location.position);
        if let Some(live) = self.live.get_mut(&segment) {
            *live = live.saturating_sub(u64::from(location.length));
            if *live == 0 {
                self.live.remove(&segment);
            }
        }
    }
}

/// All keyspaces' statistics. Replay starts from the state that the checkpoint saved, so nothing counts twice.
#[derive(Default)]
pub(crate) struct Statistics {
    keyspaces: Mutex<FxHashMap<KeyspaceId, KeyspaceStatistics>>,
}

impl Statistics {
    pub(crate) fn restore(saved: impl IntoIterator<Item = (KeyspaceId, KeyspaceStatistics)>) -> Self {
        Self { keyspaces: Mutex::new(saved.into_iter().collect()) }
    }

    pub(crate) fn apply(&self, effects: Effects<'_>) {
        let mut keyspaces = self.keyspaces.lock();
        for effect in effects {
            match effect {
                Effect::PutRecord { keyspace, location, replaced, .. } => {
                    let statistics = keyspaces.entry(keyspace).or_default();
                    statistics.put(location);
                    match replaced {
                        Some(replaced) => statistics.take(replaced),
                        None => statistics.entries += 1,
                    }
                }
                Effect::DeleteRecord { keyspace, replaced, .. } => {
                    let statistics = keyspaces.entry(keyspace).or_default();
                    statistics.entries = statistics.entries.saturating_sub(1);
                    statistics.take(replaced);
                }
                Effect::PutPrimaryKey { presence: Presence::Moved, .. } => {}
                Effect::PutKey { keyspace, key, .. } | Effect::PutPrimaryKey { keyspace, key, .. } => {
                    let statistics = keyspaces.entry(keyspace).or_default();
                    statistics.entries += 1;
                    statistics.bytes += key.len() as u64;
                }
                Effect::DeleteKey { keyspace, key } => {
                    let statistics = keyspaces.entry(keyspace).or_default();
                    statistics.entries = statistics.entries.saturating_sub(1);
                    statistics.bytes = statistics.bytes.saturating_sub(key.len() as u64);
                }
                Effect::DropKeyspace { keyspace } => {
                    keyspaces.remove(&keyspace);
                }
            }
        }
    }

    pub(crate) fn keyspace(&self, keyspace: KeyspaceId) -> KeyspaceStatistics {
        self.keyspaces.lock().get(&keyspace).cloned().unwrap_or_default()
    }

    pub(crate) fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.keyspaces.lock().get(&keyspace).map_or(0, |statistics| statistics.entries)
    }

    pub(crate) fn copy(&self) -> Vec<(KeyspaceId, KeyspaceStatistics)> {
        self.keyspaces.lock().iter().map(|(&keyspace, statistics)| (keyspace, statistics.clone())).collect()
    }
}

/// Segments in which some document is alive.
pub(crate) fn live_segments(keyspaces: &[(KeyspaceId, KeyspaceStatistics)]) -> std::collections::BTreeSet<u64> {
    keyspaces.iter().flat_map(|(_, statistics)| statistics.live.keys().copied()).collect()
}
