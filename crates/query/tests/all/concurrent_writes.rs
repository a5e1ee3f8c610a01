//! Many writers on the same documents: sums are exact, keys stay unique, indexes agree with records.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ObjectId, Timestamp, ValueRef, number};
use bunko_catalog::stored_document::Stamps;
use bunko_catalog::{Catalog, Collection, IndexSpec, Namespace, Order};
use bunko_engines::{ENGINES, EngineOptions, Entry};
use bunko_errors::{ErrorCode, Result};
use bunko_operation::OperationContext;
use bunko_query::QueryScope;
use bunko_query::write::{
    Action, DeleteStatement, FindAndModify, Modification, Returning, UpdateOutcome, UpdateStatement, Upsert, Writes,
};
use bunko_store::{Direction, RecordRange, Store, StoreOptions, View};
use bunko_testkit::shell;
use bunko_update::Targets;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const THREADS: u64 = 8;

#[derive(Default)]
struct Counted(AtomicU32);

impl Stamps for Counted {
    fn object_id(&self) -> ObjectId {
        ObjectId::from_parts(1, [0; 5], self.0.fetch_add(1, Ordering::Relaxed))
    }
    fn timestamp(&self) -> Timestamp {
        Timestamp { seconds: 1, increment: self.0.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

struct Database {
    catalog: Arc<Catalog>,
    namespace: Namespace,
    stamps: Counted,
    // Dropped last, since the store writes to the directory until it is dropped.
    _directory: tempfile::TempDir,
}

fn document(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Database {
    /// One database on each engine.
    fn on_each_engine() -> impl Iterator<Item = Self> {
        ENGINES.iter().map(Self::open)
    }

    fn open(engine: &Entry) -> Self {
        let directory = tempfile::tempdir().expect("temporary directory");
        let options = StoreOptions { checkpoint_interval: Duration::from_millis(20), ..StoreOptions::at_rest() };
        let engines = bunko_engines::table(engine, &EngineOptions::default());
        let store = Store::open(directory.path(), options, engines).expect("opens");
        let uuids = AtomicU64::new(0);
        let new_uuid = move || u128::from(uuids.fetch_add(1, Ordering::Relaxed)).to_le_bytes();
        let catalog = Catalog::open(store, Box::new(new_uuid)).expect("an empty catalog");
        let namespace = Namespace::new("test", "c").expect("a valid name");
        Self { catalog, namespace, stamps: Counted::default(), _directory: directory }
    }

    fn collection(&self) -> Arc<Collection> {
        self.catalog.collection_or_create(&self.namespace, &*OperationContext::unlimited()).expect("created")
    }

    fn insert(&self, text: &str) -> Result<()> {
        let document = document(text);
        let bytes = Cow::Borrowed(document.as_ref().as_bytes());
        let mut inserted =
            self.catalog.insert(&self.namespace, &[bytes], Order::Ordered, &*OperationContext::unlimited())?;
        inserted.failures.pop().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    fn writes<T>(&self, run: impl FnOnce(&mut Writes<'_>) -> T) -> T {
        let scope = Arc::new(QueryScope::new(0, OperationContext::unlimited()));
        run(&mut Writes::new(&self.catalog, &self.namespace, &self.stamps, scope))
    }

    fn update(&self, filter: &str, update: &str, targets: Targets, upsert: Upsert) -> Result<UpdateOutcome> {
        let (filter, update) = (document(filter), document(update));
        self.writes(|writes| {
            writes.update(&UpdateStatement {
                constants: None,
                supplied: None,
                filter: filter.as_ref(),
                update: ValueRef::Document(update.as_ref()),
                array_filters: Vec::new(),
                targets,
                upsert,
                hint: None,
                sort: None,
                strings: None,
            })
        })
    }

    fn delete(&self, filter: &str) -> u64 {
        let filter = document(filter);
        let statement = DeleteStatement { filter: filter.as_ref(), targets: Targets::One, hint: None, strings: None };
        self.writes(|writes| writes.delete(&statement)).expect("deletes")
    }

    /// Takes the matching document with the least `n`, marks it taken, and returns its `n`.
    fn take_first(&self) -> Option<i64> {
        let (filter, sort) = (document("{state: 'ready'}"), document("{n: 1}"));
        let update = document("{$set: {state: 'taken'}}");
        let statement = FindAndModify {
            filter: filter.as_ref(),
            sort: Some(sort.as_ref()),
            hint: None,
            projection: None,
            strings: None,
            action: Action::Update(Modification {
                update: ValueRef::Document(update.as_ref()),
                array_filters: Vec::new(),
                upsert: Upsert::No,
                returning: Returning::Before,
            }),
        };
        let outcome = self.writes(|writes| writes.find_and_modify(&statement)).expect("takes");
        outcome.value.map(|value| integer(value.as_ref(), "n"))
    }

    fn documents(&self) -> Vec<DocumentBuf> {
        let collection = self.collection();
        let snapshot = collection.snapshot();
        let mut cursor = snapshot.records(collection.records(), RecordRange::ALL, Direction::Forward);
        let mut found = Vec::new();
        while let Some((_, _, bytes)) = cursor.next().expect("readable") {
            found.push(DocumentRef::trusted(bytes).to_owned());
        }
        found
    }

    fn assert_valid(&self) {
        let validation = self.collection().validate(&*OperationContext::unlimited()).expect("readable");
        let engine = self.catalog.store().engine_name();
        assert!(validation.is_valid(), "{engine}: {:?}", validation.errors);
        assert_eq!(validation.records, self.collection().count());
    }
}

/// Starts all threads at the same moment, so that they overlap.
fn in_threads(run: impl Fn(u64) + Sync) {
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (run, start) = (&run, &start);
            scope.spawn(move || {
                start.wait();
                run(thread);
            });
        }
    });
}

fn integer(document: DocumentRef<'_>, field: &str) -> i64 {
    document.get(field).and_then(number::as_i64_exact).unwrap_or_else(|| panic!("no number {field} in {document:?}"))
}

#[test]
fn no_increment_is_lost() {
    for database in Database::on_each_engine() {
        database.insert("{_id: 1, n: 0, k: 'x'}").expect("inserted");
        in_threads(|thread| {
            for _ in 0..200 {
                // By `_id`, by `_id` with another field, and by a scan: all of them lock the record and match again.
                let filter = ["{_id: 1}", "{_id: 1, k: 'x'}", "{k: 'x'}"][thread as usize % 3];
                let outcome = database.update(filter, "{$inc: {n: 1}}", Targets::One, Upsert::No).expect("updates");
                assert_eq!((outcome.matched, outcome.modified), (1, 1));
            }
        });
        assert_eq!(integer(database.documents()[0].as_ref(), "n"), 200 * THREADS as i64);
    }
}

#[test]
fn a_compare_and_set_succeeds_once() {
    for database in Database::on_each_engine() {
        database.insert("{_id: 1, version: 0}").expect("inserted");
        let successes = AtomicU64::new(0);
        in_threads(|_| {
            for version in 0..100 {
                let filter = format!("{{_id: 1, version: {version}}}");
                let outcome =
                    database.update(&filter, "{$inc: {version: 1}}", Targets::One, Upsert::No).expect("updates");
                successes.fetch_add(outcome.modified, Ordering::Relaxed);
            }
        });
        let version = integer(database.documents()[0].as_ref(), "version");
        assert_eq!(version as u64, successes.into_inner());
        // Each version is replaced once, whichever thread is first.
        assert!((1..=100).contains(&version), "version {version}");
    }
}

#[test]
fn upserts_of_one_key_make_one_document() {
    const ROUNDS: usize = 100;
    for database in Database::on_each_engine() {
        let collection = database.collection();
        let spec = document("{key: {k: 1}, name: 'k_1', unique: true}");
        let spec = IndexSpec::parse(spec.as_ref()).expect("a specification");
        database.catalog.create_indexes(&collection, &[spec], &*OperationContext::unlimited()).expect("created");
        for round in 0..ROUNDS {
            let upserted = AtomicU64::new(0);
            in_threads(|thread| {
                let filter = if round % 2 == 0 { format!("{{_id: {round}}}") } else { format!("{{k: {round}}}") };
                let update = if round % 2 == 0 {
                    format!("{{$inc: {{n: 1}}, $set: {{k: {round}}}}}")
                } else {
                    "{$inc: {n: 1}}".into()
                };
                let outcome = database
                    .update(&filter, &update, Targets::One, Upsert::Yes)
                    .unwrap_or_else(|failure| panic!("thread {thread}: {failure}"));
                upserted.fetch_add(u64::from(outcome.upserted.is_some()), Ordering::Relaxed);
            });
            assert_eq!(upserted.into_inner(), 1);
        }
        let documents = database.documents();
        assert_eq!(documents.len(), ROUNDS);
        assert!(documents.iter().all(|document| integer(document.as_ref(), "n") == THREADS as i64), "{documents:?}");
        database.assert_valid();
    }
}

#[test]
fn every_job_is_taken_once_and_first_things_come_first() {
    for database in Database::on_each_engine() {
        for job in 0..100 {
            database.insert(&format!("{{_id: {job}, n: {job}, state: 'ready'}}")).expect("inserted");
        }
        let taken = std::sync::Mutex::new(Vec::new());
        in_threads(|_| {
            let mut last = -1;
            while let Some(job) = database.take_first() {
                assert!(job > last, "job {job} after job {last}");
                last = job;
                taken.lock().expect("no panic").push(job);
            }
        });
        let mut taken = taken.into_inner().expect("no panic");
        taken.sort_unstable();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn an_update_of_many_meets_no_document_twice() {
    for database in Database::on_each_engine() {
        let collection = database.collection();
        let spec = IndexSpec::parse(document("{key: {n: 1}, name: 'n_1'}").as_ref()).expect("a specification");
        database.catalog.create_indexes(&collection, &[spec], &*OperationContext::unlimited()).expect("created");
        for id in 0..300 {
            database.insert(&format!("{{_id: {id}, n: {id}}}")).expect("inserted");
        }
        // Each change moves its document forward along the index that the search walks.
        let outcome =
            database.update("{n: {$gte: 0}}", "{$inc: {n: 1000}}", Targets::Many, Upsert::No).expect("updates");
        assert_eq!((outcome.matched, outcome.modified), (300, 300));
        let sum: i64 = database.documents().iter().map(|document| integer(document.as_ref(), "n")).sum();
        assert_eq!(sum, (0..300).sum::<i64>() + 300 * 1000);
    }
}

#[test]
fn an_update_of_many_ends_at_the_document_that_refuses_it() {
    for database in Database::on_each_engine() {
        for id in 0..100 {
            database
                .insert(&format!("{{_id: {id}, n: {}}}", if id == 70 { "'no number'" } else { "1" }))
                .expect("inserted");
        }
        let failure = database.update("{}", "{$inc: {n: 1}}", Targets::Many, Upsert::No).expect_err("not a number");
        assert_eq!(failure.code(), ErrorCode::TYPE_MISMATCH);
        let changed = database
            .documents()
            .iter()
            .filter(|document| matches!(document.as_ref().get("n"), Some(ValueRef::Int32(2))))
            .count();
        assert_eq!(changed, 70, "documents before it are changed, documents after it are not");
        database.assert_valid();
    }
}

#[test]
fn an_update_of_many_moves_unique_keys_one_after_the_other() {
    for database in Database::on_each_engine() {
        let collection = database.collection();
        let spec = document("{key: {u: 1}, name: 'u_1', unique: true}");
        let spec = IndexSpec::parse(spec.as_ref()).expect("a specification");
        database.catalog.create_indexes(&collection, &[spec], &*OperationContext::unlimited()).expect("created");
        // Each document takes the key that the previous one has just left; the first document has no `u`.
        database.insert("{_id: 0, n: 0}").expect("inserted");
        for id in 1..200 {
            database.insert(&format!("{{_id: {id}, u: {}, n: {id}}}", 1000 - id)).expect("inserted");
        }
        for update in ["{$inc: {u: 1, n: 1}}", "{$inc: {n: 1}}"] {
            let outcome = database.update("{n: {$gte: 0}}", update, Targets::Many, Upsert::No).expect("no two meet");
            assert_eq!(outcome.modified, 200);
        }
        let failure = database.update("{}", "{$set: {u: 7}}", Targets::Many, Upsert::No).expect_err("one key for all");
        assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY);
        database.assert_valid();
    }
}

#[test]
fn updates_of_many_and_of_one_lose_nothing() {
    for database in Database::on_each_engine() {
        for id in 0..150 {
            database.insert(&format!("{{_id: {id}, n: 0}}")).expect("inserted");
        }
        let (deleted, many) = (AtomicU64::new(0), AtomicU64::new(0));
        in_threads(|thread| {
            for round in 0..20 {
                match thread % 4 {
                    0 | 1 => {
                        let outcome = database.update("{}", "{$inc: {n: 1}}", Targets::Many, Upsert::No);
                        many.fetch_add(outcome.expect("updates").modified, Ordering::Relaxed);
                    }
                    2 => {
                        let filter = format!("{{_id: {}}}", (round * 37 + thread) % 150);
                        let outcome = database.update(&filter, "{$inc: {n: 1}}", Targets::One, Upsert::No);
                        many.fetch_add(outcome.expect("updates").modified, Ordering::Relaxed);
                    }
                    _ => {
                        deleted.fetch_add(database.delete(&format!("{{_id: {}}}", 100 + round)), Ordering::Relaxed);
                    }
                }
            }
        });
        let documents = database.documents();
        assert_eq!((documents.len(), deleted.into_inner()), (130, 20));
        // Increments of deleted documents are not counted here. The remaining documents got every round that updates
        // all.
        let sum: i64 = documents.iter().map(|document| integer(document.as_ref(), "n")).sum();
        assert!(sum as u64 <= many.into_inner());
        let rounds_for_all = documents.iter().map(|document| integer(document.as_ref(), "n")).min();
        assert_eq!(rounds_for_all, Some(20 * THREADS as i64 / 2));
        database.assert_valid();
    }
}

#[test]
fn indexes_agree_with_records_after_a_brawl() {
    for database in Database::on_each_engine() {
        let collection = database.collection();
        let specs = ["{key: {u: 1}, name: 'u_1', unique: true}", "{key: {tags: 1, n: -1}, name: 'tags_1_n_-1'}"];
        let specs = specs.map(|spec| IndexSpec::parse(document(spec).as_ref()).expect("a specification"));
        database.catalog.create_indexes(&collection, &specs, &*OperationContext::unlimited()).expect("created");
        let expected = |outcome: Result<()>| {
            if let Err(failure) = outcome {
                assert_eq!(failure.code(), ErrorCode::DUPLICATE_KEY, "{failure}");
            }
        };
        in_threads(|thread| {
            for round in 0..150_u64 {
                let chance = (thread * 7919 + round) * 2_654_435_761 % 1000;
                let (id, other, tag) = (chance % 40, (chance / 7) % 40, chance % 5);
                match chance % 6 {
                    0 | 1 => expected(
                        database.insert(&format!("{{_id: {id}, u: {other}, n: {chance}, tags: [{tag}, {}]}}", tag + 1)),
                    ),
                    2 => {
                        database.delete(&format!("{{_id: {id}}}"));
                    }
                    3 => expected(
                        database
                            .update(
                                &format!("{{u: {id}}}"),
                                &format!("{{$set: {{u: {other}}}}}"),
                                Targets::One,
                                Upsert::No,
                            )
                            .map(drop),
                    ),
                    4 => expected(
                        database
                            .update(
                                &format!("{{tags: {tag}}}"),
                                &format!("{{$push: {{tags: {other}}}, $inc: {{n: 1}}}}"),
                                Targets::Many,
                                Upsert::No,
                            )
                            .map(drop),
                    ),
                    _ => {
                        database.delete(&format!("{{tags: {tag}, n: {{$gt: {chance}}}}}"));
                    }
                }
            }
        });
        database.assert_valid();
        let mut seen = ArrayBuf::new();
        database.documents().iter().for_each(|document| {
            seen.push(document.as_ref().get("u").unwrap_or(ValueRef::Null));
        });
        let mut unique: Vec<_> = seen.as_ref().iter().map(|value| format!("{value:?}")).collect();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), seen.count());
    }
}
