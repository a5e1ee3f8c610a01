//! The oplog of a server from outside: a dump under load is consistent as of one moment, entries outlive a kill, and a
//! replay of all entries rebuilds the collections.

use crate::peer::{Peer, Running, binary};
use crate::tool::{archive, collections, connect, documents, fail, insert, succeed, text};
use bunko_bson::{DocumentBuf, ValueRef, number};
use bunko_client::{Connection, check_reply};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const ACCOUNTS: i32 = 500;
const BALANCE: i64 = 1000;
/// Maximum number of dumps that are made until one is inconsistent without its oplog.
const DUMPS_MAX: usize = 20;
/// Documents that a dump has to read between the accounts of one side and those of the other.
const FILLING: i32 = 20_000;

fn accounts() -> Vec<DocumentBuf> {
    (0..ACCOUNTS).map(|id| DocumentBuf::new().with("_id", id).with("balance", BALANCE)).collect()
}

fn change(connection: &mut Connection, collection: &str, id: i32, amount: i64) {
    let command = format!(
        "{{update: '{collection}', updates: [{{q: {{_id: {id}}}, u: {{$inc: {{balance: NumberLong({amount})}}}}}}]}}"
    );
    let command = bunko_testkit::shell::parse_document(&command).expect("a command");
    let reply = connection.run_command("bank", command.as_ref()).expect("a reply");
    check_reply(reply.as_ref()).expect("updated");
    assert_eq!(reply.as_ref().get("nModified").and_then(number::as_i64_exact), Some(1));
}

/// Moves one coin after the other from `debits` to `credits`, in this order.
fn transfer(address: SocketAddr, is_over: &AtomicBool, transfers: &AtomicU64) {
    let mut connection = connect(address);
    while !is_over.load(Ordering::Relaxed) {
        let number = transfers.fetch_add(1, Ordering::Relaxed) as i32;
        change(&mut connection, "a_debits", number % ACCOUNTS, -1);
        change(&mut connection, "z_credits", number * 7 % ACCOUNTS, 1);
    }
}

fn sum(connection: &mut Connection, collection: &str, documents_in_it: i32) -> i64 {
    let accounts = documents(connection, "bank", collection);
    assert_eq!(accounts.len(), documents_in_it as usize);
    let balance = |account: &DocumentBuf| account.as_ref().get("balance").and_then(number::as_i64_exact);
    accounts.iter().map(|account| balance(account).expect("a balance")).sum()
}

/// Coins that have left one side and not reached the other.
fn missing(connection: &mut Connection) -> i64 {
    let debits = sum(connection, "a_debits", ACCOUNTS + FILLING);
    2 * i64::from(ACCOUNTS) * BALANCE - debits - sum(connection, "z_credits", ACCOUNTS)
}

#[test]
fn a_dump_under_load_is_of_one_moment() {
    let dbpath = temporary_dbpath();
    let running = Server::start(&binary(), dbpath.path(), &["--oplogSize", "256"]).expect("the server starts");
    let mut connection = connect(running.address());
    let filling =
        |id: i32| DocumentBuf::new().with("_id", id).with("balance", 0_i64).with("pad", "x".repeat(1000).as_str());
    insert(&mut connection, "bank", "a_debits", &accounts());
    // The largest collection is dumped first, so coins that leave it later also appear in the other one.
    insert(&mut connection, "bank", "a_debits", &(ACCOUNTS..ACCOUNTS + FILLING).map(filling).collect::<Vec<_>>());
    insert(&mut connection, "bank", "z_credits", &accounts());
    let target = Running::start();
    let mut restored = connect(target.address());
    // A dump may be so fast that no transfer happens between its collections.
    for _ in 0..DUMPS_MAX {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let dump = archive(&directory.path().join("bank"));
        dump_under_load(running.address(), &dump);
        let state = directory.path().join("state");
        let plain = [dump.as_str(), "--drop", "--resumeFile", text(&state)];
        succeed("restore", target.address(), &plain);
        let torn = missing(&mut restored);
        let said = succeed("restore", target.address(), &[&plain[..], &["--oplogReplay"]].concat());
        assert!(said.contains("oplog entries applied"), "{said}");
        let missing = missing(&mut restored);
        assert!((0..=1).contains(&missing), "{missing} coins are missing, {torn} without the oplog");
        if torn.abs() > 1 {
            return;
        }
    }
    panic!("no dump of {DUMPS_MAX} took long enough for a transfer");
}

/// Dumps while coins are moved.
fn dump_under_load(address: SocketAddr, dump: &str) {
    let (is_over, transfers) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| transfer(address, &is_over, &transfers));
        while transfers.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        succeed("dump", address, &["--oplog", "--numParallelCollections", "1", dump]);
        is_over.store(true, Ordering::Relaxed);
    });
}

fn entries(connection: &mut Connection) -> Vec<DocumentBuf> {
    let found = connection.find_all("local", DocumentBuf::new().with("find", "oplog.rs").as_ref()).expect("readable");
    found.collect::<Result<_, _>>().expect("readable")
}

