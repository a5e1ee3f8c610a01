//! Scripts in processes that can be killed: the reasons for which a worker is ended, the memory that it may hold, and
//! the failure of an operation whose worker ends.

use bunko_bson::{DocumentBuf, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure};
use bunko_javascript::{Scripts, WORKER_BYTES, Workers, work_for_server};
use bunko_operation::{Interruption, MemoryLimits, OperationContext, ServerMemory, StageLimits};
use bunko_testkit::patience::PATIENCE;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Workers that run this test program again, with only the test [`worker`], which serves scripts instead of testing.
static WORKERS: LazyLock<Arc<Workers>> = LazyLock::new(|| workers(4));

fn workers(most: usize) -> Arc<Workers> {
    let program = std::env::current_exe().expect("the path of this program");
    Workers::new(program, ["--exact", "workers::worker", "--nocapture"].map(Into::into).into(), most)
}

#[test]
fn worker() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--exact", "workers::worker", "--nocapture"] {
        // If a person gives these arguments, the standard input is no socket, and this returns at once.
        work_for_server();
    }
}

fn operation(
    workers: &Arc<Workers>,
    interruption: Arc<dyn Interruption>,
    limits: MemoryLimits,
) -> Arc<OperationContext> {
    let stages = StageLimits::in_memory().with_script_host(Arc::clone(workers) as _);
    OperationContext::new(interruption, MemoryLimits { stages, ..limits })
}

fn unlimited(workers: &Arc<Workers>) -> Arc<OperationContext> {
    operation(workers, Arc::new(Told::default()), MemoryLimits::none())
}

/// Stops the operation once the test sets the flag.
#[derive(Default)]
struct Told(AtomicBool);

impl Interruption for Told {
    fn reason(&self) -> Option<Failure> {
        let is_told = self.0.load(Ordering::Relaxed);
        is_told.then(|| Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
    }
}

/// Stops the operation at a given time.
struct Until(Instant);

impl Interruption for Until {
    fn reason(&self) -> Option<Failure> {
        (Instant::now() >= self.0)
            .then(|| Failure::new(ErrorCode::MAX_TIME_MS_EXPIRED, "operation exceeded time limit"))
    }
}

const HOSTILE: &[&str] = &[
    "while (true) {}",
    "(function f() { for (;;) { try { f() } catch (e) {} } })()",
    "for (var a = []; ; ) a.push(new Array(1000).fill('x'))",
    "for (var a = [];;) { try { for (;;) a.push(new Array(10000).fill({})) } catch (e) {} }",
    "var s = 'x'; for (;;) s += s",
    "'x'.repeat(2 ** 29).split('').map(x => x + x)",
    "for (;;) { try { 'x'.repeat(50000000).indexOf('y') } catch (e) {} }",
    "'a'.repeat(20000000).indexOf('a'.repeat(9000000) + 'b')",
    "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "new Array(4294967295).indexOf(1)",
    "Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)",
    "[new Array(4294967295)].flat()",
    "String(new Array(4294967295))",
    "({toString() { while (true) {} }}) + ''",
    "JSON.stringify({toJSON() { while (true) {} }})",
    "sleep(1e9)",
    "Object.defineProperty(Object.prototype, 'a', {get() { while (true) {} }}); ({}).a",
    "function() { function* g() { for (;;) yield 1 } return [...g()] }",
    "new Proxy({}, {get() { for (;;); }}).x",
    "eval('(' .repeat(1000000))",
    "JSON.parse('['.repeat(1000000))",
    "2n ** 100000000000n",
    "var o = {}; for (var i = 0; ; i++) o['k' + i] = i",
    "for (;;) Object.keys(globalThis.big ??= Object.fromEntries(new Array(200000).fill(0).map((_, i) => ['k' + i, i])))",
];

#[test]
fn hostile_scripts_come_to_an_end() {
    for text in HOSTILE {
        let began = Instant::now();
        let until = Arc::new(Until(began + Duration::from_millis(500)));
        let operation = operation(&WORKERS, until, MemoryLimits::none());
        let failure = Scripts::new(&operation).function(text).call(None, &[]);
        assert!(failure.is_err(), "{text}: {failure:?}");
        // Left alone, most of them would run for ever.
        assert!(began.elapsed() < PATIENCE, "{text}: {:?}", began.elapsed());
        eprintln!("{:?} {text}: {:?}", began.elapsed(), failure.err());
    }
}

fn number(value: &Value) -> Option<f64> {
    match value.as_ref() {
        ValueRef::Double(number) => Some(number),
        _ => None,
    }
}

#[test]
fn no_operation_finds_what_another_left() {
    for _ in 0..3 {
        let scripts = Scripts::new(&unlimited(&WORKERS));
        let count = scripts.function("globalThis.count = (globalThis.count ?? 0) + 1");
        let counted: Vec<_> = (0..3).map(|_| number(&count.call(None, &[]).expect("a number"))).collect();
        assert_eq!(counted, [Some(1.0), Some(2.0), Some(3.0)]);
    }
}

#[test]
fn a_cursor_that_waits_lends_its_place_and_goes_on() {
    let workers = workers(1);
    let (first, second) = (Scripts::new(&unlimited(&workers)), Scripts::new(&unlimited(&workers)));
    first.define(DocumentBuf::new().with("step", 2).as_ref());
    let (one, two) = (first.function("step + 1"), second.function("2"));
    for _ in 0..3 {
        // Each takes the only place from the other, which is idle.
        assert_eq!(number(&one.call(None, &[]).expect("a number")), Some(3.0));
        assert_eq!(number(&two.call(None, &[]).expect("a number")), Some(2.0));
    }
}

#[test]
fn an_operation_that_waits_for_a_place_can_be_stopped() {
    let workers = workers(1);
    let call = |interruption: Arc<dyn Interruption>, script: &'static str| {
        let operation = operation(&workers, interruption, MemoryLimits::none());
        let call = move || Scripts::new(&operation).function(script).call(None, &[]);
        std::thread::spawn(move || call().map_err(|failure| failure.code()))
    };
    let busy = Arc::new(Told::default());
    let holds = call(Arc::clone(&busy) as _, "while (true) {}");
    while workers.held_bytes() == 0 {
        std::thread::yield_now();
    }
    let queued = call(Arc::new(Until(Instant::now() + Duration::from_millis(300))), "1");
    assert_eq!(queued.join().expect("no panic").err(), Some(ErrorCode::MAX_TIME_MS_EXPIRED));
    busy.0.store(true, Ordering::Relaxed);
    assert_eq!(holds.join().expect("no panic").err(), Some(ErrorCode::INTERRUPTED));
    assert_eq!(workers.held_bytes(), 0);
    // The place is free again.
    assert!(call(Arc::new(Told::default()), "1").join().expect("no panic").is_ok());
}

