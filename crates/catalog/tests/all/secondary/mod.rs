//! A secondary follows a primary, in one process: bytes of the primary's log arrive in random pieces, the commit point
//! moves at random, and the secondary is killed at random. It must be what a start would make of its directory, and at
//! the same position what the primary is.

mod described;
mod writes;

use crate::opened::survival;
use bunko_catalog::{Catalog, Namespace};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_store::{LogOptions, Lsn, Secondary, Store, StoreOptions, Survival};
use bunko_testkit::directory::crash_copy;
use bunko_testkit::random::Random;
use described::{Described, assert_chains_are_whole, users};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use writes::Writer;

/// Writes of one run.
const STEPS: usize = 120;
/// The secondary is compared with a fresh start after about so many steps.
const STEPS_PER_START: u64 = 7;
const START: Lsn = Lsn(64);
const HEADER_BYTES: usize = 44;

fn options() -> StoreOptions {
    let log = LogOptions { history_bytes_max: Some(1 << 32), ..LogOptions::default() };
    StoreOptions { log, ..StoreOptions::at_rest() }
}

/// UUIDs that differ within one process.
fn uuids() -> Box<dyn Fn() -> [u8; 16] + Send + Sync> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Box::new(|| u128::from(NEXT.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
}

struct Member {
    secondary: Secondary,
    catalog: Arc<Catalog>,
    directory: TempDir,
    /// Number of users when the hook was last called.
    users: Arc<AtomicU64>,
}

impl Member {
    fn open(directory: TempDir, engine: &Entry, committed: Lsn) -> Self {
        let (secondary, catalog) = open_secondary(directory.path(), engine, committed);
        let count = Arc::new(AtomicU64::new(users(&catalog)));
        let (counted, followed) = (Arc::clone(&count), Arc::downgrade(&catalog));
        let hook = move || counted.store(users(&followed.upgrade().expect("it calls")), Ordering::Relaxed);
        catalog.on_absorbed(Namespace::new("admin", "system.users").expect("valid"), Box::new(hook));
        Self { secondary, catalog, directory, users: count }
    }

    fn store(&self) -> &Store {
        self.catalog.store()
    }

    fn apply(&self, committed: Lsn) -> bunko_errors::Result<Lsn> {
        self.catalog.apply_committed(&self.secondary, committed)
    }

    /// The files as a kill leaves them.
    fn files(&self) -> TempDir {
        self.store().write(Lsn(end(self.store()).0 - 1)).expect("written");
        crash_copy(self.directory.path())
    }

    /// Compares the catalog in memory with the one that a start finds.
    fn compare_with_start(&self, engine: &Entry, committed: Lsn) {
        let files = self.files();
        let (_secondary, fresh) = open_secondary(files.path(), engine, committed);
        let (own, started) = (Described::of(&self.catalog), Described::of(&fresh));
        assert_eq!(self.store().visible_end(), fresh.store().visible_end(), "a promise is broken: the applied part");
        own.assert_equal(&started, "a secondary and a start of its directory");
        own.assert_ids_reach(&started);
        self.catalog.reload_write_histories().expect("readable");
        let histories = [&self.catalog, &fresh].map(|catalog| {
            let histories = catalog.take_write_histories().into_iter();
            let mut histories: Vec<_> = histories.map(|history| format!("{history:?}")).collect();
            histories.sort();
            histories
        });
        assert_eq!(histories[0], histories[1], "a promise is broken: write histories");
        assert_eq!(
            self.users.load(Ordering::Relaxed),
            users(&self.catalog),
            "a promise is broken: a hook was not called"
        );
    }
}

fn open_secondary(path: &Path, engine: &Entry, committed: Lsn) -> (Secondary, Arc<Catalog>) {
    let table = bunko_engines::table(engine, &EngineOptions::default());
    let secondary = Secondary::open(path, options(), table, committed).expect("opens");
    let catalog = Catalog::open(Arc::clone(secondary.store()), uuids()).expect("opens");
    (secondary, catalog)
}

fn end(store: &Store) -> Lsn {
    Lsn(store.statistics().log.next_lsn)
}

/// The log from its start on, without the stamps that each member makes itself.
fn unstamped(store: &Store) -> Vec<u8> {
    store.write(Lsn(end(store).0 - 1)).expect("written");
    let mut bytes = Vec::new();
    store.read_raw_log(START, 0).and_then(|mut reader| reader.read(usize::MAX / 2, &mut bytes)).expect("readable");
    let mut offset = 0;
    while offset < bytes.len() {
        let number =
            |at: usize| u32::from_le_bytes(bytes[offset + at..offset + at + 4].try_into().expect("four bytes"));
        // A seal and a gap are read as their headers alone.
        let length = if matches!(number(40) & 0xff, 1 | 5) { HEADER_BYTES } else { number(0) as usize };
        bytes[offset + 4..offset + 8].fill(0);
        bytes[offset + 16..offset + 24].fill(0);
        offset += length;
    }
    bytes
}

#[test]
fn a_secondary_is_what_its_log_says() {
    let seeds = std::env::var("BUNKO_SECONDARY_SEED").ok().map(|seed| seed.parse().expect("a number"));
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        for seed in seeds.map_or(1..3, |seed: u64| seed..seed + 1) {
            eprintln!("engine {}, BUNKO_SECONDARY_SEED={seed}", engine.name);
            follow(engine, seed);
        }
    }
}

