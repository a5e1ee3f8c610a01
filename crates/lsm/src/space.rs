//! Disk space of keyspaces.

use crate::accounts::{Account, Balances};
use crate::extents::{Contents, Registry};
use crate::key::KEYSPACE_BYTES;
use bunko_store::{KeyspaceId, KeyspaceStatistics, Space};
use lsm_tree::{AbstractTree, AnyTree, UserKey};
use rustc_hash::FxHashMap;

/// Approximate size of a record's entry in a tree.
const RECORD_ENTRY_BYTES: u64 = 30;

/// Space of each keyspace: documents in extents and in the log, and a share of the trees. `flushed` has the counts of
/// entries in the trees. Newer entries, which are only in the log, count with the size of their keys.
pub(crate) fn of_keyspaces(
    keyspaces: &[(KeyspaceId, KeyspaceStatistics)],
    registry: &Registry,
    state: &Balances,
    flushed: &Balances,
    tree: &AnyTree,
) -> Vec<Space> {
    let trees = of_trees(tree, state);
    let mut spaces: FxHashMap<KeyspaceId, Space> =
        trees.into_iter().map(|(keyspace, used_bytes)| (keyspace, Space { used_bytes, free_bytes: 0 })).collect();
    for (keyspace, segment, share) in state.shares() {
        if registry.of_segment(segment).is_none() {
            let space = spaces.entry(keyspace).or_default();
            space.used_bytes += share.live;
            space.free_bytes += share.total.saturating_sub(share.live);
        }
    }
    for extent in registry.extents() {
        for (keyspace, contents) in &extent.contents {
            let shares = extent.segments.iter().filter_map(|segment| state.share(*keyspace, *segment));
            let used_bytes = live_part(*contents, shares.map(|share| share.live).sum());
            let space = spaces.entry(*keyspace).or_default();
            space.used_bytes += used_bytes;
            space.free_bytes += contents.stored_bytes - used_bytes;
        }
    }
    let of_keyspace = |(keyspace, holds): &(KeyspaceId, KeyspaceStatistics)| {
        let mut space = spaces.get(keyspace).copied().unwrap_or_default();
        let unflushed = holds.entries.saturating_sub(flushed.account(*keyspace).map_or(0, |account| account.entries));
        let has_documents = state.account(*keyspace).is_some_and(Account::has_documents);
        let entry_bytes = match holds.bytes.checked_div(holds.entries) {
            Some(bytes) if !has_documents => bytes,
            _ => RECORD_ENTRY_BYTES,
        };
        space.used_bytes += unflushed * entry_bytes;
        space
    };
    keyspaces.iter().map(of_keyspace).collect()
}

/// The part of the stored bytes that belongs to live documents.
fn live_part(contents: Contents, live: u64) -> u64 {
    let part = live.min(contents.documents_bytes) as f64 / contents.documents_bytes.max(1) as f64;
    (contents.stored_bytes as f64 * part) as u64
}

/// Bytes of the tables by keyspace. A table with several keyspaces is divided in proportion to their entries, because
/// entries differ little in size: about 30 bytes for a record, and the key for an index key.
fn of_trees(tree: &AnyTree, state: &Balances) -> FxHashMap<KeyspaceId, u64> {
    let mut bytes = FxHashMap::default();
    for table in tree.current_version().iter_tables() {
        let range = &table.metadata.key_range;
        let (first, last) = (keyspace_of(range.min()), keyspace_of(range.max()));
        let entries = state.accounts().map(|(keyspace, account)| (keyspace, account.entries));
        let within: Vec<_> = entries.filter(|(keyspace, _)| (first..=last).contains(keyspace)).collect();
        let all: u64 = within.iter().map(|(_, count)| *count).sum();
        for (keyspace, count) in within {
            let part = count as f64 / all.max(1) as f64;
            *bytes.entry(keyspace).or_insert(0) += (table.metadata.file_size as f64 * part) as u64;
        }
    }
    bytes
}

fn keyspace_of(key: &UserKey) -> KeyspaceId {
    KeyspaceId(key.first_chunk::<KEYSPACE_BYTES>().map_or(0, |bytes| u32::from_be_bytes(*bytes)))
}
