use super::*;

/// Each type's canonical text, and its relaxed text if that differs.
/// Source: Extended JSON specification 2.1, "Conversion table".
const BOTH_FORMS: [(&str, &str); 24] = [
    (r#"{"$oid":"5f0000010102030405abcdef"}"#, ""),
    (r#"{"$symbol":"s"}"#, ""),
    (r#"{"$numberInt":"-7"}"#, "-7"),
    (r#"{"$numberLong":"9223372036854775807"}"#, "9223372036854775807"),
    (r#"{"$numberDouble":"1.0"}"#, "1.0"),
    (r#"{"$numberDouble":"-0.0"}"#, "-0.0"),
    (r#"{"$numberDouble":"1.2345678921232E+18"}"#, "1.2345678921232E+18"),
    (r#"{"$numberDouble":"1.0E-300"}"#, "1.0E-300"),
    (r#"{"$numberDouble":"NaN"}"#, ""),
    (r#"{"$numberDouble":"-Infinity"}"#, ""),
    (r#"{"$numberDecimal":"1.50"}"#, ""),
    (r#"{"$binary":{"base64":"//8=","subType":"02"}}"#, ""),
    (r#"{"$binary":{"base64":"","subType":"80"}}"#, ""),
    (r#"{"$code":"f(\"x\")"}"#, ""),
    (r#"{"$code":"f","$scope":{"a":{"$numberInt":"1"}}}"#, r#"{"$code":"f","$scope":{"a":1}}"#),
    (r#"{"$timestamp":{"t":4294967295,"i":1}}"#, ""),
    (r#"{"$regularExpression":{"pattern":"a/\\d","options":"i"}}"#, ""),
    (r#"{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"5f0000010102030405abcdef"}}}"#, ""),
    (r#"{"$date":{"$numberLong":"1356351330501"}}"#, r#"{"$date":"2012-12-24T12:15:30.501Z"}"#),
    (r#"{"$date":{"$numberLong":"1356351330000"}}"#, r#"{"$date":"2012-12-24T12:15:30Z"}"#),
    (r#"{"$date":{"$numberLong":"-1"}}"#, ""),
    (r#"{"$date":{"$numberLong":"253402300800000"}}"#, ""),
    (r#"[{"$minKey":1},{"$maxKey":1},{"$undefined":true},true,null]"#, ""),
    (r#"{"":"\"\\\b\f\n\r\t\u0000\u001f/é文😀","a":{},"a":[]}"#, ""),
];

#[test]
fn both_forms_of_every_type() {
    for (canonical, relaxed) in BOTH_FORMS {
        let relaxed = if relaxed.is_empty() { canonical } else { relaxed };
        for text in [canonical, relaxed] {
            let value = parse_value(text).expect(text);
            assert_eq!(to_canonical(value.as_ref()), canonical);
            assert_eq!(to_relaxed(value.as_ref()), relaxed);
        }
    }
}

#[test]
fn text_of_other_writers_is_read() {
    for (text, canonical) in [
        (r#"{"$binary": "AQI=", "$type": "00"}"#, r#"{"$binary":{"base64":"AQI=","subType":"00"}}"#),
        (r#"{"$type": 128, "$binary": "AQI="}"#, r#"{"$binary":{"base64":"AQI=","subType":"80"}}"#),
        (r#"{"$date": -5}"#, r#"{"$date":{"$numberLong":"-5"}}"#),
        (r#"{"$date": 1356351330501}"#, r#"{"$date":{"$numberLong":"1356351330501"}}"#),
        (r#"{"$date": "2012-12-24T12:15:30.501+0000"}"#, r#"{"$date":{"$numberLong":"1356351330501"}}"#),
        (r#"{"$regex": "^a", "$options": "i"}"#, r#"{"$regularExpression":{"pattern":"^a","options":"i"}}"#),
        (r#"{"$options": "", "$regex": "^a"}"#, r#"{"$regularExpression":{"pattern":"^a","options":""}}"#),
        (r#"{"$regex": "^a"}"#, r#"{"$regex":"^a"}"#),
        (r#"{"$type": "string"}"#, r#"{"$type":"string"}"#),
        (r#"{"$scope": 1, "b": true}"#, r#"{"$scope":{"$numberInt":"1"},"b":true}"#),
        (
            r#"{"$uuid": "00112233-4455-6677-8899-AABBCCDDEEFF"}"#,
            r#"{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}"#,
        ),
        (r#"{"$ref": "c", "$id": 1}"#, r#"{"$ref":"c","$id":{"$numberInt":"1"}}"#),
        ("2147483648", r#"{"$numberLong":"2147483648"}"#),
        ("9223372036854775808", r#"{"$numberDouble":"9.223372036854776E+18"}"#),
        ("-1e2", r#"{"$numberDouble":"-100.0"}"#),
        (" [ 0 , 1 ] ", r#"[{"$numberInt":"0"},{"$numberInt":"1"}]"#),
        (r#""\ud83d\ude00\u00e9\/""#, r#""😀é/""#),
    ] {
        assert_eq!(to_canonical(parse_value(text).expect(text).as_ref()), canonical, "{text}");
    }
}

#[test]
fn malformed_wrappers_are_refused() {
    for text in [
        r#"{"$oid": "5f00"}"#,
        r#"{"$oid": "5f0000010102030405abcdef", "extra": 1}"#,
        r#"{"$numberInt": 1}"#,
        r#"{"$numberInt": "2147483648"}"#,
        r#"{"$numberLong": "1.5"}"#,
        r#"{"$numberDouble": "inf"}"#,
        r#"{"$numberDouble": "1_0"}"#,
        r#"{"$numberDecimal": "x"}"#,
        r#"{"$binary": "AQI="}"#,
        r#"{"$binary": {"base64": "AQI", "subType": "100"}}"#,
        r#"{"$binary": {"base64": "A", "subType": "00"}}"#,
        r#"{"$uuid": "00112233445566778899aabbccddeeff"}"#,
        r#"{"$uuid": "0011223-34455-6677-8899-aabbccddeeff"}"#,
        r#"{"$code": "f", "$scope": [1]}"#,
        r#"{"$timestamp": {"t": -1, "i": 1}}"#,
        r#"{"$timestamp": {"t": 1}}"#,
        r#"{"$regularExpression": {"pattern": 1, "options": ""}}"#,
        r#"{"$regularExpression": {"pattern": "\u0000", "options": ""}}"#,
        r#"{"$dbPointer": {"$ref": "a", "$id": 1}}"#,
        r#"{"$date": "tomorrow"}"#,
        r#"{"$date": {"$numberLong": "1"}, "$date": 2}"#,
        r#"{"$minKey": true}"#,
        r#"{"$undefined": 1}"#,
    ] {
        let error = parse_value(text).expect_err(text);
        assert_eq!((error.line, error.column), (1, 1), "{text}: {error}");
        assert!(error.reason.starts_with("malformed $"), "{text}: {error}");
    }
}

#[test]
fn errors_say_where() {
    for (text, line, column, reason) in [
        ("", 1, 1, "expected a value, found the end"),
        ("{\"a\": 1,\n é}", 2, 2, "expected a field name, found \"é}\""),
        ("{\"é\": nul}", 1, 7, "expected a value, found \"nul}\""),
        ("[1,]", 1, 4, "expected a value, found \"]\""),
        ("[1 2]", 1, 4, "expected ']', found \"2]\""),
        ("{\"a\": 01}", 1, 7, "expected a number, found \"01}\""),
        ("+1", 1, 1, "expected a value, found \"+1\""),
        ("[1.]", 1, 2, "expected a number, found \"1.]\""),
        ("\"a", 1, 3, "expected a closing quote, found the end"),
        ("\"\t\"", 1, 2, "expected an escape for a control character, found \"\\t\\\"\""),
        ("\"\\x\"", 1, 2, "expected an escape sequence, found \"\\\\x\\\"\""),
        ("\"\\u12\"", 1, 2, "expected four hexadecimal digits, found \"\\\\u12\\\"\""),
        ("\"\\ud800\"", 1, 2, "expected a whole surrogate pair, found \"\\\\ud800\\\"\""),
        ("{\"a\\u0000\": 1}", 1, 2, "expected a field name without zero bytes, found \"\\\"a\\\\u0000\\\": 1}\""),
        ("{} {}", 1, 4, "expected the end, found \"{}\""),
        ("[\n  {\"$oid\": 1}]", 2, 3, "malformed $oid"),
    ] {
        let error = parse_value(text).expect_err(text);
        assert_eq!((error.line, error.column, error.reason.as_str()), (line, column, reason), "{text}");
    }
    let error = parse_document(r#"{"$minKey": 1}"#).expect_err("not a document");
    assert_eq!(
        error.to_string(),
        "invalid Extended JSON at line 1, column 1: expected a document, found a value of type minKey"
    );
}

#[test]
fn depth_is_judged_as_bson() {
    let arrays = |depth: usize, leaf: &str| format!("{}{leaf}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = arrays(
        crate::MAX_DEPTH_ACCEPTED + 1,
        r#"{"$dbPointer":{"$ref":"a.b","$id":{"$oid":"5f0000010102030405abcdef"}}}"#,
    );
    assert_eq!(to_canonical(parse_value(&deepest).expect("deep enough").as_ref()), deepest);
    let error = parse_value(&arrays(crate::MAX_DEPTH_ACCEPTED + 2, "")).expect_err("too deep");
    assert_eq!(error.reason, "BSON nested deeper than 200 levels");
    let error = parse_value(&"[".repeat(100_000)).expect_err("far too deep");
    assert!(error.reason.starts_with("expected at most 200 levels of nesting"), "{error}");
    assert_eq!(error.column, crate::MAX_DEPTH_ACCEPTED + 5);
}
