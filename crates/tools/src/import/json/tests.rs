use super::*;
use crate::import::cutter::{Cut, Cutter};
use bunko_bson::extended_json::{parse_document, to_canonical};
use bunko_bson::{DocumentRef, ValueRef};
use proptest::prelude::*;

const WHOLE: Ends = Ends { is_first: true, is_last: true };

/// Documents in canonical form, and the flaw at which reading stopped.
fn read(text: &str, form: JsonForm, ends: Ends) -> (Vec<String>, Option<Flaw>) {
    let (mut documents, mut found) = (JsonDocuments::new(text, form, ends), Vec::new());
    loop {
        let mut out = Vec::new();
        match documents.next(&mut out) {
            Ok(None) => return (found, None),
            Err(flaw) => return (found, Some(flaw)),
            Ok(Some(_)) => {
                let document = DocumentRef::parse(&out).expect("well formed");
                found.push(to_canonical(ValueRef::Document(document)));
            }
        }
    }
}

fn lines(text: &str) -> (Vec<String>, Option<Flaw>) {
    read(text, JsonForm::Lines, WHOLE)
}

#[test]
fn documents_are_those_of_the_general_parser() {
    let texts = [
        "{}",
        r#"{"a":1,"b":-2147483649,"c":1.5e300,"d":-0.25,"e":0,"f":123456789012345678901234567890}"#,
        r#"{ "a" : [ 1 , [ ] , { "b" : [ true , false , null ] } , "x" ] , "": {} }"#,
        r#"{"s":"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00 日本語 0123456789012345","nul":"\u0000"}"#,
        r#"{"i":{"$oid":"5f0000010102030405abcdef"},"d":{"$date":"2020-02-29T12:00:00.5Z"},"l":{"$numberLong":"9"}}"#,
        r#"{"d":{"$date":{"$numberLong":"-1"}},"m":{"$date":5},"b":{"$binary":{"base64":"AQI=","subType":"00"}}}"#,
        r#"{"b":{"$binary":"AQI=","$type":"80"},"r":{"$regex":"a","$options":"i"},"t":{"$timestamp":{"t":1,"i":2}}}"#,
        r#"{"n":{"$numberDecimal":"1.10"},"x":{"$numberDouble":"NaN"},"i":{"$numberInt":"7"},"min":{"$minKey":1}}"#,
        r#"{"ref":{"$ref":"c","$id":1},"q":{"$gt":{"a":"}"}},"code":{"$code":"f()","$scope":{"x":"\"{"}}}"#,
        "{\"a\":1,\n\t\"a\":{\"$undefined\":true}}",
    ];
    for text in texts {
        let expected = to_canonical(ValueRef::Document(parse_document(text).expect("JSON").as_ref()));
        assert_eq!(lines(text), (vec![expected], None), "{text}");
    }
}

