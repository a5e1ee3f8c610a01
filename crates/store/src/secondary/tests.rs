//! A primary and a secondary over engines that only record their calls.

use crate::disk_room::Draw;
use crate::engines::fake::{Told, fake};
use crate::log::{RECORD_HEADER_BYTES, first_record};
use crate::{
    Batch, EngineTable, KeyspaceId, Lsn, Position, RecordId, Role, SEGMENT_BYTES, StorageError, Store, StoreOptions,
    Survival, segment_of,
};
use bunko_testkit::directory::crash_copy;
use bunko_testkit::random::Random;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const START: Lsn = Lsn(64);
const KEPT_BYTES_MAX: u64 = u64::MAX;

struct Member {
    store: Arc<Store>,
    told: Arc<Told>,
    directory: TempDir,
}

impl Member {
    fn primary() -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        let (own, told) = fake("own", Survival::Durable);
        let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
        Self { store, told, directory }
    }

    fn secondary(directory: TempDir, committed: Lsn) -> Self {
        let (store, told) = open_secondary(directory.path(), committed);
        Self { store: store.expect("opens"), told, directory }
    }

    fn new_secondary() -> Self {
        Self::secondary(tempfile::tempdir().expect("temporary directory"), Lsn(0))
    }

    fn append(&self, bytes: &[u8]) -> crate::Result<Position> {
        self.store.append_raw(self.store.last_position(), bytes)
    }

    fn apply(&self, committed: Lsn) -> crate::Result<Lsn> {
        self.store.set_committed(committed);
        self.store.apply_committed()
    }

    fn truncate(&self, end: Lsn) -> crate::Result<()> {
        self.store.truncate_log(Position { term: self.store.term_before(end).unwrap_or(0), end: end.0 })
    }

    fn end(&self) -> Lsn {
        Lsn(self.store.statistics().log.next_lsn)
    }

    /// The member as it is after a kill, opened by a process that knows this commit point.
    fn killed(&self, committed: Lsn) -> Self {
        self.store.write(Lsn(self.end().0 - 1)).expect("written");
        Self::secondary(crash_copy(self.directory.path()), committed)
    }

    fn write(&self, record: u64, bytes: usize) -> Lsn {
        self.store.commit(&batch(record, bytes)).expect("committed")
    }

    fn write_chain(&self, records: &[u64], bytes: usize) -> Lsn {
        let parts: Vec<_> = records.iter().map(|record| batch(*record, bytes)).collect();
        self.store.commit_chain(&parts).expect("committed").0
    }

    /// All of the log from `from` on, in pieces of about that many bytes.
    fn shipped(&self, from: Lsn, piece_bytes: usize) -> Vec<Vec<u8>> {
        self.store.write(Lsn(self.end().0 - 1)).expect("written");
        let mut reader = self.store.read_raw_log(from, KEPT_BYTES_MAX).expect("there");
        let mut pieces = Vec::new();
        loop {
            let mut piece = Vec::new();
            reader.read(piece_bytes, &mut piece).expect("readable");
            if piece.is_empty() {
                return pieces;
            }
            pieces.push(piece);
        }
    }

    /// The log from `from` on without the stamps that each member makes itself.
    fn unstamped(&self, from: Lsn) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.shipped(from, usize::MAX / 2).concat();
        let mut offset = 0;
        while offset < bytes.len() {
            let u32_at = |at: usize| u32::from_le_bytes(bytes[offset + at..offset + at + 4].try_into().expect("four"));
            let is_bare = matches!(u32_at(40) & 0xff, 1 | 5);
            let length = if is_bare { RECORD_HEADER_BYTES } else { u32_at(0) as usize };
            bytes[offset + 4..offset + 8].fill(0);
            bytes[offset + 16..offset + 24].fill(0);
            offset += length;
        }
        bytes
    }

    fn open_chain(&self) -> Option<Lsn> {
        self.store.open_chain.lock().as_ref().map(|(first, _)| *first)
    }

    fn oldest_segment(&self) -> u64 {
        let crate::journal::Journal::Log(log) = &self.store.journal else { panic!("it has a log") };
        log.segment_numbers()[0]
    }

    fn applied(&self) -> Vec<Vec<u32>> {
        self.told.applied.lock().clone()
    }
}

fn open_secondary(path: &Path, committed: Lsn) -> (crate::Result<Arc<Store>>, Arc<Told>) {
    let (own, told) = fake("own", Survival::Durable);
    (Store::open_member(path, StoreOptions::at_rest(), EngineTable::only(own), committed), told)
}

