//! A client that makes every kind of change: to documents in all ways, in transactions and outside, and to collections.

use crate::caller::{Address, Caller, code, is_ok};
use bunko_bson::{ValueRef, number};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Collections with their databases. No collection is renamed to the last one, because a stream on that collection
/// alone would not report the documents that a rename brings.
pub const COLLECTIONS: [&str; 6] = ["one.a", "one.b", "one.c", "two.a", "two.b", "one.solo"];
/// Values of `_id` in one collection; the fifth and the sixth are equal.
const IDS: [&str; 9] =
    ["1", "2", "'text'", "2.5", "7", "NumberLong(7)", "{a: 1, b: 'x'}", "ObjectId('0123456789abcdef01234567')", "null"];
/// Documents of 1 MiB in a large transaction, whose commit is a chain of records in the log.
const LARGE_DOCUMENTS: u32 = 14;

/// State that all changers share.
#[derive(Default)]
pub struct Changes {
    pub is_over: AtomicBool,
    /// Number of completed commands.
    pub done: AtomicU64,
    pub committed: AtomicU64,
    pub aborted: AtomicU64,
}

pub struct Changer {
    number: u64,
    caller: Caller,
    transaction: i64,
    counter: u64,
    changes: Arc<Changes>,
}

impl Changer {
    pub fn new(number: u64, address: &Address, seed: u64, changes: &Arc<Changes>) -> Self {
        let caller = Caller::new(address, seed << 8 | number);
        Self { number, caller, transaction: 0, counter: 0, changes: Arc::clone(changes) }
    }

    /// Works until told to stop, then ends its transaction.
    pub fn work(&mut self) {
        while !self.changes.is_over.load(Ordering::Relaxed) {
            match self.caller.below(100) {
                0..8 => self.change_collections(),
                8..40 => self.change_in_a_transaction(),
                _ => {
                    let (database, text) = self.statement();
                    self.run(database, &text);
                }
            }
        }
        self.end();
    }

    /// Aborts the open transaction.
    pub fn end(&mut self) {
        self.run_in_transaction("admin", "{abortTransaction: 1}", "");
    }