#[test]
fn errors_name_their_place_and_the_value() {
    let refused = [
        (r#"{"a":1} {"a":x}"#, 13, "expected a value, found \"x}\""),
        (r#"{"a":1}, {"a":2}"#, 7, "expected a document"),
        (r#"{"a":1} {"a":"#, 8, "the input ends in the middle of the document that begins here"),
        (r#"{"a":1} {"a":"b"#, 8, "a string is not closed"),
        (r#"{"a":{"$oid":"5f"}}"#, 5, "malformed $oid in \"{"),
        (r#"{"a":{"$date":"#, 0, "the input ends"),
        ("{\"a\":{\"$date\":\"x\n", 16, "expected an escape for a control character"),
        (r#"{"$oid":"5f0000010102030405abcdef"}"#, 0, "expected a document, found a value of type objectId"),
        (r#"{"a":1e999}"#, 5, "the number \"1e999\" is too large"),
        (r#"{"a":01}"#, 5, "expected a number"),
        (r#"{"a":1.}"#, 5, "expected a number"),
        (r#"{"a":-}"#, 5, "expected a number"),
        ("{'a':1}", 1, "expected a field name in quotes"),
        (r#"{"a\u0000":1}"#, 1, "without zero bytes"),
        ("{\"a\":\"\u{0}\"}", 6, "expected an escape for a control character"),
        (r#"{"a":"\x"}"#, 6, "expected an escape sequence"),
        (r#"{"a":"\ud800"}"#, 6, "expected a whole surrogate pair"),
        (r#"{"a":1"b":2}"#, 6, "expected ',' or '}'"),
        (r#"{"a":[1 2]}"#, 8, "expected ',' or ']'"),
        ("7", 0, "expected a document"),
    ];
    for (text, offset, words) in refused {
        let flaw = lines(text).1.unwrap_or_else(|| panic!("{text} is refused"));
        assert!(flaw.offset == offset && flaw.reason.contains(words), "{text}: {flaw:?}");
    }
    let deep = format!("{}{}", "{\"a\":".repeat(201), "1".to_owned() + &"}".repeat(201));
    assert!(lines(&deep).1.expect("refused").reason.contains("more than 200 levels"));
}

#[test]
fn an_array_needs_its_commas_and_its_end() {
    let array = |text, is_first, is_last| read(text, JsonForm::Array, Ends { is_first, is_last });
    assert_eq!(array(" {} , {}\n]\n", true, true), (vec!["{}".into(), "{}".into()], None));
    assert_eq!(array(",{},{}", false, false), (vec!["{}".into(), "{}".into()], None));
    assert_eq!(array("]", true, true), (vec![], None));
    let reason = |found: (Vec<String>, Option<Flaw>)| found.1.expect("refused").reason;
    assert!(reason(array("{} {}]", true, true)).contains("expected ',' or ']'"));
    assert!(reason(array("{}", false, true)).contains("expected ',' or ']'"));
    assert!(reason(array("{}", true, true)).contains("is not closed"));
    assert!(reason(array("{},]", true, true)).contains("expected a document"));
    assert!(reason(array("{}] x", true, true)).contains("nothing after the array"));
    assert!(reason(array("1]", true, true)).contains("expected a document"));
}

/// Ends that a cutter finds, if the text comes in blocks of this length.
fn ends(text: &str, form: JsonForm, block: usize) -> Vec<usize> {
    let (mut cutter, mut at, mut found) = (JsonCutter::new(form), 0, Vec::new());
    for fresh in text.as_bytes().chunks(block) {
        match cutter.advance(fresh) {
            Cut::At(end) => found.push(at + end),
            Cut::None => {}
            Cut::Broken(_) => return found,
        }
        at += fresh.len();
    }
    found
}

#[test]
fn text_is_cut_behind_documents_only() {
    let text = r#"{"a":"}\"{\\"} {"b":[{},{}]}  {"c":1}"#;
    assert_eq!(ends(text, JsonForm::Lines, 1), [14, 28, 37]);
    assert_eq!(ends(text, JsonForm::Lines, 100), [37]);
    assert_eq!(ends(r#"{"a":[]},{"b":2}]"#, JsonForm::Array, 1), [8, 16]);
    assert_eq!(JsonCutter::new(JsonForm::Lines).advance(b"{} x{}"), Cut::Broken(3));
    assert_eq!(JsonCutter::new(JsonForm::Lines).advance(b"{},"), Cut::Broken(2));
    assert_eq!(JsonCutter::new(JsonForm::Lines).advance(b"{\"a\":\"x}\n{}"), Cut::Broken(8));
    assert_eq!(JsonCutter::new(JsonForm::Array).advance(b"{}] ]"), Cut::Broken(4));
}

proptest! {
    /// Any text at all, cut anywhere, gives either documents or a flaw inside the text.
    #[test]
    fn no_text_panics(text in r#"[{}\[\]",:\\ 0-9eE.+\-a\$oidut\n日]{0,60}"#, block in 1_usize..9) {
        for form in [JsonForm::Lines, JsonForm::Array] {
            let (_, flaw) = read(&text, form, WHOLE);
            prop_assert!(flaw.is_none_or(|flaw| flaw.offset <= text.len()));
            let is_behind_one = |end: usize| matches!(text.as_bytes()[end - 1], b'}' | b']');
            prop_assert!(ends(&text, form, block).into_iter().all(is_behind_one));
        }
    }

    /// Whatever the general parser accepts, this one reads in the same way; what it accepts beyond is refused.
    #[test]
    fn both_parsers_agree(text in r#"\{"[ab$]":[{}\[\]",:\\ 0-9eE.+\-a\$oidutn]{0,40}\}"#) {
        let (documents, flaw) = lines(&text);
        match parse_document(&text) {
            Ok(expected) => prop_assert_eq!(documents, vec![to_canonical(ValueRef::Document(expected.as_ref()))]),
            Err(_) => prop_assert!(flaw.is_some() || documents.len() != 1, "{text} is read as {documents:?}"),
        }
    }
}