fn batch(record: u64, bytes: usize) -> Batch<'static> {
    let mut batch = Batch::new();
    batch.insert_record(KeyspaceId(record as u32), RecordId(record), vec![record as u8; bytes]);
    batch
}

/// Segments end, chains are open over segments and abandoned ones stay, and the position of a chain's last record leaves
/// a gap.
#[test]
fn a_secondary_has_the_same_log_however_it_is_cut() {
    let (primary, mut secondary, mut random) = (Member::primary(), Member::new_secondary(), Random(17));
    let mut committed = START;
    for round in 0..60 {
        let record = round * 10 + 1;
        match random.below(4) {
            0 => primary.write_chain(&[record, record + 1, record + 2], 1 + random.below(4 << 20) as usize),
            1 => primary.write(record, random.below(3 << 20) as usize),
            _ => primary.write(record, random.below(2000) as usize),
        };
        for piece in primary.shipped(secondary.end(), 1 << random.below(24)) {
            secondary.append(&piece).expect("appended");
            if random.one_in(2) {
                committed = committed.max(Lsn(committed.0 + random.below(secondary.end().0 - committed.0 + 1)));
                let visible = secondary.apply(committed).expect("applied");
                assert!(visible <= committed, "{visible:?} is above the commit point {committed:?}");
            }
            if random.one_in(20) {
                secondary.store.checkpoint().expect("checkpoint");
            }
            if random.one_in(30) {
                secondary = secondary.killed(committed);
                assert!(secondary.store.visible_end() <= committed.max(START));
            }
        }
    }
    assert!(segment_of(primary.end().0) > 0, "a segment has ended");
    secondary.apply(primary.end()).expect("applied");
    assert_eq!(secondary.store.visible_end(), primary.store.visible_end());
    let oldest = secondary.oldest_segment();
    let from = Lsn(first_record(oldest));
    assert!(primary.unstamped(from) == secondary.unstamped(from), "the logs differ");
    for keyspace in 0..1000 {
        let statistics = |member: &Member| member.store.keyspace_statistics(KeyspaceId(keyspace));
        assert_eq!(statistics(&primary), statistics(&secondary), "keyspace {keyspace}");
    }
}

#[test]
fn a_chain_is_applied_with_its_last_record_only() {
    let (primary, secondary) = (Member::primary(), Member::new_secondary());
    primary.write(1, 10);
    let chain = primary.write_chain(&[2, 3], 10);
    primary.write(4, 10);
    for piece in primary.shipped(START, 1) {
        secondary.append(&piece).expect("appended");
    }
    secondary.apply(chain).expect("applied");
    assert_eq!(secondary.applied(), [[1]]);
    // A look that finds nothing to apply wakes no thread, least of all its own.
    let rings = secondary.store.log_bell().rings();
    secondary.store.apply_committed().expect("applied");
    assert_eq!(secondary.store.log_bell().rings(), rings);
    assert_eq!(secondary.open_chain(), Some(secondary.store.visible_end()));
    // A start finds the open chain again, whatever the manifest says.
    secondary.store.checkpoint().expect("checkpoint");
    for secondary in [secondary.killed(chain), secondary] {
        secondary.apply(Lsn(u64::MAX)).expect("applied");
        assert!(secondary.applied().ends_with(&[vec![2], vec![3], vec![4]]));
        assert_eq!(secondary.open_chain(), None);
    }
}

#[test]
fn a_term_ends_a_chain_that_its_primary_left_open() {
    let (primary, secondary) = (Member::primary(), Member::new_secondary());
    let ship = |to: &Member| {
        for piece in primary.shipped(to.end(), 1 << 20) {
            to.append(&piece).expect("appended");
        }
        to.apply(Lsn(u64::MAX)).expect("applied");
    };
    let links = primary.store.journal.append_links(&[&batch(1, 10)], Draw::Free).expect("appended");
    ship(&secondary);
    assert_eq!(secondary.open_chain(), Some(links[0].lsn));
    primary.store.begin_term(1).expect("begins");
    ship(&secondary);
    for secondary in [secondary.killed(secondary.end()), secondary] {
        assert_eq!(secondary.open_chain(), None);
        assert_eq!(secondary.store.visible_end(), primary.store.visible_end());
    }
}

