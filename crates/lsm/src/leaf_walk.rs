//! Walking record ids over the leaves of all tables and memtables, in ascending order.

use crate::leaves::{Leaf, LeafEntry, Leaves, least, reaches};
use crate::memtable::{MemtableRecords, RecordsBehind};
use crate::state::State;
use bunko_store::{KeyspaceId, Location, Result};
use lsm_tree::{SeqNo, Table};
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
    /// Tables of one run, which follow each other; the last comes first.
    Tables(Vec<Table>),
    Memtable(MemtableRecords),
}

/// A source that is not at its end, at the entry that comes next.
struct RunWalk {
    source: Source,
    leaf: Arc<Leaf>,
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
    fn new(mut source: Source, route: &RecordRoute) -> Self {
        if let Source::Tables(tables) = &mut source {
            tables.retain(|table| reaches(table, route.keyspace, (route.first, route.last)));
            tables.reverse();
        }
        Self { source, leaf: Arc::new(Leaf { entries: Box::default(), next: None }), next: 0 }
    }

    fn begin(&mut self, leaves: &Leaves, route: &RecordRoute) -> Result<Advance> {
        let from = match &self.source {
            Source::Memtable(_) => route.first,
            Source::Tables(tables) => match tables.last() {
                None => return Ok(Advance::End),
                Some(table) => least(table, route.keyspace).max(route.first),
            },
        };
        self.enter(from, leaves, route)
    }

    /// The entry that comes next; the walk is not at its end.
    fn head(&self) -> &LeafEntry {
        &self.leaf.entries[self.next]
    }

    /// Goes behind the entry that was the head.
    #[inline]
    fn advance(&mut self, leaves: &Leaves, route: &RecordRoute) -> Result<Advance> {
        self.next += 1;
        match self.leaf.entries.get(self.next) {
            Some(entry) if entry.record <= route.last => Ok(Advance::Entry),
            Some(_) => Ok(Advance::End),
            None => match self.behind_leaf(route) {
                Some(from) => self.enter(from, leaves, route),
                None => Ok(Advance::End),
            },
        }
    }

    /// Goes to the first entry from a record on, beginning with the last table.
    fn enter(&mut self, from: u64, leaves: &Leaves, route: &RecordRoute) -> Result<Advance> {
        let mut from = Some(from);
        while let Some(record) = from.filter(|record| *record <= route.last) {
            self.leaf = match &self.source {
                Source::Tables(tables) => match tables.last() {
                    Some(table) => leaves.leaf(table, route.keyspace, record)?,
                    None => break,
                },
                Source::Memtable(records) => match records.leaf(record, route.before) {
                    RecordsBehind::Leaf(leaf) => Arc::new(leaf),
                    RecordsBehind::Gone => return Ok(Advance::Gone),
                },
            };
            self.next = self.leaf.entries.partition_point(|entry| entry.record < record);
            if let Some(entry) = self.leaf.entries.get(self.next) {
                return Ok(if entry.record <= route.last { Advance::Entry } else { Advance::End });
            }
            from = self.behind_leaf(route);
        }
        Ok(Advance::End)
    }

    /// The first record behind the leaf; goes to the next table for it.
    fn behind_leaf(&mut self, route: &RecordRoute) -> Option<u64> {
        self.leaf.next.or_else(|| match &mut self.source {
            Source::Memtable(_) => None,
            Source::Tables(tables) => {
                tables.pop();
                tables.last().map(|table| least(table, route.keyspace).max(route.first))
            }
        })
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
    leaves: Arc<Leaves>,
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
    pub fn new(state: &State, leaves: Arc<Leaves>, route: RecordRoute) -> Self {
        let memtables = state.memtables().filter_map(|memtable| memtable.records(route.keyspace)).map(Source::Memtable);
        let tables = state.runs().into_iter().map(Source::Tables);
        let unopened = memtables.chain(tables).map(|source| RunWalk::new(source, &route)).collect();
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