#[test]
fn memory_of_a_script_counts_for_its_operation() {
    const LIMIT: u64 = 32 << 20;
    let server = ServerMemory::new(1 << 30);
    let limits = MemoryLimits { operation_bytes_max: LIMIT, server: Arc::clone(&server), ..MemoryLimits::none() };
    let operation = operation(&WORKERS, Arc::new(Told::default()), limits);
    let scripts = Scripts::new(&operation);
    let hold = scripts
        .function("function(bytes) { (globalThis.held ??= []).push(new Uint8Array(bytes)); return held.length }");
    let take = |bytes: i32| hold.call(None, &[ValueRef::Int32(bytes)]);
    assert!(take(1).is_ok());
    assert!(server.held() >= WORKER_BYTES as u64, "{}", server.held());
    take(10 << 20).expect("within the limit");
    assert!(server.held() >= 15 << 20, "{}", server.held());
    let failure = take(20 << 20).expect_err("too much for one");
    assert_eq!(failure.code(), ErrorCode::EXCEEDED_MEMORY_LIMIT, "{failure}");
    assert_eq!(take(1).expect_err("its process has ended").code(), ErrorCode::EXCEEDED_MEMORY_LIMIT);
    drop((hold, scripts));
    operation.check().expect("it holds little");
    assert!(server.held() < 1 << 20, "{}", server.held());
}

#[test]
fn a_process_that_fails_fails_its_operation_alone() {
    let cases = [
        ("/nonexistent", "", "cannot start a process for scripts: No such file"),
        ("/bin/sh", "exit 1", "the process that ran the script has ended: exit status: 1"),
        // `cat` sends each request back as its answer.
        ("/bin/sh", "exec /bin/cat >&0", "the process that ran the script gave an answer that makes no sense"),
    ];
    for (program, command, expected) in cases {
        let scripts = Scripts::new(&unlimited(&Workers::new(program.into(), vec!["-c".into(), command.into()], 2)));
        for _ in 0..2 {
            let failure = scripts.function("1").call(None, &[]).expect_err(command);
            assert_eq!(failure.code(), ErrorCode::JS_INTERPRETER_FAILURE, "{command}");
            assert!(failure.message().starts_with(expected), "{command}: {failure}");
        }
    }
}

#[test]
fn large_values_go_both_ways() {
    let text = "x".repeat(5 << 20);
    let scripts = Scripts::new(&unlimited(&WORKERS));
    let twice = scripts.function("function(text) { return text + text }");
    let answer = twice.call(None, &[ValueRef::String(&text)]).expect("a text");
    assert_eq!(answer.as_ref().as_str().map(str::len), Some(10 << 20));
    let longer = scripts.function("'x'.repeat(70000000)");
    let failure = longer.call(None, &[]).expect_err("longer than any value may be");
    assert_eq!(failure.code(), ErrorCode::BSON_OBJECT_TOO_LARGE, "{failure}");
    assert!(twice.call(None, &[ValueRef::String("x")]).is_ok(), "its process goes on");
}
