//! Commits of more than one log record: a restart finds all of a commit or nothing.

use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_store::{Batch, KeyspaceId, Presence, RecordId, SEGMENT_BYTES, Store, StoreOptions, Survival, View};
use bunko_testkit::directory::crash_copy;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;

use crate::opened::survival;

const RECORDS: KeyspaceId = KeyspaceId(40);
const IDS: KeyspaceId = KeyspaceId(41);
/// Bytes of a log record's header, before its batch.
const HEADER_BYTES: usize = 44;

fn open(path: &Path, engine: &Entry) -> Arc<Store> {
    // A checkpoint would keep the test from cutting the log before it, so none is made.
    let options = StoreOptions { unflushed_bytes_max: u64::MAX, ..StoreOptions::at_rest() };
    Store::open(path, options, bunko_engines::table(engine, &EngineOptions::default())).expect("opens")
}

/// A batch that inserts these records, each with a document of `bytes`.
fn inserts(records: std::ops::Range<u64>, bytes: usize) -> Batch<'static> {
    let mut batch = Batch::new();
    for record in records {
        batch.insert_record(RECORDS, RecordId(record), vec![record as u8; bytes]);
        batch.put_primary_key(IDS, &record.to_be_bytes(), RecordId(record), Presence::New);
    }
    batch
}

/// Fills the first segment up to 3,000 bytes with single batches, and returns their records.
fn fill_segment(store: &Store) -> std::ops::Range<u64> {
    let first = 950;
    for record in first.. {
        let left = SEGMENT_BYTES - store.statistics().log.next_lsn % SEGMENT_BYTES;
        let bytes = (left - 3000).min(SEGMENT_BYTES / 10);
        store.commit(&inserts(record..record + 1, bytes as usize)).expect("committed");
        if bytes < SEGMENT_BYTES / 10 {
            return first..record + 1;
        }
    }
    unreachable!("a segment is full at some time")
}

/// The records among the first thousand that exist. A record must be found by its id and by its key, or by neither.
fn there(store: &Store) -> Vec<u64> {
    let mut document = Vec::new();
    let view = store.snapshot();
    let mut is_there = |record: u64| {
        let by_record = view.record(RECORDS, RecordId(record), &mut document).expect("readable").is_some();
        let by_key = view.key(IDS, &record.to_be_bytes()).expect("readable").is_some();
        assert_eq!(by_record, by_key, "record {record} and its key");
        by_record
    };
    (0..1000).filter(|record| is_there(*record)).collect()
}

/// Cuts the log at a position, as a kill leaves it if the kernel did not get the bytes from there on.
fn cut(directory: &Path, position: u64) {
    let log = directory.join("log");
    for entry in std::fs::read_dir(&log).expect("a log") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(number) = name.strip_suffix(".segment").and_then(|name| name.parse::<u64>().ok()) else { continue };
        let first = (position.max(number * SEGMENT_BYTES + 64)).min((number + 1) * SEGMENT_BYTES) % SEGMENT_BYTES;
        if position < (number + 1) * SEGMENT_BYTES {
            let file = OpenOptions::new().write(true).open(&path).expect("opens");
            // `set_len` leaves a hole, which reads as zeros.
            file.set_len(first).expect("cut");
            file.set_len(SEGMENT_BYTES).expect("as long as before");
        }
    }
}

#[test]
fn a_kill_between_any_two_records_of_a_chain_leaves_nothing_of_it() {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(directory.path(), engine);
        store.commit(&inserts(0..3, 100)).expect("committed");
        // The segment is filled, so that the chain continues in the next one.
        let filled: Vec<u64> = fill_segment(&store).collect();
        let first = store.statistics().log.next_lsn;
        let parts = [inserts(10..20, 200), inserts(20..22, 300), inserts(30..40, 400), inserts(50..55, 10)];
        let (lsn, _) = store.commit_chain(&parts).expect("committed");
        store.commit(&inserts(60..61, 10)).expect("committed");
        assert_eq!(there(&store).len(), 3 + filled.len() + 27 + 1);
        store.write(bunko_store::Lsn(store.statistics().log.next_lsn - 1)).expect("written");
        // The first parts are before the seal of their segment, the others after the header of the next one. The last
        // record of the chain follows, at the reserved place.
        let (mut places, mut place) = (Vec::new(), first);
        for part in &parts {
            let length = (HEADER_BYTES + part.len_bytes()) as u64;
            if place % SEGMENT_BYTES + length + HEADER_BYTES as u64 > SEGMENT_BYTES {
                place = (place / SEGMENT_BYTES + 1) * SEGMENT_BYTES + 64;
            }
            places.push(place);
            place += length;
        }
        assert!(lsn.0 > place && lsn.0.is_multiple_of(4096), "{places:?}, {lsn:?}");
        assert_ne!(places[0] / SEGMENT_BYTES, lsn.0 / SEGMENT_BYTES);
        // Reading the log does not depend on the engine, so one engine is enough for all places.
        let is_first = engine.name == ENGINES[0].name;
        let cuts =
            [places[0] + 50, places[1], places[2], places[2] + 50, places[3], place, place + 44, lsn.0 + 20, lsn.0];
        for position in if is_first { &cuts[..] } else { &cuts[8..] } {
            let position = *position;
            let copied = crash_copy(directory.path());
            cut(copied.path(), position);
            let again = open(copied.path(), engine);
            let before = [&[0, 1, 2], filled.as_slice()].concat();
            assert_eq!(there(&again), before, "{} cut at {position} of {places:?}", engine.name);
            if position != places[2] {
                continue;
            }
            // A later commit is not part of it, even if it is also a chain.
            let next = [inserts(70..71, 10), inserts(71..72, 10), inserts(72..73, 10)];
            again.commit_chain(&next).expect("committed");
            again.commit(&inserts(80..81, 10)).expect("committed");
            again.write(bunko_store::Lsn(again.statistics().log.next_lsn - 1)).expect("written");
            let copied = crash_copy(copied.path());
            let again = open(copied.path(), engine);
            let after = [&[0, 1, 2, 70, 71, 72, 80], filled.as_slice()].concat();
            assert_eq!(there(&again), after, "{} cut at {position}", engine.name);
            again.checkpoint().expect("a checkpoint");
            again.close().expect("closes");
        }
        let copied = crash_copy(directory.path());
        let again = open(copied.path(), engine);
        assert_eq!(there(&again), there(&store), "{}: all of it", engine.name);
        again.close().expect("closes");
        store.close().expect("closes");
    }
}

#[test]
fn a_chain_is_seen_as_a_whole_also_after_a_checkpoint() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(directory.path(), engine);
        let before = store.snapshot();
        let parts: Vec<_> = (0..20).map(|number| inserts(number * 10..number * 10 + 10, 50)).collect();
        let (lsn, location) = store.commit_chain(&parts).expect("committed");
        assert!(before.record(RECORDS, RecordId(0), &mut Vec::new()).expect("readable").is_none());
        let location = location.expect("the last document's");
        let found = store.latest().record(RECORDS, RecordId(199), &mut Vec::new()).expect("readable");
        assert_eq!(found, Some(location), "{}", engine.name);
        assert!(store.snapshot().lsn() > lsn);
        assert_eq!((there(&store).len(), store.entries(RECORDS)), (200, 200));
        store.checkpoint().expect("a checkpoint");
        assert_eq!(there(&store).len(), 200);
        store.close().expect("closes");
    }
}
