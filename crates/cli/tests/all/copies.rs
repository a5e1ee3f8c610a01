//! `bunko copy`: once, following under load with kills of the copier, back again, and what it refuses.

mod writer;

use crate::peer::{Peer, binary, first_batch};
use bunko_bson::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp, ValueRef};
use bunko_testkit::patience::wait_until;
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_testkit::shell;
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use writer::{Writer, Writes};

/// Kills of a copier that follows.
const KILLS: u64 = 8;
/// Documents that let the first kills fall into the copy of the data.
const LARGE: i32 = 20_000;

/// A member of a set of one, on a directory of its own.
struct Member {
    server: Server,
    _dbpath: TempDir,
}

impl Member {
    fn start(set: &str) -> Self {
        let dbpath = temporary_dbpath();
        let settings = ["--replSet", set, "--replSetHost", "127.0.0.1:1", "--setParameter", "enableTestCommands=1"];
        let server = Server::start(&binary(), dbpath.path(), &settings).expect("the server starts");
        Self { server, _dbpath: dbpath }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn peer(&self) -> Peer {
        Peer::connect(self.address())
    }
}

fn uri(address: SocketAddr) -> String {
    format!("mongodb://{address}/?directConnection=true")
}

fn copy(from: SocketAddr, to: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["copy", "--from", &uri(from), "--to", &uri(to)]).args(arguments);
    command
}

