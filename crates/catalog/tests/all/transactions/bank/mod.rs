//! A bank with accounts in two collections and two engines: a reader always finds all the money, and never half a
//! transfer.

use crate::opened::{namespace, open, survival};
use crate::transactions::world::{commit, operation};
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{Catalog, CreateOptions, EngineChoice, Order, SessionName, Target, Transaction, Verdict};
use bunko_engines::{ENGINES, Entry};
use bunko_errors::{ErrorCode, Result};
use bunko_operation::OperationContext;
use bunko_store::{Direction, RecordRange, Survival, View};
use bunko_testkit::directory::crash_copy;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ACCOUNTS: i32 = 6;
const MONEY: i32 = 100;
const TRANSFERS: u32 = 120;
const CLERKS: u32 = 3;
/// The id of two documents, one in each collection. Each transfer adds 1 to both.
const STAMPED: i32 = 1000;
/// A document of `a` that transfers and other writers add to.
const SHARED: i32 = 1001;

struct Bank {
    catalog: Arc<Catalog>,
}

fn account(id: i32, money: i32) -> DocumentBuf {
    DocumentBuf::new().with("_id", id).with("money", money)
}

fn money(bytes: &[u8]) -> i32 {
    match DocumentRef::trusted(bytes).get("money") {
        Some(ValueRef::Int32(money)) => money,
        other => panic!("{other:?}"),
    }
}

impl Bank {
    fn new(catalog: Arc<Catalog>) -> Self {
        let engines = catalog.store().engine_names();
        for (name, engine) in ["a", "b"].into_iter().zip(engines.iter().cycle()) {
            let engine = EngineChoice { name: (*engine).to_owned(), settings: DocumentBuf::new() };
            let options = CreateOptions { engine: Some(engine), ..CreateOptions::default() };
            catalog.create(&namespace(name), options, &*operation(None)).expect("created");
        }
        let bank = Self { catalog };
        for name in ["a", "b"] {
            for id in (0..ACCOUNTS).chain([STAMPED, SHARED]) {
                bank.insert(name, &account(id, if id < ACCOUNTS { MONEY } else { 0 }), &operation(None)).expect("new");
            }
        }
        bank
    }

