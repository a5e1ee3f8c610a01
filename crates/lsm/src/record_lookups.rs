//! Finds many records at once: in the order of their ids, so that each leaf is visited once. Reads their documents in
//! the order in which they are stored.

use crate::blocks::{BlockId, BlockPlace};
use crate::documents::{Documents, Home, block_number, document};
use crate::extents::{Block, Extent};
use crate::key;
use crate::leaves::{InLeaf, InUse, Leaf, Leaves};
use crate::memtable::Known;
use crate::state::State;
use crate::table_run::TableRun;
use crate::tree_values::malformed;
use bunko_heap::prefetch;
use bunko_store::{KeyspaceId, Location, RecordId, Result, TakeRecord, segment_of};
use lsm_tree::SeqNo;
use lsm_tree::table::filter::standard_bloom;
use std::ops::Bound;
use std::sync::Arc;

/// Largest gap between two documents in the log that one read still bridges, in bytes: copying them costs less than a
/// call.
const GAP_BYTES: u64 = 2 * 1024;
/// Maximum number of bytes that one read takes for several documents.
const TOGETHER_BYTES_MAX: u64 = 64 * 1024;
/// From this number of documents on, parts of the log that are read often are kept.
const MANY: usize = 16;
/// Maximum number of an extent's blocks, and of documents in them, that are prefetched together, and of bytes of each
/// document.
const BLOCKS_TOGETHER: usize = 16;
const DOCUMENTS_TOGETHER: usize = 64;
const PREFETCHED_BYTES: usize = 256;

/// A record that is looked up.
struct Sought {
    record: u64,
    /// Index of the record among the requested ones.
    number: usize,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Not found yet.
    Open,
    Found(Location),
    Deleted,
}

impl Outcome {
    fn location(self) -> Option<Location> {
        match self {
            Self::Found(location) => Some(location),
            Self::Open | Self::Deleted => None,
        }
    }

    fn of(location: Option<Location>) -> Self {
        location.map_or(Self::Deleted, Self::Found)
    }
}

/// Locations of records' documents below an LSN, in the order of `records`.
pub(crate) fn locations(
    state: &State,
    leaves: &Leaves<Leaf>,
    (keyspace, before): (KeyspaceId, SeqNo),
    records: &[RecordId],
) -> Result<Vec<Option<Location>>> {
    let of = |(number, record): (usize, &RecordId)| Sought { record: record.0, number, outcome: Outcome::Open };
    let mut sought: Vec<Sought> = records.iter().enumerate().map(of).collect();
    sought.sort_unstable_by_key(|sought| sought.record);
    look_in_memtables(state, (keyspace, before), &mut sought)?;
    look_in_tables(state, leaves, (keyspace, before), &mut sought)?;
    let mut found = vec![None; records.len()];
    for sought in sought {
        found[sought.number] = sought.outcome.location();
    }
    Ok(found)
}

fn look_in_memtables(state: &State, (keyspace, before): (KeyspaceId, SeqNo), sought: &mut [Sought]) -> Result<()> {
    for memtable in state.memtables().filter(|memtable| memtable.has(keyspace)) {
        for sought in sought.iter_mut().filter(|sought| sought.outcome == Outcome::Open) {
            sought.outcome = match memtable.get(keyspace, &sought.record.to_be_bytes(), before) {
                None => Outcome::Open,
                Some(Known::Deleted) => Outcome::Deleted,
                Some(Known::Value(value)) => {
                    Outcome::Found(Location::decode(&value).ok_or_else(|| malformed("location"))?)
                }
            };
        }
    }
    Ok(())
}

fn look_in_tables(
    state: &State,
    leaves: &Leaves<Leaf>,
    (keyspace, before): (KeyspaceId, SeqNo),
    sought: &mut [Sought],
) -> Result<()> {
    let mut open = sought.iter().filter(|sought| sought.outcome == Outcome::Open).map(|sought| sought.record);
    let Some(first) = open.next() else { return Ok(()) };
    let last = open.next_back().unwrap_or(first);
    let bound = |record: u64| Bound::Included(record.to_be_bytes().to_vec());
    let runs = state.runs_reaching(&key::in_tree(keyspace, (bound(first), bound(last))));
    // With a single run, its leaf must be read in any case, so a filter would save nothing.
    let filters = if runs.len() > 1 { Filters::Asked } else { Filters::PassedOver };
    // The newest run first, because its entries hide those of the others.
    for tables in runs {
        let mut run = RunLookups { leaves, keyspace, before, filters, run: TableRun::new(tables) };
        run.find_all(sought)?;
    }
    Ok(())
}

/// Whether the tables' filters are checked before their leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filters {
    Asked,
    PassedOver,
}

