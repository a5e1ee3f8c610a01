//! Queries as libraries for objects and documents write them: how many keys and documents each examines, beside
//! MongoDB's number of documents. `tests/plans` has them; `REWRITE=1 cargo test` writes the numbers again. Read them.
//!
//! ```text
//! examined mongodb=1
//! {find: 'users', filter: {email: 'u7@x'}}
//! ----
//! IXSCAN { email: 1 }: 1 key, 1 document, 1 result
//! ```
//! MongoDB's number is that of the plan which MongoDB 8.2 chooses. An output ends in `MORE` if the number here is larger.

use crate::server::Server;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_engines::{ENGINES, EngineOptions};
use bunko_testkit::shell;
use datadriven::TestCase;

/// Users, with ids from 0 on.
const USERS: i32 = 1000;
/// Orders, five for each user.
const ORDERS: i32 = 5 * USERS;
/// Reports, which are large.
const REPORTS: i32 = 2 * USERS;
/// Posts of twenty tenants.
const POSTS: i32 = 2 * USERS;
/// Shops, one at each degree of a square.
const SHOPS: i32 = 2 * USERS;

const INDEXES: &[&str] = &[
    "{createIndexes: 'users', indexes: [{key: {email: 1}, name: 'email', unique: true}, {key: {age: 1}, name: 'age'},
        {key: {team: 1, age: 1}, name: 'team_age'}, {key: {tags: 1}, name: 'tags'}, {key: {'address.city': 1}, name: 'city'},
        {key: {nick: 1}, name: 'nick', sparse: true}, {key: {deleted: 1}, name: 'deleted'},
        {key: {key: 'hashed'}, name: 'key'}]}",
    "{createIndexes: 'orders', indexes: [{key: {user: 1}, name: 'user'}, {key: {state: 1, placed: -1}, name: 'state'},
        {key: {placed: 1}, name: 'placed'}, {key: {'lines.product': 1}, name: 'product'}]}",
    "{createIndexes: 'reports', indexes: [{key: {day: 1}, name: 'day'}, {key: {score: 1}, name: 'score'},
        {key: {'parts.kind': 1, 'parts.size': 1}, name: 'parts'}, {key: {'stats.2024': 1}, name: 'stats'},
        {key: {'parts.0.size': 1}, name: 'first_size'}]}",
    "{createIndexes: 'posts', indexes: [{key: {tenant: 1, author: 1, day: 1}, name: 'author'},
        {key: {tenant: 1, editor: 1, day: 1}, name: 'editor'}, {key: {topic: 1}, name: 'topic'},
        {key: {is_open: 1}, name: 'is_open'}, {key: {place: '2d'}, name: 'place'}, {key: {title: 'text'}, name: 'title'}]}",
    "{createIndexes: 'shops', indexes: [{key: {city: 1, place: '2dsphere'}, name: 'city'}, {key: {rank: 1}, name: 'rank'},
        {key: {place: '2dsphere', kind: 1}, name: 'kind'}, {key: {is_open: 1}, name: 'is_open'}]}",
    "{create: 'adults', viewOn: 'users', pipeline: [{$match: {age: {$gte: 18}}}]}",
    "{create: 'named', viewOn: 'users', pipeline: [{$project: {email: 1, age: 1, label: {$concat: ['$name', '!']}}}]}",
    "{create: 'shares', viewOn: 'users', pipeline: [{$set: {share: {$divide: [100, '$age']}}}]}",
    "{create: 'bought', viewOn: 'users', pipeline: [
        {$lookup: {from: 'orders', localField: '_id', foreignField: 'user', as: 'orders'}}]}",
];

fn user(id: i32) -> DocumentBuf {
    let mut user = DocumentBuf::new()
        .with("_id", id)
        .with("email", format!("u{id}@x").as_str())
        .with("name", format!("n{}", id % 50).as_str())
        .with("age", id % 100)
        .with("team", id % 20)
        .with("key", format!("k{id}").as_str())
        .with("address", &DocumentBuf::new().with("city", format!("c{}", id % 40).as_str()).with("zip", id));
    let mut tags = ArrayBuf::new();
    tags.push(format!("t{}", id % 10).as_str());
    tags.push(format!("t{}", id % 10 + 10).as_str());
    user.append("tags", &tags);
    if id % 50 == 0 {
        user.append("nick", format!("nick{id}").as_str());
    }
    if id % 100 == 0 {
        user.append("deleted", id);
    }
    user
}

fn order(id: i32) -> DocumentBuf {
    let mut lines = ArrayBuf::new();
    for line in 0..2 {
        lines.push(&DocumentBuf::new().with("product", (id + line) % 200).with("count", line + 1));
    }
    let mut order = DocumentBuf::new()
        .with("_id", id)
        .with("user", id % USERS)
        .with("state", if id % 50 == 0 { "open" } else { "done" })
        .with("placed", id)
        .with("total", f64::from(id % 97));
    order.append("lines", &lines);
    order
}

