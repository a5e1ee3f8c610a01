//! A secondary follows a primary, in one process: bytes of the primary's log arrive in random pieces, the commit point
//! moves at random, and the secondary is killed at random. It must equal a fresh start of its directory, and the
//! primary at the same position. At random it becomes the primary; the other member then takes back the records that
//! only it had, and follows.

mod described;
mod renames;
mod rolled_back;
mod writes;

use crate::opened::survival;
use bunko_catalog::{Catalog, Namespace, Truncated, WriteHistories};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_store::{LogOptions, Lsn, Position, Store, StoreOptions, Survival};
use bunko_testkit::directory::crash_copy;
use bunko_testkit::random::Random;
use described::{Described, assert_chains_are_whole, users};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use writes::Writer;

/// Writes of one run.
const STEPS: usize = 120;
/// The secondary is compared with a fresh start after about this many steps.
const STEPS_PER_START: u64 = 7;
/// The secondary becomes the primary after about this many steps.
const STEPS_PER_FAILOVER: u64 = 20;
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
    catalog: Arc<Catalog>,
    directory: TempDir,
    /// Number of users when the hook was last called.
    users: Arc<AtomicU64>,
}

impl Member {
    fn open(directory: TempDir, engine: &Entry, committed: Lsn) -> Self {
        let catalog = open_secondary(directory.path(), engine, committed);
        let count = Arc::new(AtomicU64::new(users(&catalog)));
        let (counted, followed) = (Arc::clone(&count), Arc::downgrade(&catalog));
        let hook = move || counted.store(users(&followed.upgrade().expect("it calls")), Ordering::Relaxed);
        catalog.on_absorbed(Namespace::new("admin", "system.users").expect("valid"), Box::new(hook));
        Self { catalog, directory, users: count }
    }

    /// A new member.
    fn new(engine: &Entry) -> Self {
        Self::open(tempfile::tempdir().expect("temporary directory"), engine, START)
    }

    /// Makes the member the primary of the next term, and of a set in which it is the majority.
    fn become_primary(&self) {
        let term = self.store().last_position().term + 1;
        // Each call applies a record at least.
        let mut applied = self.store().visible_end();
        while !self.catalog.apply_rest(Duration::ZERO).expect("applied") {
            let now = self.store().visible_end();
            assert!(now > applied, "a promise is broken: nothing was applied");
            applied = now;
        }
        assert_eq!(self.store().visible_end(), end(self.store()), "a promise is broken: it has not applied all");
        self.catalog.become_primary(term).expect("it has all of the log");
        assert_eq!(self.store().visible_end(), end(self.store()), "a promise is broken: it has not applied all");
        self.store().commit_what_is_visible();
        self.catalog.step_up().expect("begun");
    }

    fn step_down(&self) {
        self.catalog.interrupt_builds();
        self.store().step_down();
        // A primary's own changes call no hook.
        self.users.store(users(&self.catalog), Ordering::Relaxed);
    }

    /// Takes back the records that the other members do not have. A member that cannot do that begins anew.
    fn truncated(self, to: Position, engine: &Entry) -> Self {
        let is_applied = self.store().visible_end() > Lsn(to.end);
        match self.catalog.truncate_log(to).expect("truncated") {
            Truncated::Done => {
                assert!(!is_applied, "a promise is broken: the secondary shows records that its log has lost");
                self
            }
            Truncated::Reopen => Self::open(self.files(), engine, START),
            Truncated::NeedsInitialSync { .. } => Self::new(engine),
        }
    }

    fn store(&self) -> &Store {
        self.catalog.store()
    }

    fn apply(&self, committed: Lsn) -> bunko_errors::Result<Lsn> {
        self.store().set_committed(committed);
        self.catalog.apply_committed()
    }

    /// The files as a kill leaves them.
    fn files(&self) -> TempDir {
        self.store().write(Lsn(end(self.store()).0 - 1)).expect("written");
        crash_copy(self.directory.path())
    }

