use super::*;
use bunko_bson::{ArrayBuf, Value, order};
use bunko_testkit::shell;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn applied(document: &str, diff: &str) -> String {
    let (document, diff) = (shell::parse_document(document).expect(document), shell::parse_document(diff).expect(diff));
    let outcome = Delta::parse(diff.as_ref()).and_then(|delta| delta.apply(document.as_ref()));
    match outcome {
        Ok(document) => {
            DocumentRef::parse(document.as_ref().as_bytes()).expect("well formed");
            shell::print(ValueRef::Document(document.as_ref()))
        }
        Err(failure) => format!("{} {}", failure.code().name(), failure.message()),
    }
}

#[test]
fn fields_are_removed_set_in_place_and_put_behind_the_last() {
    for (document, diff, expected) in [
        ("{_id: 1, a: 1, b: 2}", "{}", "{_id: 1, a: 1, b: 2}"),
        ("{_id: 1, a: 1, b: 2}", "{d: {a: false, x: false}}", "{_id: 1, b: 2}"),
        ("{_id: 1, a: 1, b: 2}", "{u: {a: 'new'}}", "{_id: 1, a: \"new\", b: 2}"),
        // Fields of `u` that the document lacks come before fields of `i`, whichever section is first.
        ("{_id: 1, a: 1}", "{i: {c: 3, a: 4}, u: {z: 5}}", "{_id: 1, z: 5, c: 3, a: 4}"),
        ("{_id: 1}", "{i: {'': 1, 'a.b': 2, $c: 3}}", "{_id: 1, '': 1, 'a.b': 2, $c: 3}"),
        (
            "{_id: 1, a: {b: {c: 1, d: 2}}, e: 1}",
            "{sa: {sb: {d: {c: false}, u: {d: 3}}}}",
            "{_id: 1, a: {b: {d: 3}}, e: 1}",
        ),
        ("{_id: 1, '': {x: 1}}", "{s: {u: {x: 2}}}", "{_id: 1, '': {x: 2}}"),
    ] {
        let expected = shell::parse_document(expected).expect(expected);
        assert_eq!(applied(document, diff), shell::print(ValueRef::Document(expected.as_ref())), "{diff}");
    }
}

#[test]
fn arrays_are_cut_filled_and_changed_inside() {
    for (array, diff, expected) in [
        ("[1, 2, 3]", "{a: true}", "[1, 2, 3]"),
        ("[1, 2, 3]", "{a: true, u1: 'x'}", "[1, \"x\", 3]"),
        ("[1, 2, 3]", "{a: true, l: 1}", "[1]"),
        ("[1, 2, 3]", "{a: true, l: 0}", "[]"),
        ("[1, 2, 3]", "{a: true, l: 2, u0: 9}", "[9, 2]"),
        ("[1]", "{a: true, l: 3}", "[1, null, null]"),
        ("[1]", "{a: true, u3: 4}", "[1, null, null, 4]"),
        ("[1]", "{a: true, u1: 2, u2: 3}", "[1, 2, 3]"),
        ("[1]", "{a: true, l: 4, s2: {u: {x: 1}}, u3: 4}", "[1, null, null, 4]"),
        ("[{x: 1}, {x: 2}]", "{a: true, s1: {u: {x: 3}, i: {y: 4}}}", "[{x: 1}, {x: 3, y: 4}]"),
        ("[[1, [2]], 3]", "{a: true, s0: {a: true, s1: {a: true, u1: 4}}}", "[[1, [2, 4]], 3]"),
    ] {
        let document = format!("{{_id: 1, a: {array}}}");
        assert_eq!(applied(&document, &format!("{{sa: {diff}}}")), format!("{{_id: 1, a: {expected}}}"), "{diff}");
    }
}

#[test]
fn fields_that_have_changed_their_type_are_passed_over() {
    for document in
        ["{_id: 1}", "{_id: 1, a: 5}", "{_id: 1, a: {b: 5}}", "{_id: 1, a: {b: []}}", "{_id: 1, a: [{b: 1}]}"]
    {
        assert_eq!(applied(document, "{sa: {sb: {u: {c: 1}}}}"), document, "{document}");
    }
    assert_eq!(applied("{_id: 1, a: {}}", "{sa: {a: true, u0: 1}}"), "{_id: 1, a: {}}");
}

#[test]
fn malformed_deltas_are_refused() {
    for (diff, part) in [
        ("{x: {}}", "there is no section 'x'"),
        ("{u: 5}", "section 'u' is not an object"),
        ("{i: [1]}", "section 'i' is not an object"),
        ("{sa: 1}", "section 'sa' is not an object"),
        ("{d: {a: true}}", "a removed field's value is not false"),
        ("{u: {a: 1}, i: {a: 1}}", "field 'a' is changed twice"),
        ("{sa: {u: {b: 1}}, d: {a: false}}", "field 'a' is changed twice"),
        ("{u: {a: 1}, u: {b: 1}}", "section 'u' comes twice"),
        ("{b: {a: {}}}", "CommandNotSupported"),
        // A delta of the whole document cannot be one of an array.
        ("{a: true, u0: 1}", "there is no section 'a'"),
        ("{sa: {a: false}}", "'a' is not part of an array's delta"),
        ("{sa: {a: true, u0: 1, l: 3}}", "'l' is not part of an array's delta"),
        ("{sa: {a: true, l: -1}}", "'l' is not a length"),
        ("{sa: {a: true, l: 1, u1: 1}}", "index 1 is not below the length"),
        ("{sa: {a: true, u1: 1, s1: {}}}", "indexes do not rise"),
        ("{sa: {a: true, u2: 1, u1: 1}}", "indexes do not rise"),
        ("{sa: {a: true, u01: 1}}", "'u01' is not part"),
        ("{sa: {a: true, 'u+1': 1}}", "'u+1' is not part"),
        ("{sa: {a: true, u: 1}}", "'u' is not part"),
        ("{sa: {a: true, x0: 1}}", "'x0' is not part"),
    ] {
        assert!(applied("{_id: 1, a: []}", diff).contains(part), "{diff}: {}", applied("{_id: 1, a: []}", diff));
    }
}