#[test]
fn bytes_that_do_not_continue_the_log_are_refused_whole() {
    let (primary, secondary) = (Member::primary(), Member::new_secondary());
    primary.write(1, 100);
    primary.write_chain(&[2, 3], 100);
    primary.write(4, 100);
    let bytes = primary.shipped(START, usize::MAX / 2).concat();
    let refused = |bytes: &[u8], what: &str| {
        let outcome = secondary.append(bytes);
        assert!(matches!(outcome, Err(StorageError::ForeignRecord { .. })), "{what}: {outcome:?}");
        assert_eq!(secondary.end(), START, "{what}: something was kept");
    };
    for offset in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[offset] ^= 1;
        refused(&flipped, &format!("bit flipped at {offset}"));
    }
    let ends: Vec<usize> = primary
        .shipped(START, 1)
        .iter()
        .scan(0, |end, piece| {
            *end += piece.len();
            Some(*end)
        })
        .collect();
    for length in (1..bytes.len()).filter(|length| !ends.contains(length)) {
        refused(&bytes[..length], &format!("cut to {length}"));
    }
    refused(&bytes[ends[0]..], "the first record is missing");
    refused(&[&bytes[..ends[0]], &bytes[..ends[0]]].concat(), "the first record comes twice");
    secondary.append(&bytes).expect("as it was written");
    assert_eq!(secondary.append(&[]).expect("nothing"), primary.store.last_position());
}

#[test]
fn a_record_that_found_no_room_is_applied_later() {
    let (primary, secondary) = (Member::primary(), Member::new_secondary());
    primary.write(1, 100);
    primary.write(2, 100);
    secondary.append(&primary.shipped(START, 10_000).concat()).expect("appended");
    *secondary.told.room_bytes.lock() = Some(10);
    let refused = secondary.apply(Lsn(u64::MAX));
    assert!(matches!(refused, Err(StorageError::OutOfMemory { .. })), "{refused:?}");
    *secondary.told.room_bytes.lock() = None;
    secondary.apply(Lsn(u64::MAX)).expect("applied");
    assert_eq!(secondary.applied(), [[1], [2]]);
}

/// A member of another history: it has the same first records and then others.
fn diverged(common: &[u8], records: &[(u64, usize)]) -> Member {
    let follower = Member::new_secondary();
    follower.append(common).expect("appended");
    follower.store.write(Lsn(follower.end().0 - 1)).expect("written");
    let directory = crash_copy(follower.directory.path());
    let (own, told) = fake("own", Survival::Durable);
    let store = Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
    let member = Member { store, told, directory };
    for (record, bytes) in records {
        member.write(*record, *bytes);
    }
    member
}

#[test]
fn a_truncated_log_goes_on_as_another_members() {
    let primary = Member::primary();
    primary.write(1, 100);
    let common = primary.shipped(START, 1000).concat();
    let fork = primary.end();
    // The suffix reaches into further segments.
    let large = SEGMENT_BYTES as usize / 3;
    let old: Vec<_> = (0..8).map(|number| (10 + number, large)).collect();
    let new: Vec<_> = (0..5).map(|number| (20 + number, large + 1000)).collect();
    let (loser, winner) = (diverged(&common, &old), diverged(&common, &new));
    let secondary = Member::new_secondary();
    for piece in loser.shipped(START, 1 << 20) {
        secondary.append(&piece).expect("appended");
    }
    secondary.apply(fork).expect("applied");
    let below = secondary.truncate(START);
    assert!(matches!(below, Err(StorageError::AppliedAbove { .. })), "{below:?}");
    let within = secondary.truncate(Lsn(fork.0 + 1));
    assert!(matches!(within, Err(StorageError::Corrupt { .. })), "{within:?}");
    // A kill right after the intent became durable.
    secondary.store.write(Lsn(secondary.end().0 - 1)).expect("written");
    let killed = crash_copy(secondary.directory.path());
    let mut intent = fork.0.to_le_bytes().to_vec();
    intent.extend(bunko_checksum::crc32c(&fork.0.to_le_bytes()).to_le_bytes());
    std::fs::write(killed.path().join("log/truncation.intent"), &intent).expect("written");
    intent[0] ^= 1;
    let damaged = crash_copy(killed.path());
    std::fs::write(damaged.path().join("log/truncation.intent"), &intent).expect("written");
    let (refused, _) = open_secondary(damaged.path(), fork);
    assert!(matches!(refused, Err(StorageError::Corrupt { .. })), "a damaged intent");
    let mut reader = secondary.store.read_raw_log(fork, KEPT_BYTES_MAX).expect("there");
    secondary.truncate(fork).expect("truncated");
    let ended = reader.read(1000, &mut Vec::new());
    assert!(matches!(ended, Err(StorageError::HistoryLost)), "{ended:?}");
    for secondary in [secondary, Member::secondary(killed, fork)] {
        assert_eq!(secondary.end(), fork);
        let later = (1..4).map(|number| secondary.directory.path().join(format!("log/{number:012}.segment")));
        // The next segment is made ahead, without a record.
        for path in later.filter(|path| path.exists()) {
            let content = std::fs::read(&path).expect("readable");
            assert!(content[first_record(0) as usize..].iter().all(|byte| *byte == 0), "{}", path.display());
        }
        for piece in winner.shipped(fork, 1 << 20) {
            secondary.append(&piece).expect("appended");
        }
        let secondary = secondary.killed(fork);
        secondary.apply(Lsn(u64::MAX)).expect("applied");
        assert!(winner.unstamped(START) == secondary.unstamped(START), "the logs differ");
        assert_eq!(secondary.applied().len(), 1 + new.len());
    }
}

