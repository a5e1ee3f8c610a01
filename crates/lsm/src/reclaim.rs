//! Moves live documents out of full segments, and out of extents in which too little is alive.
//!
//! A document is dead for all present and future views if the oldest view does not lead to it any more. The store has
//! synced the log up to that view before it calls `reclaim`: otherwise a power cut could take back the record that made
//! a document dead, after the document was removed.
//!
//! ```text
//! a segment:
//!  made ahead ──► current ──► full ──► cold ──► moved, named by ──► left, once the ──► retired, once no ──► recycled
//!  (.tmp)         (appended)  (sealed)          the registry         manifest is         reader has it      or deleted
//!                               │                                    durable                ▲
//!                               └──► empty: nothing alive for any view ─────────────────────┘ (the same way)
//! ```
//! Full segments come before extents. A segment is moved once it has cooled down ([`Cooling`]). [`Sieve`] separates
//! live from dead documents, [`ExtentWriter`] writes the live ones into an extent, and the [`Registry`] that readers
//! load is replaced. The next checkpoint's note names the extent; segments and old extents go after that note is
//! durable.
//!
//! **Invariant:** an extent is durable before its segments are left, and never changes.
//! **Invariant:** only documents to which the oldest view does not lead, by durable records, are left behind.

use crate::accounts::{Accounts, Balances, Share};
mod removal;
use crate::compression::Compression;
use crate::cooling::{self, Cooling};
use crate::documents::Documents;
use crate::extents::{Extent, ExtentWriter, Registry};
use crate::staging::{self, Hold, Staging, extent_of_segment, segment_of_extent};
use crate::view::LsmView;
use bunko_store::failpoint::{self, Failpoint};
use bunko_store::{
    Effort, KeyspaceId, Log, Lsn, Pace, Reclaimed, RecordId, RecoveredLog, Result, SEGMENT_BYTES, Staged, StorageError,
    Urgency, files, segment_of,
};
use parking_lot::Mutex;
use removal::{Removal, Sieve};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An extent is rewritten if less than this part of it is alive.
const LIVE_PART_MIN: f64 = 0.5;
/// The worst extents are rewritten until this part of all extents together is alive.
const LIVE_PART_ALL: f64 = 0.75;
/// With [`Effort::All`], everything is rewritten in which less than this part is alive.
const LIVE_PART_EFFORT: f64 = 0.98;
/// Approximate number of live bytes that one step moves.
const STEP_BYTES: u64 = SEGMENT_BYTES;
/// Maximum number of segments or extents that one step empties.
const STEP_SOURCES: usize = 16;

/// Counters since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub segments_moved: AtomicU64,
    /// Extents written ahead of the log.
    pub extents_staged: AtomicU64,
    pub extents_written: AtomicU64,
    pub extents_rewritten: AtomicU64,
    pub documents_moved: AtomicU64,
    pub documents_left_behind: AtomicU64,
    pub bytes_written: AtomicU64,
}

impl Counters {
    fn staged(&self, extent: &Extent) {
        self.extents_staged.fetch_add(1, Ordering::Relaxed);
        self.extents_written.fetch_add(1, Ordering::Relaxed);
        self.bytes_written.fetch_add(extent.file_bytes, Ordering::Relaxed);
    }
}

/// Moves documents into extents.
pub(crate) struct Mover {
    directory: PathBuf,
    documents: Arc<Documents>,
    accounts: Arc<Accounts>,
    default_compression: Compression,
    pub counters: Counters,
    state: Mutex<Moves>,
    staging: Arc<Staging>,
}

#[derive(Default)]
struct Moves {
    /// Whether files of an earlier run have been removed. This waits for the first write, because a refused start must
    /// change nothing.
    is_swept: bool,
    next_number: u64,
    /// Segments without live documents, with the end of the applied log when that was noticed.
    empty_since: FxHashMap<u64, Lsn>,
    /// Segments of the log that no view needs.
    emptied: FxHashSet<u64>,
    cooling: Cooling,
    /// Extents that may hold documents only for views older than the given LSN; rewriting them gains nothing until
    /// these views are closed.
    held_back: FxHashMap<u64, Lsn>,
    /// Replaced extents that the last durable manifest may still name.
    replaced: Vec<Arc<Extent>>,
    /// Replaced extents that the manifest being written does not name.
    leaving: Vec<Arc<Extent>>,
    /// Segments that the last durable manifest no longer needs.
    left: FxHashSet<u64>,
    /// Segments that the manifest being written does not need.
    being_left: FxHashSet<u64>,
}

/// The segments or extents that a step empties.
enum Sources {
    Segments(Vec<u64>),
    Extents(Vec<Arc<Extent>>),
}