/// Looks up records in one run of tables, in ascending order.
struct RunLookups<'l> {
    leaves: &'l Leaves<Leaf>,
    keyspace: KeyspaceId,
    before: SeqNo,
    filters: Filters,
    run: TableRun,
}

impl RunLookups<'_> {
    /// Looks up records in the run. First finds the likely entries of all records, so that the processor fetches them
    /// from memory in parallel, which takes longer than the searches.
    fn find_all(&mut self, sought: &mut [Sought]) -> Result<()> {
        let mut leaves: Vec<(BlockId, InUse<Leaf>)> = Vec::new();
        let mut places = Vec::with_capacity(sought.len());
        for (number, sought) in sought.iter().enumerate().filter(|(_, sought)| sought.outcome == Outcome::Open) {
            let Some(may_know) = self.seek(sought.record)? else { break };
            let Some(place) = self.run.place.as_ref().filter(|_| may_know) else { continue };
            let block = place.id();
            if leaves.last().is_none_or(|(at, _)| *at != block) {
                leaves.push((block, self.leaves.leaf(place, self.keyspace)?));
            }
            if let Some((_, leaf)) = leaves.last() {
                leaf.prefetch(sought.record);
            }
            places.push((number, leaves.len() - 1));
        }
        for (number, leaf) in places {
            let sought = &mut sought[number];
            match leaves[leaf].1.newest_of(sought.record, self.before) {
                InLeaf::Found(entry) => sought.outcome = Outcome::of(entry.location()),
                InLeaf::Nothing => {}
                InLeaf::Behind => self.find_behind(sought)?,
            }
        }
        Ok(())
    }

    /// As [`Self::find_all`], for a record whose versions may go on in the next block.
    fn find_behind(&self, sought: &mut Sought) -> Result<()> {
        let mut again = RunLookups { run: self.run.again(), ..*self };
        if again.seek(sought.record)? != Some(true) {
            return Ok(());
        }
        while let Some(place) = &again.run.place {
            match self.leaves.leaf(place, self.keyspace)?.newest_of(sought.record, self.before) {
                InLeaf::Found(entry) => sought.outcome = Outcome::of(entry.location()),
                InLeaf::Behind if again.run.advance(&self.leaves.blocks)? => continue,
                InLeaf::Nothing | InLeaf::Behind => {}
            }
            break;
        }
        Ok(())
    }

    /// Goes to the block that may have a record. Returns whether the table may have it; `None` after the last block.
    fn seek(&mut self, record: u64) -> Result<Option<bool>> {
        let leaves = self.leaves;
        key::with_key(self.keyspace, &record.to_be_bytes(), |key| {
            Ok(if self.run.seek(&leaves.blocks, key)? { Some(self.may_know(key)) } else { None })
        })
    }

    /// Whether the run's present table may have a key in the tree's form.
    fn may_know(&self, key: &[u8]) -> bool {
        let Some(table) = self.run.place.as_ref().map(BlockPlace::table) else { return false };
        if key < &**table.metadata.key_range.min() {
            return false;
        }
        let filter = table.pinned_filter_block.as_ref().filter(|_| self.filters == Filters::Asked);
        // If a filter cannot be read, the table's blocks are searched.
        filter.is_none_or(|filter| filter.maybe_contains_hash(standard_bloom::Builder::get_hash(key)).unwrap_or(true))
    }
}

impl Documents {
    /// Reads documents of one keyspace, each with its number, and shows them in the order in which they are stored.
    pub fn read_each(
        &self,
        keyspace: KeyspaceId,
        mut places: Vec<(Location, usize)>,
        take: &mut TakeRecord<'_>,
    ) -> Result<()> {
        places.sort_unstable_by_key(|(location, _)| location.position);
        let is_many = places.len() >= MANY;
        let (mut rest, mut buffer): (&[_], Vec<u8>) = (&places, Vec::new());
        while let Some((location, _)) = rest.first() {
            match self.home(*location) {
                Home::Extent(extent) => {
                    let count = self.take_from_blocks(keyspace, &extent, rest, take)?;
                    rest = &rest[count..];
                }
                Home::Log => {
                    if is_many {
                        rest = &rest[self.take_from_kept(rest, take)..];
                    }
                    let Some((location, _)) = rest.first() else { break };
                    let (together, end) = stretch(rest);
                    buffer.resize((end - location.position) as usize, 0);
                    if let Err(error) = self.log().read_raw(location.position, &mut buffer) {
                        self.unless_moved(*location, error)?;
                        continue;
                    }
                    for (own, number) in &rest[..together] {
                        let start = (own.position - location.position) as usize;
                        let document = &buffer[start..start + own.length as usize];
                        self.log().verify(*own, document)?;
                        take(*number, *own, document);
                    }
                    if is_many {
                        self.kept_log.was_read(self.log(), *location);
                    }
                    rest = &rest[together..];
                }
            }
        }
        Ok(())
    }

