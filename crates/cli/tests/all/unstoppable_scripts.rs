//! Scripts that stay inside one function of the engine, which never checks whether to stop: every such operation ends
//! when told to, the server shuts down in order, and no process is left.

use crate::peer::{Peer, Running, code, command, message};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_testkit::patience::{PATIENCE, wait_for, wait_until};
use bunko_wire::MessageFlags;
use std::collections::BTreeSet;
use std::sync::Mutex;

const MAX_TIME_MS_EXPIRED: i32 = 50;
const INTERRUPTED: i32 = 11601;
/// Functions of the engine from one that is tried to the next: each keeps a processor busy for a quarter of a second.
const FUNCTIONS_STEP: usize = 3;
/// Connections that try functions in parallel.
const CONNECTIONS: usize = 8;

/// Functions of the engine, each called so that it works for minutes or forever.
const NATIVES: &[(&str, &str)] = &[
    (
        "ownKeys of a proxy",
        "Object.keys(new Proxy({}, {ownKeys: () => Array.from({length: 400000}, (_, i) => 'k' + i)}))",
    ),
    (
        "what a script answers",
        "new Proxy({}, {ownKeys: () => Array.from({length: 400000}, (_, i) => 'k' + i), getOwnPropertyDescriptor: () => ({value: 1, enumerable: true, configurable: true})})",
    ),
    ("normalize", r"('a' + '\u0301\u0323'.repeat(4000000)).normalize('NFD')"),
    ("toString of a BigInt", "for (;;) (2n ** 1000000n).toString(3)"),
    ("toLocaleString", "Array.prototype.toLocaleString.call({length: 2 ** 53 - 1})"),
    ("join", "Array.prototype.join.call({length: 2 ** 53 - 1}, '')"),
    ("Promise.all", "Promise.all(Array.prototype.values.call({length: 2 ** 53 - 1}))"),
    ("splice", "Array.prototype.splice.call({length: 2 ** 53 - 1}, 0, 1)"),
    ("unshift", "Array.prototype.unshift.call({length: 2 ** 53 - 3}, 1)"),
    ("take", "Array.prototype.values.call({length: 2 ** 53 - 1}).take(1e15).some(Math.sign)"),
    (
        "Reflect.ownKeys",
        "Reflect.ownKeys(new Proxy({}, {ownKeys: () => Array.from({length: 400000}, (_, i) => 'k' + i)}))",
    ),
    (
        "Object.assign",
        "Object.assign({}, new Proxy({}, {ownKeys: () => Array.from({length: 400000}, (_, i) => 'k' + i)}))",
    ),
    ("search", "'a'.repeat(60).concat('b').search(/^(a|a)*$/)"),
    ("match", "'a'.repeat(60).concat('b').match(/(a*)*c/)"),
    ("localeCompare", r"('a' + '\u0301\u0323'.repeat(4000000)).localeCompare('b')"),
    ("indexOf of a text", "'a'.repeat(40000000).indexOf('a'.repeat(20000000) + 'b')"),
    ("lastIndexOf of a text", "'a'.repeat(40000000).lastIndexOf('a'.repeat(20000000) + 'b')"),
    ("includes of a text", "'a'.repeat(40000000).includes('a'.repeat(20000000) + 'b')"),
    ("split", "'a'.repeat(40000000).split('a'.repeat(20000000) + 'b')"),
    ("replaceAll", "'a'.repeat(40000000).replaceAll('a'.repeat(20000000) + 'b', '')"),
    ("a regular expression", "/^(a+)+$/.test('a'.repeat(60) + 'b')"),
    ("replace by one", "('a'.repeat(60) + 'b').replace(/^(a+)+$/, '')"),
    ("drop", "Array.prototype.values.call({length: 2 ** 53 - 1}).drop(1e15).next()"),
    ("forEach of an iterator", "Array.prototype.values.call({length: 2 ** 53 - 1}).forEach(Math.abs)"),
    ("indexOf of an array", "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)"),
    ("lastIndexOf of an array", "Array.prototype.lastIndexOf.call({length: 2 ** 53 - 1}, 1)"),
    ("includes of an array", "Array.prototype.includes.call({length: 2 ** 53 - 1}, 1)"),
    ("every", "Array.prototype.every.call({length: 2 ** 53 - 1}, Math.abs)"),
    ("reverse", "Array.prototype.reverse.call({length: 2 ** 53 - 1})"),
    ("copyWithin", "Array.prototype.copyWithin.call({length: 2 ** 53 - 1}, 1)"),
    ("shift", "Array.prototype.shift.call({length: 2 ** 53 - 1})"),
    ("sort", "Array.prototype.sort.call({length: 2 ** 53 - 1})"),
    ("flat", "Array.prototype.flat.call({length: 2 ** 53 - 1})"),
    ("indexOf of a sparse array", "for (;;) new Array(4294967295).indexOf(1)"),
    ("String.raw", "String.raw({raw: {length: 2 ** 53 - 1}})"),
    (
        "isSupersetOf",
        "new Set([undefined]).isSupersetOf({size: 1, has: Math.abs, keys: () => Array.prototype.values.call({length: 2 ** 53 - 1})})",
    ),
    ("stringify", "JSON.stringify({toJSON: () => Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)})"),
    ("sleep", "sleep(1e9)"),
];

