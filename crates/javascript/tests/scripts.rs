//! Scripts within their limits, and what becomes of values on the way in and out.

use bunko_bson::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp, Value, ValueRef, extended_json};
use bunko_errors::{ErrorCode, Failure};
use bunko_javascript::{Scripts, Workers, work_for_server};
use bunko_operation::{Interruption, MemoryLimits, OperationContext, StageLimits};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// Workers that this program becomes again, with one test that serves instead of testing.
static WORKERS: LazyLock<Arc<Workers>> = LazyLock::new(|| {
    let program = std::env::current_exe().expect("the path of this program");
    Workers::new(program, ["--exact", "worker", "--nocapture"].map(Into::into).into(), 4)
});

#[test]
fn worker() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--exact", "worker", "--nocapture"] {
        // It fails at once where a person has given these arguments.
        work_for_server();
    }
}

fn shown(value: &Value) -> String {
    extended_json::to_relaxed(value.as_ref())
}

fn called(text: &str, arguments: &[ValueRef<'_>]) -> Result<Value, Failure> {
    Scripts::new(&OperationContext::unlimited()).function(text).call(None, arguments)
}

#[test]
fn texts_are_functions_expressions_or_bodies() {
    let document = DocumentBuf::new().with("a", 3_i32).with("n", 4_i64);
    let cases = [
        ("function() { return this.a == 3 }", true),
        ("this.a == 3", true),
        ("this.a > 3; // a comment", false),
        ("return obj.n == 4", true),
        ("var x = this.a; x === 3", true),
        ("() => true", true),
        ("obj.n + 1 == 5", true),
        ("", false),
        ("0", false),
        ("NumberLong(0)", true),
    ];
    for (text, expected) in cases {
        let function = Scripts::new(&OperationContext::unlimited()).function(text);
        assert_eq!(function.is_true(document.as_ref()).expect(text), expected, "{text}");
    }
}

#[test]
fn values_come_back_as_they_were() {
    let inner = DocumentBuf::new().with("i", 1_i32).with("__proto__", 5_i32);
    let list = ArrayBuf::from_iter([ValueRef::Int64(1 << 60), ValueRef::String("x\0y")]);
    let document = DocumentBuf::new()
        .with("id", ObjectId::parse_hex("0123456789abcdef01234567").expect("an id"))
        .with("long", i64::MIN)
        .with("int", 7_i32)
        .with("double", 1.5)
        .with("decimal", Decimal128::parse("1.00").expect("a decimal"))
        .with("binary", ValueRef::Binary { subtype: 4, bytes: &[7; 16] })
        .with("date", ValueRef::DateTime(-1))
        .with("time", Timestamp { seconds: u32::MAX, increment: 2 })
        .with("regex", ValueRef::Regex { pattern: "^a/b", options: "i" })
        .with("min", ValueRef::MinKey)
        .with("max", ValueRef::MaxKey)
        .with("null", ValueRef::Null)
        .with("undefined", ValueRef::Undefined)
        .with("code", ValueRef::JavaScript("f()"))
        .with("inner", &inner)
        .with("list", &list);
    let answer = called("function(d) { return d }", &[ValueRef::from(&document)]).expect("an answer");
    assert_eq!(shown(&answer), shown(&Value::Document(document)));
}

#[test]
fn made_values_are_as_mongodb_makes_them() {
    let cases = [
        ("1", "1.0"),
        ("NumberInt(1)", "1"),
        ("NumberLong('5')", "5"),
        ("[1, 'a', null, undefined]", r#"[1.0,"a",null,{"$undefined":true}]"#),
        ("({a: ISODate('2020-01-01')})", r#"{"a":{"$date":"2020-01-01T00:00:00Z"}}"#),
        ("NumberDecimal('1.10')", r#"{"$numberDecimal":"1.10"}"#),
        (
            "UUID('00112233-4455-6677-8899-aabbccddeeff').toString()",
            r#""UUID(\"00112233-4455-6677-8899-aabbccddeeff\")""#,
        ),
        ("BinData(0, 'AQID')", r#"{"$binary":{"base64":"AQID","subType":"00"}}"#),
        ("BinData(0, 'AQI=').base64()", r#""AQI=""#),
        ("tojson({a: NumberLong(1), b: [1]})", r#""{ \"a\" : NumberLong(1), \"b\" : [ 1 ] }""#),
        ("Array.sum([1, 2, 3])", "6.0"),
        ("hex_md5('a')", r#""0cc175b9c0f1b6a831c399e269772661""#),
        ("/a/gi", r#"{"$regularExpression":{"pattern":"a","options":"i"}}"#),
        ("Timestamp(5, 6)", r#"{"$timestamp":{"t":5,"i":6}}"#),
        ("MinKey()", r#"{"$minKey":1}"#),
        ("new Number(4)", "4.0"),
        ("'\\ud800'", "\"\u{fffd}\""),
        ("typeof Atomics + typeof require + typeof load", r#""undefinedundefinedundefined""#),
    ];
    for (text, expected) in cases {
        let answer = called(text, &[]).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert_eq!(shown(&answer), expected, "{text}");
    }
}

#[test]
fn what_scripts_throw_is_told() {
    let cases = [
        ("function() { nobody.x }", "ReferenceError: nobody is not defined"),
        ("function() { throw 'words' }", "uncaught exception: words"),
        ("function() { throw {a: 1} }", "uncaught exception: { \"a\" : 1 }"),
        ("function() { throw {get a() { throw 1 }} }", "uncaught exception"),
        ("function( {", "SyntaxError: "),
    ];
    for (text, expected) in cases {
        let failure = called(text, &[]).expect_err(text);
        assert_eq!(failure.code(), ErrorCode::JS_INTERPRETER_FAILURE, "{text}");
        assert!(failure.message().starts_with(expected), "{text}: {failure}");
    }
    let circular = called("function() { var a = {}; a.a = a; return a }", &[]).expect_err("circular");
    assert_eq!(circular.code(), ErrorCode(17279));
}

fn with_workers(interruption: Arc<dyn Interruption>) -> Arc<OperationContext> {
    let stages = StageLimits::in_memory().with_script_host(Arc::clone(&WORKERS) as _);
    OperationContext::new(interruption, MemoryLimits { stages, ..MemoryLimits::none() })
}

/// An operation that is stopped after a while.
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
        let operation = with_workers(until);
        let failure = Scripts::new(&operation).function(text).call(None, &[]);
        assert!(failure.is_err(), "{text}: {failure:?}");
        assert!(began.elapsed() < Duration::from_secs(10), "{text}: {:?}", began.elapsed());
        eprintln!("{:?} {text}: {:?}", began.elapsed(), failure.err());
    }
}

#[test]
fn a_script_changes_nothing_for_others() {
    let operation = OperationContext::unlimited();
    let hostile = "Object.prototype.a = 1; Array.prototype.push = null; JSON = null; ObjectId.prototype = null; 1";
    Scripts::new(&operation).function(hostile).call(None, &[]).expect("allowed");
    let others = Scripts::new(&operation).function("typeof ({}).a + typeof [].push + typeof JSON");
    assert_eq!(shown(&others.call(None, &[]).expect("an answer")), r#""undefinedfunctionobject""#);
}

#[test]
fn a_script_that_ran_out_of_memory_leaves_the_process_alive() {
    for _ in 0..20 {
        let text = "var a = []; globalThis.kept = a; for (;;) a.push({a: new Array(1000).fill([1]), b: () => a})";
        let failure = called(text, &[]).expect_err("out of memory");
        assert_eq!(failure.code(), ErrorCode::JS_INTERPRETER_FAILURE);
        assert!(failure.message().contains("out of memory"), "{failure}");
    }
}
