use super::*;

/// Texts that are printed exactly as they were read.
const FIXED_POINTS: [&str; 20] = [
    "{}",
    "{_id: 1, a: [1, 2.5], s: \"x\", o: ObjectId('5f0000010102030405abcdef'), d: ISODate('2020-01-01T00:00:00Z')}",
    "{a: 1, a: 2, $set: {}, \"a.b\": [], \"\": null, \"0\": true, 日本: undefined}",
    "[2147483647, -2147483648, NumberLong(2147483648), NumberLong(-9223372036854775808)]",
    "[1.0, -0.0, 0.1, 1e16, 1.5e-7, NaN, Infinity, -Infinity, 1e300]",
    "[NumberDecimal('1.50'), NumberDecimal('NaN'), NumberLong(5)]",
    "[ISODate('1969-12-31T23:59:59.999Z'), ISODate('+292278994-08-17T07:12:55.807Z')]",
    "[Timestamp(1, 4294967295), MinKey, MaxKey]",
    "[BinData(0, 'AQID'), BinData(128, ''), UUID('00112233-4455-6677-8899-aabbccddeeff')]",
    "[/a/i, /^a\\/[/]$/, RegExp('', ''), RegExp('a/b', 'x'), RegExp('\\n', 'X')]",
    "[Code('f(\\'x\\')'), Code('f', {a: {b: 1}}), Symbol('s'), DBPointer('a.b', ObjectId('5f0000010102030405abcdef'))]",
    "\"quote \\\" ' backslash \\\\ \\n\\t\\r\\0\\u0001 文庫\"",
    "-1",
    "1.0",
    "true",
    "null",
    "MinKey",
    "/./",
    "[[[]], {a: {b: {c: []}}}]",
    "BinData(4, 'AA==')",
];

#[test]
fn parsed_values_are_printed_back() {
    for text in FIXED_POINTS {
        let value = parse_value(text).expect(text);
        assert_eq!(print(value.as_ref()), text);
        let again = parse_value(&print(value.as_ref())).expect("printed text is read");
        let bytes = |value: &Value| DocumentBuf::new().with("", value).into_bytes();
        assert_eq!(bytes(&again), bytes(&value), "{text}");
    }
}

#[test]
fn other_spellings_are_read() {
    for (text, same) in [
        (" { 'a' : 1 , \"b\":'x', } ", "{a: 1, b: \"x\"}"),
        ("{0: +1, a1: .5, b: 1., c: 2E3}", "{\"0\": 1, a1: 0.5, b: 1.0, c: 2000.0}"),
        ("[2147483648, -2147483649]", "[NumberLong(2147483648), NumberLong(-2147483649)]"),
        ("[NumberLong('7'), NumberInt(7), NumberDecimal(7)]", "[NumberLong(7), 7, NumberDecimal('7')]"),
        ("[new Date(0), Date(-1), ISODate('2020-01-01')]", {
            "[ISODate('1970-01-01T00:00:00Z'), ISODate('1969-12-31T23:59:59.999Z'), ISODate('2020-01-01T00:00:00Z')]"
        }),
        ("[MinKey(), new MaxKey(), RegExp('a')]", "[MinKey, MaxKey, /a/]"),
        (r#"["\u6587\x41\ud83d\ude00\/\'"]"#, "[\"文A😀/'\"]"),
        ("{\n  a: [\n    1,\n  ],\n}\n", "{a: [1]}"),
    ] {
        assert_eq!(print(parse_value(text).expect(text).as_ref()), same);
    }
}

#[test]
fn errors_say_where() {
    for (text, error) in [
        ("", "1:1: expected a value, found \"\""),
        ("{a: 1", "1:6: expected '}', found \"\""),
        ("{a 1}", "1:4: expected ':', found \"1}\""),
        ("{a: 1}\n x", "2:2: expected the end, found \"x\""),
        ("{:1}", "1:2: expected a field name, found \":1}\""),
        ("{'a\\0': 1}", "1:7: expected no zero byte in a field name, found \": 1}\""),
        ("[1.2.3]", "1:2: expected a number, found \"1.2.3]\""),
        ("[9223372036854775808]", "1:2: expected a number, found \"9223372036854775808]\""),
        ("'a", "1:3: expected a closing quote, found \"\""),
        ("/a", "1:2: expected a closing slash, found \"a\""),
        ("ObjectId('x')", "1:1: no value is written ObjectId with the arguments [String(\"x\")]"),
        ("ISODate('2020-02-30')", "1:1: no value is written ISODate with the arguments [String(\"2020-02-30\")]"),
        ("[nil]", "1:2: no value is written nil with the arguments []"),
    ] {
        assert_eq!(parse_value(text).expect_err(text), error);
    }
    assert_eq!(parse_document("[1]").expect_err("an array"), "expected a document");
    let deep = "[".repeat(MAX_DEPTH + 1);
    assert!(parse_value(&deep).expect_err("too deep").contains("at most 500 levels"));
}