    fn run(&mut self, database: &str, text: &str) {
        match self.caller.send(database, text) {
            Some(_) => {
                self.changes.done.fetch_add(1, Ordering::Relaxed);
            }
            // The server is down.
            None => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    }

    /// Runs a command in the transaction; returns the error code, 0 for success, or -1 if no reply arrived.
    fn run_in_transaction(&mut self, database: &str, text: &str, begins: &str) -> i64 {
        let session = format!("lsid: {{id: UUID('00000000-0000-4000-8000-{:012}')}}", self.number);
        let number = format!("txnNumber: NumberLong({}), autocommit: false", self.transaction);
        let text = format!("{}, {session}, {number}{begins}}}", &text[..text.len() - 1]);
        let Some(reply) = self.caller.send(database, &text) else { return -1 };
        self.changes.done.fetch_add(1, Ordering::Relaxed);
        if is_ok(&reply) { 0 } else { code(&reply).max(1) }
    }

    fn change_in_a_transaction(&mut self) {
        self.transaction += 1;
        let is_large = self.caller.below(50) == 0;
        for position in 0..=self.caller.below(4) {
            let begins = if position == 0 { ", startTransaction: true" } else { "" };
            let (database, text) = self.statement();
            if self.run_in_transaction(database, &text, begins) != 0 {
                self.changes.aborted.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        if is_large {
            let pad = "x".repeat(1 << 20);
            let remove = format!("{{delete: 'c', deletes: [{{q: {{own: {}}}, limit: 0}}]}}", self.number);
            self.run_in_transaction("one", &remove, "");
            for id in 0..LARGE_DOCUMENTS {
                let document = format!("{{_id: '{}-{id}', own: {}, pad: '{pad}'}}", self.number, self.number);
                self.run_in_transaction("one", &format!("{{insert: 'c', documents: [{document}]}}"), "");
            }
            // The commit contains all of them. The next large transaction deletes them.
        }
        match self.caller.below(10) {
            // Left open: the next transaction ends this one.
            0 => self.change_in_a_transaction(),
            1..4 => {
                self.run_in_transaction("admin", "{abortTransaction: 1}", "");
                self.changes.aborted.fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                if self.run_in_transaction("admin", "{commitTransaction: 1, writeConcern: {w: 1}}", "") == 0 {
                    self.changes.committed.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if is_large {
            self.run("one", &format!("{{delete: 'c', deletes: [{{q: {{own: {}}}, limit: 0}}]}}", self.number));
        }
    }

    fn collection(&mut self) -> (&'static str, &'static str) {
        let full = COLLECTIONS[self.caller.below(COLLECTIONS.len() as u64) as usize];
        full.split_once('.').expect("a database")
    }

    fn change_collections(&mut self) {
        let (database, collection) = self.collection();
        match self.caller.below(12) {
            0 => self.run(database, &format!("{{drop: '{collection}'}}")),
            1 => self.run(database, &format!("{{create: '{collection}'}}")),
            2..5 => {
                let to = COLLECTIONS[self.caller.below(COLLECTIONS.len() as u64 - 1) as usize];
                let drop_target = self.caller.below(3) > 0;
                let rename =
                    format!("renameCollection: '{database}.{collection}', to: '{to}', dropTarget: {drop_target}");
                self.run("admin", &format!("{{{rename}}}"));
            }
            5 => self.run("two", "{dropDatabase: 1}"),
            6 => {
                let index = "{key: {'a.x': 1}, name: 'x'}";
                self.run(database, &format!("{{createIndexes: '{collection}', indexes: [{index}]}}"));
            }
            7 => self.run(database, &format!("{{dropIndexes: '{collection}', index: '*'}}")),
            8 => {
                let is_on = self.caller.below(2) == 0;
                let images = format!("changeStreamPreAndPostImages: {{enabled: {is_on}}}");
                self.run(database, &format!("{{collMod: '{collection}', {images}}}"));
            }
            9 if database == "one" && self.caller.below(4) == 0 => self.run("one", "{dropDatabase: 1}"),
            9 | 10 => {
                let out = if self.caller.below(2) == 0 { "{$out: 'b'}" } else { "{$merge: 'b'}" };
                self.run(
                    database,
                    &format!("{{aggregate: 'a', pipeline: [{{$match: {{own: null}}}}, {out}], cursor: {{}}}}"),
                );
            }
            _ => self.run("one", "{convertToCapped: 'b', size: 100000}"),
        }
    }

    /// A random write statement with its database.
    fn statement(&mut self) -> (&'static str, String) {
        self.counter += 1;
        let n = self.counter;
        let (database, collection) = self.collection();
        let id = IDS[self.caller.below(IDS.len() as u64) as usize];
        let q = format!("q: {{_id: {id}}}");
        let text = match self.caller.below(20) {
            0..3 => {
                let document = format!("{{_id: {id}, n: {n}, l: [1, {{k: {n}}}], o: {{'0': 1, '1': {{'2': 3}}}}}}");
                format!("{{insert: '{collection}', documents: [{document}, {{_id: {n}, n: 1}}], ordered: false}}")
            }
            3 => format!("{{delete: '{collection}', deletes: [{{{q}, limit: 1}}]}}"),
            4 => format!("{{delete: '{collection}', deletes: [{{q: {{n: {{$lt: {n}}}}}, limit: 0}}]}}"),
            5 => format!("{{update: '{collection}', updates: [{{{q}, u: {{b: {n}, l: [{n}]}}, upsert: true}}]}}"),
            6 => {
                let change = format!("update: {{$inc: {{n: 1}}, $set: {{'a.x': {n}}}}}, upsert: true");
                format!("{{findAndModify: '{collection}', query: {{_id: {id}}}, {change}}}")
            }
            7 => format!("{{update: '{collection}', updates: [{{q: {{}}, u: {{$inc: {{all: 1}}}}, multi: true}}]}}"),
            _ => {
                let (update, more) = self.update(n);
                format!(
                    "{{update: '{collection}', updates: [{{{q}, u: {update}, upsert: {}{more}}}]}}",
                    n.is_multiple_of(3)
                )
            }
        };
        (database, text)
    }

    fn update(&mut self, n: u64) -> (String, &'static str) {
        let update = match self.caller.below(30) {
            0 => format!("{{$set: {{'a.x': {n}}}}}"),
            1 => format!("{{$set: {{a: {{x: {n}, y: [{n}, {{z: {n}}}]}}}}}}"),
            2 => format!("{{$inc: {{'a.y.1.z': 1}}, $push: {{l: {n}}}}}"),
            3 => format!("{{$push: {{l: {{$each: [{n}, {{k: {n}}}], $position: 1}}}}}}"),
            4 => format!("{{$push: {{l: {{$each: [{n}], $slice: -5}}}}}}"),
            5 => format!("{{$push: {{l: {{$each: [{{k: {}}}], $sort: {{k: 1}}}}}}}}", n % 7),
            6 => format!("{{$addToSet: {{l: {{$each: [{}, {}]}}}}}}", n % 7, n % 5),
            7 => format!("{{$pull: {{l: {{$lt: {n}}}}}}}"),
            8 => "{$pop: {l: 1}, $unset: {'l.0': 1}}".to_owned(),
            9 => "{$pop: {l: 1}}".to_owned(),
            10 => format!("{{$set: {{'l.{}': {n}}}}}", n % 9),
            11 => format!("{{$set: {{'new{}.deep.er': {n}}}, $unset: {{new{}: 1}}}}", n % 6, (n + 1) % 6),
            12 => format!("{{$rename: {{new{}: 'new{}'}}}}", n % 6, (n + 3) % 6),
            13 => "{$unset: {'l.0': 1}}".to_owned(),
            14 => format!("{{$set: {{'o.0': {n}, 'o.1.2': {n}}}, $unset: {{'o.3': 1}}}}"),
            15 => format!("{{$set: {{'o.3': {n}, 'arrays.0.1.0': {n}, 'arrays.1.q.3': {n}}}}}"),
            16 | 25..=28 => {
                "[{$set: {l: {$slice: ['$l', 2]}, text: 'what is longer than the rest of it, so that it is left out'}}]"
                    .to_owned()
            }
            17 => format!("[{{$set: {{o: {{$setField: {{field: 'dotted.name', input: '$o', value: {n}}}}}}}}}]"),
            18 => format!("[{{$replaceWith: {{$setField: {{field: 'top.dot', input: '$$ROOT', value: {n}}}}}}}]"),
            19 => format!("[{{$unset: 'new1'}}, {{$set: {{new1: {n}, arrays: [[{n}, [{n}]], {{q: [{n}]}}]}}}}]"),
            20 => {
                format!("[{{$set: {{a: {{y: [], x: {n}}}, l: {{$concatArrays: [{{$ifNull: ['$l', []]}}, [{n}]]}}}}}}]")
            }
            21 => "[{$set: {l: {$slice: ['$l', 1]}}}, {$unset: ['a.x', 'o.0']}]".to_owned(),
            22 => format!("{{$mul: {{'a.x': NumberLong(2)}}, $max: {{high: {n}}}, $min: {{low: {}.5}}}}", n % 10),
            23 => "{$currentDate: {d: true, 'deep.d': {$type: 'timestamp'}}}".to_owned(),
            _ => return (format!("{{$set: {{'l.$[e].k': {n}}}}}"), ", arrayFilters: [{'e.k': {$exists: true}}]"),
        };
        (update, "")
    }
}

/// The timestamp in a reply's field.
pub fn timestamp(reply: &bunko_bson::DocumentBuf, field: &str) -> bunko_bson::Timestamp {
    match reply.as_ref().get(field) {
        Some(ValueRef::Timestamp(time)) => time,
        other => panic!("'{field}' is {other:?}"),
    }
}

/// A cursor's id.
pub fn cursor_id(cursor: bunko_bson::DocumentRef<'_>) -> i64 {
    cursor.get("id").and_then(number::as_i64_exact).unwrap_or(0)
}
