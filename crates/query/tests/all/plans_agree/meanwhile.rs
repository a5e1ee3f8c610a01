//! Plans agree with scans while threads write and indexes are built and dropped: each query and its scan read one
//! state.
//!
//! Shown to fail by `tests/planted/run`, which plants a bug.

use crate::plans_agree::agreement::check;
use crate::plans_agree::reader::Reader;
use crate::plans_agree::scenes::{self, with_id};
use crate::plans_agree::values::stored;
use crate::temporary::{Database, document, namespace};
use bunko_bson::{DocumentBuf, ObjectId, Timestamp, ValueRef};
use bunko_catalog::Index;
use bunko_catalog::stored_document::Stamps;
use bunko_engines::ENGINES;
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_query::write::{DeleteStatement, UpdateStatement, Upsert, Writes};
use bunko_testkit::shell;
use bunko_update::Targets;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const NAME: &str = "written";
const BROKEN: &str = "a promise is broken";
/// Number of distinct `_id`s.
const DOCUMENTS: i32 = 40;
const WRITERS: usize = 2;
/// Rounds per engine in which all answers were complete.
const ROUNDS: u64 = 40;
/// Rounds between two changes of the indexes.
const ROUNDS_PER_CHANGE: u64 = 2;
/// Maximum number of indexes beside `_id`; the oldest is dropped for another one.
const INDEXES: usize = 4;

struct Nothing;

impl Stamps for Nothing {
    fn object_id(&self) -> ObjectId {
        ObjectId::from_parts(1, [0; 5], 1)
    }
    fn timestamp(&self) -> Timestamp {
        Timestamp { seconds: 1, increment: 1 }
    }
}

/// State that the threads share.
#[derive(Default)]
struct Progress {
    is_over: AtomicBool,
    rounds: AtomicU64,
    writes: AtomicU64,
    /// Number of indexes built or dropped.
    changes: AtomicU64,
}

impl Progress {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Waits until `count` more rounds are done.
    fn wait_for_rounds(&self, count: u64) {
        let wanted = self.rounds.load(Ordering::Acquire) + count;
        while !self.is_over() && self.rounds.load(Ordering::Acquire) < wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Explains a wrong answer if the test panics.
struct Judged;

impl Drop for Judged {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{BROKEN}: an index decides which answer it is");
        }
    }
}

/// Stops the other threads, also on a panic.
struct Over<'p>(&'p Progress);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

fn runner() -> TestRunner {
    TestRunner::new(Config { failure_persistence: None, ..Config::default() })
}

fn made<T: std::fmt::Debug>(runner: &mut TestRunner, strategy: &impl Strategy<Value = T>) -> T {
    strategy.new_tree(runner).expect("generated").current()
}