impl Mover {
    /// The directory of the extents.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn new(
        directory: PathBuf,
        documents: Arc<Documents>,
        accounts: Arc<Accounts>,
        default_compression: Compression,
        next_number: u64,
    ) -> Self {
        let state = Mutex::new(Moves { next_number, ..Moves::default() });
        let (counters, staging) = (Counters::default(), Arc::default());
        Self { directory, documents, accounts, default_compression, counters, state, staging }
    }

    /// Writes documents ahead of the log.
    pub fn stage(
        &self,
        keyspace: KeyspaceId,
        documents: &mut dyn Iterator<Item = (RecordId, &[u8])>,
    ) -> Result<Option<Staged>> {
        self.sweep()?;
        let number = self.take_number();
        let compression = self.accounts.compression(keyspace).unwrap_or(self.default_compression);
        let (extent, locations) = staging::write(&self.directory, number, keyspace, compression, documents)?;
        Ok(extent.map(|extent| {
            self.counters.staged(&extent);
            let log = Arc::clone(self.documents.log());
            let hold = Hold::new(extent, &self.staging, Box::new(move || log.next_lsn()));
            Staged::new(keyspace, number, locations, Box::new(hold))
        }))
    }

    /// Registers an extent that was written ahead of the log, now that the log names it.
    pub fn adopt(&self, number: u64) -> Result<()> {
        let mut moves = self.state.lock();
        moves.next_number = moves.next_number.max(number + 1);
        let segment = segment_of_extent(number);
        if self.documents.registry.load().of_segment(segment).is_none()
            && let Some(extent) = self.staging.adopt(&self.directory, number)?
        {
            self.documents.registry.rcu(|registry| registry.with(&[segment], Some(&extent)));
        }
        Ok(())
    }

    /// The error for documents that lead to a missing segment or extent.
    pub fn missing(&self, log: &RecoveredLog, segment: u64) -> StorageError {
        let Some(number) = extent_of_segment(segment) else { return log.missing_segment(segment) };
        StorageError::Corrupt {
            file: Extent::path(&self.directory, number),
            offset_bytes: 0,
            found: "the extent is missing, though the log names it".into(),
        }
    }

    fn take_number(&self) -> u64 {
        let mut moves = self.state.lock();
        moves.next_number += 1;
        moves.next_number - 1
    }

    /// The extents that the next manifest must name, and the next extent number. Extents and segments that the manifest
    /// no longer needs are released once it is durable.
    pub fn note(&self) -> (Arc<Registry>, u64) {
        let mut moves = self.state.lock();
        let registry = self.documents.registry.load_full();
        let replaced = std::mem::take(&mut moves.replaced);
        moves.leaving.extend(replaced);
        moves.being_left = registry.segments();
        let emptied = moves.emptied.clone();
        moves.being_left.extend(emptied);
        (registry, moves.next_number)
    }

    /// Notes that the manifest with the last [`Self::note`] is durable, and removes the extents that it no longer
    /// names.
    pub fn note_is_durable(&self) -> Result<()> {
        let leaving = {
            let mut moves = self.state.lock();
            moves.left = std::mem::take(&mut moves.being_left);
            std::mem::take(&mut moves.leaving)
        };
        // Readers that still use an extent have its file open.
        leaving.iter().try_for_each(|extent| files::remove(&extent.path))
    }

    /// Whether the last durable manifest no longer needs a segment of the log.
    pub fn has_left(&self, segment: u64) -> bool {
        let moves = self.state.lock();
        let is_broken = bunko_store::planted::active(bunko_store::planted::Bug::SegmentBeforeExtent);
        moves.left.contains(&segment) || is_broken && moves.being_left.contains(&segment)
    }

    /// Does one step; the store takes one step at a time.
    pub fn reclaim(&self, oldest: &LsmView, oldest_view: Lsn, effort: Effort) -> Result<Reclaimed> {
        self.sweep()?;
        self.accounts.forget_dropped(oldest_view);
        let registry = self.documents.registry.load_full();
        let log = self.documents.log();
        self.documents.kept_log.retain(|segment| log.has_segment(segment));
        let state = self.accounts.copy();
        let by_segment = state.by_segment();
        let full = self.full_segments(log, &registry, oldest_view);
        let urgency = |usual| if effort == Effort::Usual { usual } else { Urgency::AtOnce };
        if let Some(sources) = self.choose_segments(log, &full, &by_segment, oldest_view, effort) {
            return self.empty(&sources, oldest, &state, urgency(cooling::urgency(full.len())));
        }
        self.accounts.forget_segments(|segment| log.has_segment(segment) || registry.of_segment(segment).is_some());
        match self.choose_extents(&registry, &by_segment, oldest_view, effort) {
            Some(sources) => self.empty(&sources, oldest, &state, urgency(Urgency::Usual)),
            None => Ok(Reclaimed::Nothing),
        }
    }

    /// Bytes of dead documents that must stay until all views from the oldest on are closed.
    pub fn kept_bytes(&self, oldest_view: Lsn) -> u64 {
        let by_segment = self.accounts.copy().by_segment();
        let live_of = |segment: &u64| by_segment.get(segment).map_or(0, |share| share.live);
        let registry = self.documents.registry.load();
        // Reclaim leaves a segment alone until the oldest view sees all of its records.
        let mut segments = self.documents.log().sealed_segments();
        let moves = self.state.lock();
        segments.retain(|segment| {
            registry.of_segment(*segment).is_none()
                && (*segment >= segment_of(oldest_view.0)
                    || moves.empty_since.get(segment).is_some_and(|since| *since > oldest_view))
        });
        let in_log = segments.iter().map(|segment| SEGMENT_BYTES.saturating_sub(live_of(segment))).sum::<u64>();
        let is_held_back =
            |extent: &&&Arc<Extent>| moves.held_back.get(&extent.number).is_some_and(|until| *until > oldest_view);
        let dead_of = |extent: &Arc<Extent>| {
            let live: u64 = extent.segments.iter().map(live_of).sum();
            let total = extent.documents_bytes().max(1);
            (extent.file_bytes as f64 * (1.0 - (live as f64 / total as f64).min(1.0))) as u64
        };
        in_log + registry.extents().iter().filter(is_held_back).map(|extent| dead_of(extent)).sum::<u64>()
    }

    /// Removes files of an earlier run, the first time that it is called.
    pub fn sweep(&self) -> Result<()> {
        let mut moves = self.state.lock();
        if !moves.is_swept {
            bunko_store::make_directory(&self.directory)?;
            self.documents.registry.load().remove_others(&self.directory)?;
            moves.is_swept = true;
        }
        Ok(())
    }

    /// Sealed segments of which the oldest view sees all records, and which still have to be emptied.
    fn full_segments(&self, log: &Log, registry: &Registry, oldest_view: Lsn) -> Vec<u64> {
        let mut moves = self.state.lock();
        let mut segments = log.sealed_segments();
        moves.emptied.retain(|segment| segments.contains(segment));
        segments.retain(|segment| {
            *segment < segment_of(oldest_view.0)
                && registry.of_segment(*segment).is_none()
                && !moves.emptied.contains(segment)
        });
        segments
    }

    /// The oldest full segments, as many as one extent takes over.
    fn choose_segments(
        &self,
        log: &Log,
        full: &[u64],
        by_segment: &FxHashMap<u64, Share>,
        oldest_view: Lsn,
        effort: Effort,
    ) -> Option<Sources> {
        let mut moves = self.state.lock();
        let live_of = |segment: u64| by_segment.get(&segment).map_or(0, |share| share.live);
        let (empty, full): (Vec<u64>, Vec<u64>) = full.iter().partition(|segment| live_of(**segment) == 0);
        for segment in empty {
            // The write that deleted the last document has a smaller LSN than the end of the applied log, so a view
            // from that end on needs no document of the segment.
            let since = *moves.empty_since.entry(segment).or_insert_with(|| log.applied_before());
            if since <= oldest_view {
                moves.empty_since.remove(&segment);
                moves.emptied.insert(segment);
            }
        }
        if effort == Effort::Room {
            // Moving the live documents takes disk before the segment gives any back, so only segments that are mostly
            // dead help.
            let gains = |segment: &u64| {
                by_segment.get(segment).is_none_or(|share| share.live as f64 <= share.total as f64 * LIVE_PART_ALL)
            };
            let chosen = full.iter().copied().filter(gains).min_by_key(|segment| live_of(*segment));
            return chosen.map(|segment| Sources::Segments(vec![segment]));
        }
        let full = if effort == Effort::Usual { moves.cooling.cold(&full, log.clock().now()) } else { &full };
        let mut chosen = Vec::new();
        let mut chosen_bytes = 0;
        for &segment in full {
            let live = live_of(segment);
            if !chosen.is_empty() && chosen_bytes + live > STEP_BYTES || chosen.len() == STEP_SOURCES {
                break;
            }
            chosen.push(segment);
            chosen_bytes += live;
        }
        (!chosen.is_empty()).then_some(Sources::Segments(chosen))
    }

    /// The extents that are worth rewriting, the worst first.
    fn choose_extents(
        &self,
        registry: &Registry,
        by_segment: &FxHashMap<u64, Share>,
        oldest_view: Lsn,
        effort: Effort,
    ) -> Option<Sources> {
        let mut moves = self.state.lock();
        moves.held_back.retain(|_, until| *until > oldest_view);
        let mut all = Share::default();
        let mut extents: Vec<(f64, u64, &Arc<Extent>)> = Vec::new();
        for extent in registry.extents() {
            let live =
                extent.segments.iter().filter_map(|segment| by_segment.get(segment)).map(|share| share.live).sum();
            let total = extent.documents_bytes().max(1);
            all.live += live;
            all.total += total;
            let is_placing = self.staging.protects(extent.number, oldest_view);
            if !is_placing && !moves.held_back.contains_key(&extent.number) {
                extents.push((live as f64 / total as f64, live, extent));
            }
        }
        extents.sort_by(|one, other| one.0.total_cmp(&other.0));
        let limit = match effort {
            Effort::All => LIVE_PART_EFFORT,
            Effort::Usual | Effort::Now | Effort::Room if (all.live as f64) < all.total as f64 * LIVE_PART_ALL => {
                LIVE_PART_ALL
            }
            Effort::Usual | Effort::Now | Effort::Room => LIVE_PART_MIN,
        };
        let mut chosen = Vec::new();
        let mut chosen_bytes = 0;
        for (part, live, extent) in extents {
            let sources_max = if effort == Effort::Room { 1 } else { STEP_SOURCES };
            let is_enough = !chosen.is_empty() && chosen_bytes + live > STEP_BYTES || chosen.len() == sources_max;
            if part >= limit || is_enough {
                break;
            }
            chosen.push(Arc::clone(extent));
            chosen_bytes += live;
        }
        (!chosen.is_empty()).then_some(Sources::Extents(chosen))
    }

    /// Moves the live documents of the sources into a new extent, which takes over the sources' segments.
    fn empty(&self, sources: &Sources, oldest: &LsmView, state: &Balances, urgency: Urgency) -> Result<Reclaimed> {
        let mut segments = match sources {
            Sources::Segments(segments) => segments.clone(),
            Sources::Extents(extents) => extents.iter().flat_map(|extent| extent.segments.iter().copied()).collect(),
        };
        segments.sort_unstable();
        let number = self.take_number();
        let begun = self.documents.log().next_lsn();
        let mut removal = Removal {
            sieve: Sieve { oldest, state },
            extent: ExtentWriter::create(&self.directory, number)?,
            default_compression: self.default_compression,
            kept: FxHashMap::default(),
            left_behind: 0,
            moved: 0,
            pace: Pace::begin(),
            urgency,
            log: self.documents.log(),
            log_end: None,
        };
        match sources {
            Sources::Segments(segments) => removal.take_segments(segments)?,
            Sources::Extents(extents) => removal.take_extents(extents)?,
        }
        let Removal { extent, kept, left_behind, moved, .. } = removal;
        let extent = extent.finish(segments.clone())?.map(Arc::new);
        self.count(sources, extent.as_deref(), moved, left_behind);
        let mut moves = self.state.lock();
        self.documents.registry.rcu(|registry| registry.with(&segments, extent.as_ref()));
        self.documents.kept_log.retain(|segment| !segments.contains(&segment));
        self.accounts.rewritten(&segments, &kept);
        match sources {
            Sources::Extents(extents) => {
                for extent in extents {
                    self.documents.forget(extent);
                }
                moves.replaced.extend(extents.iter().cloned());
            }
            Sources::Segments(_) if extent.is_none() => moves.emptied.extend(&segments),
            Sources::Segments(_) => {}
        }
        // Documents that only older views need stay until these views are closed; rewriting the extent before gains
        // nothing.
        moves.held_back.extend(extent.map(|extent| (extent.number, begun)));
        drop(moves);
        failpoint::pass(Failpoint::ExtentRegistered);
        Ok(Reclaimed::Some)
    }

    fn count(&self, sources: &Sources, extent: Option<&Extent>, moved: u64, left_behind: u64) {
        let add = |counter: &AtomicU64, by: u64| {
            counter.fetch_add(by, Ordering::Relaxed);
        };
        match sources {
            Sources::Segments(segments) => add(&self.counters.segments_moved, segments.len() as u64),
            Sources::Extents(extents) => add(&self.counters.extents_rewritten, extents.len() as u64),
        }
        add(&self.counters.documents_moved, moved);
        add(&self.counters.documents_left_behind, left_behind);
        if let Some(extent) = extent {
            add(&self.counters.extents_written, 1);
            add(&self.counters.bytes_written, extent.file_bytes);
        }
    }
}