/// Returns the paths of all functions that scripts can reach.
const REACHABLE: &str = r#"function() {
  const seen = new Set(), paths = [];
  const visit = (value, path) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) return;
    seen.add(value);
    if (typeof value === "function") paths.push(path);
    for (const key of Reflect.ownKeys(value)) {
      const name = typeof key === "symbol" ? key.description : JSON.stringify(key);
      const property = Object.getOwnPropertyDescriptor(value, key);
      if ("value" in property) visit(property.value, path + "[" + name + "]");
      for (const way of ["get", "set"]) {
        visit(property[way], "Object.getOwnPropertyDescriptor(" + path + ", " + name + ")." + way);
      }
    }
    visit(Object.getPrototypeOf(value), "Object.getPrototypeOf(" + path + ")");
  };
  visit(globalThis, "globalThis");
  for (const text of ["(function*() {})", "(async function() {})", "(async function*() {})", "(async function*() {})()", "[].values()",
    "new Map().values()", "new Set().values()", "''[Symbol.iterator]()", "'a'.matchAll(/a/g)", "[].values().map(Math.abs)",
    "Iterator.from({next() {}})", "Promise.resolve()", "(function() { return arguments })()"]) visit(eval(text), text);
  return paths;
}"#;

/// A script that calls a function with arguments that may keep it busy. A number chooses the arguments to begin with.
const TRIED: &str = r#"
  const long = {length: 2 ** 53 - 1}, text = "a".repeat(8000000), needle = "a".repeat(4000000) + "b";
  const endless = () => Array.prototype.values.call(long), marks = "a" + "\u0301\u0323".repeat(400000);
  const keys = new Proxy({}, {ownKeys: () => Array.from({length: 200000}, (_, at) => "k" + at)});
  const ways = [() => [long, 1], () => [long, Math.abs], () => [text, needle], () => [text, needle, "x"], () => [marks, "NFD"],
    () => [keys, keys], () => [endless(), 2 ** 52], () => [endless(), Math.abs], () => [2n ** 500000n, 10],
    () => [new Float64Array(4000000)], () => [/(a+)+$/, "a".repeat(50) + "b"], () => [null, long], () => [null, keys],
    () => [null, endless()], () => [null, text], () => [null, Math.abs, long], () => [new Set([1]), {size: 1, has: Math.abs, keys: endless}]];
  for (let at = 0; at < ways.length; at++) {
    const way = ways[(at + first) % ways.length];
    try { const [self, ...args] = way(); tried.apply(self, args); } catch {}
    try { const [, ...args] = way(); new tried(...args); } catch {}
  }
"#;

/// A pipeline's stage that runs a script.
fn stage(script: &str) -> String {
    format!("{{$project: {{answer: {{$function: {{body: {script:?}, args: [], lang: 'js'}}}}}}}}")
}

fn aggregate(script: &str, options: &str) -> String {
    format!("{{aggregate: 'kept', pipeline: [{}], cursor: {{}}{options}}}", stage(script))
}

/// Sends a command without waiting for its reply.
fn start(running: &Running, text: &str) -> Peer {
    let mut peer = running.peer();
    peer.be_patient(PATIENCE);
    peer.send(&message(1, MessageFlags::NONE, command("peer", text).as_ref()));
    peer
}

/// The operation with that comment, once it runs.
fn operation(running: &Running, comment: &str) -> i32 {
    let asked = format!(
        "{{aggregate: 1, pipeline: [{{$currentOp: {{}}}}, {{$match: {{'command.comment': '{comment}'}}}}], cursor: {{}}}}"
    );
    wait_for(|| {
        let reply = running.peer().run("admin", &asked);
        let batch = reply.as_ref().get("cursor").and_then(ValueRef::as_document).and_then(|c| c.get("firstBatch"));
        let first = batch.and_then(ValueRef::as_array).and_then(|batch| batch.iter().next());
        match first.and_then(ValueRef::as_document).and_then(|operation| operation.get("opid")) {
            Some(ValueRef::Int32(opid)) => Ok(opid),
            _ => Err(format!("{comment} does not run: {reply:?}")),
        }
    })
}

/// The server's processes that run scripts.
fn workers(server: u32) -> BTreeSet<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_worker(*pid) && parent(*pid) == Some(server)).collect()
}

/// The server's processes that run scripts, once there is one.
fn some_workers(running: &Running) -> BTreeSet<u32> {
    wait_for(|| {
        let found = workers(running.server.pid());
        if found.is_empty() { Err("nothing runs".to_owned()) } else { Ok(found) }
    })
}

fn is_worker(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("script-worker"))
}

