//! Updates and filters with many parts over documents with many parts: each is soon completed, or ended by its
//! `maxTimeMS`, and a bystander hardly notices.

use crate::alone;
use crate::peer::{Peer, Running};
use bunko_bson::{ArrayBuf, DocumentBuf, Value, ValueRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MANY: i32 = 100_000;
/// Allowance for a debug build, which takes long to read a command of megabytes before it first checks `maxTimeMS`.
const SOON: Duration = Duration::from_secs(6);
const PING_MAX: Duration = Duration::from_millis(500);
const MAX_TIME_EXPIRED: i32 = 50;

fn one(name: &str, value: impl Into<Value>) -> DocumentBuf {
    DocumentBuf::new().with(name, value.into().as_ref())
}

fn numbers(range: std::ops::Range<i32>) -> ArrayBuf {
    range.map(ValueRef::Int32).collect()
}

fn many_fields(value: impl Fn(i32) -> Value) -> DocumentBuf {
    let mut fields = DocumentBuf::new();
    for number in 0..MANY {
        let name = format!("f{}", i64::from(number) * 7_919 % i64::from(MANY));
        fields.append(&name, value(number).as_ref());
    }
    fields
}

/// Pings until it is told to stop; returns the longest latency.
fn bystander(mut peer: Peer, is_done: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !is_done.load(Ordering::Relaxed) {
        let began = Instant::now();
        assert_eq!(peer.text("admin", "{ping: 1}"), "{ok: 1.0}");
        longest = longest.max(began.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    longest
}

fn insert(peer: &mut Peer, document: &DocumentBuf) {
    let documents: ArrayBuf = [document].into_iter().collect();
    let insert = DocumentBuf::new().with("insert", "large").with("documents", &documents).with("$db", "test");
    let reply = peer.run_body(insert.as_ref());
    assert!(matches!(reply.as_ref().get("n"), Some(ValueRef::Int32(1))), "{reply:?}");
}

/// An update of the document with that `_id`.
fn update(id: i32, change: &DocumentBuf, filters: &[DocumentBuf]) -> DocumentBuf {
    let mut statement = one("q", Value::Document(one("_id", Value::Int32(id)))).with("u", change);
    if !filters.is_empty() {
        statement.append("arrayFilters", &filters.iter().collect::<ArrayBuf>());
    }
    let statements: ArrayBuf = [&statement].into_iter().collect();
    DocumentBuf::new().with("update", "large").with("updates", &statements)
}

fn find(filter: &DocumentBuf) -> DocumentBuf {
    let projection = one("_id", Value::Int32(1));
    DocumentBuf::new().with("find", "large").with("filter", filter).with("projection", &projection)
}

fn on_a(operator: &str, argument: Value) -> DocumentBuf {
    one("a", Value::Document(one(operator, argument)))
}

fn commands() -> Vec<(&'static str, DocumentBuf)> {
    let all = || Value::Array(numbers(0..MANY));
    let each = |range| Value::Document(one("$each", Value::Array(numbers(range))));
    let at_a = |operator: &str, argument: Value| one(operator, Value::Document(one("a", argument)));
    let sorted = one("$each", all()).with("$sort", -1_i32).with("$slice", MANY);
    let listed = one("x", Value::Document(one("$in", all())));
    let elements = one("$set", Value::Document(one("a.$[x]", Value::Int32(1))));
    let nested = one("$elemMatch", Value::Document(one("$not", Value::Document(one("$in", all())))));
    let either: ArrayBuf =
        (0..MANY).map(|number| on_a("$gt", Value::Int32(MANY + number))).collect::<Vec<_>>().iter().collect();
    let runaway = Value::Regex { pattern: "^(a+)+$".to_owned(), options: String::new() };
    vec![
        ("$addToSet", update(1, &at_a("$addToSet", each(MANY / 2..2 * MANY)), &[])),
        ("$pullAll", update(1, &at_a("$pullAll", Value::Array(numbers(5..2 * MANY))), &[])),
        ("$pull", update(2, &at_a("$pull", Value::Document(one("$in", Value::Array(numbers(5..MANY))))), &[])),
        ("$push", update(3, &at_a("$push", Value::Document(sorted)), &[])),
        ("arrayFilters", update(4, &elements, &[listed])),
        ("$set", update(5, &one("$set", Value::Document(many_fields(|_| Value::Int32(-1)))), &[])),
        ("$rename", update(5, &one("$rename", Value::Document(many_fields(|n| Value::String(format!("g{n}"))))), &[])),
        ("$unset", update(5, &one("$unset", Value::Document(many_fields(Value::Int32))), &[])),
        ("upsert", update(6, &one("$set", Value::Document(many_fields(Value::Int32))), &[])),
        ("$nin", find(&on_a("$nin", Value::Array(numbers(-MANY..0))))),
        ("$all", find(&on_a("$all", all()))),
        ("$elemMatch", find(&on_a("$elemMatch", Value::Document(nested)))),
        ("$or", find(&one("$or", Value::Array(either)))),
        ("$regex", find(&one("texts", runaway))),
    ]
}

#[test]
fn large_updates_end_soon_and_keep_no_client_waiting() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    for id in 1..=4 {
        insert(&mut peer, &one("_id", Value::Int32(id)).with("a", &numbers(0..MANY)));
    }
    let mut wide = one("_id", Value::Int32(5));
    wide.extend(many_fields(Value::Int32).as_ref());
    insert(&mut peer, &wide);
    let texts: ArrayBuf = (0..1_000).map(|_| "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!").collect();
    insert(&mut peer, &one("_id", Value::Int32(6)).with("texts", &texts));
    let is_done = Arc::new(AtomicBool::new(false));
    let pings = {
        let (peer, is_done) = (running.peer(), Arc::clone(&is_done));
        std::thread::spawn(move || bystander(peer, &is_done))
    };
    for (name, command) in commands() {
        let command = command.with("maxTimeMS", 100_i32).with("$db", "test");
        let began = Instant::now();
        let reply = peer.run_body(command.as_ref());
        let took = began.elapsed();
        assert!(took < SOON, "{name} took {took:?}");
        let code = reply.as_ref().get("code");
        let is_in_time = matches!(reply.as_ref().get("ok"), Some(ValueRef::Double(1.0)));
        assert!(is_in_time || matches!(code, Some(ValueRef::Int32(MAX_TIME_EXPIRED))), "{name}: {reply:?}");
    }
    is_done.store(true, Ordering::Relaxed);
    let longest = pings.join().expect("pings are answered");
    assert!(longest < PING_MAX, "a ping took {longest:?}");
    running.assert_serves();
}

#[test]
fn paths_of_thousands_of_parts_are_refused() {
    let _alone = alone();
    let running = Running::start();
    let mut peer = running.peer();
    let path = vec!["a"; 7_000].join(".");
    let number = || Value::Int32(1);
    for (operator, argument) in [
        ("$set", number()),
        ("$unset", number()),
        ("$inc", number()),
        ("$push", number()),
        ("$rename", Value::String("b".into())),
    ] {
        let change = one(operator, Value::Document(one(&path, argument)));
        let reply = peer.run_body(update(1, &change, &[]).with("$db", "test").as_ref());
        let reply = format!("{reply:?}");
        assert!(reply.contains("5729100") && reply.contains("FieldPath is too long"), "{operator}: {reply}");
    }
    let reply = peer.run_body(find(&one(&path, number())).with("$db", "test").as_ref());
    assert!(matches!(reply.as_ref().get("code"), Some(ValueRef::Int32(5_729_100))), "{reply:?}");
    let change = one("$v", Value::Int32(1)).with("$set", &one(&path, number()));
    let entry = DocumentBuf::new()
        .with("op", "u")
        .with("ns", "peer.kept")
        .with("o", &change)
        .with("o2", &one("_id", Value::Int32(1)));
    let entries: ArrayBuf = [&entry].into_iter().collect();
    let reply = peer.run_body(DocumentBuf::new().with("applyOps", &entries).with("$db", "admin").as_ref());
    assert!(format!("{reply:?}").contains("FieldPath is too long"), "{reply:?}");
    running.assert_serves();
}
