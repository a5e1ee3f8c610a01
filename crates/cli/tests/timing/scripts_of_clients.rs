//! Scripts of clients: a hundred endless scripts while a client pings, and a server that runs no scripts.

use crate::alone;
use crate::bystander::Bystander;
use crate::peer::{Peer, Running, binary, code};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::time::{Duration, Instant};

/// `MaxTimeMSExpired` or `JSInterpreterFailure`, of the command or of its statement.
const ENDS: [&str; 2] = ["code: 50,", "code: 139,"];
/// Maximum time that a script may take if it was told to end after half a second, while a hundred share the processors.
const ENDED: Duration = Duration::from_secs(9);
/// Maximum time that 95 of 100 pings of a bystander may take.
const PATIENCE: Duration = Duration::from_millis(50);

const HOSTILE: &[&str] = &[
    "while (true) {}",
    "(function f() { for (;;) { try { f() } catch (e) {} } })()",
    "for (var a = [];;) { try { for (;;) a.push(new Array(10000).fill({})) } catch (e) {} }",
    "for (;;) { try { 'x'.repeat(50000000).indexOf('y') } catch (e) {} }",
    "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "Object.defineProperty(Object.prototype, 'a', {get() { while (true) {} }}); ({}).a",
    "JSON.stringify({toJSON() { while (true) {} }})",
    "sleep(1000000)",
    "this.constructor.constructor('for (;;);')()",
];

/// The commands that can contain a script.
fn commands(script: &str) -> Vec<String> {
    let script = format!("{script:?}");
    let function = format!("{{$function: {{body: {script}, args: [], lang: 'js'}}}}");
    vec![
        format!("{{find: 'kept', filter: {{$where: {script}}}, maxTimeMS: 500}}"),
        format!("{{count: 'kept', query: {{$where: {script}}}, maxTimeMS: 500}}"),
        format!("{{update: 'kept', updates: [{{q: {{$where: {script}}}, u: {{$set: {{a: 1}}}}}}], maxTimeMS: 500}}"),
        format!(
            "{{delete: 'kept', deletes: [{{q: {{_id: -1}}, limit: 1}}, {{q: {{$where: {script}}}, limit: 1}}], maxTimeMS: 500}}"
        ),
        format!("{{update: 'kept', updates: [{{q: {{}}, u: [{{$set: {{a: {function}}}}}]}}], maxTimeMS: 500}}"),
        format!("{{aggregate: 'kept', pipeline: [{{$project: {{a: {function}}}}}], cursor: {{}}, maxTimeMS: 500}}"),
        format!("{{mapReduce: 'kept', map: {script}, reduce: '1', out: {{inline: 1}}, maxTimeMS: 500}}"),
    ]
}

#[test]
fn a_hundred_scripts_hold_up_no_client() {
    let _alone = alone();
    let running = Running::start();
    let hostile: Vec<String> = HOSTILE.iter().flat_map(|script| commands(script)).collect();
    let bystander = Bystander::start(running.address());
    std::thread::scope(|scope| {
        let scripts: Vec<_> = (0..100)
            .map(|index| {
                let (text, running) = (&hostile[index % hostile.len()], &running);
                scope.spawn(move || {
                    let began = Instant::now();
                    let reply = running.peer().text("peer", text);
                    assert!(ENDS.iter().any(|code| reply.contains(code)), "{text}: {reply}");
                    assert!(began.elapsed() < ENDED, "{text} took {:?}", began.elapsed());
                })
            })
            .collect();
        let ended: Vec<_> = scripts.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        assert!(ended.iter().all(Result::is_ok), "a script did not end as it should");
    });
    let pings = bystander.stop();
    println!("{pings}");
    pings.assert_quick(PATIENCE, PATIENCE);
}

#[test]
fn a_server_without_scripts_says_so() {
    let _alone = alone();
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &["--noscripting"]).expect("the server starts");
    let mut peer = Peer::connect(server.address());
    for (text, refused) in [
        ("{find: 'kept', filter: {$where: '1'}}", 2),
        (
            "{aggregate: 'kept', pipeline: [{$set: {a: {$function: {body: '1', args: [], lang: 'js'}}}}], cursor: {}}",
            31264,
        ),
        ("{mapReduce: 'kept', map: '1', reduce: '1', out: {inline: 1}}", 31264),
    ] {
        assert_eq!(code(peer.run("peer", text).as_ref()), refused, "{text}");
    }
    assert!(peer.text("peer", "{buildInfo: 1}").contains("javascriptEngine: \"none\""));
}
