//! Index builds with concurrent writers, with drops, and with ends of the process.

use crate::opened::{namespace, open, spec, survival};
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_catalog::{
    Catalog, Collection, CreateOptions, EngineChoice, IndexSpec, Order, Target, UnfinishedFate, Verdict,
};
use bunko_engines::{ENGINES, Entry};
use bunko_errors::{ErrorCode, Failure};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_store::Survival;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Number of records with distinct keys. Further records repeat some of these keys.
const RECORDS: i32 = 1500;
const TWICE: i32 = 300;
/// Number of builds while other threads write, for each engine.
const BUILDS_IN_A_BRAWL: usize = 15;

/// Acts between the steps of a build, which checks the operation before each step.
struct Between<F> {
    asked: AtomicUsize,
    act: F,
}

impl<F: Fn(usize) + Send + Sync> Interruption for Between<F> {
    fn reason(&self) -> Option<Failure> {
        (self.act)(self.asked.fetch_add(1, Ordering::Relaxed));
        None
    }
}

/// An operation that calls `act` before each step, with the step's number.
fn between(act: impl Fn(usize) + Send + Sync + 'static) -> Arc<OperationContext> {
    OperationContext::new(Arc::new(Between { asked: AtomicUsize::new(0), act }), MemoryLimits::none())
}

struct Opened {
    catalog: Arc<Catalog>,
    collection: Arc<Collection>,
    directory: tempfile::TempDir,
}

fn new(engine: &Entry) -> Opened {
    let directory = tempfile::tempdir().expect("a directory");
    let catalog = open(directory.path(), engine);
    let choice = EngineChoice::checked(catalog.store(), engine.name, bunko_bson::DocumentRef::EMPTY).expect("a choice");
    let create = CreateOptions { engine: Some(choice), ..CreateOptions::default() };
    let (collection, _) = catalog.create(&namespace("a"), create, &*OperationContext::unlimited()).expect("created");
    Opened { catalog, collection, directory }
}

fn unique() -> IndexSpec {
    let key = DocumentBuf::new().with("k", 1_i32);
    IndexSpec::parse(DocumentBuf::new().with("key", &key).with("name", "k").with("unique", true).as_ref())
        .expect("valid")
}

fn with_key(id: i32, key: i32) -> DocumentBuf {
    let tags: ArrayBuf = [id, key, key + 1].into_iter().collect();
    DocumentBuf::new().with("_id", id).with("k", key).with("tags", &tags)
}

fn insert(catalog: &Catalog, documents: &[DocumentBuf]) -> usize {
    let bytes: Vec<_> = documents.iter().map(|document| Cow::Borrowed(document.as_ref().as_bytes())).collect();
    let outcome = catalog.insert(&namespace("a"), &bytes, Order::Unordered, &*OperationContext::unlimited());
    outcome.expect("inserted").count
}

fn change(catalog: &Catalog, collection: &Collection, id: i32, verdict: impl Fn() -> Verdict) {
    let id = ValueRef::Int32(id);
    if let Some(record) = collection.record_of_id(id, &*OperationContext::unlimited()).expect("readable") {
        let operation = OperationContext::unlimited();
        let changed = catalog.change(collection, Target::Id(record, id), &*operation, &mut |_| Ok(verdict()));
        if let Err(failure) = changed {
            assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY, "{failure}");
        }
    }
}

/// A collection in which some values of `k` occur twice.
fn with_duplicates(engine: &Entry) -> Opened {
    let opened = new(engine);
    let first = (0..RECORDS).map(|id| with_key(id, id));
    let second = (0..TWICE).map(|key| with_key(RECORDS + key, key));
    let documents: Vec<_> = first.chain(second).collect();
    assert_eq!(insert(&opened.catalog, &documents), documents.len());
    opened
}

fn check(opened: &Opened, engine: &Entry, keys: u64) {
    let validation = opened.collection.validate(&*OperationContext::unlimited()).expect("validated");
    assert!(validation.is_valid(), "{}: {:?}", engine.name, validation.errors);
    let index = opened.collection.index("k").expect("built");
    assert_eq!(opened.collection.index_statistics(&index).entries, keys, "{}", engine.name);
    assert_eq!(insert(&opened.catalog, &[with_key(1_000_000, RECORDS - 1)]), 0, "{}: the key is taken", engine.name);
}