    /// Shows documents from kept parts of the log, up to the first that is not kept or is in another segment. Returns
    /// their number.
    fn take_from_kept(&self, places: &[(Location, usize)], take: &mut TakeRecord<'_>) -> usize {
        let Some(segment) = places.first().and_then(|(first, _)| self.kept_log.segment(*first)) else { return 0 };
        let get = |(location, number): &(Location, usize)| Some((*location, *number, segment.get(*location)?));
        let mut documents = Vec::with_capacity(DOCUMENTS_TOGETHER.min(places.len()));
        let mut taken = 0;
        loop {
            documents.clear();
            documents.extend(places[taken..].iter().map_while(get).take(DOCUMENTS_TOGETHER));
            for (_, _, document) in &documents {
                prefetch(&document[..document.len().min(PREFETCHED_BYTES)]);
            }
            for (location, number, document) in &documents {
                // A document that fails its check is read again from the file, so that the error names the damaged
                // place.
                if self.log().verify(*location, document).is_err() {
                    return taken;
                }
                take(*number, *location, document);
                taken += 1;
            }
            if documents.len() < DOCUMENTS_TOGETHER {
                return taken;
            }
        }
    }

    /// Shows the first documents of `places` that are in this extent, as many as are prefetched together. Returns their
    /// number.
    fn take_from_blocks(
        &self,
        keyspace: KeyspaceId,
        extent: &Extent,
        places: &[(Location, usize)],
        take: &mut TakeRecord<'_>,
    ) -> Result<usize> {
        let mut blocks: Vec<(usize, Arc<Block>)> = Vec::with_capacity(BLOCKS_TOGETHER);
        let mut held = Vec::with_capacity(BLOCKS_TOGETHER);
        for (location, number) in places {
            let is_here = held.is_empty() || extent.segments.binary_search(&segment_of(location.position)).is_ok();
            if !is_here || held.len() == DOCUMENTS_TOGETHER {
                break;
            }
            let block = block_number(extent, keyspace, *location)?;
            if blocks.last().is_none_or(|(at, _)| *at != block) {
                if blocks.len() == BLOCKS_TOGETHER {
                    break;
                }
                blocks.push((block, self.block(extent, block)?));
            }
            if let Some((_, block)) = blocks.last() {
                block.prefetch(*location);
            }
            held.push((*location, *number, blocks.len() - 1));
        }
        let mut documents = Vec::with_capacity(held.len());
        for (location, number, block) in held {
            let (at, block) = &blocks[block];
            let document = document(block, extent, *at, location)?;
            prefetch(&document[..document.len().min(PREFETCHED_BYTES)]);
            documents.push((location, number, document));
        }
        for (location, number, document) in &documents {
            take(*number, *location, document);
        }
        Ok(documents.len())
    }
}

/// The number of leading documents, which are in log order, that one read takes, and the end of the last of them.
fn stretch(places: &[(Location, usize)]) -> (usize, u64) {
    let first = places[0].0;
    let end_of = |location: Location| location.position + u64::from(location.length);
    let mut end = end_of(first);
    let mut count = 1;
    for (location, _) in &places[1..] {
        let is_near = location.position.saturating_sub(end) <= GAP_BYTES
            && end_of(*location) - first.position <= TOGETHER_BYTES_MAX
            && segment_of(location.position) == segment_of(first.position);
        if !is_near {
            break;
        }
        end = end.max(end_of(*location));
        count += 1;
    }
    (count, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(places: &[(u64, u32)]) -> Vec<(Location, usize)> {
        places.iter().map(|&(position, length)| (Location { position, length, checksum: 0 }, 0)).collect()
    }

    #[test]
    fn one_read_takes_neighbouring_documents() {
        let together = |all: &[(u64, u32)]| stretch(&places(all));
        assert_eq!(together(&[(100, 50)]), (1, 150));
        assert_eq!(together(&[(100, 50), (150 + GAP_BYTES, 50), (10_000, 1)]), (2, 200 + GAP_BYTES));
        assert_eq!(together(&[(100, 50), (151 + GAP_BYTES, 50)]), (1, 150));
        assert_eq!(together(&[(100, 50), (100, 50), (120, 10)]), (3, 150), "the same one again");
        assert_eq!(together(&[(100, 50), (160, 1 << 20)]), (1, 150));
        assert_eq!(together(&[(100, 1 << 20), (200 + (1 << 20), 1)]), (1, 100 + (1 << 20)));
        let edge = bunko_store::SEGMENT_BYTES;
        assert_eq!(together(&[(edge - 50, 50), (edge + 64, 50)]), (1, edge));
    }
}
