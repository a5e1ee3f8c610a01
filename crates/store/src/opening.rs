//! Opens a store: reads the manifest, opens the engines, replays the log into them, and starts the threads.

use crate::archive_readers::Archives;
use crate::changed_records::FollowedStores;
use crate::checkpoint::Checkpointer;
use crate::commit_point::CommitPoint;
use crate::data_directory::DataDirectory;
use crate::disk_room::DiskRoom;
use crate::engines::{EngineTable, Engines, Survival};
use crate::failpoint::{self, Failpoint};
use crate::history::{self, Kept, noted_from};
use crate::image::images::Images;
use crate::journal::{Journal, Order};
use crate::log::{Log, OpenChain, Replayed, first_record, recover};
use crate::manifest::Manifest;
use crate::merge::Merger;
use crate::reclaim::Reclaimer;
use crate::remembered::Remembered;
use crate::role::{Role, RoleCell};
use crate::snapshots::Snapshots;
use crate::statistics::Statistics;
use crate::watermark::Watermark;
use crate::whole::WholeCommits;
use crate::{LockTable, LogHandle, Lsn, Result, StorageError, Store, StoreOptions, vote};
use bunko_bson::DocumentBuf;
use bunko_host::Clock;
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// How a data directory is opened.
#[derive(Clone, Copy)]
enum OpenedAs {
    /// All of the log is applied.
    Standalone,
    /// The member of a set of several, which knows that the log is committed up to this position.
    Member { committed: Lsn, replays: Replays },
}

/// The part of its log that a member replays when it starts. It applies the rest later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replays {
    /// All committed records.
    Committed,
    /// As much as the last checkpoint had. A delayed member applies later records only when they are old enough.
    Checkpoint,
}

impl OpenedAs {
    /// Records that end above this position are not replayed.
    fn replayed_until(self, committed: Option<Lsn>, watermark: Lsn) -> Lsn {
        match self {
            Self::Standalone => Lsn(u64::MAX),
            Self::Member { replays: Replays::Committed, .. } => committed.unwrap_or_default().max(watermark),
            Self::Member { replays: Replays::Checkpoint, .. } => watermark,
        }
    }
}

/// How far the log of a store that opens has come.
struct Reached {
    /// Readers see all records below this position.
    end: Lsn,
    /// The held commit point.
    committed: Option<Lsn>,
    /// The position of the first record that is not applied, and the chain that is open there.
    unapplied: (Lsn, OpenChain),
    role: Role,
}

impl Reached {
    /// A standalone store whose log ends at `end`.
    fn all(end: Lsn, committed: Option<Lsn>) -> Self {
        Self { end, committed, unapplied: (end, OpenChain::default()), role: Role::Standalone }
    }
}

impl Store {
    /// Opens a data directory, creating it if it is missing, and replays the log into the engines. A store whose own
    /// engine is volatile touches no file.
    ///
    /// # Errors
    /// Errors of the files, and [`StorageError::OtherEngine`] if the directory was made with another engine than the
    /// table's own.
    pub fn open(path: &Path, options: StoreOptions, table: EngineTable) -> Result<Arc<Self>> {
        match table.own.survival {
            Survival::Durable => Self::open_directory(path, options, table, OpenedAs::Standalone),
            Survival::Volatile => {
                if let Some(manifest) = Manifest::read(path)? {
                    return Err(other_engine(path, &manifest, table.own.name));
                }
                let engines = Engines::open(table, path, &LogHandle::default(), &options.clock, None)?;
                let journal = Journal::None(Order::from(Journal::FIRST));
                let contents = (engines, Statistics::default(), Remembered::new());
                Ok(Self::start(None, journal, None, contents, Reached::all(Journal::FIRST, None), options))
            }
        }
    }