/// Builds a unique index over duplicates that `meanwhile` ends, before some of them or after all have been found. The
/// index then has the given number of keys.
fn check_ended(keys: i32, meanwhile: fn(&Catalog, &Collection)) {
    for engine in ENGINES {
        for step in [3, 5] {
            let opened = with_duplicates(engine);
            let (catalog, collection) = (Arc::clone(&opened.catalog), Arc::clone(&opened.collection));
            let operation = between(move |asked| {
                if asked == step {
                    meanwhile(&catalog, &collection);
                }
            });
            opened.catalog.create_indexes(&opened.collection, &[unique()], &*operation).expect("built");
            check(&opened, engine, keys as u64);
        }
    }
}

#[test]
fn duplicates_that_are_deleted_meanwhile_take_no_key_along() {
    check_ended(RECORDS, |catalog, collection| {
        (RECORDS..RECORDS + TWICE).for_each(|id| change(catalog, collection, id, || Verdict::Delete));
    });
}

#[test]
fn a_record_that_is_left_with_a_key_has_it() {
    // Half of the first records with a repeated key are deleted; the others get a new key.
    check_ended(RECORDS + TWICE / 2, |catalog, collection| {
        for id in 0..TWICE {
            let replaced = || Verdict::Replace(with_key(id, 100_000 + id));
            change(catalog, collection, id, || if id % 2 == 0 { Verdict::Delete } else { replaced() });
        }
    });
}

#[test]
fn duplicates_that_stay_refuse_the_index() {
    for engine in ENGINES {
        let opened = with_duplicates(engine);
        let built = opened.catalog.create_indexes(&opened.collection, &[unique()], &*OperationContext::unlimited());
        let failure = built.expect_err("keys are there twice");
        assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY);
        let message = failure.message();
        assert!(message.starts_with("Index build failed: ") && message.contains(": Collection db.a ( "), "{message}");
        assert!(
            message.contains(" ) :: caused by :: E11000 duplicate key error collection: db.a index: k"),
            "{message}"
        );
        assert!(opened.collection.index("k").is_none());
        assert_eq!(insert(&opened.catalog, &[with_key(1_000_000, 0)]), 1);
    }
}

#[test]
fn a_duplicate_that_a_writer_brings_meanwhile_is_found_at_the_end() {
    for engine in ENGINES {
        let opened = new(engine);
        insert(&opened.catalog, &(0..RECORDS).map(|id| with_key(id, id)).collect::<Vec<_>>());
        let catalog = Arc::clone(&opened.catalog);
        let operation = between(move |asked| {
            if asked == 3 {
                assert_eq!(insert(&catalog, &[with_key(RECORDS, 0), with_key(RECORDS + 1, RECORDS - 1)]), 2);
            }
        });
        let built = opened.catalog.create_indexes(&opened.collection, &[unique()], &*operation);
        assert_eq!(built.expect_err("keys are there twice").code(), ErrorCode::DUPLICATE_KEY);
    }
}

#[test]
fn steps_are_bounded_by_keys() {
    let opened = new(&ENGINES[0]);
    let numbers: ArrayBuf = (0..20_000).collect();
    insert(&opened.catalog, &[1, 2].map(|id| DocumentBuf::new().with("_id", id).with("tags", &numbers)));
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let operation = between(move |asked| counted.store(asked, Ordering::Relaxed));
    opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*operation).expect("built");
    assert!(steps.load(Ordering::Relaxed) >= 40_000 / 512, "{steps:?}");
    assert!(opened.collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
}

#[test]
fn a_dropped_index_or_collection_ends_its_build() {
    for engine in ENGINES {
        for is_collection_dropped in [true, false] {
            let opened = with_duplicates(engine);
            let (catalog, collection) = (Arc::clone(&opened.catalog), Arc::clone(&opened.collection));
            let operation = between(move |asked| {
                if asked == 3 && is_collection_dropped {
                    catalog.drop_collection(&namespace("a"), &*OperationContext::unlimited()).expect("dropped");
                } else if asked == 3 {
                    catalog.drop_indexes(&collection, &["tags"], &*OperationContext::unlimited()).expect("dropped");
                }
            });
            let built = opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*operation);
            assert_eq!(built.expect_err("dropped").code(), ErrorCode::INDEX_BUILD_ABORTED);
            assert!(is_collection_dropped || opened.collection.index("tags").is_none());
        }
    }
}

