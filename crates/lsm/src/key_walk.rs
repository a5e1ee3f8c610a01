//! Walks index keys over the leaves of all tables and memtables, in ascending order.

use crate::blocks::BlockId;
use crate::key;
use crate::key_leaves::{KeyLeaf, KeyVersion};
use crate::keys::Cut;
use crate::leaves::{InUse, Leaves};
use crate::memtable::{KeysFrom, MemtableKeys};
use crate::state::State;
use crate::table_run::TableRun;
use arc_swap::ArcSwap;
use bunko_store::{KeyspaceId, RecordId, Result};
use lsm_tree::SeqNo;
use std::ops::Bound;
use std::sync::Arc;

/// Number of keys that are taken from a memtable at a time: few at first, because many walks end with their first key.
const MEMTABLE_KEYS_MIN: usize = 8;
const MEMTABLE_KEYS_MAX: usize = 256;

/// Parameters of a walk: a keyspace, a range of its keys, and the LSN below which changes are seen.
pub(crate) struct KeyRoute {
    pub keyspace: KeyspaceId,
    pub range: key::Range,
    pub before: SeqNo,
}

impl KeyRoute {
    /// Calls `with` with the beginning of the range, as a key in the tree's form.
    fn with_start<R>(&self, with: impl FnOnce(&[u8]) -> R) -> R {
        let start = match &self.range.0 {
            Bound::Included(start) | Bound::Excluded(start) => start.as_slice(),
            Bound::Unbounded => &[],
        };
        key::with_key(self.keyspace, start, with)
    }

    /// The cut at which the range begins.
    fn start(&self) -> Cut<'_> {
        match &self.range.0 {
            Bound::Included(start) => Cut::Before(start),
            Bound::Excluded(start) => Cut::Behind(start),
            Bound::Unbounded => Cut::Before(&[]),
        }
    }

    /// The cut at which the range ends; `None` if it has no end.
    fn end(&self) -> Option<Cut<'_>> {
        match &self.range.1 {
            Bound::Included(end) => Some(Cut::Behind(end)),
            Bound::Excluded(end) => Some(Cut::Before(end)),
            Bound::Unbounded => None,
        }
    }

    /// Whether the range is empty.
    fn is_over(&self) -> bool {
        match &self.range {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => {
                start >= end
            }
            _ => false,
        }
    }
}

/// A source of keys.
enum Source {
    Tables(TableRun),
    Memtable {
        keys: MemtableKeys,
        at_once: usize,
        /// Whether the leaf has the memtable's last key within the range.
        is_whole: bool,
    },
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

/// A source with its present leaf, at its next entry unless it is at its end.
struct Run {
    source: Source,
    leaf: InUse<KeyLeaf>,
    /// The block that the leaf was decoded from; `None` for a memtable's leaf.
    block: Option<BlockId>,
    next: usize,
    /// Index after the last entry of the leaf that is within the range.
    stop: usize,
    is_at_end: bool,
    is_gone: bool,
}

impl Run {
    fn new(source: Source) -> Self {
        Self {
            source,
            leaf: InUse::made(KeyLeaf::default),
            block: None,
            next: 0,
            stop: 0,
            is_at_end: true,
            is_gone: false,
        }
    }

    /// The next key. The source must not be at its end.
    fn head(&self) -> &[u8] {
        self.leaf.keys.get(self.next)
    }

    /// Goes to the first entry of `route`, which must not begin before the range that was walked last.
    fn seek(&mut self, leaves: &Leaves<KeyLeaf>, route: &KeyRoute) -> Result<Advance> {
        let advance = match &mut self.source {
            Source::Tables(tables) => {
                if route.with_start(|start| tables.seek(&leaves.blocks, start))? {
                    let from = if self.load(leaves, route)? { None } else { Some(self.next) };
                    let (leaf, start) = (&*self.leaf, route.start());
                    self.next = from.map_or_else(|| leaf.find(start), |from| leaf.keys.find_near(from, start));
                    self.settle(leaves, route)?
                } else {
                    Advance::End
                }
            }
            Source::Memtable { keys, at_once, is_whole } => {
                *at_once = MEMTABLE_KEYS_MIN;
                let found = take(keys, route.range.0.as_ref().map(Vec::as_slice), *at_once, route, is_whole);
                if found.is_none() {
                    // The memtable was freed. The empty leaf says that the walk has shown none of its keys in this
                    // range.
                    self.leaf = InUse::made(KeyLeaf::default);
                }
                self.show(found)
            }
        };
        self.is_at_end = advance != Advance::Entry;
        Ok(advance)
    }

