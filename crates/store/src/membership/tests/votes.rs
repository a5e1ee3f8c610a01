//! Votes, over restarts and on damaged files.

use crate::StorageError;
use crate::engines::fake::fake;
use crate::{EngineTable, StoreOptions, Survival};
use crate::{MemberId, Store, Vote, vote};

#[test]
fn a_vote_is_read_again_and_a_damaged_one_is_refused() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let open = || {
        let (own, _) = fake("own", Survival::Durable);
        Store::open(directory.path(), StoreOptions::at_rest(), EngineTable::only(own))
    };
    let store = open().expect("opens");
    assert_eq!(store.vote(), None);
    for candidate in [Some(MemberId(1)), None] {
        store.save_vote(Vote { term: 3, candidate }).expect("saved");
        assert_eq!(vote::read(directory.path()).expect("readable"), Some(Vote { term: 3, candidate }));
    }
    store.save_vote(Vote { term: 4, candidate: Some(MemberId(1)) }).expect("saved");
    store.close().expect("closes");
    drop(store);
    assert_eq!(open().expect("opens").vote(), Some(Vote { term: 4, candidate: Some(MemberId(1)) }));
    let path = vote::path(directory.path());
    let bytes = std::fs::read(&path).expect("readable");
    for end in 0..bytes.len() {
        std::fs::write(&path, &bytes[..end]).expect("written");
        assert!(matches!(open(), Err(StorageError::Corrupt { .. })), "cut at {end}");
    }
    for index in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[index] ^= 1;
        std::fs::write(&path, &flipped).expect("written");
        assert!(matches!(open(), Err(StorageError::Corrupt { .. })), "flipped at {index}");
    }
    std::fs::write(&path, bytes).expect("written");
    open().expect("opens");
}