#[test]
fn entries_outlive_a_kill() {
    let dbpath = temporary_dbpath();
    let mut running = Server::start(&binary(), dbpath.path(), &["--oplogSize", "64"]).expect("the server starts");
    let mut connection = connect(running.address());
    insert(&mut connection, "bank", "a_debits", &accounts());
    change(&mut connection, "a_debits", 3, -5);
    let before = entries(&mut connection);
    assert_eq!(before.len(), 2 + accounts().len() + 1);
    running.kill();
    let running = Server::start(&binary(), dbpath.path(), &["--oplogSize", "64"]).expect("the server starts again");
    let mut connection = connect(running.address());
    let after = entries(&mut connection);
    assert_eq!(after[..before.len()], before);
    let started = after.last().and_then(|entry| entry.as_ref().get("op")).and_then(ValueRef::as_str);
    assert_eq!((started, after.len()), (Some("n"), before.len() + 1));
}

/// Changes of every kind that an oplog records.
const HISTORY: &[(&str, &str)] = &[
    ("shop", "{create: 'made', storageEngine: {lsm: {blockCompressor: 'zstd'}}}"),
    ("shop", "{createIndexes: 'things', indexes: [{key: {k: 1}, name: 'k_1', unique: true}]}"),
    ("shop", "{insert: 'things', documents: [{_id: 1, k: 1, l: [1]}, {_id: 2, k: 2}, {_id: 3, k: 3}, {_id: 4, k: 4}]}"),
    ("shop", "{createIndexes: 'things', indexes: [{key: {l: -1}, name: 'down'}, {key: {x: 1}, name: 'x_1'}]}"),
    ("shop", "{update: 'things', updates: [{q: {_id: {$lt: 4}}, u: {$push: {l: 7}, $inc: {n: 2}}, multi: true}]}"),
    ("shop", "{update: 'things', updates: [{q: {_id: 'new'}, u: {$set: {k: 'new'}}, upsert: true}]}"),
    ("shop", "{findAndModify: 'things', query: {_id: 1}, update: {_id: 1, k: 'one'}}"),
    ("shop", "{delete: 'things', deletes: [{q: {k: {$in: [2, 3]}}, limit: 0}]}"),
    ("shop", "{insert: 'things', documents: [{_id: 3.0, k: 33}]}"),
    ("shop", "{dropIndexes: 'things', index: 'x_1'}"),
    ("shop", "{insert: 'before', documents: [{_id: 1}]}"),
    ("shop", "{insert: 'gone', documents: [{_id: 1}]}"),
    ("shop", "{drop: 'gone'}"),
    ("other", "{insert: 'gone', documents: [{_id: 'é'}]}"),
    ("other", "{dropDatabase: 1}"),
    ("admin", "{renameCollection: 'shop.before', to: 'shop.after'}"),
    ("shop", "{insert: 'after', documents: [{_id: 2}]}"),
];

/// All collections of a database with their documents and indexes.
fn contents(address: SocketAddr, database: &str) -> Vec<(String, Vec<DocumentBuf>, Vec<DocumentBuf>)> {
    let mut connection = connect(address);
    let names = collections(&mut connection, database);
    let contents = names.into_iter().map(|name| {
        let list = DocumentBuf::new().with("listIndexes", name.as_str());
        let indexes = connection.find_all(database, list.as_ref()).expect("listed");
        let indexes = indexes.collect::<Result<_, _>>().expect("listed");
        let documents = documents(&mut connection, database, &name);
        (name, documents, indexes)
    });
    contents.collect()
}

#[test]
fn all_of_an_oplog_makes_what_there_is() {
    let dbpath = temporary_dbpath();
    let source = Server::start(&binary(), dbpath.path(), &["--oplogSize", "64"]).expect("the server starts");
    let mut peer = Peer::connect(source.address());
    for (database, command) in HISTORY {
        let reply = peer.text(database, command);
        assert!(reply.contains("ok: 1.0") && !reply.contains("writeErrors"), "{command}: {reply}");
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let out = directory.path().join("out");
    let dump = ["--db", "local", "--collection", "oplog.rs", "--out", text(&out)];
    succeed("dump", source.address(), &dump);
    let oplog = out.join("local/oplog.rs.bson");
    let expected = contents(source.address(), "shop");
    assert_eq!(expected.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["after", "made", "things"]);
    // The oplog file alone, and the dump that contains it as a collection.
    for arguments in [&["--oplogReplay", "--oplogFile", text(&oplog)][..], &["--oplogReplay", text(&out)]] {
        let target = Running::start();
        succeed("restore", target.address(), arguments);
        assert_eq!(contents(target.address(), "shop"), expected, "{arguments:?}");
        assert_eq!(contents(target.address(), "other"), []);
    }
    let limited = Running::start();
    succeed("restore", limited.address(), &["--oplogReplay", "--oplogLimit=1", "--oplogFile", text(&oplog)]);
    assert_eq!(contents(limited.address(), "shop"), []);
}

#[test]
fn without_an_oplog_a_dump_says_so() {
    let running = Running::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = fail("dump", running.address(), &["--oplog", &archive(&directory.path().join("a"))]);
    assert!(said.contains("local.oplog.rs is empty or missing: the server keeps no oplog"), "{said}");
}
