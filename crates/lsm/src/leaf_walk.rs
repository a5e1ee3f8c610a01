//! Walking record ids over the leaves of all tables, in ascending order.

use crate::leaves::{Leaf, LeafEntry, Leaves, least, reaches};
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

/// Tables of one run: they follow each other.
struct RunWalk {
    /// The last comes first.
    tables: Vec<Table>,
    leaf: Arc<Leaf>,
    next: usize,
}

impl RunWalk {
    /// At the first entry of the route, if there is one.
    fn new(mut tables: Vec<Table>, leaves: &Leaves, route: &RecordRoute) -> Result<Option<Self>> {
        tables.retain(|table| reaches(table, route.keyspace, (route.first, route.last)));
        tables.reverse();
        let mut walk = Self { tables, leaf: Arc::new(Leaf { entries: Box::default(), next: None }), next: 0 };
        let Some(table) = walk.tables.last() else { return Ok(None) };
        let from = least(table, route.keyspace).max(route.first);
        Ok(walk.enter(from, leaves, route)?.then_some(walk))
    }

    /// The entry that comes next; the walk is not at its end.
    fn head(&self) -> &LeafEntry {
        &self.leaf.entries[self.next]
    }

    /// Whether there is an entry behind the one that was the head, which is it now.
    fn advance(&mut self, leaves: &Leaves, route: &RecordRoute) -> Result<bool> {
        self.next += 1;
        match self.leaf.entries.get(self.next) {
            Some(entry) => Ok(entry.record <= route.last),
            None => match self.behind_leaf(route) {
                Some(from) => self.enter(from, leaves, route),
                None => Ok(false),
            },
        }
    }

    /// Goes to the first entry from a record on, beginning with the last table.
    fn enter(&mut self, from: u64, leaves: &Leaves, route: &RecordRoute) -> Result<bool> {
        let mut from = Some(from);
        while let (Some(record), Some(table)) = (from, self.tables.last()) {
            if record > route.last {
                return Ok(false);
            }
            self.leaf = leaves.leaf(table, route.keyspace, record)?;
            self.next = self.leaf.entries.partition_point(|entry| entry.record < record);
            if let Some(entry) = self.leaf.entries.get(self.next) {
                return Ok(entry.record <= route.last);
            }
            from = self.behind_leaf(route);
        }
        Ok(false)
    }

    /// The first record behind the leaf; goes to the next table for it.
    fn behind_leaf(&mut self, route: &RecordRoute) -> Option<u64> {
        self.leaf.next.or_else(|| {
            self.tables.pop();
            self.tables.last().map(|table| least(table, route.keyspace).max(route.first))
        })
    }
}

/// The newest versions that a route shows, of all tables.
pub(crate) struct LeafWalk {
    route: RecordRoute,
    leaves: Arc<Leaves>,
    unopened: Vec<Vec<Table>>,
    /// Those that are not at their end.
    runs: Vec<RunWalk>,
    /// The run that is walked alone, up to and including a record.
    alone: usize,
    through: Option<u64>,
    /// The last record of which a version was met that the route shows.
    decided: Option<u64>,
}

impl LeafWalk {
    /// A walk over the tables of runs; reads nothing yet.
    pub fn new(runs: Vec<Vec<Table>>, leaves: Arc<Leaves>, route: RecordRoute) -> Self {
        Self { route, leaves, unopened: runs, runs: Vec::new(), alone: 0, through: None, decided: None }
    }

    fn open(&mut self) -> Result<()> {
        for tables in std::mem::take(&mut self.unopened) {
            self.runs.extend(RunWalk::new(tables, &self.leaves, &self.route)?);
        }
        Ok(())
    }

    /// The next record and where its document is.
    pub fn next(&mut self) -> Result<Option<(u64, Location)>> {
        loop {
            if let Some(through) = self.through {
                let run = &mut self.runs[self.alone];
                let entry = *run.head();
                if entry.record <= through {
                    if !run.advance(&self.leaves, &self.route)? {
                        self.runs.swap_remove(self.alone);
                        self.through = None;
                    }
                    // Of a record the newest version that is seen comes first.
                    if entry.lsn < self.route.before && self.decided != Some(entry.record) {
                        self.decided = Some(entry.record);
                        if let Some(location) = entry.location() {
                            return Ok(Some((entry.record, location)));
                        }
                    }
                    continue;
                }
                self.through = None;
            }
            self.open()?;
            let heads = || self.runs.iter().map(|run| run.head().record).enumerate();
            let Some((first, record)) = heads().min_by_key(|(_, record)| *record) else { return Ok(None) };
            let others = heads().filter(|(run, _)| *run != first).map(|(_, record)| record).min();
            if others != Some(record) {
                self.alone = first;
                self.through = Some(others.map_or(u64::MAX, |other| other - 1));
            } else if let Some(location) = self.newest_of(record)? {
                return Ok(Some((record, location)));
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
                if !run.advance(&self.leaves, &self.route)? {
                    self.runs.swap_remove(index);
                    continue 'runs;
                }
            }
            index += 1;
        }
        self.decided = Some(record);
        Ok(newest.and_then(|newest| newest.location()))
    }
}
