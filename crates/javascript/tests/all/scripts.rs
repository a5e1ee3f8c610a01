//! Values on their way into scripts and back, and the errors that scripts throw.

use bunko_bson::{ArrayBuf, Decimal128, DocumentBuf, ObjectId, Timestamp, Value, ValueRef, extended_json};
use bunko_errors::{ErrorCode, Failure};
use bunko_javascript::Scripts;
use bunko_operation::OperationContext;

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
fn exceptions_of_scripts_are_reported() {
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