    /// Steps over the head.
    fn advance(&mut self, leaves: &Leaves<KeyLeaf>, route: &KeyRoute) -> Result<Advance> {
        self.next += 1;
        if self.next < self.stop { Ok(Advance::Entry) } else { self.leave_leaf(leaves, route) }
    }

    /// Whether the leaf has entries beyond the end of the range.
    fn ends_within_leaf(&self) -> bool {
        self.stop < self.leaf.keys.len()
    }

    /// Goes on from the end of the leaf's entries within the range.
    fn leave_leaf(&mut self, leaves: &Leaves<KeyLeaf>, route: &KeyRoute) -> Result<Advance> {
        let ends_within_leaf = self.ends_within_leaf();
        let advance = match &mut self.source {
            _ if ends_within_leaf => Advance::End,
            Source::Tables(_) => self.settle(leaves, route)?,
            Source::Memtable { is_whole: true, .. } => Advance::End,
            Source::Memtable { keys, at_once, is_whole } => {
                *at_once = (2 * *at_once).min(MEMTABLE_KEYS_MAX);
                let last = self.leaf.last_key().unwrap_or_default();
                let found = take(keys, Bound::Excluded(last), *at_once, route, is_whole);
                self.show(found)
            }
        };
        self.is_at_end = advance != Advance::Entry;
        Ok(advance)
    }

    /// Takes over a leaf from a memtable; `None` means that the memtable was freed.
    fn show(&mut self, found: Option<InUse<KeyLeaf>>) -> Advance {
        let Some(leaf) = found else {
            self.is_gone = true;
            return Advance::Gone;
        };
        (self.next, self.stop) = (0, leaf.keys.len());
        self.leaf = leaf;
        if self.stop == 0 { Advance::End } else { Advance::Entry }
    }

    /// Loads the leaf of the present block; returns whether it is a different leaf than before.
    fn load(&mut self, leaves: &Leaves<KeyLeaf>, route: &KeyRoute) -> Result<bool> {
        let Source::Tables(TableRun { place: Some(place), .. }) = &self.source else { return Ok(false) };
        if self.block == Some(place.id()) {
            return Ok(false);
        }
        self.leaf = leaves.leaf(place, route.keyspace)?;
        self.block = Some(place.id());
        Ok(true)
    }

    /// Goes to later leaves until one has a next entry, and checks that it is within the range.
    fn settle(&mut self, leaves: &Leaves<KeyLeaf>, route: &KeyRoute) -> Result<Advance> {
        while self.next == self.leaf.keys.len() {
            let Source::Tables(tables) = &mut self.source else { return Ok(Advance::End) };
            if self.leaf.is_last || !tables.advance(&leaves.blocks)? {
                self.stop = self.next;
                return Ok(Advance::End);
            }
            self.load(leaves, route)?;
            self.next = self.leaf.find(route.start());
        }
        // The search begins at the present entry. Looking first at the leaf's last key, to see whether the whole leaf
        // is within the range, would touch distant memory.
        let keys = &self.leaf.keys;
        self.stop = route.end().map_or(keys.len(), |end| keys.find_near(self.next, end));
        Ok(if self.next < self.stop { Advance::Entry } else { Advance::End })
    }
}

/// The next keys of a memtable; `None` if it was freed.
fn take(
    keys: &MemtableKeys,
    start: Bound<&[u8]>,
    count: usize,
    route: &KeyRoute,
    is_whole: &mut bool,
) -> Option<InUse<KeyLeaf>> {
    let range = (start, route.range.1.as_ref().map(Vec::as_slice));
    let mut is_gone = false;
    let leaf = InUse::made(|| match keys.leaf(range, count, route.before) {
        KeysFrom::Leaf(leaf, whole) => {
            *is_whole = whole;
            leaf
        }
        KeysFrom::Gone => {
            is_gone = true;
            KeyLeaf::default()
        }
    });
    (!is_gone).then_some(leaf)
}

/// The tables that a walk has opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Tables that overlap the walk's range.
    Range,
    /// Tables that overlap the part of the keyspace from the beginning of the walk's range on.
    Keyspace,
}

