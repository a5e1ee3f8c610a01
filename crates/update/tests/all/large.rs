//! Updates and documents with many parts take nearly linear time, and stop when the operation is interrupted.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Timestamp, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::{Interruption, MemoryLimits, OperationContext};
use bunko_testkit::cpu_time::CpuTime;
use bunko_update::{ApplyContext, Insertion, Outcome, ParseContext, Update};
use std::sync::Arc;
use std::time::Duration;

/// More time than a debug build takes for nearly linear work, and less than for quadratic work.
const TIME_MAX: Duration = Duration::from_secs(20);
const MANY: i32 = 100_000;

struct Killed;

impl Interruption for Killed {
    fn reason(&self) -> Option<Failure> {
        Some(Failure::new(ErrorCode::INTERRUPTED, "operation was interrupted"))
    }
}

fn apply(update: &Update, document: DocumentRef<'_>, operation: &OperationContext) -> Result<Outcome> {
    let timestamp = Timestamp { seconds: 1, increment: 1 };
    let context = ApplyContext { matched_position: Some(0), now_ms: 0, timestamp, insert: Insertion::No, operation };
    update.apply(document, &context)
}

fn one(name: &str, value: impl Into<Value>) -> DocumentBuf {
    DocumentBuf::new().with(name, value.into().as_ref())
}

fn numbers(range: std::ops::Range<i32>) -> ArrayBuf {
    range.map(ValueRef::Int32).collect()
}

/// Many fields, not in sorted order.
fn many_fields(prefix: &str, value: impl Fn(i32) -> Value) -> DocumentBuf {
    let mut fields = DocumentBuf::new();
    for number in 0..MANY {
        let name = format!("{prefix}{}", i64::from(number) * 7_919 % i64::from(MANY));
        fields.append(&name, value(number).as_ref());
    }
    fields
}

/// An update with its array filters, and a document for it.
type Case = (&'static str, DocumentBuf, Vec<DocumentBuf>, DocumentBuf);

fn cases() -> Vec<Case> {
    let wide = many_fields("f", Value::Int32);
    let array = || DocumentBuf::new().with("_id", 1_i32).with("a", &numbers(0..MANY));
    let each = |range| one("$each", Value::Array(numbers(range)));
    let both = |operator: &str, argument: Value| one(operator, Value::Document(one("a", argument)));
    let in_list = one("$in", Value::Array(numbers(0..MANY)));
    let sorted = each(0..MANY).with("$sort", -1_i32).with("$slice", 50_000_i32).with("$position", 7_i32);
    let filter = one("x", Value::Document(in_list.clone()));
    let filtered = one("$set", Value::Document(one("a.$[x]", Value::Int32(1))));
    let positional = DocumentBuf::new()
        .with("$set", many_fields("b.f", Value::Int32).with("b.$.x", 1_i32).as_ref())
        .with("$inc", &one("n", Value::Int32(1)));
    vec![
        ("$addToSet", both("$addToSet", Value::Document(each(MANY / 2..MANY + MANY / 2))), vec![], array()),
        ("$pullAll", both("$pullAll", Value::Array(numbers(1..MANY))), vec![], array()),
        ("$pull", both("$pull", Value::Document(in_list)), vec![], array()),
        ("$push", both("$push", Value::Document(sorted)), vec![], array()),
        ("$[x]", filtered, vec![filter], array()),
        ("$set", one("$set", Value::Document(many_fields("f", |_| Value::Int32(-1)))), vec![], wide.clone()),
        ("$unset", one("$unset", Value::Document(wide.clone())), vec![], wide.clone()),
        (
            "$rename",
            one("$rename", Value::Document(many_fields("f", |n| Value::String(format!("g{n}"))))),
            vec![],
            wide,
        ),
        ("$", positional, vec![], DocumentBuf::new().with("b", &numbers(0..2))),
    ]
}

#[test]
fn many_parts_take_little_longer_than_few_and_are_stopped_at_once() {
    let killed = OperationContext::new(Arc::new(Killed), MemoryLimits::none());
    for (name, update, filters, document) in cases() {
        let began = CpuTime::now();
        let filters: Vec<DocumentRef<'_>> = filters.iter().map(DocumentBuf::as_ref).collect();
        let update =
            Update::parse((&update).into(), &ParseContext { array_filters: &filters, ..ParseContext::plain() })
                .expect("sound");
        let outcome = apply(&update, document.as_ref(), &OperationContext::unlimited());
        // An array has no named fields, so the first of the many fails.
        if name == "$" {
            assert_eq!(outcome.expect_err("an array").code(), ErrorCode::PATH_NOT_VIABLE);
        } else {
            assert!(matches!(outcome, Ok(Outcome::Changed(_))), "{name}");
        }
        let took = began.elapsed();
        assert!(took < TIME_MAX, "{name} took {took:?}");
        let failure = apply(&update, document.as_ref(), &killed).expect_err("killed");
        assert_eq!(failure.code(), ErrorCode::INTERRUPTED, "{name}");
    }
}

#[test]
fn an_upsert_of_many_equalities_starts_from_all_of_them() {
    let began = CpuTime::now();
    let update =
        Update::parse((&one("$set", Value::Document(one("x", Value::Int32(1))))).into(), &ParseContext::plain());
    let filter = many_fields("f", Value::Int32);
    let base = update.expect("sound").upsert_base(filter.as_ref(), &OperationContext::unlimited()).expect("a base");
    assert_eq!(base.as_ref().count(), MANY as usize);
    assert!(began.elapsed() < TIME_MAX, "{:?}", began.elapsed());
}

#[test]
fn few_paths_cannot_ask_for_more_nulls_than_a_document_holds() {
    let mut fields = DocumentBuf::new();
    let mut document = DocumentBuf::new().with("_id", 1_i32);
    for number in 0..1_000 {
        fields.append(&format!("a{number}.1499999"), 1_i32);
        document.append(&format!("a{number}"), &ArrayBuf::new());
    }
    let update = one("$set", Value::Document(fields));
    let update = Update::parse((&update).into(), &ParseContext::plain()).expect("sound");
    let began = CpuTime::now();
    let failure = apply(&update, document.as_ref(), &OperationContext::unlimited()).expect_err("15 GB");
    assert_eq!(failure.code(), ErrorCode(17419));
    assert!(began.elapsed() < TIME_MAX);
}

#[test]
fn no_operator_takes_a_path_of_thousands_of_parts() {
    let path = vec!["a"; 7_000].join(".");
    let number = || Value::Int32(1);
    let operators = [
        ("$set", number()),
        ("$unset", number()),
        ("$inc", number()),
        ("$mul", number()),
        ("$min", number()),
        ("$max", number()),
        ("$setOnInsert", number()),
        ("$push", number()),
        ("$addToSet", number()),
        ("$pop", number()),
        ("$pull", number()),
        ("$pullAll", Value::Array(numbers(0..1))),
        ("$bit", Value::Document(one("and", number()))),
        ("$currentDate", Value::Boolean(true)),
        ("$rename", Value::String("b".to_owned())),
    ];
    let refused = |operator: &str, path: &str, argument: Value| {
        let update = one(operator, Value::Document(one(path, argument)));
        let failure = Update::parse((&update).into(), &ParseContext::plain()).expect_err("too long a path");
        assert_eq!((failure.code(), failure.message()), (ErrorCode(5_729_100), "FieldPath is too long"), "{operator}");
    };
    for (operator, argument) in operators {
        refused(operator, &path, argument);
    }
    refused("$rename", "b", Value::String(path.clone()));
    for part in ["$", "$[]"] {
        refused("$set", &format!("a.{part}.{path}"), number());
    }
}
