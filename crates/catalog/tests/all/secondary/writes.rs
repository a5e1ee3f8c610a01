//! Random writes of every kind. Many are refused, because they meet what earlier ones left.

use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ObjectId, ValueRef};
use bunko_catalog::{
    CappedCopy, Catalog, Collection, CreateOptions, IndexSpec, NOBODY, Namespace, Order, RenameTarget, RetryableWrite,
    SearchIndex, SessionName, StatementNumbers, Target, Transaction, Verdict, ViewDefinition, WriteHistories,
    WriteHistory,
};
use bunko_operation::OperationContext;
use bunko_search::SearchIndexDefinition;
use bunko_store::{Batch, Direction, KeyspaceId, Lsn, RecordId, RecordRange, View};
use bunko_testkit::random::Random;
use std::borrow::Cow;
use std::sync::Arc;

const SESSION: SessionName = SessionName { id: [1; 16], user: NOBODY };
const DATABASES: [&str; 2] = ["db", "other"];
const COLLECTIONS: u64 = 4;
/// A record store that no collection has.
pub const STRAY: KeyspaceId = KeyspaceId(2_000_000);

pub struct Writer {
    catalog: Arc<Catalog>,
    random: Random,
    next_id: i32,
    number: i64,
    history: WriteHistory,
    /// Number, position and length of each chain.
    pub chains: Vec<(i32, Lsn, i32)>,
}

impl Writer {
    pub fn new(catalog: &Arc<Catalog>, seed: u64) -> Self {
        let history = WriteHistory::default();
        Self { catalog: Arc::clone(catalog), random: Random(seed), next_id: 0, number: 0, history, chains: Vec::new() }
    }

    /// Goes on at another member, which is the primary now and had the log up to `end`.
    pub fn turn_to(&mut self, catalog: &Arc<Catalog>, mut histories: WriteHistories, end: Lsn) {
        self.catalog = Arc::clone(catalog);
        self.chains.retain(|(_, lsn, _)| *lsn < end);
        self.history = histories.remove(&SESSION).unwrap_or_default();
    }

    pub fn write(&mut self) {
        let choice = self.random.below(26);
        self.write_as(choice);
    }

    /// As [`Self::write`], without the choices that wait for the commit point.
    pub fn write_no_checkpoint(&mut self) {
        let choice = self.random.below(24);
        self.write_as(choice);
    }

    fn write_as(&mut self, choice: u64) {
        // Failures are not looked at: the next step meets other circumstances.
        match choice {
            0..5 => drop(self.insert(&OperationContext::unlimited())),
            5..8 => self.update(&OperationContext::unlimited()),
            8 | 9 => self.delete(&OperationContext::unlimited()),
            10 => self.transaction(),
            11 => self.retryable(),
            12 => self.create(),
            13 => self.drop_collection(),
            14 => self.rename(),
            15 | 16 => self.create_index(),
            17 => self.drop_index(),
            18 => self.respecify(),
            19 => self.validate_with(),
            20 => self.change_view(),
            21 => self.change_search_index(),
            22 => self.chain(),
            23 => self.change_users(),
            24 => self.rarely(),
            _ => drop(self.catalog.store().checkpoint()),
        }
    }

    fn rarely(&mut self) {
        match self.random.below(5) {
            0 => drop(self.catalog.drop_database(DATABASES[1], &*OperationContext::unlimited())),
            1 => drop(
                self.some()
                    .map(|collection| self.catalog.rebuild_indexes(&collection, &*OperationContext::unlimited())),
            ),
            2 => self.cap(),
            3 => drop(self.catalog.store().compact()),
            _ => self.large_transaction(),
        }
    }

    fn name(&mut self) -> Namespace {
        let database = self.random.pick(&DATABASES);
        Namespace::new(database, &format!("c{}", self.random.below(COLLECTIONS))).expect("valid")
    }

    fn some(&mut self) -> Option<Arc<Collection>> {
        let name = self.name();
        self.catalog.collection(&name)
    }

