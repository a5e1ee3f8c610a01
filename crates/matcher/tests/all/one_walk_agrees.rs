//! The decision of a filter in one walk over a document equals that of its tree.
//!
//! A filter uses the walk after many tests; a fresh copy of it still uses the tree.

use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_matcher::{ExprCompiler, ExprPredicate, Filter};
use bunko_testkit::collators::WithoutCase;
use bunko_testkit::random::Random;
use bunko_testkit::shell;
use std::sync::Arc;

/// One value of each type, and numbers at the borders of types, widths and signs.
const VALUES: &[&str] = &[
    "null",
    "undefined",
    "MinKey()",
    "MaxKey()",
    "true",
    "false",
    "0",
    "-0.0",
    "1",
    "1.5",
    "-1",
    "NumberInt(7)",
    "NumberLong(7)",
    "7.0",
    "NumberDecimal('7')",
    "NumberDecimal('NaN')",
    "NumberDecimal('Infinity')",
    "NaN",
    "Infinity",
    "-Infinity",
    "NumberLong('9007199254740992')",
    "NumberLong('9007199254740993')",
    "9007199254740992.0",
    "9007199254740994.0",
    "NumberLong('9223372036854775807')",
    "9223372036854775808.0",
    "NumberLong('-9223372036854775808')",
    "''",
    "'a'",
    "'A'",
    "'ab'",
    "{}",
    "{b: 7}",
    "{b: 'a'}",
    "{b: [7, 'a']}",
    "{b: {c: 7}}",
    "[]",
    "[7]",
    "[1, 'a', null]",
    "[[7]]",
    "[{b: 7}, {b: [1.5]}]",
    "[{c: 1}]",
    "ISODate('2020-01-01')",
    "ObjectId('0102030405060708090a0b0c')",
    "/a/",
];

const CONDITIONS: &[&str] =
    &["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$exists", "$type", "$mod", "$in", "$nin", "$regex", "$not", "$bits"];

/// A string order: without regard to case, or by bytes.
struct Order(StringOrder);

impl ExprCompiler for Order {
    fn compile(&self, _: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        Err(Failure::bad_value("no expressions"))
    }

    fn strings(&self) -> &StringOrder {
        &self.0
    }

    fn operation(&self) -> Option<&bunko_operation::OperationContext> {
        None
    }
}

fn orders() -> [Order; 2] {
    [Order(StringOrder::BYTES.clone()), Order(StringOrder::collated(Arc::new(WithoutCase)))]
}

/// The condition `name` with an operand, as text; some operators do not accept every value.
fn condition(name: &str, operand: &str) -> String {
    match name {
        "$exists" => format!("{{$exists: {}}}", operand.len().is_multiple_of(2)),
        "$type" => format!("{{$type: [{}, 'null']}}", operand.len() % 19 + 1),
        "$mod" => format!("{{$mod: [{}, 1]}}", operand.len() % 5 + 1),
        "$in" | "$nin" => format!("{{{name}: [{operand}, 7, 'a']}}"),
        "$regex" => "{$regex: '^a', $options: 'i'}".to_owned(),
        "$not" => format!("{{$not: {{$gte: {operand}}}}}"),
        "$bits" => format!("{{$bitsAnySet: {}}}", operand.len()),
        _ => format!("{{{name}: {operand}}}"),
    }
}

/// The parsed filter, if it is valid.
fn filter(text: &str, order: &Order) -> Option<Filter> {
    let source = shell::parse_document(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    Filter::parse_with(source.as_ref(), order).ok()
}

/// Tests documents until the filter uses its walk.
fn asked_often(filter: &Filter) {
    for _ in 0..100 {
        filter.try_matches(DocumentRef::EMPTY).expect("nothing fails");
    }
}

fn documents() -> Vec<DocumentBuf> {
    let mut documents = vec!["{}".to_owned(), "{x: 1}".to_owned(), "{a: 7, a: 'a'}".to_owned()];
    for value in VALUES {
        documents.push(format!("{{_id: 1, a: {value}, b: 3}}"));
        documents.push(format!("{{b: {value}}}"));
        documents.push(format!("{{a: {{b: {value}}}, x: 'text'}}"));
    }
    documents.iter().map(|text| shell::parse_document(text).expect("a document")).collect()
}

fn assert_agrees(text: &str, order: &Order, documents: &[DocumentBuf]) {
    let Some(walking) = filter(text, order) else { return };
    asked_often(&walking);
    for document in documents {
        let (document, by_tree) = (document.as_ref(), walking.clone());
        let expected = by_tree.matches_with_position(document).expect("nothing fails");
        let found = walking.matches_with_position(document).expect("nothing fails");
        assert_eq!(found, expected, "{text} on {document:?}");
    }
}

#[test]
fn each_condition_with_each_value() {
    let documents = documents();
    for order in orders() {
        for operand in VALUES {
            for name in CONDITIONS {
                let condition = condition(name, operand);
                for path in ["a", "a.b", "a.0"] {
                    assert_agrees(&format!("{{'{path}': {condition}}}"), &order, &documents);
                }
            }
        }
    }
}

#[test]
fn conditions_together() {
    let documents = documents();
    let paths = ["a", "a.b", "b", "a.b.c", "x"];
    for order in orders() {
        let mut random = Random(12_345);
        let mut next = |count: usize| random.below(count as u64) as usize;
        for _ in 0..400 {
            let conditions: Vec<String> = (0..2 + next(4))
                .map(|_| {
                    let condition = condition(CONDITIONS[next(CONDITIONS.len())], VALUES[next(VALUES.len())]);
                    format!("{{'{}': {condition}}}", paths[next(paths.len())])
                })
                .collect();
            assert_agrees(&format!("{{$and: [{}]}}", conditions.join(", ")), &order, &documents);
        }
    }
}
