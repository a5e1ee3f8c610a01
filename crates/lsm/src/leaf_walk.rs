//! Walking record ids over the leaves of all tables and memtables, in ascending order.

use crate::key;
use crate::leaves::{Behind, InUse, Leaf, LeafEntry, Leaves};
use crate::memtable::{MemtableRecords, RecordsBehind};
use crate::state::State;
use crate::table_run::TableRun;
use bunko_store::{KeyspaceId, Location, Result};
use lsm_tree::SeqNo;
use std::ops::Bound;
use std::sync::Arc;

/// Where a walk goes: records of a keyspace from the first to the last, as of all below an LSN.
#[derive(Clone, Copy)]
pub(crate) struct RecordRoute {
    pub keyspace: KeyspaceId,
    pub first: u64,
    pub last: u64,
    pub before: SeqNo,
}

/// What one walk goes over.
enum Source {
    Tables(TableRun),
    Memtable(MemtableRecords),
}

/// A source that is not at its end, at the entry that comes next.
struct RunWalk {
    source: Source,
    leaf: InUse<Leaf>,
    next: usize,
}

/// What a step of one source led to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Advance {
    /// The next entry.
    Entry,
    End,
    /// The memtable went before its end.
    Gone,
}

impl RunWalk {
    /// Before the first entry of the route.
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

    /// The entry that comes next; the walk is not at its end.
    fn head(&self) -> &LeafEntry {
        &self.leaf.entries[self.next]
    }

    /// Goes behind the entry that was the head.
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

    /// Goes to the first entry from a record on, beginning with the present block.
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

    /// Goes on behind the leaf; from which record on others come, of which the last one may have older versions.
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

/// Where a walk has come to.
pub(crate) enum LeafStep {
    /// The next record and where its document is.
    Record(u64, Location),
    End,
    /// A memtable went that the walk had not come to the end of: it stands in the tables now.
    Gone,
}

/// The newest versions that a route shows, of all tables and memtables.
pub(crate) struct LeafWalk {
    route: RecordRoute,
    leaves: Arc<Leaves<Leaf>>,
    unopened: Vec<RunWalk>,
    /// Those that are not at their end.
    runs: Vec<RunWalk>,
    /// The run that is walked alone, up to and including a record.
    alone: usize,
    through: Option<u64>,
    /// The last record of which a version was met that the route shows.
    decided: Option<u64>,
    is_gone: bool,
}

impl LeafWalk {
    /// A walk over all that a state has; reads nothing yet.
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

    /// Takes a run out that has nothing more to show.
    fn close(&mut self, run: usize, end: Advance) {
        self.runs.swap_remove(run);
        self.is_gone |= end == Advance::Gone;
    }

    /// The next record and where its document is.
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
                    // Of a record the newest version that is seen comes first.
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
            // All that was met before has been decided.
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

    /// Goes past all versions of a record that several runs know; where the newest that is seen leads.
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
