//! Keys of dropped keyspaces leave the tables that they share with other keyspaces.

use super::*;

const ENTRIES: u64 = 20_000;

/// Puts many keys of one keyspace, and one key of another, into the same memtable.
fn fill(store: &Store, round: u32) -> KeyspaceId {
    let keyspace = KeyspaceId(100 + round);
    let mut batch = Batch::new();
    batch.put_key(IDS, &round.to_be_bytes(), RecordId(1));
    for entry in 0..ENTRIES {
        batch.put_key(keyspace, format!("key {entry:09}").as_bytes(), RecordId(entry));
    }
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
    keyspace
}

fn drop_keyspace(store: &Store, keyspace: KeyspaceId) {
    let mut batch = Batch::new();
    batch.drop_keyspace(keyspace);
    let lsn = store.commit(&batch).expect("committed");
    store.write(lsn).expect("written");
}

fn tree_bytes(path: &Path) -> u64 {
    let files = bunko_testkit::directory::files_below(&path.join("trees"));
    files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum()
}

#[test]
fn their_keys_do_not_pile_up() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let mut most = 0;
    for round in 0..12 {
        // The table of this round has a key that stays.
        let keyspace = fill(&store, round);
        store.checkpoint().expect("done");
        drop_keyspace(&store, keyspace);
        store.compact().expect("compacts");
        let bytes = tree_bytes(directory.path());
        if round == 2 {
            most = bytes;
        }
    }
    let bytes = tree_bytes(directory.path());
    assert!(bytes < 2 * most, "{bytes}, and {most} after three rounds");
    for round in 0..12_u32 {
        assert_eq!(store.latest().key(IDS, &round.to_be_bytes()).expect("readable"), Some(RecordId(1)));
    }
}

#[test]
fn dropped_documents_stay_for_an_open_view() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path()).expect("opens");
    let keyspace = fill(&store, 0);
    let view = store.snapshot();
    drop_keyspace(&store, keyspace);
    store.compact().expect("compacts");
    assert_eq!(view.key(keyspace, b"key 000000007").expect("readable"), Some(RecordId(7)));
}