fn report(id: i32) -> DocumentBuf {
    let part = |number: i32| DocumentBuf::new().with("kind", (id + number) % 20).with("size", id / 20 % 25 + number);
    let mut parts = ArrayBuf::new();
    parts.push(&part(0));
    parts.push(&part(1));
    DocumentBuf::new()
        .with("_id", id)
        .with("day", id % 50)
        .with("score", id % 49)
        .with("body", "word ".repeat(400).as_str())
        .with("parts", &parts)
        .with("stats", &DocumentBuf::new().with("2024", id % 100))
}

/// Each tenant has 100 posts: two of each author, four of each editor.
fn post(id: i32) -> DocumentBuf {
    let mut post = DocumentBuf::new()
        .with("_id", id)
        .with("tenant", id % 20)
        .with("author", id / 20 % 50)
        .with("editor", id / 20 % 25)
        .with("topic", id % 100)
        .with("is_open", id % 2 == 1)
        .with("day", id)
        .with("title", format!("w{}", id % 500).as_str());
    let mut place = ArrayBuf::new();
    place.push(id % 50);
    place.push(id / 50);
    post.append("place", &place);
    post
}

/// Each city has 100 shops, in all places, as has each kind.
fn shop(id: i32) -> DocumentBuf {
    let mut place = ArrayBuf::new();
    place.push(id % 50);
    place.push(id / 50);
    DocumentBuf::new()
        .with("_id", id)
        .with("city", id * 7 % 20)
        .with("kind", id * 3 % 20)
        .with("rank", id)
        .with("is_open", id % 2 == 1)
        .with("place", &DocumentBuf::new().with("type", "Point").with("coordinates", &place))
}

/// Makes the document with that `_id`.
type Make = fn(i32) -> DocumentBuf;

fn load(server: &mut Server) {
    let collections: [(&str, i32, Make); 5] = [
        ("users", USERS, user),
        ("orders", ORDERS, order),
        ("reports", REPORTS, report),
        ("posts", POSTS, post),
        ("shops", SHOPS, shop),
    ];
    for (name, count, document) in collections {
        let mut documents = ArrayBuf::new();
        for id in 0..count {
            documents.push(&document(id));
        }
        ask(server, DocumentBuf::new().with("insert", name).with("documents", &documents).as_ref());
    }
    for command in INDEXES {
        ask(server, shell::parse_document(command).unwrap().as_ref());
    }
}

fn ask(server: &mut Server, command: DocumentRef<'_>) -> DocumentBuf {
    let reply = server.run(1, "test", command);
    let is_done = reply.as_ref().get("ok").and_then(number::truncate_to_i64) == Some(1);
    assert!(
        is_done,
        "{}: {}",
        shell::print(ValueRef::Document(command)),
        shell::print(ValueRef::Document(reply.as_ref()))
    );
    reply
}

/// Runs the command with the profiler on, and returns its entry.
fn profiled(server: &mut Server, command: DocumentRef<'_>) -> DocumentBuf {
    ask(server, shell::parse_document("{profile: 2}").unwrap().as_ref());
    ask(server, command);
    ask(server, shell::parse_document("{profile: 0}").unwrap().as_ref());
    let entries =
        "{find: 'system.profile', filter: {'command.profile': {$exists: false}}, sort: {$natural: -1}, limit: 1}";
    let reply = ask(server, shell::parse_document(entries).unwrap().as_ref());
    let batch = reply.as_ref().get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch")?.as_array());
    batch.and_then(|batch| batch.iter().next()?.as_document()).expect("the profile has the command").to_owned()
}

fn examined(server: &mut Server, case: &TestCase) -> String {
    assert_eq!(case.directive, "examined", "unknown directive");
    let by_mongodb: i64 = case.args["mongodb"][0].parse().expect("mongodb=number");
    let command = shell::parse_document(&case.input).unwrap_or_else(|error| panic!("{}: {error}", case.input));
    let entry = profiled(server, command.as_ref());
    let entry = entry.as_ref();
    let count = |name| entry.get(name).and_then(number::truncate_to_i64);
    let plan = entry.get("planSummary").and_then(ValueRef::as_str).unwrap_or("no plan");
    let (keys, documents) = (count("keysExamined").unwrap_or(0), count("docsExamined").unwrap_or(0));
    let results = ["nreturned", "nModified", "ndeleted"].into_iter().find_map(count).unwrap_or(0);
    let counted = |count: i64, name: &str| if count == 1 { format!("1 {name}") } else { format!("{count} {name}s") };
    let more = if documents > by_mongodb { " MORE" } else { "" };
    format!(
        "{plan}: {}, {}, {}{more}\n",
        counted(keys, "key"),
        counted(documents, "document"),
        counted(results, "result")
    )
}

#[test]
fn no_shape_examines_more_than_it_must() {
    datadriven::walk("tests/plans", |file| {
        let mut server = Server::start(&ENGINES[0], &EngineOptions::default());
        load(&mut server);
        file.run(|case| examined(&mut server, case));
    });
}
