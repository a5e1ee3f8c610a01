//! Takes the live documents out of segments and extents, into a new extent.

use crate::accounts::Balances;
use crate::compression::Compression;
use crate::extents::{Extent, ExtentWalk, ExtentWriter};
use crate::view::LsmView;
use bunko_store::{Effect, KeyspaceId, Log, Lsn, Pace, RecordId, Result, Urgency, segment_of};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Decides whether a document is alive.
pub(super) struct Sieve<'a> {
    pub oldest: &'a LsmView,
    pub state: &'a Balances,
}

impl Sieve<'_> {
    /// Whether documents of an extent may be needed: one of its keyspaces has documents there, or was dropped but is
    /// still in some view.
    fn may_need(&self, extent: &Extent) -> bool {
        extent.contents.keys().any(|keyspace| {
            let is_counted = |segment: &u64| self.state.share(*keyspace, *segment).is_some();
            self.state.is_dropped(*keyspace) || extent.segments.iter().any(is_counted)
        })
    }

    fn is_needed(&self, keyspace: KeyspaceId, record: RecordId, position: u64) -> Result<bool> {
        match self.state.share(keyspace, segment_of(position)) {
            // No document there has died, so this one is alive. That is usual where documents are only inserted, and
            // needs no search.
            Some(share) if share.live == share.total => Ok(true),
            Some(_) => {
                let location = self.oldest.location(keyspace, record)?;
                Ok(location.is_some_and(|location| location.position == position))
            }
            // The keyspace was dropped, perhaps not yet for every view.
            None => Ok(self.state.is_dropped(keyspace)),
        }
    }
}

/// Documents on their way into a new extent.
pub(super) struct Removal<'a> {
    pub sieve: Sieve<'a>,
    pub extent: ExtentWriter,
    pub default_compression: Compression,
    /// Bytes that were kept, by keyspace and segment.
    pub kept: FxHashMap<(KeyspaceId, u64), u64>,
    pub left_behind: u64,
    pub moved: u64,
    pub pace: Pace,
    pub urgency: Urgency,
    pub log: &'a Log,
    /// End of the log at the last check.
    pub log_end: Option<Lsn>,
}

impl Removal<'_> {
    fn rest(&mut self) {
        self.pace.step(|| {
            let log_end = self.log.next_lsn();
            let is_written = self.log_end.replace(log_end) != Some(log_end);
            // Without writers the step need not be slow, and a shutdown waits until the step has ended.
            if self.urgency == Urgency::Leisure && !is_written { Urgency::Usual } else { self.urgency }
        });
    }

    pub fn take_segments(&mut self, segments: &[u64]) -> Result<()> {
        let log = self.log;
        segments.iter().try_for_each(|segment| {
            log.walk_segment(*segment, &mut |_, effects| {
                for effect in effects {
                    if let Effect::PutRecord { keyspace, record, location, document, .. } = effect {
                        self.take(keyspace, record, location.position, document)?;
                    }
                }
                Ok(())
            })
        })
    }

    /// Merges the extents: each is sorted by the same order, but their segments may interleave.
    pub fn take_extents(&mut self, extents: &[Arc<Extent>]) -> Result<()> {
        // An extent whose collections were all dropped has no needed documents, so it is not read.
        let needed = extents.iter().filter(|extent| self.sieve.may_need(extent));
        let mut walks = needed.map(|extent| ExtentWalk::new(extent)).collect::<Result<Vec<_>>>()?;
        loop {
            let next = walks.iter().enumerate().filter_map(|(index, walk)| Some((walk.place()?, index))).min();
            let Some((_, index)) = next else { return Ok(()) };
            let walk = &mut walks[index];
            if let Some((keyspace, held)) = walk.current() {
                self.take(keyspace, held.record, held.position, held.document)?;
            }
            walk.advance()?;
        }
    }

    fn take(&mut self, keyspace: KeyspaceId, record: RecordId, position: u64, document: &[u8]) -> Result<()> {
        self.rest();
        if !self.sieve.is_needed(keyspace, record, position)? {
            self.left_behind += 1;
            return Ok(());
        }
        self.moved += 1;
        *self.kept.entry((keyspace, segment_of(position))).or_insert(0) += document.len() as u64;
        let chosen = self.sieve.state.account(keyspace).and_then(|account| account.compression);
        let compression = chosen.unwrap_or(self.default_compression);
        self.extent.push(keyspace, compression, record, position, document)
    }
}
