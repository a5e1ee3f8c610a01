//! A keyspace is in the engine that its last logged creation names, whatever was requested before.

use bunko_conformance::roster;
use bunko_conformance::subject::Subject;
use bunko_engines::Entry;
use bunko_store::{Batch, KeyspaceId, RecordId, SEGMENT_BYTES, StorageError, Store};

const INDEX: KeyspaceId = KeyspaceId(7);
const OTHER: KeyspaceId = KeyspaceId(8);

fn create(store: &Store, engine: &str) {
    let mut batch = Batch::new();
    batch.create_keyspace(INDEX, engine, &[]);
    store.commit(&batch).expect("created");
}

/// Tries to create the keyspace in that engine, in a batch that is too large for the log.
fn fail_to_create(store: &Store, engine: &str) {
    let mut batch = Batch::new();
    batch.create_keyspace(INDEX, engine, &[]);
    batch.insert_record(OTHER, RecordId(1), vec![0; SEGMENT_BYTES as usize]);
    assert!(matches!(store.commit(&batch), Err(StorageError::RecordTooLarge { .. })));
}

fn put(store: &Store, key: &[u8]) {
    let mut batch = Batch::new();
    batch.put_key(INDEX, key, RecordId(1));
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
}

/// Runs the test for every durable engine, with each other engine in which its store can hold collections.
fn each_pair(test: impl Fn(&'static Entry, &str) + Sync) {
    roster::each_durable_engine(|own| {
        let names = Subject::new(own).store().engine_names();
        names.iter().filter(|name| **name != own.name).for_each(|guest| test(own, guest));
    });
}

#[test]
fn a_creation_that_the_log_refused_leaves_no_trace() {
    each_pair(|own, guest| {
        let mut subject = Subject::new(own);
        // Once the engine is open, the store tells its keyspaces from those of its own engine.
        subject.store().engine(guest).expect("opens");
        fail_to_create(subject.store(), guest);
        assert_eq!(subject.store().engine_name_of(INDEX), own.name);
        // The next start uses the routes that this checkpoint saves.
        subject.store().checkpoint().expect("checkpoint");
        subject.reopen();
        create(subject.store(), own.name);
        put(subject.store(), b"key");
        subject.crash();
        assert_eq!(subject.store().engine_name_of(INDEX), own.name, "with {guest}");
        let found = subject.store().latest().key(INDEX, b"key").expect("readable");
        assert_eq!(found, Some(RecordId(1)), "with {guest}");
        assert_eq!(subject.store().entries(INDEX), 1, "with {guest}");
    });
}

#[test]
fn the_last_creation_counts_at_once_and_after_a_replay() {
    each_pair(|own, guest| {
        let mut subject = Subject::new(own);
        create(subject.store(), guest);
        subject.store().checkpoint().expect("checkpoint");
        create(subject.store(), own.name);
        assert_eq!(subject.store().engine_name_of(INDEX), own.name);
        put(subject.store(), b"key");
        subject.crash();
        assert_eq!(subject.store().engine_name_of(INDEX), own.name, "with {guest}");
        assert_eq!(subject.store().latest().key(INDEX, b"key").expect("readable"), Some(RecordId(1)));
    });
}