    /// Opens the data directory of a member of a set of several, as a secondary. Nothing is appended to its log.
    /// Records above the commit point are left unapplied, unless files of engines have them. The commit point is the
    /// higher of `committed` and the one that the manifest names, and it is held from here on.
    ///
    /// # Errors
    /// As [`Store::open`]; [`StorageError::VolatileEngine`] for an engine without a log.
    pub fn open_member(path: &Path, options: StoreOptions, table: EngineTable, committed: Lsn) -> Result<Arc<Self>> {
        Self::open_member_and_replay(path, options, table, (committed, Replays::Committed))
    }

    /// As [`Store::open_member`], for a member that may leave committed records unapplied.
    ///
    /// # Errors
    /// As [`Store::open_member`].
    pub fn open_member_and_replay(
        path: &Path,
        options: StoreOptions,
        table: EngineTable,
        (committed, replays): (Lsn, Replays),
    ) -> Result<Arc<Self>> {
        if table.own.survival == Survival::Volatile {
            return Err(StorageError::VolatileEngine { name: table.own.name.to_owned() });
        }
        Self::open_directory(path, options, table, OpenedAs::Member { committed, replays })
    }

    fn open_directory(
        path: &Path,
        options: StoreOptions,
        table: EngineTable,
        opened_as: OpenedAs,
    ) -> Result<Arc<Self>> {
        let directory = DataDirectory::open(path)?;
        let manifest = Manifest::read(path)?;
        let is_new = manifest.is_none();
        let mut manifest = manifest.unwrap_or_default();
        let vote = vote::read(path)?;
        let handle = LogHandle::default();
        let engines = open_engines(path, &manifest, table, &handle, &options.clock)?;
        let lasting = manifest.keyspaces.iter().copied().filter(|(keyspace, _)| !engines.is_volatile(*keyspace));
        let statistics = Statistics::restore(lasting);
        let remembered = Remembered::restore(&manifest.remembered);
        let remembered = remembered.ok_or_else(|| Manifest::corrupt(path, "remembers something malformed"))?;
        let (watermark, time_ms) = (manifest.watermark, manifest.time_ms);
        let committed = committed_at(&manifest, opened_as);
        let until = opened_as.replayed_until(committed, watermark);
        let began = options.clock.now();
        let terms = manifest.terms.clone();
        // A checkpoint that did not come to its end may have left later records in the engines' files.
        let part = Replayed { chain: manifest.open_chain, until, known: engines.files_end(), from: watermark, terms };
        let mut recovered = recover(&path.join("log"), part, &mut |lsn, effects| {
            remembered.apply(effects.clone().noted());
            engines.replay(lsn, &effects, &|effects| statistics.apply(effects))
        })?;
        recovered.recovery.elapsed = options.clock.since(began);
        for engine in engines.all() {
            engine.check_log(&recovered)?;
        }
        failpoint::pass(Failpoint::Replayed);
        // Nothing was changed up to here, so a refused start leaves files that can still be repaired.
        Images::remove_left(path)?;
        // The reserve comes before the log takes disk that it can do without.
        let (applied, unapplied) = (recovered.applied, std::mem::take(&mut recovered.unapplied));
        let disk = DiskRoom::open(path, options.reserve.clone(), engines.needs());
        let log = Log::start(recovered, options.log.clone(), options.clock.clone(), time_ms, &disk)?;
        failpoint::pass(Failpoint::LogStarted);
        let _ = handle.set(Arc::clone(&log));
        let reached = match opened_as {
            OpenedAs::Standalone => Reached::all(log.next_lsn(), committed),
            OpenedAs::Member { .. } => Reached { end: applied, committed, unapplied, role: Role::Secondary },
        };
        let end = reached.end;
        let history_bytes_max = options.log.history_bytes_max;
        let noted_from = noted_from(&manifest, history_bytes_max.is_some(), end);
        if is_new {
            // A log without a manifest may have records, and no engine has flushed them.
            manifest.watermark = Lsn(first_record(0));
            manifest.engines = vec![(engines.own().name().to_owned(), DocumentBuf::new())];
        }
        let history_bytes_max = history::bytes_max(&manifest, history_bytes_max);
        // Before the first record is written, the manifest must say where the notes begin, or end, and versions that know
        // only an older format must refuse the directory.
        let is_other = manifest.noted_from != noted_from || manifest.history_bytes != history_bytes_max;
        if is_new || manifest.is_of_older_format || is_other {
            manifest.noted_from = noted_from;
            manifest.history_bytes = history_bytes_max;
            manifest.write(path)?;
        }
        let kept = history::kept(&manifest, &log.segment_numbers(), end);
        let contents = (engines, statistics, remembered);
        let store = Self::start(Some((directory, disk)), Journal::Log(log), kept, contents, reached, options);
        *store.vote.lock() = vote;
        Ok(store)
    }