#[test]
fn no_array_is_filled_beyond_a_documents_size() {
    for diff in ["{sa: {a: true, u4294967295: 1}}", "{sa: {a: true, l: 2147483647}}"] {
        assert!(applied("{_id: 1, a: []}", diff).starts_with("Location17419"), "{diff}");
    }
}

/// The delta that turns one document into another, made in the simplest way.
fn diff(before: DocumentRef<'_>, after: DocumentRef<'_>) -> DocumentBuf {
    let (mut removed, mut set, mut inserted) = (DocumentBuf::new(), DocumentBuf::new(), DocumentBuf::new());
    let mut inside = DocumentBuf::new();
    before.iter().filter(|field| after.get(field.name).is_none()).for_each(|field| {
        removed.append(field.name, false);
    });
    for field in after {
        match before.get(field.name) {
            None => {
                inserted.append(field.name, field.value);
            }
            Some(old) if order::equal(old, field.value) => {}
            Some(old) => match value_diff(old, field.value) {
                Some(diff) => {
                    inside.append(&format!("s{}", field.name), &diff);
                }
                None => {
                    set.append(field.name, field.value);
                }
            },
        }
    }
    let mut diff = DocumentBuf::new();
    for (name, section) in [("d", &removed), ("u", &set), ("i", &inserted)] {
        if !section.as_ref().is_empty() {
            diff.append(name, section);
        }
    }
    diff.extend(inside.as_ref());
    diff
}

fn value_diff(before: ValueRef<'_>, after: ValueRef<'_>) -> Option<DocumentBuf> {
    match (before, after) {
        (ValueRef::Document(before), ValueRef::Document(after)) => Some(diff(before, after)),
        (ValueRef::Array(before), ValueRef::Array(after)) => Some(array_diff(before, after)),
        _ => None,
    }
}

fn array_diff(before: ArrayRef<'_>, after: ArrayRef<'_>) -> DocumentBuf {
    let mut diff = DocumentBuf::new().with("a", true);
    if after.count() < before.count() {
        diff.append("l", after.count() as i32);
    }
    for (index, value) in after.iter().enumerate() {
        let old = before.get(index);
        if old.is_some_and(|old| order::equal(old, value)) {
            continue;
        }
        match old.and_then(|old| value_diff(old, value)) {
            Some(inside) => diff.append(&format!("s{index}"), &inside),
            None => diff.append(&format!("u{index}"), value),
        };
    }
    diff
}

/// Values with fields ordered by name, because a delta may produce another order.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), (0..3_i32).prop_map(Value::Int32), Just(Value::String("x".to_owned()))];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let fields = proptest::collection::btree_map("[abs]{0,2}", inner.clone(), 0..4);
        let elements = vec(inner, 0..4);
        prop_oneof![
            fields.prop_map(|fields| Value::Document(document(&fields))),
            elements.prop_map(|values| Value::Array(values.iter().collect::<ArrayBuf>())),
        ]
    })
}

fn document(fields: &BTreeMap<String, Value>) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    for (name, value) in fields {
        document.append(name, value);
    }
    document
}

/// The document with fields ordered by name, at all levels.
fn in_order(fields: DocumentRef<'_>) -> DocumentBuf {
    document(&fields.iter().map(|field| (field.name.to_owned(), value_in_order(field.value))).collect())
}

fn value_in_order(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Document(fields) => Value::Document(in_order(fields)),
        ValueRef::Array(values) => {
            Value::Array(values.iter().map(value_in_order).collect::<Vec<_>>().iter().collect::<ArrayBuf>())
        }
        other => other.to_value(),
    }
}

fn fields() -> impl Strategy<Value = DocumentBuf> {
    proptest::collection::btree_map("[abs]{0,2}", value(), 0..5).prop_map(|fields| document(&fields))
}

proptest! {
    #[test]
    fn a_delta_makes_the_later_document_and_once_more_changes_nothing(before in fields(), after in fields()) {
        let delta = diff(before.as_ref(), after.as_ref());
        let delta = Delta::parse(delta.as_ref()).expect("well formed");
        let once = delta.apply(before.as_ref()).expect("small");
        prop_assert_eq!(in_order(once.as_ref()), in_order(after.as_ref()));
        let twice = delta.apply(once.as_ref()).expect("small");
        prop_assert_eq!(twice, once);
    }
}