#[test]
fn a_reader_keeps_what_it_has_to_ship_up_to_its_limit() {
    let primary = Member::primary();
    let (kept, bounded) = (
        primary.store.read_raw_log(START, KEPT_BYTES_MAX).expect("there"),
        primary.store.read_raw_log(START, SEGMENT_BYTES).expect("there"),
    );
    let fill = || {
        for record in 0..12 {
            primary.write(record, SEGMENT_BYTES as usize / 4);
        }
        primary.store.checkpoint().expect("checkpoint");
    };
    fill();
    let mut bytes = Vec::new();
    let mut kept = kept;
    kept.read(1000, &mut bytes).expect("kept");
    let refused = primary.store.read_raw_log(START, KEPT_BYTES_MAX).map(drop);
    assert!(refused.is_ok(), "another reader keeps it: {refused:?}");
    drop(kept);
    primary.store.checkpoint().expect("checkpoint");
    let mut bounded = bounded;
    let lost = bounded.read(1000, &mut bytes);
    assert!(matches!(lost, Err(StorageError::HistoryLost)), "{lost:?}");
    assert!(matches!(primary.store.read_raw_log(START, 0), Err(StorageError::HistoryLost)));
}

#[test]
fn a_term_that_does_not_ascend_is_refused() {
    let (other, secondary) = (Member::primary(), Member::new_secondary());
    other.store.begin_term(3).expect("begins");
    secondary.append(&other.shipped(START, 1 << 20).concat()).expect("appended");
    let end = secondary.end();
    let stale = Member::primary();
    // Its record has the position that the secondary's log goes on at.
    stale.store.begin_term(1).expect("begins");
    assert_eq!(stale.end(), end);
    stale.store.begin_term(2).expect("begins");
    let refused = secondary.append(&stale.shipped(end, 1 << 20).concat());
    assert!(matches!(refused, Err(StorageError::ForeignRecord { .. })), "{refused:?}");
    assert_eq!((secondary.end(), secondary.store.last_position().term), (end, 3));
}

/// A secondary has the terms of its log before it applies them, over restarts too.
#[test]
fn terms_are_shipped_and_go_with_a_truncation() {
    let (primary, secondary) = (Member::primary(), Member::new_secondary());
    let ship = |to: &Member| {
        for piece in primary.shipped(to.end(), 1 << 20) {
            to.append(&piece).expect("appended");
        }
    };
    primary.write(1, 10);
    let first = primary.store.begin_term(3).expect("begins");
    primary.write(2, 10);
    ship(&secondary);
    let shipped = primary.store.last_position();
    assert_eq!((secondary.store.last_position(), secondary.store.visible_end()), (shipped, START));
    assert_eq!(secondary.store.role(), Role::Secondary);
    let secondary = secondary.killed(first);
    assert_eq!(secondary.store.last_position(), shipped);
    let second = primary.store.begin_term(5).expect("begins");
    primary.write(3, 10);
    ship(&secondary);
    assert_eq!(secondary.store.last_position(), primary.store.last_position());
    assert_eq!(secondary.apply(second).expect("applied"), second);
    secondary.truncate(second).expect("truncated");
    assert_eq!(secondary.store.last_position(), Position { term: 3, end: second.0 });
    let secondary = secondary.killed(second);
    assert_eq!(secondary.store.last_position(), Position { term: 3, end: second.0 });
    ship(&secondary);
    secondary.apply(secondary.end()).expect("applied");
    assert_eq!(secondary.store.newest_time(), primary.store.newest_time());
    assert_eq!(secondary.unstamped(START), primary.unstamped(START));
}