    fn start(
        directory: Option<(DataDirectory, Arc<DiskRoom>)>,
        journal: Journal,
        kept: Option<Kept>,
        (engines, statistics, remembered): (Engines, Statistics, Remembered),
        Reached { end, committed, unapplied, role }: Reached,
        options: StoreOptions,
    ) -> Arc<Self> {
        let (directory, disk) = directory.unzip();
        let (terms, moved) = match &journal {
            Journal::Log(log) => (Arc::clone(log.terms()), Arc::clone(log.moved())),
            Journal::None(_) => Default::default(),
        };
        let snapshots = Arc::<Snapshots>::default();
        let store = Arc::new(Self {
            directory,
            disk: disk.unwrap_or_else(DiskRoom::unlimited),
            images: Images::default(),
            archives: Archives::default(),
            relieving: Mutex::default(),
            journal,
            kept,
            engines,
            watermark: Watermark::new(end),
            commit_point: CommitPoint::new(committed, end),
            open_chain: Mutex::new(unapplied.1.first().map(|first| (first, snapshots.pin(|| first).1))),
            appending: Mutex::new(()),
            unapplied: Mutex::new(unapplied),
            is_rolled_back: AtomicBool::new(false),
            moved,
            snapshots,
            statistics,
            remembered,
            chain: Mutex::new(()),
            gate: RwLock::new(()),
            role: RoleCell::new(role),
            terms,
            vote: Mutex::default(),
            options,
            checkpointer: Checkpointer::default(),
            merger: Merger::default(),
            reclaimer: Reclaimer::default(),
            locks: LockTable::default(),
            whole: WholeCommits::default(),
            followed: FollowedStores::default(),
            background: Mutex::default(),
            stalled_writes: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            is_hurried: Arc::default(),
        });
        let threads = vec![Reclaimer::start(&store), Merger::start(&store), Checkpointer::start(&store)];
        *store.background.lock() = threads;
        store
    }
}

/// The commit point that is held from the start on; `None` if it follows the watermark.
fn committed_at(manifest: &Manifest, opened_as: OpenedAs) -> Option<Lsn> {
    match opened_as {
        OpenedAs::Standalone => manifest.committed,
        OpenedAs::Member { committed, .. } => {
            // While the commit point followed the watermark, a checkpoint had only committed records.
            let known = manifest.committed.unwrap_or(manifest.watermark);
            Some(known.max(committed).max(Lsn(first_record(0))))
        }
    }
}

/// Opens the engines of a directory at their last flush.
fn open_engines(
    path: &Path,
    manifest: &Manifest,
    table: EngineTable,
    handle: &LogHandle,
    clock: &Clock,
) -> Result<Engines> {
    let (own_name, own_note) = manifest.engines.first().map(|(name, note)| (name, note.as_ref())).unzip();
    if own_name.is_some_and(|name| name != table.own.name) {
        return Err(other_engine(path, manifest, table.own.name));
    }
    let engines = Engines::open(table, path, handle, clock, own_note)?;
    for (name, note) in manifest.engines.iter().skip(1) {
        engines.ensure(name, Some(note.as_ref()))?;
    }
    engines.settle(&manifest.routes)?;
    Ok(engines)
}

fn other_engine(path: &Path, manifest: &Manifest, asked: &str) -> StorageError {
    let found = manifest.engines.first().map_or_else(String::new, |(name, _)| name.clone());
    StorageError::OtherEngine { path: path.to_owned(), found, asked: asked.to_owned() }
}
