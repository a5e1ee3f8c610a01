//! Terms, over restarts and reclaimed segments.

use crate::engines::fake::fake;
use crate::journal::Journal;
use crate::log::first_record;
use crate::{Batch, Lsn, Position, Store};
use crate::{EngineTable, KeyspaceId, RecordId, SEGMENT_BYTES, StoreOptions, Survival};
use std::path::Path;
use std::sync::Arc;

fn open(path: &Path) -> Arc<Store> {
    let (own, _) = fake("own", Survival::Durable);
    Store::open(path, StoreOptions::at_rest(), EngineTable::only(own)).expect("opens")
}

fn insert(store: &Store, bytes: usize) -> Lsn {
    let mut batch = Batch::new();
    batch.insert_record(KeyspaceId(7), RecordId(1), vec![7; bytes]);
    store.commit(&batch).expect("committed")
}

#[test]
fn terms_are_found_again_in_log_and_manifest_and_begin_new_seconds() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path());
    let before = insert(&store, 10);
    assert_eq!(store.last_position().term, 0);
    let mut seconds = vec![store.newest_time().seconds];
    let mut placed = Vec::new();
    for term in [1, 2, 7] {
        let began = store.begin_term(term).expect("begins");
        seconds.push(store.newest_time().seconds);
        placed.push((term, began, insert(&store, 10)));
        assert_eq!(store.newest_time().seconds, *seconds.last().expect("one"), "the clock stands still");
    }
    assert!(seconds.is_sorted_by(|earlier, later| earlier < later), "a promise is broken: {seconds:?}");
    let check = |store: &Store| {
        assert_eq!(store.term_at(before), None);
        for (term, began, inserted) in &placed {
            assert_eq!((store.term_at(*began), store.term_at(*inserted)), (Some(*term), Some(*term)));
        }
        assert_eq!(store.last_position(), Position { term: 7, end: store.visible_end().0 });
    };
    check(&store);
    store.write(placed[2].2).expect("written");
    // The terms are in the log alone, then in the manifest alone, then in both.
    let copied = bunko_testkit::directory::crash_copy(directory.path());
    let again = open(copied.path());
    check(&again);
    again.close().expect("closes");
    drop(again);
    let again = open(copied.path());
    assert_eq!(again.recovery().expect("has a log").replayed_records, 0);
    check(&again);
    again.begin_term(9).expect("begins");
    let last = insert(&again, 10);
    again.write(last).expect("written");
    let copied = bunko_testkit::directory::crash_copy(copied.path());
    drop(again);
    let again = open(copied.path());
    assert_eq!((again.term_at(placed[2].1), again.term_at(last)), (Some(7), Some(9)));
    // A store in memory has terms too, for its life.
    let (own, _) = fake("own", Survival::Volatile);
    let volatile = Store::open(Path::new("none"), StoreOptions::at_rest(), EngineTable::only(own)).expect("opens");
    let began = volatile.begin_term(3).expect("begins");
    assert_eq!((volatile.term_at(began), volatile.last_position().term), (Some(3), 3));
}

#[test]
fn terms_of_reclaimed_segments_are_forgotten_but_for_the_one_that_the_log_begins_in() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path());
    for term in [1, 2] {
        store.begin_term(term).expect("begins");
    }
    for _ in 0..3 {
        insert(&store, SEGMENT_BYTES as usize / 2);
    }
    store.checkpoint().expect("checkpoint");
    store.checkpoint().expect("the second writes what the first forgot");
    let Journal::Log(log) = &store.journal else { panic!("it has a log") };
    let oldest = Lsn(first_record(log.segment_numbers()[0]));
    assert!(oldest > Lsn(first_record(0)));
    let manifest = crate::manifest::Manifest::read(directory.path()).expect("readable").expect("present");
    assert_eq!(manifest.terms.iter().map(|(term, _)| term).collect::<Vec<_>>(), [2]);
    assert_eq!(store.term_at(oldest), Some(2));
    store.close().expect("closes");
}