/// Progress of a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The walk has not opened its sources.
    New,
    /// The walk has sources, but has not looked for the beginning of its range.
    Before,
    Within,
}

/// Place where an entry was found.
enum EntrySource {
    /// In the leaf of a run.
    Alone(usize, usize),
    /// In several runs.
    Shared,
}

/// Walks the newest versions that a route shows, over all tables and memtables. It sees the tables and memtables that
/// existed when it began, or when it began anew because a memtable was freed before the walk came to its end.
pub(crate) struct KeyWalk {
    state: Arc<ArcSwap<State>>,
    leaves: Arc<Leaves<KeyLeaf>>,
    route: KeyRoute,
    reach: Reach,
    progress: Progress,
    runs: Vec<Run>,
    /// The run that is walked alone, and the index of the entry at which that ends.
    alone: Option<(usize, usize)>,
    /// Whether a version of the last key has been found that the route sees.
    is_decided: bool,
    is_gone: bool,
    /// The last key that was in several runs.
    shared: Vec<u8>,
}

impl KeyWalk {
    /// A walk that has read nothing yet.
    pub fn new(state: Arc<ArcSwap<State>>, leaves: Arc<Leaves<KeyLeaf>>, route: KeyRoute) -> Self {
        Self {
            state,
            leaves,
            route,
            reach: Reach::Range,
            progress: Progress::New,
            runs: Vec::new(),
            alone: None,
            is_decided: false,
            is_gone: false,
            shared: Vec::new(),
        }
    }

    /// Goes on with the keys from `start` to before `end`. Keeps its sources if these keys come after its last range;
    /// else begins anew.
    pub fn go_to(&mut self, start: &[u8], end: &[u8]) {
        let is_behind = matches!(&self.route.range.1, Bound::Excluded(last) if last.as_slice() <= start);
        if self.reach == Reach::Range || !is_behind {
            (self.reach, self.progress) = (Reach::Keyspace, Progress::New);
        } else if self.progress == Progress::Within {
            self.progress = Progress::Before;
        }
        let range = &mut self.route.range;
        range.0 = Bound::Included(refilled(&mut range.0, start));
        range.1 = Bound::Excluded(refilled(&mut range.1, end));
        self.alone = None;
    }

    /// Looks for the beginning of the range.
    fn begin(&mut self) -> Result<()> {
        self.is_gone = false;
        if self.progress == Progress::New {
            self.runs = self.sources();
        }
        self.progress = Progress::Within;
        for run in &mut self.runs {
            self.is_gone |= run.seek(&self.leaves, &self.route)? == Advance::Gone;
        }
        Ok(())
    }

    fn sources(&self) -> Vec<Run> {
        let (start, end) = self.route.range.clone();
        let end = if self.reach == Reach::Range { end } else { Bound::Unbounded };
        let state = self.state.load();
        // Memtables are opened first: the entries of a memtable that is freed in between are then in the tables, which
        // are those of the same state or of a later one.
        let of_memtable = |keys| Source::Memtable { keys, at_once: MEMTABLE_KEYS_MIN, is_whole: false };
        let memtables = state.memtables().filter_map(|memtable| memtable.keys_of(self.route.keyspace)).map(of_memtable);
        let tables = state.runs_reaching(&key::in_tree(self.route.keyspace, (start, end)));
        let tables = tables.into_iter().map(|tables| Source::Tables(TableRun::new(tables)));
        memtables.chain(tables).map(Run::new).collect()
    }

    /// Begins anew after a memtable was freed. All keys up to `last` have been shown.
    fn begin_anew(&mut self, last: Option<Vec<u8>>) {
        if let Some(last) = last {
            self.route.range.0 = Bound::Excluded(last);
        }
        (self.progress, self.alone) = (Progress::New, None);
    }

    /// The last key that a freed memtable has shown; the greatest if there are several.
    fn last_of_gone(&self) -> Option<Vec<u8>> {
        let is_memtable = |run: &&Run| matches!(run.source, Source::Memtable { .. });
        let last = self.runs.iter().filter(is_memtable).filter(|run| run.is_gone).filter_map(|run| run.leaf.last_key());
        last.max().map(<[u8]>::to_vec)
    }

