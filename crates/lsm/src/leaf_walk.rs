//! Walks record ids over the leaves of all tables and memtables, in ascending order.

use crate::key;
use crate::leaves::{Behind, InUse, Leaf, LeafEntry, Leaves};
use crate::memtable::{MemtableRecords, RecordsBehind};
use crate::state::State;
use crate::table_run::TableRun;
use bunko_store::{KeyspaceId, Location, Result};
use lsm_tree::SeqNo;
use std::ops::Bound;
use std::sync::Arc;

/// Parameters of a walk: a keyspace, its first and last record, and the LSN below which changes are seen.
#[derive(Clone, Copy)]
pub(crate) struct RecordRoute {
    pub keyspace: KeyspaceId,
    pub first: u64,
    pub last: u64,
    pub before: SeqNo,
}

/// A source of records.
enum Source {
    Tables(TableRun),
    Memtable(MemtableRecords),
}

/// A source that is not at its end, with its present leaf, at its next entry.
struct RunWalk {
    source: Source,
    leaf: InUse<Leaf>,
    next: usize,
}

/// Result of a step of one source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Advance {
    /// The next entry.
    Entry,
    End,
    /// The memtable was freed before the walk came to its end.
    Gone,
}

impl RunWalk {
    /// A walk before the first entry of the route.
    fn new(source: Source) -> Self {
        Self { source, leaf: InUse::made(Leaf::nothing), next: 0 }
    }

    fn begin(&mut self, leaves: &Leaves<Leaf>, route: &RecordRoute) -> Result<Advance> {
        let first = route.first.to_be_bytes();
        if let Source::Tables(tables) = &mut self.source
            && !key::with_key(route.keyspace, &first, |first| tables.seek(&leaves.blocks, first))?
        {
            return Ok(Advance::End);
        }
        self.enter(route.first, leaves, route)
    }

    /// The next entry. The walk must not be at its end.
    fn head(&self) -> &LeafEntry {
        &self.leaf.entries[self.next]
    }

    /// Steps over the head.
    #[inline]
    fn advance(&mut self, leaves: &Leaves<Leaf>, route: &RecordRoute) -> Result<Advance> {
        self.next += 1;
        match self.leaf.entries.get(self.next) {
            Some(entry) if entry.record <= route.last => Ok(Advance::Entry),
            Some(_) => Ok(Advance::End),
            None => match self.leave_leaf(leaves)? {
                Some(from) => self.enter(from, leaves, route),
                None => Ok(Advance::End),
            },
        }
    }

    /// Goes to the first entry from `from` on, starting with the present block.
    fn enter(&mut self, from: u64, leaves: &Leaves<Leaf>, route: &RecordRoute) -> Result<Advance> {
        let mut from = Some(from);
        while let Some(record) = from.filter(|record| *record <= route.last) {
            self.leaf = match &self.source {
                Source::Tables(tables) => match &tables.place {
                    Some(place) => leaves.leaf(place, route.keyspace)?,
                    None => break,
                },
                Source::Memtable(records) => {
                    let mut is_gone = false;
                    let leaf = InUse::made(|| match records.leaf(record, route.before) {
                        RecordsBehind::Leaf(leaf) => leaf,
                        RecordsBehind::Gone => {
                            is_gone = true;
                            Leaf::nothing()
                        }
                    });
                    if is_gone {
                        return Ok(Advance::Gone);
                    }
                    leaf
                }
            };
            self.next = self.leaf.first_of(record);
            if let Some(entry) = self.leaf.entries.get(self.next) {
                return Ok(if entry.record <= route.last { Advance::Entry } else { Advance::End });
            }
            from = self.leave_leaf(leaves)?.map(|next| next.max(record));
        }
        Ok(Advance::End)
    }

    /// Goes on from the end of the leaf. Returns the record from which entries follow, or `None` at the end. Older
    /// versions of the leaf's last record may follow too.
    fn leave_leaf(&mut self, leaves: &Leaves<Leaf>) -> Result<Option<u64>> {
        let Behind::Records(next) = self.leaf.behind else { return Ok(None) };
        match &mut self.source {
            Source::Memtable(_) => Ok(next),
            Source::Tables(tables) => {
                let last = self.leaf.entries.last().map_or(0, |last| last.record);
                Ok(tables.advance(&leaves.blocks)?.then_some(last))
            }
        }
    }
}