fn run(from: SocketAddr, to: SocketAddr, arguments: &[&str]) -> Output {
    copy(from, to, arguments).output().expect("the tool runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a copy that must succeed; returns all that it printed.
fn succeed(from: SocketAddr, to: SocketAddr, arguments: &[&str]) -> String {
    let output = run(from, to, arguments);
    assert!(output.status.success(), "copy {arguments:?}: {}\n{}", output.status, said(&output));
    said(&output)
}

/// Runs a copy that must be refused; returns all that it printed.
fn refused(from: SocketAddr, to: SocketAddr, arguments: &[&str]) -> String {
    let output = run(from, to, arguments);
    assert_eq!(output.status.code(), Some(1), "copy {arguments:?}\n{}", said(&output));
    said(&output)
}

fn spawn(from: SocketAddr, to: SocketAddr, arguments: &[&str]) -> Child {
    copy(from, to, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the tool runs")
}

fn ok(peer: &mut Peer, database: &str, text: &str) {
    let reply = peer.text(database, text);
    assert!(reply.contains("ok: 1.0") && !reply.contains("writeErrors"), "{text}: {reply}");
}

/// The server's own hashes of all collections of a database. Buckets of equal time series may differ.
fn hashes(peer: &mut Peer, database: &str) -> Vec<String> {
    let reply = peer.run(database, "{dbHash: 1}");
    let hashes = reply.as_ref().get("collections").and_then(ValueRef::as_document).expect("hashes");
    let stored = hashes.iter().filter(|hash| !hash.name.starts_with("system.buckets."));
    stored.map(|hash| format!("{} {}", hash.name, shell::print(hash.value))).collect()
}

/// One document with a value of each type.
fn document_of_all_types() -> DocumentBuf {
    let nested = DocumentBuf::new().with("b", 1).with("a", 2);
    let array: ArrayBuf = [1, 2].into_iter().collect();
    let id = ObjectId::parse_hex("0123456789abcdef01234567").expect("an ObjectId");
    DocumentBuf::new()
        .with("_id", &nested)
        .with("double", -0.0)
        .with("string", "text\u{0}text")
        .with("document", &nested)
        .with("array", &array)
        .with("binary", ValueRef::Binary { subtype: 5, bytes: &[1, 2, 3] })
        .with("objectId", ValueRef::ObjectId(id))
        .with("boolean", true)
        .with("date", ValueRef::DateTime(-1))
        .with("null", ValueRef::Null)
        .with("regex", ValueRef::Regex { pattern: "a.b", options: "im" })
        .with("pointer", ValueRef::DbPointer { namespace: "a.b", id })
        .with("code", ValueRef::JavaScript("f()"))
        .with("symbol", ValueRef::Symbol("s"))
        .with("scoped", ValueRef::JavaScriptWithScope { code: "g()", scope: nested.as_ref() })
        .with("int", 7)
        .with("timestamp", ValueRef::Timestamp(Timestamp { seconds: 5, increment: 6 }))
        .with("zero", ValueRef::Timestamp(Timestamp { seconds: 0, increment: 0 }))
        .with("long", 7_i64)
        .with("decimal", ValueRef::Decimal128(Decimal128::parse("1.50").expect("a decimal")))
        .with("minKey", ValueRef::MinKey)
        .with("maxKey", ValueRef::MaxKey)
}

/// Collections of all kinds. The writer changes some of them.
fn fill(peer: &mut Peer) {
    let documents: ArrayBuf = [&document_of_all_types()].into_iter().collect();
    let insert = DocumentBuf::new().with("insert", "types").with("documents", &documents);
    let insert = insert.with("bypassEmptyTsReplacement", true).with("$db", "shop");
    let reply = peer.run_body(insert.as_ref());
    assert_eq!(shell::print(ValueRef::Document(reply.as_ref())).find("writeErrors"), None);
    for from in (0..LARGE).step_by(1000) {
        let documents: Vec<_> =
            (from..from + 1000).map(|id| format!("{{_id: {id}, pad: '{}'}}", "copy ".repeat(40))).collect();
        ok(peer, "shop", &format!("{{insert: 'large', documents: [{}]}}", documents.join(", ")));
    }
    for command in [
        "{create: 'orders'}",
        "{createIndexes: 'orders', indexes: [{key: {u: 1}, name: 'u', unique: true, sparse: true}]}",
        "{create: 'capped', capped: true, size: 100000, max: 60}",
        "{create: 'names', collation: {locale: 'en', strength: 2}}",
        "{create: 'recent', viewOn: 'orders', pipeline: [{$match: {n: {$gt: 3}}}]}",
        "{create: 'series', timeseries: {timeField: 't', metaField: 'm'}}",
        "{create: 'strict', validator: {n: {$type: 'int'}}, validationLevel: 'moderate'}",
        "{insert: 'strict', documents: [{_id: 'loose', n: 'text'}], bypassDocumentValidation: true}",
        "{create: 'clustered', clusteredIndex: {key: {_id: 1}, unique: true}}",
        "{insert: 'clustered', documents: [{_id: 2}, {_id: 1}]}",
        "{createIndexes: 'large', indexes: [{key: {gone: 1}, name: 'ttl', expireAfterSeconds: 0}]}",
    ] {
        ok(peer, "shop", command);
    }
    ok(peer, "blog", "{insert: 'posts', documents: [{_id: 1}, {_id: 2}]}");
}

fn assert_equal(source: &mut Peer, target: &mut Peer) {
    for database in ["shop", "blog"] {
        assert_eq!(hashes(source, database), hashes(target, database), "{database}");
    }
    let natural = "{find: 'capped', hint: {$natural: 1}, batchSize: 1000}";
    assert_eq!(first_batch(&source.run("shop", natural)), first_batch(&target.run("shop", natural)));
    let series = "{aggregate: 'series', pipeline: [{$sort: {t: 1, _id: 1}}], cursor: {batchSize: 100000}}";
    assert_eq!(first_batch(&source.run("shop", series)), first_batch(&target.run("shop", series)));
    let view = "{listCollections: 1, filter: {type: 'view', name: {$not: /^system/}}}";
    let views = |peer: &mut Peer| {
        let mut views = first_batch(&peer.run("shop", view));
        views.sort();
        views
    };
    assert_eq!(views(source), views(target));
}

fn phase(peer: &mut Peer) -> String {
    let found =
        first_batch(&peer.run("bunko_copy", "{find: 'progress', filter: {_id: 'copy'}, projection: {phase: 1}}"));
    found.first().cloned().unwrap_or_default()
}

#[test]
fn a_copy_is_of_one_moment_while_clients_write() {
    let (source, target) = (Member::start("ra"), Member::start("rb"));
    let mut peer = source.peer();
    fill(&mut peer);
    let writer = Writer::start(source.address(), Writes::Documents);
    // The comparison reads the source as of the same moment.
    let printed = succeed(source.address(), target.address(), &["--json"]);
    writer.stop();
    assert!(printed.contains(r#""event":"equal""#), "{printed}");
    let mut copied = target.peer();
    assert!(phase(&mut copied).contains("finished"));
    let again = refused(source.address(), target.address(), &[]);
    assert!(again.contains("has ended") && again.contains("--anew"), "{again}");
    // Without a writer, both are equal now.
    succeed(source.address(), target.address(), &["--anew", "--nsExclude", "blog.*"]);
    let counted = copied.text("shop", "{count: 'large'}");
    assert!(counted.contains(&format!("n: {LARGE}")), "{counted}");
    assert!(copied.text("blog", "{count: 'posts'}").contains("n: 2"), "a namespace that is left out stays");
}

#[test]
fn a_copy_follows_through_kills_ends_equal_and_goes_back() {
    let (source, target) = (Member::start("ra"), Member::start("rb"));
    let (mut from, mut to) = (source.peer(), target.peer());
    fill(&mut from);
    let writer = Writer::start(source.address(), Writes::Everything);
    let mut phases = Vec::new();
    for round in 0..KILLS {
        let mut copier = spawn(source.address(), target.address(), &["--follow"]);
        // The first kills come while the data is copied, the later ones while the copy follows.
        let awaited = if round < KILLS / 2 { "phase" } else { "following" };
        wait_until("the copy has begun, or follows", || {
            assert!(copier.try_wait().expect("a child").is_none(), "the copier has ended");
            phase(&mut to).contains(awaited)
        });
        phases.push(phase(&mut to));
        std::thread::sleep(Duration::from_millis(100 * round));
        copier.kill().expect("a child may be killed");
        copier.wait().expect("a child can be waited for");
    }
    assert!(phases.iter().any(|phase| phase.contains("copying")), "no kill fell into the copy: {phases:?}");
    let printed = succeed(source.address(), target.address(), &["--finish", "--block-source-writes"]);
    let written = writer.stop();
    assert!(printed.contains("after a pause of") && printed.contains("are equal"), "{printed}");
    assert!(written > 100, "the writer wrote little: {written}");
    assert_equal(&mut from, &mut to);
    ok(&mut from, "admin", "{setUserWriteBlockMode: 1, global: false}");
    // Back: the old source is the target now.
    ok(&mut to, "shop", "{insert: 'orders', documents: [{_id: 'only there'}]}");
    let back = refused(target.address(), source.address(), &["--finish"]);
    assert!(back.contains("the target has data of its own") && back.contains("--drop"), "{back}");
    succeed(target.address(), source.address(), &["--finish", "--drop"]);
    assert_equal(&mut to, &mut from);
    assert!(from.text("shop", "{count: 'orders', query: {_id: 'only there'}}").contains("n: 1"));
}

#[test]
fn of_two_copies_to_one_target_the_older_one_ends() {
    let (source, target) = (Member::start("ra"), Member::start("rb"));
    let (mut from, mut to) = (source.peer(), target.peer());
    ok(&mut from, "shop", "{insert: 'orders', documents: [{_id: 1}]}");
    let mut older = spawn(source.address(), target.address(), &["--follow"]);
    wait_until("the older copy follows", || phase(&mut to).contains("following"));
    succeed(source.address(), target.address(), &["--finish"]);
    let mut ended = None;
    wait_until("the older copy ends", || {
        ended = older.try_wait().expect("a child");
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(1));
    assert!(phase(&mut to).contains("finished"));
}

#[test]
fn what_cannot_be_copied_is_refused_by_name() {
    let (source, target) = (Member::start("ra"), Member::start("rb"));
    let (mut from, mut to) = (source.peer(), target.peer());
    ok(&mut from, "shop", "{insert: 'orders', documents: [{_id: 1}]}");
    let same = refused(source.address(), source.address(), &[]);
    assert!(same.contains("--from and --to name the same server"), "{same}");
    let dbpath = temporary_dbpath();
    let mut alone = Server::start(&binary(), dbpath.path(), &[]).expect("the server starts");
    for flag in ["--follow", "--finish"] {
        let standalone = refused(alone.address(), target.address(), &[flag]);
        assert!(
            standalone.contains("is not a member of a replica set") && standalone.contains("--replSet"),
            "{standalone}"
        );
    }
    alone.stop();
    ok(&mut to, "own", "{insert: 'data', documents: [{_id: 1}]}");
    let data = refused(source.address(), target.address(), &[]);
    assert!(data.contains("own.data") && data.contains("--drop"), "{data}");
    succeed(source.address(), target.address(), &["--finish", "--db", "shop"]);
    // The source's oplog no longer has the position.
    let follows = "{update: 'progress', updates: [{q: {_id: 'copy'}, u: {$set: {phase: 'following'}}}]}";
    ok(&mut to, "bunko_copy", follows);
    ok(
        &mut from,
        "admin",
        "{configureFailPoint: 'failCommand', mode: {times: 1}, data: {failCommands: ['aggregate'], errorCode: 286}}",
    );
    let lost = refused(source.address(), target.address(), &["--follow", "--db", "shop"]);
    assert!(lost.contains("oplog no longer has") && lost.contains("--anew"), "{lost}");
    let other = refused(source.address(), target.address(), &["--follow"]);
    assert!(other.contains("of other databases or collections"), "{other}");
    // A difference is reported, and the run fails.
    succeed(source.address(), target.address(), &["--finish", "--db", "shop", "--anew"]);
    ok(&mut to, "bunko_copy", follows);
    ok(&mut to, "shop", "{insert: 'orders', documents: [{_id: 'of the target'}]}");
    let differs = refused(source.address(), target.address(), &["--finish", "--db", "shop"]);
    assert!(differs.contains("shop.orders: 2 documents, not 1"), "{differs}");
}

#[test]
fn a_copy_waits_for_the_commands_of_one_that_was_killed() {
    let (source, target) = (Member::start("ra"), Member::start("rb"));
    let (mut from, mut to) = (source.peer(), target.peer());
    ok(&mut from, "shop", "{insert: 'orders', documents: [{_id: 1, n: 0}]}");
    let mut copier = spawn(source.address(), target.address(), &["--follow"]);
    wait_until("the copy follows", || phase(&mut to).contains("following"));
    // An update of the copier is held in the target, and the copier is killed meanwhile.
    ok(
        &mut to,
        "admin",
        "{configureFailPoint: 'failCommand', mode: {times: 1}, data: {failCommands: ['update'], namespace: 'shop.orders', blockConnection: true, blockTimeMS: 5000}}",
    );
    ok(&mut from, "shop", "{update: 'orders', updates: [{q: {_id: 1}, u: {$set: {n: 1}}}]}");
    let held = "{aggregate: 1, pipeline: [{$currentOp: {}}, {$match: {ns: 'shop.orders', op: 'update'}}], cursor: {}}";
    wait_until("the update is held", || !first_batch(&to.run("admin", held)).is_empty());
    copier.kill().expect("a child may be killed");
    copier.wait().expect("a child can be waited for");
    ok(&mut from, "shop", "{update: 'orders', updates: [{q: {_id: 1}, u: {$set: {n: 2}}}]}");
    let printed = succeed(source.address(), target.address(), &["--finish"]);
    assert!(first_batch(&to.run("admin", held)).is_empty(), "a command of the killed copy still runs: {printed}");
    assert_eq!(hashes(&mut from, "shop"), hashes(&mut to, "shop"), "{printed}");
}