/// Inserts, replaces and deletes documents, one or several at a time.
fn write(database: &Database, progress: &Progress) {
    let (namespace, mut runner) = (namespace(NAME), runner());
    let (documents, chance) = (stored(), (0..DOCUMENTS, 0..8_u8, 0..6_i32));
    while !progress.is_over() {
        let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
        let mut writes = Writes::new(&database.catalog, &namespace, &Nothing, scope);
        let (id, choice, number) = made(&mut runner, &chance);
        let filter = match choice {
            0 => format!("{{s: {number}}}"),
            1 => format!("{{a: {number}}}"),
            _ => format!("{{_id: {id}}}"),
        };
        let filter = document(&filter);
        // Writes fail if indexes meet parallel arrays, or arrays that they do not accept.
        match choice {
            0 | 2 => {
                let _ = writes.delete(&DeleteStatement {
                    filter: filter.as_ref(),
                    targets: Targets::Many,
                    hint: None,
                    strings: None,
                });
            }
            _ => {
                let update = if choice == 1 {
                    format!("{{$set: {{t: {number}}}, $inc: {{s: 1}}}}")
                } else {
                    with_id(id as usize, &made(&mut runner, &documents))
                };
                let update = document(&update);
                let is_of_one = choice != 1;
                let _ = writes.update(&UpdateStatement {
                    constants: None,
                    supplied: None,
                    filter: filter.as_ref(),
                    update: ValueRef::Document(update.as_ref()),
                    array_filters: Vec::new(),
                    targets: if is_of_one { Targets::One } else { Targets::Many },
                    upsert: if is_of_one { Upsert::Yes } else { Upsert::No },
                    hint: None,
                    sort: None,
                    strings: None,
                });
            }
        }
        progress.writes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Builds indexes one after the other and drops the oldest. At times hides one, rebuilds all, or takes a checkpoint.
fn change_indexes(database: &Database, progress: &Progress) {
    let (collection, mut runner) = (database.collection(NAME), runner());
    let (indexes, chance) = (scenes::index(), (0..6_u8, prop::bool::ANY));
    let (catalog, operation) = (&database.catalog, OperationContext::unlimited());
    while !progress.is_over() {
        let present = collection.indexes();
        let changed = match (made(&mut runner, &chance), present.get(1).map(|index| index.name.as_str())) {
            ((0, is_hidden), Some(name)) => {
                let options = DocumentBuf::new().with("hidden", is_hidden);
                catalog.respecify_index(&collection, name, options.as_ref(), &*operation).is_ok()
            }
            ((1, false), _) => catalog.rebuild_indexes(&collection, &*operation).is_ok(),
            ((1, true), _) => catalog.store().checkpoint().is_ok(),
            (_, Some(oldest)) if present.len() > INDEXES => {
                catalog.drop_indexes(&collection, &[oldest], &*operation).is_ok()
            }
            _ => {
                let (pattern, options) = made(&mut runner, &indexes);
                // Fails for the reasons that writes fail for, and if such an index exists.
                database.index(NAME, &document(&pattern), &document(&options)).is_ok()
            }
        };
        progress.changes.fetch_add(u64::from(changed), Ordering::Relaxed);
        // Even an index whose build fails existed for a moment.
        progress.wait_for_rounds(if changed { ROUNDS_PER_CHANGE } else { 1 });
    }
}

/// Runs one query after the other, alternately at a read timestamp and on a shared snapshot.
fn ask(database: &Database, progress: &Progress) {
    let (collection, mut runner, finds) = (database.collection(NAME), runner(), scenes::find());
    let mut tries = 0_u64;
    while progress.rounds.load(Ordering::Acquire) < ROUNDS {
        tries += 1;
        assert!(tries < 50 * ROUNDS, "states are lost before they are read");
        let mut find = made(&mut runner, &finds);
        let reader = if tries.is_multiple_of(2) {
            Reader::of_this_moment(&database.catalog, &collection)
        } else {
            Reader::of_a_snapshot(&collection)
        };
        let pattern = |index: Arc<Index>| shell::print(ValueRef::Document(index.key_pattern())).replace('"', "'");
        let patterns: Vec<String> = reader.whole_indexes().into_iter().map(pattern).collect();
        find.settle(&patterns);
        let sort = find.sort.pattern(&patterns);
        let judged = Judged;
        let outcome = check(&reader, &find, sort.as_deref());
        drop(judged);
        match outcome {
            Ok(()) => {
                progress.rounds.fetch_add(1, Ordering::Release);
            }
            Err(failure) if reader.is_lost(&failure) => {}
            Err(failure) => panic!("{find:?}: {failure}"),
        }
        drop(reader);
        // Forgets all past states that are kept.
        database.catalog.past_states().forget_old(u64::MAX);
    }
}

#[test]
fn plans_agree_with_scans_while_others_write_and_indexes_come_and_go() {
    for engine in ENGINES {
        let (database, progress) = (Database::open(engine), Progress::default());
        database.collection(NAME);
        let mut runner = runner();
        for id in 0..DOCUMENTS {
            database.insert(NAME, &with_id(id as usize, &made(&mut runner, &stored()))).expect("inserted");
        }
        std::thread::scope(|scope| {
            let _over = Over(&progress);
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    let _over = Over(&progress);
                    write(&database, &progress);
                });
            }
            scope.spawn(|| {
                let _over = Over(&progress);
                change_indexes(&database, &progress);
            });
            ask(&database, &progress);
        });
        let collection = database.collection(NAME);
        let validation = collection.validate(&*OperationContext::unlimited()).expect("readable");
        assert!(validation.is_valid(), "{BROKEN}: {}: {:?}", engine.name, validation.errors);
        let said = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert!(said(&progress.rounds) >= ROUNDS && said(&progress.writes) > 0 && said(&progress.changes) > 0);
        eprintln!(
            "{}: {} rounds, {} writes, {} changes of indexes",
            engine.name,
            said(&progress.rounds),
            said(&progress.writes),
            said(&progress.changes)
        );
    }
}