/// Result of a step of the walk.
pub(crate) enum LeafStep {
    /// The next record and its document's location.
    Record(u64, Location),
    End,
    /// A memtable was freed before the walk came to its end. Its entries are in the tables now.
    Gone,
}

/// Walks the newest versions that a route shows, over all tables and memtables.
pub(crate) struct LeafWalk {
    route: RecordRoute,
    leaves: Arc<Leaves<Leaf>>,
    unopened: Vec<RunWalk>,
    /// Opened runs that are not at their end.
    runs: Vec<RunWalk>,
    /// Index of the run that is walked alone, up to and including the record `through`.
    alone: usize,
    through: Option<u64>,
    /// The last record of which a version has been found that the route sees.
    decided: Option<u64>,
    is_gone: bool,
}

impl LeafWalk {
    /// A walk over the tables and memtables of a state; reads nothing yet.
    pub fn new(state: &State, leaves: Arc<Leaves<Leaf>>, route: RecordRoute) -> Self {
        let memtables = state.memtables().filter_map(|memtable| memtable.records(route.keyspace)).map(Source::Memtable);
        let (first, last) = (route.first.to_be_bytes().to_vec(), route.last.to_be_bytes().to_vec());
        let range = key::in_tree(route.keyspace, (Bound::Included(first), Bound::Included(last)));
        let tables = state.runs_reaching(&range).into_iter().map(|tables| Source::Tables(TableRun::new(tables)));
        let unopened = memtables.chain(tables).map(RunWalk::new).collect();
        Self { route, leaves, unopened, runs: Vec::new(), alone: 0, through: None, decided: None, is_gone: false }
    }

    fn open(&mut self) -> Result<()> {
        for mut run in std::mem::take(&mut self.unopened) {
            match run.begin(&self.leaves, &self.route)? {
                Advance::Entry => self.runs.push(run),
                Advance::End => {}
                Advance::Gone => self.is_gone = true,
            }
        }
        Ok(())
    }

    /// Removes a run that has nothing more to show.
    fn close(&mut self, run: usize, end: Advance) {
        self.runs.swap_remove(run);
        self.is_gone |= end == Advance::Gone;
    }

    /// The next record and its document's location.
    pub fn next(&mut self) -> Result<LeafStep> {
        loop {
            if let Some(through) = self.through {
                let run = &mut self.runs[self.alone];
                let entry = *run.head();
                if entry.record <= through {
                    match run.advance(&self.leaves, &self.route)? {
                        Advance::Entry => {}
                        end => {
                            self.close(self.alone, end);
                            self.through = None;
                        }
                    }
                    // The newest visible version of a record comes first.
                    if entry.lsn < self.route.before && self.decided != Some(entry.record) {
                        self.decided = Some(entry.record);
                        if let Some(location) = entry.location() {
                            return Ok(LeafStep::Record(entry.record, location));
                        }
                    }
                    continue;
                }
                self.through = None;
            }
            self.open()?;
            // Every record that the walk has met so far has been decided.
            if self.is_gone {
                return Ok(LeafStep::Gone);
            }
            let heads = || self.runs.iter().map(|run| run.head().record).enumerate();
            let Some((first, record)) = heads().min_by_key(|(_, record)| *record) else { return Ok(LeafStep::End) };
            let others = heads().filter(|(run, _)| *run != first).map(|(_, record)| record).min();
            if others != Some(record) {
                self.alone = first;
                self.through = Some(others.map_or(u64::MAX, |other| other - 1));
            } else if let Some(location) = self.newest_of(record)? {
                return Ok(LeafStep::Record(record, location));
            }
        }
    }

    /// Steps over all versions of a record in several runs; returns the location of the newest visible version, `None`
    /// if that is a deletion or none is visible.
    fn newest_of(&mut self, record: u64) -> Result<Option<Location>> {
        let mut newest: Option<LeafEntry> = None;
        let mut index = 0;
        'runs: while index < self.runs.len() {
            let run = &mut self.runs[index];
            while run.head().record == record {
                let entry = *run.head();
                if entry.lsn < self.route.before && newest.is_none_or(|newest| newest.lsn < entry.lsn) {
                    newest = Some(entry);
                }
                match run.advance(&self.leaves, &self.route)? {
                    Advance::Entry => {}
                    end => {
                        self.close(index, end);
                        continue 'runs;
                    }
                }
            }
            index += 1;
        }
        self.decided = Some(record);
        Ok(newest.and_then(|newest| newest.location()))
    }
}