    /// The next key and the record that it leads to; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(&[u8], RecordId)>> {
        let Some((found, record)) = self.find()? else { return Ok(None) };
        let key = match found {
            EntrySource::Alone(run, number) => self.runs[run].leaf.keys.get(number),
            EntrySource::Shared => &self.shared,
        };
        Ok(Some((key, record)))
    }

    fn find(&mut self) -> Result<Option<(EntrySource, RecordId)>> {
        loop {
            if let Some((number, through)) = self.alone {
                let run = &mut self.runs[number];
                if run.next < through {
                    let entry = run.next;
                    run.next += 1;
                    let version = run.leaf.versions[entry];
                    // The newest visible version of a key comes first, and decides.
                    self.is_decided &= version.is_older();
                    if version.lsn() < self.route.before && !self.is_decided {
                        self.is_decided = true;
                        if let Some(record) = version.record() {
                            return Ok(Some((EntrySource::Alone(number, entry), record)));
                        }
                    }
                    continue;
                }
                self.alone = None;
                if run.next == run.stop {
                    self.leave_leaf(number)?;
                }
            }
            if self.progress != Progress::Within {
                if self.route.is_over() {
                    return Ok(None);
                }
                self.begin()?;
            }
            if self.is_gone {
                let last = self.last_of_gone();
                self.begin_anew(last);
                continue;
            }
            let Some(first) = self.first_run() else { return Ok(None) };
            self.is_decided = false;
            let run = &self.runs[first];
            let others = self.runs.iter().enumerate().filter(|(number, run)| *number != first && !run.is_at_end);
            let through = match others.map(|(_, run)| run.head()).min() {
                // A single run is walked to the end of its leaf without a look at its next key, which may be in distant
                // memory.
                None => run.stop,
                Some(second) if second == run.head() => {
                    self.shared.clear();
                    self.shared.extend_from_slice(second);
                    if let Some(record) = self.newest_of_shared()? {
                        return Ok(Some((EntrySource::Shared, record)));
                    }
                    continue;
                }
                Some(second) => run.leaf.keys.find_near(run.next, Cut::Before(second)).min(run.stop),
            };
            self.alone = Some((first, through));
        }
    }

    /// The run with the smallest next key; `None` if all are at their ends.
    fn first_run(&self) -> Option<usize> {
        let mut runs = self.runs.iter().enumerate().filter(|(_, run)| !run.is_at_end);
        let first = runs.next()?;
        let first = runs.fold(first, |first, run| if run.1.head() < first.1.head() { run } else { first });
        Some(first.0)
    }

    /// Goes on from the end of the leaf of a run that was walked alone.
    fn leave_leaf(&mut self, number: usize) -> Result<()> {
        let run = &mut self.runs[number];
        if run.ends_within_leaf() {
            run.is_at_end = true;
            return Ok(());
        }
        let left = run.leaf.clone();
        let mut advance = run.leave_leaf(&self.leaves, &self.route)?;
        // Older versions of the last key may follow in the next leaf.
        while self.is_decided && advance == Advance::Entry && left.last_key() == Some(run.head()) {
            advance = run.advance(&self.leaves, &self.route)?;
        }
        self.is_gone |= advance == Advance::Gone;
        Ok(())
    }

    /// Steps over all versions of a key in several runs; returns the record of the newest visible version, `None` if
    /// that is a deletion or none is visible.
    fn newest_of_shared(&mut self) -> Result<Option<RecordId>> {
        let mut newest: Option<KeyVersion> = None;
        for run in &mut self.runs {
            while !run.is_at_end && run.head() == self.shared {
                let version = run.leaf.versions[run.next];
                if version.lsn() < self.route.before && newest.is_none_or(|newest| newest.lsn() < version.lsn()) {
                    newest = Some(version);
                }
                self.is_gone |= run.advance(&self.leaves, &self.route)? == Advance::Gone;
            }
        }
        Ok(newest.and_then(KeyVersion::record))
    }
}

/// A copy of `key` in the allocation of the bound.
fn refilled(bound: &mut Bound<Vec<u8>>, key: &[u8]) -> Vec<u8> {
    let mut room = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(room) | Bound::Excluded(room) => room,
        Bound::Unbounded => Vec::new(),
    };
    room.clear();
    room.extend_from_slice(key);
    room
}
