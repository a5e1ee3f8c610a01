//! Tests that each operator and accumulator uses the collation as its entry in the table says. No entry may compare
//! strings without the order that the command asks for.

use crate::accumulators::{self, AccumulatorExpression};
use crate::call::Strings;
use crate::{EvaluationContext, Expression, ParseScope, Variables, operators};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value};
use bunko_operation::OperationContext;
use bunko_testkit::collators::WithoutCase;
use bunko_testkit::shell;
use std::sync::Arc;

/// Arguments of which at least one tells a collation from the order of bytes, for every operator that compares.
const ARGUMENTS: &[&str] = &[
    "['a', 'A']",
    "['b', 'C']",
    "['C', 'b']",
    "['10', '9']",
    "'b'",
    "['A', ['a']]",
    "[['b', 'a'], 'A']",
    "[['b', 'C']]",
    "[['a', 'B'], ['A', 'b']]",
    "[['a', 'B'], ['A', 'b', 'C'], ['a']]",
    "['aB', 'b']",
    "['aB', 'b', 'x']",
    "{n: 1, input: ['C', 'b']}",
    "{n: 1, input: ['10', '9']}",
    "{input: ['C', 'b', 'B'], sortBy: 1}",
    "{input: [{s: 'C'}, {s: 'b'}], sortBy: {s: 1}}",
    "{input: 'aB', find: 'b', replacement: 'x'}",
    "{input: 'aB', regex: 'b'}",
    "{input: 'aB', chars: 'b'}",
    "{input: ['a', 'B'], as: 'x', cond: '$$x'}",
    "{input: ['a', 'B'], in: '$$this'}",
    "{field: 'B', input: {b: 1, B: 2}}",
    "{field: 'B', input: {b: 1, B: 2}, value: 3}",
    "{if: 'a', then: 'b', else: 'B'}",
    "{inputs: [['a'], ['A']]}",
    "[{k: 'a', v: 1}, {k: 'A', v: 2}]",
    "[[['a', 1], ['A', 2]]]",
    "[{a: 1}, {A: 2}]",
    "{input: [1, 2], p: [0.5], method: 'approximate'}",
];

const GROUPED: &[&str] = &[
    "'$v'",
    "'$list'",
    "{n: 1, input: '$v'}",
    "{sortBy: {v: 1}, output: '$v'}",
    "{sortBy: {v: 1}, output: '$v', n: 1}",
    "{input: '$number', method: 'approximate'}",
    "{input: '$number', method: 'approximate', p: [0.5]}",
    "{}",
];

fn document(text: &str) -> DocumentBuf {
    shell::parse_document(text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
}

/// The operator's result for each of [`ARGUMENTS`] that it accepts; `None` for a missing value.
fn answers(operator: &str, strings: &StringOrder) -> Vec<(&'static str, Option<Value>)> {
    let (variables, operation) = (Variables::default(), OperationContext::unlimited());
    let mut answers = Vec::new();
    for arguments in ARGUMENTS {
        let written = document(&format!("{{x: {{'{operator}': {arguments}}}}}"));
        let value = written.as_ref().get("x").expect("a field");
        // Constants are evaluated while they are parsed.
        let scope = ParseScope::new(&variables).folding(strings, &Arc::default());
        let Ok(expression) = Expression::parse(value, &scope) else { continue };
        let context = EvaluationContext::new(DocumentRef::EMPTY, &variables, 0, &operation).with_strings(strings);
        if let Ok(answer) = expression.evaluate(&context) {
            answers.push((*arguments, answer.into_value()));
        }
    }
    answers
}

/// The accumulator's result for each small group, with each argument of `GROUPED` that it accepts.
fn group_values(accumulator: &str, strings: &StringOrder) -> Vec<(&'static str, Option<Value>)> {
    let (variables, operation) = (Variables::default(), OperationContext::unlimited());
    let groups = [["C", "b"], ["b", "C"], ["a", "A"], ["10", "9"]];
    let mut values = Vec::new();
    for arguments in GROUPED {
        let written = document(&format!("{{x: {{'{accumulator}': {arguments}}}}}"));
        let field = written.as_ref().first().expect("a field");
        let Ok(expression) = AccumulatorExpression::parse(field, &ParseScope::new(&variables)) else { continue };
        for group in groups {
            let none = EvaluationContext::new(DocumentRef::EMPTY, &variables, 0, &operation).with_strings(strings);
            let Ok(mut kept) = expression.make(&none) else { continue };
            let documents: Vec<_> =
                group.iter().map(|v| document(&format!("{{v: '{v}', list: ['{v}'], number: 1}}"))).collect();
            let is_fed = documents.iter().all(|document| {
                let context =
                    EvaluationContext::new(document.as_ref(), &variables, 0, &operation).with_strings(strings);
                expression.feed(&mut *kept, &context).is_ok()
            });
            if is_fed {
                values.push((*arguments, kept.outcome().ok()));
            }
        }
    }
    values
}

fn check(name: &str, says: Strings, found: impl Fn(&str, &StringOrder) -> Vec<(&'static str, Option<Value>)>) {
    let by_bytes = found(name, StringOrder::BYTES);
    let collated = found(name, &StringOrder::collated(Arc::new(WithoutCase)));
    let text = |value: &Option<Value>| format!("{value:?}");
    let differing = by_bytes.iter().zip(&collated).find(|(one, other)| text(&one.1) != text(&other.1));
    match says {
        Strings::Collated => assert!(differing.is_some(), "{name} forgets the collation"),
        Strings::AsBytes => assert!(differing.is_none(), "{name} uses the collation: {differing:?}"),
    }
}

#[test]
fn operators_compare_strings_as_their_entries_say() {
    for (name, says) in operators::uses_of_collation().filter(|(name, _)| *name != "$rand") {
        check(name, says, answers);
    }
}

#[test]
fn accumulators_compare_strings_as_their_entries_say() {
    for (name, says) in accumulators::uses_of_collation() {
        check(name, says, group_values);
    }
}

#[test]
fn lists_in_conditions_on_a_field_are_compared_by_bytes() {
    let (variables, operation) = (Variables::default(), OperationContext::unlimited());
    let collated = StringOrder::collated(Arc::new(WithoutCase));
    let held = document("{a: 'x', list: ['x']}");
    for (condition, in_filter, elsewhere) in [
        ("{$in: ['$a', ['X']]}", false, true),
        ("{$in: ['$a', ['x']]}", true, true),
        ("{$in: ['$a', ['X', null]]}", true, true),
        ("{$in: ['X', '$list']}", true, true),
        ("{$and: [{$in: ['$a', ['X']]}, true]}", false, true),
        ("{$or: [{$in: ['$a', ['X']]}, {$eq: ['$a', 'y']}]}", false, true),
        ("{$or: [{$in: ['$a', ['X']]}, {$ne: ['$a', 'x']}]}", true, true),
        ("{$not: [{$not: [{$in: ['$a', ['X']]}]}]}", true, true),
        ("{$eq: ['$a', 'X']}", true, true),
    ] {
        let written = document(&format!("{{x: {condition}}}"));
        let value = written.as_ref().get("x").expect("a field");
        let parse = || Expression::parse(value, &ParseScope::new(&variables)).expect("an expression");
        let context = EvaluationContext::new(held.as_ref(), &variables, 0, &operation).with_strings(&collated);
        let is_true = |expression: Expression| expression.evaluate(&context).expect("a value").is_true();
        assert_eq!(is_true(parse()), elsewhere, "{condition}");
        assert_eq!(is_true(parse().in_filter()), in_filter, "{condition} in a filter");
    }
}