fn follow(engine: &'static Entry, seed: u64) {
    let (directory, mut random) = (tempfile::tempdir().expect("temporary directory"), Random(seed));
    let table = bunko_engines::table(engine, &EngineOptions::default());
    let store = Store::open(directory.path(), options(), table).expect("opens");
    let primary = Catalog::open(store, uuids()).expect("opens");
    let mut writer = Writer::new(&primary, random.number());
    let mut secondary = Member::open(tempfile::tempdir().expect("temporary directory"), engine, START);
    let mut committed = START;
    for _ in 0..STEPS {
        writer.write();
        primary.store().write(Lsn(end(primary.store()).0 - 1)).expect("written");
        let is_all = random.one_in(4);
        ship(&primary, &secondary, if is_all { u64::MAX } else { 1 + random.below(20) }, &mut random);
        let log_end = end(secondary.store());
        committed = if is_all { log_end } else { Lsn(committed.0 + random.below(log_end.0 - committed.0 + 1)) };
        let visible = secondary.apply(committed).expect("applied");
        assert!(visible <= committed, "a promise is broken: {visible:?} is above the commit point {committed:?}");
        assert_chains_are_whole(&secondary.catalog, &writer.chains);
        if is_all {
            assert_eq!(visible, primary.store().visible_end());
            let (own, others) = (Described::of(&secondary.catalog), Described::of(&primary));
            own.assert_equal(&others, "a secondary and its primary");
            others.assert_ids_reach(&own);
        }
        if random.one_in(10) {
            secondary.store().checkpoint().expect("checkpoint");
        }
        if random.one_in(25) {
            secondary.store().compact().expect("compacts");
        }
        if random.one_in(STEPS_PER_START) {
            secondary.compare_with_start(engine, committed);
        }
        if random.one_in(12) {
            secondary = Member::open(secondary.files(), engine, committed);
        }
    }
    ship(&primary, &secondary, u64::MAX, &mut random);
    secondary.apply(Lsn(u64::MAX)).expect("applied");
    secondary.compare_with_start(engine, Lsn(u64::MAX));
    Described::of(&secondary.catalog).assert_equal(&Described::of(&primary), "a secondary and its primary");
    assert!(unstamped(primary.store()) == unstamped(secondary.store()), "a promise is broken: the logs differ");
    secondary.store().close().expect("closes");
    primary.store().close().expect("closes");
}

/// Ships at most so many pieces of random length.
fn ship(primary: &Catalog, secondary: &Member, pieces: u64, random: &mut Random) {
    let mut reader = primary.store().read_raw_log(end(secondary.store()), u64::MAX).expect("there");
    let mut piece = Vec::new();
    for _ in 0..pieces {
        piece.clear();
        reader.read(1 << random.below(20), &mut piece).expect("readable");
        if piece.is_empty() {
            break;
        }
        secondary.secondary.append_raw(&piece).expect("appended");
    }
}