#[test]
fn indexes_that_are_built_together_are_dropped_together() {
    for engine in ENGINES {
        let opened = with_duplicates(engine);
        let (catalog, collection) = (Arc::clone(&opened.catalog), Arc::clone(&opened.collection));
        let operation = between(move |asked| {
            let drop_them = |names: &[&str]| catalog.drop_indexes(&collection, names, &*OperationContext::unlimited());
            if asked == 3 {
                for one in ["tags", "k"] {
                    let refused = drop_them(&[one]).expect_err("the other one is built with it");
                    assert_eq!(refused.code(), ErrorCode::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE, "{refused}");
                }
                assert_eq!(collection.indexes().len(), 3);
            } else if asked == 4 {
                drop_them(&["k", "tags"]).expect("dropped");
            }
        });
        let built = opened.catalog.create_indexes(&opened.collection, &[spec("tags"), spec("k")], &*operation);
        assert_eq!(built.expect_err("dropped").code(), ErrorCode::INDEX_BUILD_ABORTED);
        assert_eq!(opened.collection.indexes().len(), 1, "{}", engine.name);
        // A ready index can be dropped alone while another one is being built.
        opened
            .catalog
            .create_indexes(&opened.collection, &[spec("k")], &*OperationContext::unlimited())
            .expect("built");
        let (catalog, collection) = (Arc::clone(&opened.catalog), Arc::clone(&opened.collection));
        let operation = between(move |asked| {
            if asked == 3 {
                catalog.drop_indexes(&collection, &["k"], &*OperationContext::unlimited()).expect("dropped");
            }
        });
        opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*operation).expect("built");
        assert!(
            opened.collection.index("k").is_none()
                && opened.collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid()
        );
    }
}

/// A few elements and a long string: each key has both.
fn with_wide_keys(id: i32, elements: i32, length: usize) -> DocumentBuf {
    let tags: ArrayBuf = (0..elements).collect();
    DocumentBuf::new().with("_id", id).with("tags", &tags).with("k", "w".repeat(length).as_str())
}

#[test]
fn keys_that_exceed_a_segment_of_the_log_are_built_in_several_records_or_refused() {
    let key = DocumentBuf::new().with("tags", 1_i32).with("k", 1_i32);
    let index = IndexSpec::parse(DocumentBuf::new().with("key", &key).with("name", "wide").as_ref()).expect("valid");
    for engine in ENGINES {
        // Keys of all documents together: 80 MB.
        let opened = new(engine);
        insert(&opened.catalog, &[1, 2, 3, 4].map(|id| with_wide_keys(id, 2_000, 10_000)));
        let operation = OperationContext::unlimited();
        let build = || opened.catalog.create_indexes(&opened.collection, std::slice::from_ref(&index), &*operation);
        let drop_it = || opened.catalog.drop_indexes(&opened.collection, &["wide"], &*operation).expect("dropped");
        build().expect("built");
        let wide = opened.collection.index("wide").expect("built");
        assert_eq!(opened.collection.index_statistics(&wide).entries, 8_000, "{}", engine.name);
        // Keys of one document: 80 MB, which does not fit into a log record.
        let too_wide = [with_wide_keys(5, 8_000, 10_000)];
        let bytes = [Cow::Borrowed(too_wide[0].as_ref().as_bytes())];
        let outcome = opened.catalog.insert(&namespace("a"), &bytes, Order::Ordered, &*OperationContext::unlimited());
        let refused = outcome.expect("refused one by one");
        assert_eq!((refused.count, refused.failures[0].1.code()), (0, ErrorCode::CANNOT_BUILD_INDEX_KEYS));
        drop_it();
        assert_eq!(insert(&opened.catalog, &too_wide), 1);
        let refused = build().expect_err("too wide");
        assert_eq!(refused.code(), ErrorCode::CANNOT_BUILD_INDEX_KEYS, "{refused}");
        assert!(
            opened.collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid(),
            "{}",
            engine.name
        );
        opened.catalog.store().close().expect("closed");
    }
}

#[test]
fn a_second_request_for_an_index_waits_for_its_build() {
    let opened = with_duplicates(&ENGINES[0]);
    let other = {
        let (catalog, collection) = (Arc::clone(&opened.catalog), Arc::clone(&opened.collection));
        let (begun, has_begun) = std::sync::mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let second = std::thread::spawn(move || {
            has_begun.recv().expect("the first has begun");
            let again = catalog.create_indexes(&collection, &[spec("tags")], &*OperationContext::unlimited());
            over.store(true, Ordering::Release);
            again.expect("present")
        });
        let operation = between(move |asked| {
            if asked == 3 {
                begun.send(()).expect("the second waits");
                // Nothing shows that a thread waits; a sleep that is too short only makes the test weaker.
                std::thread::sleep(Duration::from_millis(50));
                assert!(!is_over.load(Ordering::Acquire));
            }
        });
        opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*operation).expect("built");
        second.join().expect("no panic")
    };
    assert_eq!((other.before, other.after, other.lsn), (2, 2, None));
}

