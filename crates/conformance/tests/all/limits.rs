//! A full engine refuses only writes that need room.

use bunko_conformance::directory::Directory;
use bunko_conformance::document::Document;
use bunko_conformance::roster::{self, OPTIONS};
use bunko_conformance::subject;
use bunko_engines::EngineOptions;
use bunko_store::{Batch, Direction, KeyspaceId, RecordId, RecordRange, StorageError, Store, Survival, View};
use bunko_testkit::patience::wait_until;

const LIMIT_BYTES: u64 = 4 << 20;
const LARGE_BYTES: u32 = 20_000;
const RECORDS: KeyspaceId = KeyspaceId(1);
const OTHERS: KeyspaceId = KeyspaceId(2);

fn insert(store: &Store, keyspace: KeyspaceId, record: u64, length: u32) -> Result<(), StorageError> {
    let mut batch = Batch::new();
    batch.insert_record(keyspace, RecordId(record), Document { seed: record as u32, length }.bytes());
    store.commit(&batch).map(drop)
}

/// Inserts large documents until there is no room, then small ones. Returns the number of large ones.
fn fill(store: &Store, keyspace: KeyspaceId) -> u64 {
    let first = store.entries(keyspace) + 1000 * store.statistics().log.next_lsn;
    let until_full = |first, length| {
        (first..first + LIMIT_BYTES)
            .find(|record| match insert(store, keyspace, *record, length) {
                Ok(()) => false,
                Err(StorageError::OutOfMemory { limit_bytes: LIMIT_BYTES, .. }) => true,
                Err(error) => panic!("{error}"),
            })
            .expect("one that there is no room for")
    };
    let end = until_full(first, LARGE_BYTES);
    until_full(end, Document::LENGTH_MIN);
    end - first
}

fn count(store: &Store, keyspace: KeyspaceId) -> u64 {
    let snapshot = store.snapshot();
    let mut cursor = snapshot.records(keyspace, RecordRange::ALL, Direction::Forward);
    let mut count = 0;
    while cursor.next().expect("readable").is_some() {
        count += 1;
    }
    count
}

#[test]
fn a_full_engine_accepts_batches_that_make_room() {
    roster::each_engine(|entry| {
        if roster::survival(entry) == Survival::Durable {
            return;
        }
        let options = EngineOptions { memory_limit_bytes: LIMIT_BYTES, ..OPTIONS };
        for own in bunko_engines::ENGINES {
            let directory = Directory::default();
            let table = bunko_engines::table(own, &options);
            if own.name != entry.name && roster::survival(own) == Survival::Volatile {
                continue;
            }
            let store = subject::open_with(directory.path(), &table, &subject::Complaints::default()).expect("opens");
            let mut batch = Batch::new();
            batch.create_keyspace(RECORDS, entry.name, &[]);
            batch.create_keyspace(OTHERS, entry.name, &[]);
            store.commit(&batch).expect("created");
            insert(&store, RECORDS, 1, LARGE_BYTES).expect("room enough");
            let full = fill(&store, RECORDS);
            assert!(full > LIMIT_BYTES / u64::from(LARGE_BYTES) / 2, "full with {full} documents");
            // The refused write left nothing behind, and reads go on.
            assert_eq!(count(&store, RECORDS), store.entries(RECORDS));
            let location = store.latest().record(RECORDS, RecordId(1), &mut Vec::new()).expect("readable");
            let mut batch = Batch::new();
            batch.delete_record(RECORDS, RecordId(1), location.expect("there"));
            store.commit(&batch).unwrap_or_else(|error| panic!("in {}, a deletion is refused: {error}", own.name));
            fill(&store, RECORDS);
            let mut batch = Batch::new();
            batch.drop_keyspace(RECORDS);
            store.commit(&batch).unwrap_or_else(|error| panic!("in {}, a drop is refused: {error}", own.name));
            // The space of the dropped keyspace is freed in the background, soon.
            wait_until(&format!("in {}, dropping gives room", own.name), || fill(&store, OTHERS) >= full / 2);
            store.close().expect("closes");
        }
    });
}