    /// Compares the catalog in memory with the one that a start finds.
    fn compare_with_start(&self, engine: &Entry, committed: Lsn) {
        let files = self.files();
        let fresh = open_secondary(files.path(), engine, committed);
        let (own, started) = (Described::of(&self.catalog), Described::of(&fresh));
        assert_eq!(self.store().visible_end(), fresh.store().visible_end(), "a promise is broken: the applied part");
        own.assert_equal(&started, "a secondary and a start of its directory");
        own.assert_ids_reach(&started);
        self.catalog.reload_write_histories().expect("readable");
        let histories = [&self.catalog, &fresh].map(|catalog| texts(&catalog.take_write_histories()));
        assert_eq!(histories[0], histories[1], "a promise is broken: write histories");
        assert_eq!(
            self.users.load(Ordering::Relaxed),
            users(&self.catalog),
            "a promise is broken: a hook was not called"
        );
    }
}

/// Write histories as texts, in order.
fn texts(histories: &WriteHistories) -> Vec<String> {
    let mut texts: Vec<_> = histories.iter().map(|history| format!("{history:?}")).collect();
    texts.sort();
    texts
}

fn open_secondary(path: &Path, engine: &Entry, committed: Lsn) -> Arc<Catalog> {
    let table = bunko_engines::table(engine, &EngineOptions::default());
    let store = Store::open_member(path, options(), table, committed).expect("opens");
    Catalog::open(store, uuids()).expect("opens")
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
    let mut random = Random(seed);
    let (mut primary, mut secondary) = (Member::new(engine), Member::new(engine));
    primary.become_primary();
    let mut writer = Writer::new(&primary.catalog, random.number());
    let mut committed = START;
    for _ in 0..STEPS {
        writer.write();
        let is_all = random.one_in(4);
        ship(&primary, &secondary, if is_all { u64::MAX } else { 1 + random.below(20) }, &mut random);
        let log_end = end(secondary.store());
        committed = if is_all { log_end } else { Lsn(committed.0 + random.below(log_end.0 - committed.0 + 1)) };
        let visible = secondary.apply(committed).expect("applied");
        assert!(visible <= committed, "a promise is broken: {visible:?} is above the commit point {committed:?}");
        assert_chains_are_whole(&secondary.catalog, &writer.chains);
        if is_all {
            assert_eq!(visible, primary.store().visible_end());
            let (own, others) = (Described::of(&secondary.catalog), Described::of(&primary.catalog));
            own.assert_equal(&others, "a secondary and its primary");
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
        if random.one_in(STEPS_PER_FAILOVER) {
            ship(&primary, &secondary, u64::MAX, &mut random);
            let common = secondary.store().last_position();
            committed = Lsn(common.end);
            primary.store().hold_committed();
            for _ in 0..random.below(8) {
                writer.write_no_checkpoint();
            }
            primary.step_down();
            secondary.become_primary();
            (primary, secondary) = (secondary, primary.truncated(common, engine));
            let histories = primary.catalog.take_write_histories();
            let files = primary.files();
            let started = open_secondary(files.path(), engine, Lsn(u64::MAX)).take_write_histories();
            assert_eq!(texts(&histories), texts(&started), "a promise is broken: a new primary's write histories");
            writer.turn_to(&primary.catalog, histories, committed);
            if secondary.store().last_position() == common {
                secondary.apply(committed).expect("applied");
                Described::of(&primary.catalog)
                    .assert_equal(&Described::of(&secondary.catalog), "a primary and the one before it");
            }
        }
    }
    ship(&primary, &secondary, u64::MAX, &mut random);
    secondary.apply(Lsn(u64::MAX)).expect("applied");
    secondary.compare_with_start(engine, Lsn(u64::MAX));
    Described::of(&secondary.catalog).assert_equal(&Described::of(&primary.catalog), "a secondary and its primary");
    assert!(unstamped(primary.store()) == unstamped(secondary.store()), "a promise is broken: the logs differ");
    secondary.store().close().expect("closes");
    primary.store().close().expect("closes");
}

/// Ships at most the given number of pieces, of random length.
fn ship(primary: &Member, secondary: &Member, pieces: u64, random: &mut Random) {
    primary.store().write(Lsn(end(primary.store()).0 - 1)).expect("written");
    let mut reader = primary.store().read_raw_log(end(secondary.store()), u64::MAX).expect("there");
    let mut piece = Vec::new();
    for _ in 0..pieces {
        piece.clear();
        reader.read(1 << random.below(20), &mut piece).expect("readable");
        if piece.is_empty() {
            break;
        }
        secondary.store().append_raw(secondary.store().last_position(), &piece).expect("appended");
    }
}