    fn insert(&self, name: &str, document: &DocumentBuf, operation: &OperationContext) -> Result<()> {
        let documents = [Cow::Borrowed(document.as_ref().as_bytes())];
        let mut inserted = self.catalog.insert(&namespace(name), &documents, Order::Ordered, operation)?;
        inserted.failures.pop().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    fn change(
        &self,
        name: &str,
        id: i32,
        operation: &OperationContext,
        verdict: impl Fn(i32) -> Verdict,
    ) -> Result<()> {
        let collection = self.catalog.collection(&namespace(name)).expect("there");
        let id = ValueRef::Int32(id);
        let record = collection.record_of_id(id, operation)?.expect("an account is never closed for long");
        let mut decide = |document: DocumentRef<'_>| Ok(verdict(money(document.as_bytes())));
        self.catalog.change(&collection, Target::Id(record, id), operation, &mut decide)?.expect("changed");
        Ok(())
    }

    fn add(&self, name: &str, id: i32, more: i32, operation: &OperationContext) -> Result<()> {
        self.change(name, id, operation, |money| Verdict::Replace(account(id, money + more)))
    }

    /// A transfer between the collections. In every third round, it deletes the target account and inserts it again.
    fn transfer(&self, round: u32, operation: &OperationContext) -> Result<()> {
        let (from, to) = ((round * 7 % 11) as i32 % ACCOUNTS, (round * 5 % 13) as i32 % ACCOUNTS);
        let (source, target) = if round.is_multiple_of(2) { ("a", "b") } else { ("b", "a") };
        self.add(source, from, -3, operation)?;
        if round.is_multiple_of(3) {
            let collection = self.catalog.collection(&namespace(target)).expect("there");
            let mut bytes = Vec::new();
            collection.find_id(ValueRef::Int32(to), operation, &mut bytes)?.expect("there");
            self.change(target, to, operation, |_| Verdict::Delete)?;
            self.insert(target, &account(to, money(&bytes) + 3), operation)?;
        } else {
            self.add(target, to, 3, operation)?;
        }
        for (name, id) in [("a", SHARED), ("a", STAMPED), ("b", STAMPED)] {
            self.add(name, id, 1, operation)?;
        }
        Ok(())
    }

    /// Makes transfers until `TRANSFERS` are committed. Returns the number of conflicts.
    fn work(&self, clerk: u32) -> u32 {
        let (mut conflicts, mut round) = (0, clerk);
        let mut committed = 0;
        while committed < TRANSFERS {
            round += CLERKS;
            let transaction = Transaction::begin(
                &self.catalog,
                SessionName { id: [clerk as u8; 16], user: [0; 32] },
                i64::from(round),
            );
            match self.transfer(round, &operation(Some(&transaction))) {
                Ok(()) if round.is_multiple_of(17) => transaction.abort(),
                Ok(()) => {
                    commit(&transaction);
                    committed += 1;
                }
                Err(failure) => {
                    assert_eq!(failure.code(), ErrorCode::WRITE_CONFLICT, "{failure}");
                    transaction.abort();
                    conflicts += 1;
                }
            }
        }
        conflicts
    }

    /// All the money, in one snapshot.
    fn total(&self) -> i32 {
        let [a, b] = ["a", "b"].map(|name| self.catalog.collection(&namespace(name)).expect("there"));
        let snapshot = a.snapshot();
        let mut total = 0;
        for collection in [a, b] {
            let mut cursor = snapshot.records(collection.records(), RecordRange::ALL, Direction::Forward);
            while let Some((_, _, bytes)) = cursor.next().expect("readable") {
                let is_account = match DocumentRef::trusted(bytes).get("_id") {
                    Some(ValueRef::Int32(id)) => id < ACCOUNTS,
                    other => panic!("{other:?}"),
                };
                total += if is_account { money(bytes) } else { 0 };
            }
        }
        total
    }

    /// The number in the latest state of a document.
    fn latest(&self, name: &str, id: i32) -> i32 {
        let collection = self.catalog.collection(&namespace(name)).expect("there");
        let mut bytes = Vec::new();
        collection.find_latest(ValueRef::Int32(id), &mut bytes).expect("readable").expect("there");
        money(&bytes)
    }

    /// The two stamps, read one after the other.
    fn stamps(&self) -> [i32; 2] {
        ["a", "b"].map(|name| self.latest(name, STAMPED))
    }
}

fn open_for_business(engine: &'static Entry) {
    let directory = tempfile::tempdir().expect("a directory");
    let bank = Bank::new(open(directory.path(), engine));
    let all = 2 * ACCOUNTS * MONEY;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clerks: Vec<_> = (0..CLERKS)
            .map(|clerk| {
                let bank = &bank;
                scope.spawn(move || bank.work(clerk))
            })
            .collect();
        let looking = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(bank.total(), all);
                let [first, second] = bank.stamps();
                assert!(first <= second, "half a transfer was seen: {first}, then {second}");
            }
        });
        let outside = scope.spawn(|| {
            let mut sum = 0;
            while !is_over.load(Ordering::Relaxed) {
                // The write waits for the transaction that has claimed the account, and is not lost.
                bank.add("a", SHARED, 1000, &operation(None)).expect("waited for");
                sum += 1000;
                std::thread::yield_now();
            }
            sum
        });
        for clerk in clerks {
            clerk.join().expect("no panic");
        }
        is_over.store(true, Ordering::Relaxed);
        looking.join().expect("no panic");
        let added = outside.join().expect("no panic");
        let done = (CLERKS * TRANSFERS) as i32;
        assert_eq!(bank.stamps(), [done, done]);
        assert_eq!(bank.latest("a", SHARED), done + added);
    });
    assert_eq!(bank.total(), all);
    for name in ["a", "b"] {
        let collection = bank.catalog.collection(&namespace(name)).expect("there");
        assert!(collection.validate(&*OperationContext::unlimited()).expect("readable").is_valid());
        assert_eq!(collection.count(), ACCOUNTS as u64 + 2);
    }
    assert!(bank.catalog.store().engine_names().len() < 2 || survival(engine.name) == Survival::Durable);
    if survival(engine.name) == Survival::Durable {
        bank.catalog.store().flush().expect("on disk");
        let killed = crash_copy(directory.path());
        let again = Bank { catalog: open(killed.path(), engine) };
        let is_kept = |name| survival(&again.catalog.collection(&namespace(name)).expect("there").engine.name);
        if ["a", "b"].iter().all(|name| is_kept(name) == Survival::Durable) {
            assert_eq!(again.total(), all);
        }
        again.catalog.store().close().expect("closes");
    }
    bank.catalog.store().close().expect("closes");
}

#[test]
fn the_bank_keeps_its_money() {
    for engine in ENGINES {
        open_for_business(engine);
    }
}