    fn document(&mut self, id: i32) -> DocumentBuf {
        let mut document = DocumentBuf::new().with("_id", id).with("u", id);
        match self.random.below(6) {
            0 => document.append("x", &(0..self.random.below(4) as i32).collect::<ArrayBuf>()),
            1 => document.append("x", "text"),
            2 => document.append("x", 1.5),
            3 => {
                let numbers: ArrayBuf = [1, 2].into_iter().collect();
                document.append("x", &DocumentBuf::new().with("y", &numbers))
            }
            _ => document.append("x", self.random.below(100) as i32),
        };
        document.append("t", ValueRef::DateTime(self.random.below(1000) as i64));
        let length = self.random.below(300) as usize;
        document.append("text", self.random.text(length).as_str());
        document
    }

    fn documents(&mut self, count: u64) -> Vec<Cow<'static, [u8]>> {
        let mut documents = Vec::new();
        for _ in 0..count {
            self.next_id += 1;
            let document = self.document(self.next_id);
            documents.push(Cow::Owned(document.into_bytes()));
        }
        documents
    }

    fn insert(&mut self, operation: &Arc<OperationContext>) -> Option<bunko_catalog::Inserted> {
        let (name, count) = (self.name(), 1 + self.random.below(30));
        let documents = self.documents(count);
        self.catalog.insert(&name, &documents, Order::Ordered, &**operation).ok()
    }

    /// A record and its `_id`.
    fn found(&mut self) -> Option<(Arc<Collection>, RecordId, i32)> {
        let collection = self.some()?;
        let snapshot = collection.snapshot();
        let mut cursor = snapshot.records(collection.records(), RecordRange::ALL, Direction::Forward);
        let mut found = None;
        for _ in 0..=self.random.below(40) {
            let Some((record, _, bytes)) = cursor.next().expect("readable") else { break };
            match DocumentRef::trusted(bytes).get("_id") {
                Some(ValueRef::Int32(id)) => found = Some((record, id)),
                _ => break,
            }
        }
        drop(cursor);
        found.map(|(record, id)| (collection, record, id))
    }

    fn update(&mut self, operation: &Arc<OperationContext>) {
        let Some((collection, record, id)) = self.found() else { return };
        let document = self.document(id);
        let mut decide = |_: DocumentRef<'_>| Ok(Verdict::Replace(document.clone()));
        drop(self.catalog.change(&collection, Target::Id(record, ValueRef::Int32(id)), &**operation, &mut decide));
    }

    fn delete(&mut self, operation: &Arc<OperationContext>) {
        for _ in 0..=self.random.below(10) {
            let Some((collection, record, id)) = self.found() else { return };
            let mut decide = |_: DocumentRef<'_>| Ok(Verdict::Delete);
            drop(self.catalog.change(&collection, Target::Id(record, ValueRef::Int32(id)), &**operation, &mut decide));
        }
    }

    fn transaction(&mut self) {
        self.number += 1;
        let transaction = Transaction::begin(&self.catalog, SESSION, self.number);
        let operation = OperationContext::unlimited();
        operation.join(Arc::clone(&transaction) as _);
        for _ in 0..=self.random.below(4) {
            match self.random.below(3) {
                0 => self.update(&operation),
                1 => self.delete(&operation),
                _ => drop(self.insert(&operation)),
            }
        }
        if self.random.one_in(4) {
            transaction.abort();
        } else {
            drop(transaction.commit(&mut self.history));
        }
    }

    /// A transaction that takes more than one record of the log.
    fn large_transaction(&mut self) {
        self.number += 1;
        let transaction = Transaction::begin(&self.catalog, SESSION, self.number);
        let operation = OperationContext::unlimited();
        operation.join(Arc::clone(&transaction) as _);
        for _ in 0..10 {
            self.next_id += 1;
            let text = self.random.text(1 << 20);
            let document =
                DocumentBuf::new().with("_id", self.next_id).with("u", self.next_id).with("text", text.as_str());
            let name = self.name();
            drop(self.catalog.insert(&name, &[Cow::Owned(document.into_bytes())], Order::Ordered, &*operation));
        }
        drop(transaction.commit(&mut self.history));
    }

    fn retryable(&mut self) {
        self.number += 1;
        let write = Arc::new(RetryableWrite::new(SESSION, std::mem::take(&mut self.history), self.number));
        let operation = OperationContext::unlimited();
        operation.join(Arc::clone(&write) as _);
        write.begin_inserts(StatementNumbers::From(self.random.below(5) as i32));
        self.insert(&operation);
        self.history = write.end().0;
    }

    fn create(&mut self) {
        let name = self.name();
        let mut options = DocumentBuf::new();
        match self.random.below(4) {
            0 => options = options.with("capped", true).with("size", 4096_i64).with("max", 10_i64),
            1 => {
                let key = DocumentBuf::new().with("_id", 1);
                let clustered = DocumentBuf::new().with("key", &key).with("unique", true).with("name", "own");
                options.append("clusteredIndex", &clustered);
            }
            2 => {
                let collation = DocumentBuf::new().with("locale", "en").with("strength", 2);
                options.append("collation", &collation);
            }
            // A collection under the name of buckets is an ordinary one for the catalog.
            _ => {
                let series = DocumentBuf::new().with("timeField", "t").with("granularity", "seconds");
                options.append("timeseries", &series);
            }
        }
        drop(self.catalog.create(
            &name,
            CreateOptions { options, ..CreateOptions::default() },
            &*OperationContext::unlimited(),
        ));
    }

    fn drop_collection(&mut self) {
        let name = self.name();
        drop(self.catalog.drop_collection(&name, &*OperationContext::unlimited()));
    }

    fn rename(&mut self) {
        let (from, to) = (self.name(), self.name());
        if !self.catalog.moves_by_copy(&from, &to) {
            drop(self.catalog.rename(&from, &to, RenameTarget::Drop, &*OperationContext::unlimited()));
        }
    }

    fn create_index(&mut self) {
        let Some(collection) = self.some() else { return };
        let mut specs = Vec::new();
        for _ in 0..=self.random.below(2) {
            let (field, direction) = (self.random.pick(&["x", "x.y", "t", "u", "text"]), self.random.pick(&[1, -1]));
            let mut key = DocumentBuf::new().with(field, direction);
            if self.random.one_in(3) && field != "x" {
                key.append("x", 1);
            }
            let name = format!("i{}", self.random.below(6));
            let mut spec = DocumentBuf::new().with("key", &key).with("name", name.as_str());
            match (self.random.below(6), field) {
                (0, "u") => spec.append("unique", true),
                (1, _) => spec.append("sparse", true),
                (2, "t") => spec.append("expireAfterSeconds", 100),
                (3, _) => {
                    let filter = DocumentBuf::new().with("u", &DocumentBuf::new().with("$gt", 50));
                    spec.append("partialFilterExpression", &filter)
                }
                _ => spec.append("hidden", false),
            };
            specs.extend(IndexSpec::parse(spec.as_ref()));
        }
        drop(self.catalog.create_indexes(&collection, &specs, &*OperationContext::unlimited()));
    }

    fn an_index(&mut self) -> Option<(Arc<Collection>, String)> {
        let collection = self.some()?;
        let names: Vec<_> = collection.indexes().iter().skip(1).map(|index| index.name.clone()).collect();
        let place = self.random.below(names.len().max(1) as u64) as usize;
        names.get(place).map(|name| (collection, name.clone()))
    }

    fn drop_index(&mut self) {
        let Some((collection, name)) = self.an_index() else { return };
        drop(self.catalog.drop_indexes(&collection, &[name.as_str()], &*OperationContext::unlimited()));
    }

    fn respecify(&mut self) {
        let Some((collection, name)) = self.an_index() else { return };
        let options = match self.random.below(3) {
            0 => DocumentBuf::new().with("expireAfterSeconds", self.random.below(1000) as i32),
            1 => DocumentBuf::new().with("prepareUnique", true),
            _ => DocumentBuf::new().with("hidden", self.random.one_in(2)),
        };
        drop(self.catalog.respecify_index(&collection, &name, options.as_ref(), &*OperationContext::unlimited()));
    }

    fn validate_with(&mut self) {
        let name = self.name();
        let limit = self.random.below(1000) as i32;
        let command = DocumentBuf::new().with("collMod", name.collection());
        let validator = DocumentBuf::new().with("u", &DocumentBuf::new().with("$gt", -limit));
        let mut change = |options: DocumentRef<'_>| {
            let mut changed = DocumentBuf::new();
            for element in options.iter().filter(|element| element.name != "validator") {
                changed.append(element.name, element.value);
            }
            Ok(changed.with("validator", &validator))
        };
        drop(self.catalog.change_options(&name, &command, &*OperationContext::unlimited(), &mut change));
    }

    fn change_view(&mut self) {
        let database = self.random.pick(&DATABASES);
        let name = Namespace::new(database, &format!("v{}", self.random.below(3))).expect("valid");
        let view = ViewDefinition::new(&name, self.name().collection(), ArrayRef::EMPTY, None);
        match self.random.below(3) {
            0 => drop(self.catalog.drop_view(&name, &*OperationContext::unlimited())),
            1 => drop(self.catalog.change_view(&name, &view, &*OperationContext::unlimited())),
            _ => drop(self.catalog.create_view(&name, &view, &*OperationContext::unlimited())),
        }
    }

    fn change_search_index(&mut self) {
        let Some(collection) = self.some() else { return };
        let dynamic = DocumentBuf::new().with("dynamic", true);
        let sent = DocumentBuf::new().with("mappings", &dynamic);
        let definition = SearchIndexDefinition::parse("search", sent.as_ref(), "definition").expect("valid");
        let version = self.random.below(9) as i64;
        let id = ObjectId([version as u8; 12]);
        let index = SearchIndex { id, name: "s".to_owned(), version, created_at_ms: 5, sent, definition };
        let mut change = |_: &[Arc<SearchIndex>]| Ok(vec![Arc::new(index.clone())]);
        drop(self.catalog.change_search_indexes(&collection, &*OperationContext::unlimited(), &mut change));
    }

    /// A chain of small records. Each document says how many belong together.
    fn chain(&mut self) {
        let (chain, length) = (self.next_id, 2 + self.random.below(3) as i32);
        let mut parts = Vec::new();
        for _ in 0..length {
            self.next_id += 1;
            let document = DocumentBuf::new().with("chain", chain).with("of", length);
            let mut batch = Batch::new();
            batch.insert_record(STRAY, RecordId(self.next_id as u64), document.into_bytes());
            parts.push(batch);
        }
        let (lsn, _) = self.catalog.store().commit_chain(&parts).expect("committed");
        self.chains.push((chain, lsn, length));
    }

    fn change_users(&mut self) {
        let name = Namespace::new("admin", "system.users").expect("valid");
        if self.random.one_in(4) {
            drop(self.catalog.drop_collection(&name, &*OperationContext::unlimited()));
            return;
        }
        self.next_id += 1;
        let user = DocumentBuf::new().with("_id", self.next_id).with("user", "one");
        drop(self.catalog.insert(
            &name,
            &[Cow::Owned(user.into_bytes())],
            Order::Ordered,
            &*OperationContext::unlimited(),
        ));
    }

    fn cap(&mut self) {
        let name = self.name();
        let temporary = Namespace::new(name.database(), "temporary").expect("valid");
        let options = DocumentBuf::new().with("capped", true).with("size", 8192_i64);
        let copy = CappedCopy { from: &name, to: &name, temporary: &temporary, options };
        drop(self.catalog.copy_capped(&copy, &*OperationContext::unlimited(), &*OperationContext::unlimited()));
    }
}
