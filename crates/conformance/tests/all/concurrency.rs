//! Readers concurrent with writers, checkpoints and compactions: a snapshot shows complete records of the log, consistently in
//! all engines.

use bunko_conformance::document::Document;
use bunko_conformance::roster;
use bunko_conformance::subject::Subject;
use bunko_store::{
    Batch, Direction, KeyRange, KeyspaceId, Presence, RecordId, RecordRange, StorageError, Store, Survival, View,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const WRITERS: u64 = 3;
/// Number of records of each writer; all of them change in one batch.
const RECORDS: u64 = 8;
const ROUNDS: u32 = 150;
/// Record stores, each with an index of primary keys in the next keyspace, that always have equal contents.
const TWINS: [KeyspaceId; 2] = [KeyspaceId(10), KeyspaceId(20)];

fn index_of(records: KeyspaceId) -> KeyspaceId {
    KeyspaceId(records.0 + 1)
}

fn key(record: RecordId) -> Vec<u8> {
    format!("key {:04}", record.0).into_bytes()
}

fn records_of(writer: u64) -> impl Iterator<Item = RecordId> {
    (1..=RECORDS).map(move |number| RecordId(writer * RECORDS + number))
}

#[test]
fn snapshots_show_whole_batches() {
    roster::each_engine(|entry| {
        let mut subject = Subject::new(entry);
        let store = subject.store();
        let names = store.engine_names();
        let mut batch = Batch::new();
        for (twin, name) in TWINS.iter().zip(names.iter().cycle()) {
            batch.create_keyspace(*twin, name, &[]);
            batch.create_keyspace(index_of(*twin), name, &[]);
        }
        store.commit(&batch).expect("created");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers = [Direction::Forward, Direction::Backward].map(|direction| {
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        read(store, direction);
                    }
                })
            });
            let keeper = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    store.checkpoint().expect("checkpoint");
                    store.compact().expect("compact");
                }
            });
            let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(store, writer))).collect();
            let outcomes: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            is_over.store(true, Ordering::Relaxed);
            for outcome in outcomes.into_iter().chain(readers.map(std::thread::ScopedJoinHandle::join)) {
                outcome.expect("no panic");
            }
            keeper.join().expect("no panic");
        });
        if roster::survival(entry) == Survival::Durable {
            subject.crash();
            let store = subject.store();
            let view = store.snapshot();
            let survivors = TWINS.iter().filter(|twin| {
                let name = store.engine_name_of(**twin);
                roster::survival(bunko_engines::find(name).expect("listed")) == Survival::Durable
            });
            for twin in survivors {
                let found = scan(&view, *twin, Direction::Forward).expect("readable");
                let last = version(ROUNDS).bytes();
                assert_eq!(found.len() as u64, WRITERS * RECORDS, "records of {twin:?} after a crash");
                assert!(found.values().all(|bytes| *bytes == last), "a last version of {twin:?} is lost");
            }
        }
    });
}

fn version(round: u32) -> Document {
    Document { seed: round, length: 60 + round % 7 * 300 }
}

/// Changes all records of a writer at once, again and again; now and then deletes and reinserts them.
fn write(store: &Store, writer: u64) {
    for round in 1..=ROUNDS {
        let document = version(round).bytes();
        if round % 10 == 0 {
            let mut batch = Batch::new();
            for (twin, record) in TWINS.iter().flat_map(|twin| records_of(writer).map(move |record| (*twin, record))) {
                let location = store.latest().record(twin, record, &mut Vec::new()).expect("readable");
                batch.delete_key(index_of(twin), &key(record));
                batch.delete_record(twin, record, location.expect("a record of mine"));
            }
            store.commit(&batch).expect("committed");
        }
        let mut batch = Batch::new();
        for (twin, record) in TWINS.iter().flat_map(|twin| records_of(writer).map(move |record| (*twin, record))) {
            let location = store.latest().record(twin, record, &mut Vec::new()).expect("readable");
            let presence = if let Some(location) = location {
                batch.replace_record(twin, record, document.clone(), location);
                Presence::Moved
            } else {
                batch.insert_record(twin, record, document.clone());
                Presence::New
            };
            batch.put_primary_key(index_of(twin), &key(record), record, presence);
        }
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
        let mut bytes = Vec::new();
        for twin in TWINS {
            let record = records_of(writer).next().expect("one at least");
            let found = store.latest().record_by_primary_key(index_of(twin), twin, &key(record), &mut bytes);
            assert_eq!(found.expect("readable").map(|(record, _)| record), Some(record), "own write in {twin:?}");
            assert_eq!(bytes, document, "own write in {twin:?}");
        }
    }
}

fn read(store: &Store, direction: Direction) {
    let snapshot = store.snapshot();
    let [one, other] = TWINS.map(|twin| scan(&snapshot, twin, direction).expect("readable"));
    assert_eq!(one, other, "engines differ in one snapshot");
    for writer in 0..WRITERS {
        let mut own = records_of(writer).map(|record| one.get(&record.0));
        let first = own.next().flatten();
        assert!(own.all(|bytes| bytes == first), "half a batch of writer {writer} shows");
    }
    for twin in TWINS {
        let mut keys = snapshot.keys(index_of(twin), KeyRange::ALL, direction);
        let mut count = 0;
        let mut bytes = Vec::new();
        while let Some((key, record)) = keys.next().expect("readable") {
            count += 1;
            let found = snapshot.record_by_primary_key(index_of(twin), twin, key, &mut bytes).expect("readable");
            assert_eq!(found.map(|(found, _)| found), Some(record));
            assert_eq!(one.get(&record.0), Some(&bytes), "{record:?} by its primary key");
        }
        assert_eq!(count, one.len(), "keys of {twin:?}");
    }
    let again = scan(&snapshot, TWINS[0], Direction::Forward).expect("readable");
    assert_eq!(one, again, "a snapshot changes");
}

fn scan(view: &dyn View, keyspace: KeyspaceId, direction: Direction) -> Result<BTreeMap<u64, Vec<u8>>, StorageError> {
    let mut cursor = view.records(keyspace, RecordRange::ALL, direction);
    let mut found = BTreeMap::new();
    while let Some((record, _, bytes)) = cursor.next()? {
        assert!(found.insert(record.0, bytes.to_vec()).is_none(), "{record:?} shows twice");
    }
    Ok(found)
}
