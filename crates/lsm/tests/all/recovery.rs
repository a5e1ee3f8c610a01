//! Files that an earlier process left. Tests of recovery that are not this engine's own are in `conformance`.

use crate::opened;
use bunko_store::{Batch, Direction, KeyspaceId, RecordId, RecordRange, StorageError, Store, View};
use std::path::Path;
use std::sync::Arc;

const RECORDS: KeyspaceId = KeyspaceId(5);

fn open(path: &Path) -> Result<Arc<Store>, StorageError> {
    opened::open(path, |what, error| panic!("{what}: {error}"))
}

fn document(number: u64) -> Vec<u8> {
    format!("document {number} ").repeat(10).into_bytes()
}

fn insert(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut batch = Batch::new();
        batch.insert_record(RECORDS, RecordId(number), document(number));
        let lsn = store.commit(&batch).expect("committed");
        store.write(lsn).expect("written");
    }
}

fn records(store: &Store) -> Vec<u64> {
    let snapshot = store.snapshot();
    let mut cursor = snapshot.records(RECORDS, RecordRange::ALL, Direction::Forward);
    let mut seen = Vec::new();
    while let Some((record, _, bytes)) = cursor.next().expect("readable") {
        assert_eq!(bytes, document(record.0));
        seen.push(record.0);
    }
    seen
}

#[test]
fn leftovers_of_an_earlier_process_go_without_reclaim() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    insert(&store, 1..3);
    store.close().expect("closes");
    drop(store);
    // Files of a process that was killed while it wrote them.
    let left =
        ["extents/000000000007.tmp", "trees/tables/77", "trees/.tmpAbCdEf"].map(|name| directory.path().join(name));
    for path in &left {
        std::fs::create_dir_all(path.parent().expect("below")).expect("made");
        std::fs::write(path, "half of it").expect("written");
    }
    let store = open(directory.path()).expect("opens");
    insert(&store, 3..4);
    store.close().expect("closes");
    assert_eq!(left.each_ref().map(|path| path.exists()), [false; 3]);
    // The directory stays, because a start on a full disk could not make it.
    let unnamed = std::fs::read_dir(directory.path().join("trees/unnamed")).expect("a directory");
    assert_eq!(unnamed.count(), 0);
    assert_eq!(records(&store), [1, 2, 3]);
}
