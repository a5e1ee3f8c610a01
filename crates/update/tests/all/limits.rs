//! Limits that are too large to write into a script.

use bunko_bson::{DocumentBuf, DocumentRef, MAX_DEPTH_STORED, MAX_USER_DOCUMENT_BYTES, Timestamp, ValueRef};
use bunko_errors::{ErrorCode, Result};
use bunko_operation::OperationContext;
use bunko_update::{ApplyContext, Insertion, Outcome, ParseContext, Update};

fn apply(update: &Update, document: DocumentRef<'_>, insert: Insertion) -> Result<Outcome> {
    let context = ApplyContext {
        matched_position: None,
        now_ms: 0,
        timestamp: Timestamp { seconds: 1, increment: 1 },
        insert,
        operation: &OperationContext::unlimited(),
    };
    update.apply(document, &context)
}

fn set(path: &str, value: ValueRef<'_>, document: DocumentRef<'_>) -> Result<Outcome> {
    let update = DocumentBuf::new().with("$set", &DocumentBuf::new().with(path, value));
    apply(&Update::parse((&update).into(), &ParseContext::plain())?, document, Insertion::No)
}

#[test]
fn a_result_may_be_as_large_as_a_user_document_and_no_larger() {
    let document = DocumentBuf::new().with("_id", 1_i32);
    // Type, name and zero, the string's length and its zero.
    let room = MAX_USER_DOCUMENT_BYTES - document.as_ref().len_bytes() - (1 + 2 + 4 + 1);
    let text = "x".repeat(room + 1);
    let largest = set("a", ValueRef::String(&text[..room]), document.as_ref()).expect("just fits");
    assert!(matches!(largest, Outcome::Changed(result) if result.as_ref().len_bytes() == MAX_USER_DOCUMENT_BYTES));
    let failure = set("a", ValueRef::String(&text), document.as_ref()).expect_err("one byte too large");
    assert_eq!(failure.code(), ErrorCode(17419));
    assert_eq!(failure.message(), "Resulting document after update is larger than 16777216");
    let update = DocumentBuf::new().with("$set", &DocumentBuf::new().with("a", ValueRef::String(&text)));
    let update = Update::parse((&update).into(), &ParseContext::plain()).expect("sound");
    let failure = apply(&update, document.as_ref(), Insertion::Upsert).expect_err("one byte too large");
    assert_eq!(failure.code(), ErrorCode(17420));
    assert_eq!(failure.message(), "Document to upsert is larger than 16777216");
}

#[test]
fn a_result_may_nest_as_deep_as_a_stored_document_and_no_deeper() {
    let path = |parts: usize| vec!["a"; parts].join(".");
    let document = DocumentBuf::new().with("_id", 1_i32);
    let deepest = set(&path(MAX_DEPTH_STORED), ValueRef::Int32(1), document.as_ref()).expect("just fits");
    let Outcome::Changed(deepest) = deepest else { panic!("a new field is a change") };
    for (parts, value) in [(MAX_DEPTH_STORED + 1, ValueRef::Null), (MAX_DEPTH_STORED, DocumentRef::EMPTY.into())] {
        let failure = set(&path(parts), value, document.as_ref()).expect_err("one level too deep");
        assert_eq!(failure.code(), ErrorCode::OVERFLOW);
    }
    let replacement = DocumentBuf::new().with("b", &deepest);
    let failure = Update::parse((&replacement).into(), &ParseContext::plain()).expect_err("one level too deep");
    assert_eq!(failure.code(), ErrorCode::OVERFLOW);
}
