//! Terms, over restarts and reclaimed segments.

use crate::engines::fake::fake;
use crate::journal::Journal;
use crate::log::first_record;
use crate::terms::Terms;
use crate::{Batch, Lsn, Store, TermStart};
use crate::{EngineTable, KeyspaceId, RecordId, SEGMENT_BYTES, StoreOptions, Survival};
use std::path::Path;
use std::sync::Arc;

fn start(term: u64, lsn: u64) -> TermStart {
    TermStart { term, lsn: Lsn(lsn) }
}

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
fn a_position_belongs_to_the_last_term_that_began_before_it() {
    let terms = Terms::new(vec![start(2, 100), start(5, 200), start(6, 300)]);
    let found = [0, 99, 100, 199, 200, 299, 300, 9000].map(|lsn| terms.at(Lsn(lsn)));
    assert_eq!(found, [None, None, Some(2), Some(2), Some(5), Some(5), Some(6), Some(6)]);
    assert_eq!([0, 100, 101, 200, 201].map(|end| terms.before(Lsn(end))), [None, None, Some(2), Some(2), Some(5)]);
    assert_eq!(terms.below(Lsn(200)), [start(2, 100)]);
    for (oldest, left) in [(99, 3), (199, 3), (200, 2), (299, 2), (300, 1), (9000, 1)] {
        let terms = Terms::new(terms.below(Lsn(u64::MAX)));
        terms.forget_before(Lsn(oldest));
        assert_eq!(terms.below(Lsn(u64::MAX)).len(), left, "before {oldest}");
        assert_eq!(
            terms.at(Lsn(oldest)),
            Terms::new(vec![start(2, 100), start(5, 200), start(6, 300)]).at(Lsn(oldest))
        );
    }
}

#[test]
fn terms_are_found_again_in_log_and_manifest_and_begin_new_seconds() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = open(directory.path());
    let before = insert(&store, 10);
    assert_eq!(store.last_position().0, None);
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
        assert_eq!(store.last_position(), (Some(7), store.visible_end()));
    };
    check(&store);
    store.write(placed[2].2).expect("written");
    // The log alone has them, then the manifest alone, then both.
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
    assert_eq!((volatile.term_at(began), volatile.last_position().0), (Some(3), Some(3)));
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
    assert_eq!(manifest.terms.iter().map(|start| start.term).collect::<Vec<_>>(), [2]);
    assert_eq!(store.term_at(oldest), Some(2));
    store.close().expect("closes");
}
