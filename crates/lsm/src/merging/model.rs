//! A merge that chooses tables, with concurrent flushes.

use super::Choice;
use bunko_sync::atomic::{AtomicUsize, Ordering};
use bunko_sync::{explore, thread};
use std::sync::Arc;

/// Course of a merge after its threshold is decided.
#[derive(Clone, Copy)]
enum Course {
    /// The tree makes its filter once it has chosen tables.
    Merges,
    /// There was nothing to choose.
    ChoosesNothing,
}

fn flush(choice: &Choice, tables: &AtomicUsize) {
    let _adding = choice.wait();
    let before = tables.load(Ordering::SeqCst);
    tables.store(before + 1, Ordering::SeqCst);
}

#[test]
fn no_table_comes_between_threshold_and_choice_and_no_flush_waits_for_ever() {
    explore(3000, || {
        let (choice, tables) = (Arc::new(Choice::default()), Arc::new(AtomicUsize::new(0)));
        let flushes: Vec<_> = (0..2)
            .map(|_| {
                let (choice, tables) = (Arc::clone(&choice), Arc::clone(&tables));
                thread::spawn(move || flush(&choice, &tables))
            })
            .collect();
        for course in [Course::Merges, Course::ChoosesNothing] {
            let open = choice.begin();
            let known = tables.load(Ordering::SeqCst);
            thread::yield_now();
            let chosen = tables.load(Ordering::SeqCst);
            assert_eq!(known, chosen, "a table that the threshold does not know of");
            if matches!(course, Course::Merges) {
                choice.end();
                thread::yield_now();
            }
            drop(open);
        }
        flushes.into_iter().for_each(|flush| flush.join().expect("no panic"));
        assert_eq!(tables.load(Ordering::SeqCst), 2);
    });
}