/// The parent's id. Source: proc(5), `/proc/pid/stat`: it follows the state, which follows the name in parentheses.
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until only the worker for the next operation is left.
fn assert_only_spare(running: &Running, why: &str) {
    wait_for(|| match workers(running.server.pid()) {
        left if left.len() <= 1 => Ok(()),
        left => Err(format!("a promise is broken: {why}: processes {left:?} are left")),
    });
}

fn assert_code(peer: &mut Peer, expected: i32, why: &str) {
    let reply = peer.reply_to(1);
    assert_eq!(code(reply.as_ref()), expected, "a promise is broken: {why}: {reply:?}");
}

/// Passes each element to one of several threads.
fn for_each_at_once<T: Sync>(all: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = Mutex::new(all.iter().enumerate());
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                loop {
                    let taken = next.lock().expect("no panic").next();
                    let Some((at, one)) = taken else { return };
                    work(at, one);
                }
            });
        }
    });
}

#[test]
fn every_way_of_ending_ends_every_native() {
    let mut running = Running::start();
    for_each_at_once(NATIVES, |at, (name, script)| {
        let mut late = start(&running, &aggregate(script, ", maxTimeMS: 400"));
        assert_code(&mut late, MAX_TIME_MS_EXPIRED, &format!("maxTimeMS and {name}"));
        let comment = format!("native {at}");
        let with_comment = aggregate(script, &format!(", comment: '{comment}'"));
        let mut killed = start(&running, &with_comment);
        let opid = operation(&running, &comment);
        running.peer().run("admin", &format!("{{killOp: 1, op: {opid}}}"));
        assert_code(&mut killed, INTERRUPTED, &format!("killOp and {name}"));
        let left = start(&running, &with_comment);
        operation(&running, &comment);
        drop(left);
    });
    assert_only_spare(&running, "clients have left");
    running.assert_serves();
    // A shutdown while all of them run, in `$where` and in expressions.
    let left_alone: Vec<Peer> = NATIVES
        .iter()
        .enumerate()
        .map(|(at, (_, script))| {
            let comment = format!("last {at}");
            let peer = start(&running, &aggregate(script, &format!(", comment: '{comment}'")));
            operation(&running, &comment);
            peer
        })
        .collect();
    let workers = some_workers(&running);
    running.server.stop();
    drop(left_alone);
    assert_gone(&workers);
}

/// Waits until all these processes have ended.
fn assert_gone(workers: &BTreeSet<u32>) {
    let why = format!("a promise is broken: of the processes {workers:?} all end");
    wait_until(&why, || !workers.iter().any(|pid| is_worker(*pid)));
}

#[test]
fn a_server_that_is_killed_leaves_no_process() {
    let mut running = Running::start();
    let _busy = start(&running, &aggregate("while (true) {}", ", comment: 'busy'"));
    operation(&running, "busy");
    let workers = some_workers(&running);
    running.server.kill();
    assert_gone(&workers);
}

#[test]
fn no_function_that_scripts_reach_outlasts_its_operation() {
    let running = Running::start();
    let reply = running.peer().run("peer", &aggregate(REACHABLE, ""));
    let paths = answered(&reply);
    assert!(paths.len() > 600, "{} functions, which are few", paths.len());
    for known in ["globalThis[\"String\"][\"prototype\"][\"normalize\"]", "globalThis[\"JSON\"][\"parse\"]"] {
        assert!(paths.iter().any(|path| path == known), "{known} is not among {paths:?}");
    }
    let tried = chosen(&paths);
    for_each_at_once(&tried, |_, (at, path)| {
        let script = format!("function() {{ const first = {at}, tried = {path}; {TRIED} }}");
        let mut peer = start(&running, &aggregate(&script, ", maxTimeMS: 250"));
        // Any reply will do.
        peer.reply_to(1);
    });
    assert_only_spare(&running, "all functions were tried");
    running.assert_serves();
}

/// One in [`FUNCTIONS_STEP`] of the functions, others in each run, with their numbers; all if `BUNKO_FUNCTIONS=all`.
fn chosen(paths: &[String]) -> Vec<(usize, &String)> {
    let is_all = std::env::var("BUNKO_FUNCTIONS").is_ok_and(|said| said == "all");
    let (first, step) = if is_all { (0, 1) } else { (std::process::id() as usize % FUNCTIONS_STEP, FUNCTIONS_STEP) };
    paths.iter().enumerate().skip(first).step_by(step).collect()
}

/// The texts that the script returned for the only document.
fn answered(reply: &DocumentBuf) -> Vec<String> {
    let cursor = reply.as_ref().get("cursor").and_then(ValueRef::as_document);
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch")).and_then(ValueRef::as_array);
    let first = batch.and_then(|batch| batch.iter().next()).and_then(ValueRef::as_document);
    let answer = first.and_then(|document| document.get("answer")).and_then(ValueRef::as_array);
    let texts = answer.unwrap_or_else(|| panic!("no answer: {reply:?}")).iter().filter_map(ValueRef::as_str);
    texts.map(str::to_owned).collect()
}
