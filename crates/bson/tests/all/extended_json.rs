//! Extended JSON keeps every byte of arbitrary documents, and of documents that MongoDB's own tools wrote.

use bunko_bson::{
    ArrayBuf, BinarySubtype, Decimal128, DocumentBuf, DocumentRef, ObjectId, Timestamp, Value, ValueRef, extended_json,
};
use proptest::prelude::*;
use std::path::Path;

fn assert_round_trip(document: DocumentRef<'_>) {
    let text = extended_json::to_canonical(document.into());
    let again = extended_json::parse_document(&text).expect(&text);
    assert_eq!(again.as_ref().as_bytes(), document.as_bytes(), "{text}");
    let relaxed = extended_json::to_relaxed(document.into());
    extended_json::parse_document(&relaxed).expect(&relaxed);
}

/// Names that are no wrapper's. By design of the format, wrappers' names do not round-trip.
fn name() -> impl Strategy<Value = String> + Clone {
    any::<String>().prop_map(|text| text.replace('\0', "").trim_start_matches('$').to_owned())
}

fn without_zero() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| text.replace('\0', ""))
}

fn double() -> impl Strategy<Value = f64> {
    // The payload of a NaN has no text.
    any::<u64>().prop_map(f64::from_bits).prop_map(|number| if number.is_nan() { f64::NAN } else { number })
}

fn decimal() -> impl Strategy<Value = Decimal128> {
    ("-?[1-9][0-9]{0,33}", -6000..=6000_i32)
        .prop_map(|(digits, exponent)| Decimal128::parse(&format!("{digits}E{exponent}")).expect("34 digits fit"))
}

fn binary() -> impl Strategy<Value = Value> {
    (any::<u8>(), any::<Vec<u8>>()).prop_map(|(subtype, content)| {
        let mut bytes = Vec::new();
        if subtype == BinarySubtype::OLD {
            bytes.extend((content.len() as u32).to_le_bytes());
        }
        bytes.extend(content);
        Value::Binary { subtype, bytes }
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    let object_id = || any::<[u8; 12]>().prop_map(ObjectId);
    prop_oneof![
        double().prop_map(Value::Double),
        any::<String>().prop_map(Value::String),
        binary(),
        Just(Value::Undefined),
        object_id().prop_map(Value::ObjectId),
        any::<bool>().prop_map(Value::Boolean),
        any::<i64>().prop_map(Value::DateTime),
        (0..253_402_300_800_000_i64).prop_map(Value::DateTime),
        Just(Value::Null),
        (without_zero(), without_zero()).prop_map(|(pattern, options)| Value::Regex { pattern, options }),
        (any::<String>(), object_id()).prop_map(|(namespace, id)| Value::DbPointer { namespace, id }),
        any::<String>().prop_map(Value::JavaScript),
        any::<String>().prop_map(Value::Symbol),
        any::<i32>().prop_map(Value::Int32),
        any::<(u32, u32)>().prop_map(|(seconds, increment)| Value::Timestamp(Timestamp { seconds, increment })),
        any::<i64>().prop_map(Value::Int64),
        decimal().prop_map(Value::Decimal128),
        Just(Value::MinKey),
        Just(Value::MaxKey),
    ]
}

fn document_of(fields: Vec<(String, Value)>) -> DocumentBuf {
    let mut document = DocumentBuf::new();
    for (name, value) in fields {
        document.append(&name, &value);
    }
    document
}

fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 32, 6, |inner| {
        let document = prop::collection::vec((name(), inner.clone()), 0..6).prop_map(document_of);
        prop_oneof![
            document.clone().prop_map(Value::Document),
            prop::collection::vec(inner, 0..6)
                .prop_map(|values| Value::Array(values.iter().map(Value::as_ref).collect::<ArrayBuf>())),
            (any::<String>(), document).prop_map(|(code, scope)| Value::JavaScriptWithScope { code, scope }),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_documents_keep_their_bytes(fields in prop::collection::vec((name(), value()), 0..8)) {
        assert_round_trip(document_of(fields).as_ref());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[\\[\\]{}:,\"$a-e0-9\\\\.\\- ]{0,40}") {
        let _ = extended_json::parse_value(&text);
    }
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a dumped collection, which are stored one after the other.
fn dumped(bytes: &[u8]) -> Vec<DocumentRef<'_>> {
    let mut documents = Vec::new();
    let mut rest = bytes;
    while let Some(prefix) = rest.first_chunk::<4>() {
        let (document, behind) = rest.split_at(u32::from_le_bytes(*prefix) as usize);
        documents.push(DocumentRef::parse(document).expect("MongoDB writes valid BSON"));
        rest = behind;
    }
    assert!(rest.is_empty(), "half a document at the end");
    documents
}

#[test]
fn real_replies_keep_their_bytes() {
    let text = String::from_utf8(fixture("replies-4.0.ndjson")).expect("UTF-8");
    for line in text.lines() {
        let document = extended_json::parse_document(line).expect(line);
        assert!(document.as_ref().get("reply").is_some(), "{line}");
        assert_round_trip(document.as_ref());
    }
    assert_eq!(text.lines().count(), 83);
}

#[test]
fn dumped_documents_keep_their_bytes() {
    for (name, count) in [("types.bson", 29), ("numbers.bson", 200)] {
        let bytes = fixture(name);
        let documents = dumped(&bytes);
        assert_eq!(documents.len(), count, "{name}");
        for document in documents {
            let mut copy = DocumentBuf::new();
            for element in document {
                copy.append(element.name, element.value.to_value().as_ref());
            }
            assert_eq!(copy.as_ref(), document);
            assert_round_trip(document);
        }
    }
}

#[test]
fn dumped_metadata_is_printed_as_mongodump_did() {
    for name in ["numbers.metadata.json", "validated.metadata.json", "view_k.metadata.json"] {
        let text = String::from_utf8(fixture(name)).expect("UTF-8");
        let document = extended_json::parse_document(&text).expect(name);
        assert_eq!(extended_json::to_canonical(ValueRef::from(&document)), text);
    }
}