#[test]
fn a_build_that_is_left_to_the_next_start_goes_on() {
    for engine in ENGINES.iter().filter(|engine| survival(engine.name) == Survival::Durable) {
        for index in [spec("tags"), unique()] {
            let opened = with_duplicates(engine);
            let catalog = Arc::clone(&opened.catalog);
            let operation = between(move |asked| {
                if asked == 3 {
                    catalog.stop_builds();
                }
            });
            let stopped = opened.catalog.create_indexes(&opened.collection, std::slice::from_ref(&index), &*operation);
            assert_eq!(stopped.expect_err("stopped").code(), ErrorCode::INTERRUPTED_AT_SHUTDOWN);
            opened.catalog.store().close().expect("closed");
            drop(operation);
            let Opened { catalog, collection, directory } = opened;
            drop((catalog, collection));
            let catalog = open(directory.path(), engine);
            let collection = catalog.collection(&namespace("a")).expect("there");
            // Writers run before the build is resumed.
            change(&catalog, &collection, 5, || Verdict::Delete);
            let unfinished = catalog.resume_builds(&*OperationContext::unlimited());
            assert!(
                collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid(),
                "{}",
                engine.name
            );
            if index.is_unique {
                assert_eq!(unfinished[0].fate, UnfinishedFate::Dropped);
                assert_eq!(unfinished[0].failure.code(), ErrorCode::DUPLICATE_KEY);
                assert!(collection.index("k").is_none());
            } else {
                assert!(unfinished.is_empty(), "{unfinished:?}");
                assert!(collection.index("tags").is_some());
            }
        }
    }
}

/// Ends the brawl, also if the test panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn builds_beside_a_brawl_agree_with_the_records() {
    for engine in ENGINES {
        let opened = new(engine);
        insert(&opened.catalog, &(0..RECORDS).map(|id| with_key(id, id)).collect::<Vec<_>>());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2_u32 {
                let (opened, is_over) = (&opened, &is_over);
                scope.spawn(move || brawl(opened, thread, is_over));
            }
            let _over = Over(&is_over);
            for _ in 0..BUILDS_IN_A_BRAWL {
                // Many writes come between two steps: the threads write in real time, so this waits in real time.
                let operation = between(|_| std::thread::sleep(Duration::from_millis(2)));
                match opened.catalog.create_indexes(&opened.collection, &[unique(), spec("tags")], &*operation) {
                    Ok(_) => {
                        let validation =
                            opened.collection.validate(&*OperationContext::unlimited()).expect("validated");
                        assert!(validation.is_valid(), "{}: {:?}", engine.name, validation.errors);
                        opened.catalog.drop_all_indexes(&opened.collection, &*operation).expect("dropped");
                    }
                    Err(failure) => assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY, "{failure}"),
                }
            }
        });
        let built = opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*OperationContext::unlimited());
        built.expect("built");
        assert!(opened.collection.validate(&*OperationContext::unlimited()).expect("validated").is_valid());
    }
}

/// Inserts, replaces and deletes documents. Now and then, two of them have the same key for a while.
fn brawl(opened: &Opened, thread: u32, is_over: &AtomicBool) {
    let mut seed = thread.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut random = |below: i32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as i32 % below
    };
    while !is_over.load(Ordering::Relaxed) {
        let (id, own) = (random(RECORDS), 2 * random(RECORDS) + RECORDS + thread as i32);
        match random(4) {
            0 => change(&opened.catalog, &opened.collection, id, || Verdict::Replace(with_key(id, own))),
            1 => change(&opened.catalog, &opened.collection, id, || Verdict::Delete),
            2 => change(&opened.catalog, &opened.collection, id, || Verdict::Replace(with_key(id, id))),
            _ => drop(insert(&opened.catalog, &[with_key(id, id), with_key(own + RECORDS, id)])),
        }
        change(&opened.catalog, &opened.collection, own + RECORDS, || Verdict::Delete);
    }
}

#[test]
fn no_build_is_listed_once_a_step_down_has_interrupted_builds() {
    let opened = new(&ENGINES[0]);
    insert(&opened.catalog, &[with_key(1, 1)]);
    // The role changes after this.
    opened.catalog.interrupt_builds();
    let operation = OperationContext::unlimited();
    let refused = opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*operation);
    let code = refused.err().map(|failure| failure.code());
    assert_eq!(code, Some(ErrorCode::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE));
    assert_eq!(opened.collection.indexes().len(), 1, "a promise is broken: a later step-up would build beside it");
    opened.catalog.step_up().expect("begun");
    opened.catalog.create_indexes(&opened.collection, &[spec("tags")], &*operation).expect("built");
}
