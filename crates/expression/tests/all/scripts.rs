//! Runs the scripts: every operator, accumulator, projection and sort pattern on documents in shell syntax.

use bunko_bson::{DocumentBuf, DocumentRef, Element, StringOrder, Value, ValueRef};
use bunko_errors::Failure;
use bunko_expression::projection::{ElementPredicate, ProjectionKind};
use bunko_expression::{
    AccumulatorExpression, EvaluationContext, Expression, ParseScope, Projection, SortPattern, Variables,
};
use bunko_javascript::Scripts;
use bunko_operation::OperationContext;
use bunko_testkit::{script, shell};
use std::sync::Arc;

/// 2021-01-01, so that `$$NOW` prints the same every time.
const NOW_MS: i64 = 1_609_459_200_000;

fn document(line: &str) -> DocumentBuf {
    shell::parse_document(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn value(line: &str) -> Value {
    shell::parse_value(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn failure(failure: &Failure) -> String {
    format!("error {} {}", failure.code().0, failure.message())
}

/// Evaluates an expression: `input` has a document on the first line, the expression on the second.
fn eval(input: &str) -> Result<String, Failure> {
    let (first, second) = input.split_once('\n').expect("a document and an expression");
    let (document, source, variables) = (document(first), value(second), Variables::new());
    let operation = OperationContext::unlimited();
    let scope = ParseScope::new(&variables).with_scripts(&Scripts::new(&operation));
    let expression = Expression::parse(source.as_ref(), &scope)?;
    let context = EvaluationContext::new(document.as_ref(), &variables, NOW_MS, &operation);
    Ok(expression.evaluate(&context)?.get().map_or("missing".to_owned(), shell::print))
}

/// Runs an accumulator: `input` has it on the first line, the group's documents on the others.
fn accumulate(input: &str) -> Result<String, Failure> {
    let mut lines = input.lines();
    let (source, variables) = (value(lines.next().expect("an accumulator")), Variables::new());
    let field = Element { name: "field", value: source.as_ref() };
    let operation = OperationContext::unlimited();
    let scope = ParseScope::new(&variables).with_scripts(&Scripts::new(&operation));
    let expression = AccumulatorExpression::parse(field, &scope)?;
    // The group's `_id` is null.
    let mut accumulator = expression.make(&EvaluationContext::new(
        DocumentRef::EMPTY,
        &variables,
        NOW_MS,
        &OperationContext::unlimited(),
    ))?;
    for line in lines {
        let document = document(line);
        let context = EvaluationContext::new(document.as_ref(), &variables, NOW_MS, &operation);
        expression.feed(&mut *accumulator, &context)?;
    }
    Ok(shell::print(accumulator.outcome()?.as_ref()))
}

/// Matches elements that hold all fields of the condition: enough for the scripts.
struct Holds(DocumentBuf);

impl ElementPredicate for Holds {
    fn matches(&self, element: ValueRef<'_>) -> bool {
        let field = |wanted: Element<'_>| {
            let found = element.as_document().and_then(|document| document.get(wanted.name));
            found.is_some_and(|found| bunko_bson::order::equal(found, wanted.value))
        };
        self.0.as_ref().iter().all(field)
    }
}

/// Applies a projection: `input` has a document on the first line, the projection on the second.
fn project(directive: &str, input: &str) -> Result<String, Failure> {
    let (first, second) = input.split_once('\n').expect("a document and a projection");
    let (source, document, variables) = (document(second), document(first), Variables::new());
    let scope = ParseScope::new(&variables);
    let projection = match directive {
        "project" => Projection::parse(source.as_ref(), ProjectionKind::Aggregate, &scope)?,
        "find" => Projection::parse(
            source.as_ref(),
            ProjectionKind::Find(&|condition| Ok(Arc::new(Holds(condition.to_owned())))),
            &scope,
        )?,
        _ => Projection::parse_addition(source.as_ref(), &scope)?,
    };
    let mut bytes = Vec::new();
    projection.apply(
        &EvaluationContext::new(document.as_ref(), &variables, NOW_MS, &OperationContext::unlimited()),
        Some(1),
        &mut bytes,
    )?;
    let projected = DocumentRef::parse(&bytes).expect("a projection is a document");
    Ok(shell::print(ValueRef::Document(projected)))
}

/// Sorts documents: `input` has the sort pattern on the first line, the documents on the others.
fn sort(input: &str) -> Result<String, Failure> {
    let mut lines = input.lines();
    let pattern = SortPattern::parse(document(lines.next().expect("a pattern")).as_ref())?;
    let mut keyed = Vec::new();
    for line in lines {
        let document = document(line);
        let mut key = Vec::new();
        pattern.append_key(&mut key, document.as_ref(), &OperationContext::unlimited(), StringOrder::BYTES)?;
        keyed.push((key, document));
    }
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let printed: Vec<_> = keyed.iter().map(|(_, document)| shell::print(ValueRef::from(document))).collect();
    Ok(printed.join("\n"))
}

#[test]
fn scripts() {
    script::run("tests/scripts", |case| {
        let input = case.input.trim_end();
        let result = match case.directive.as_str() {
            "eval" => eval(input),
            "accumulate" => accumulate(input),
            "sort" => sort(input),
            other => project(other, input),
        };
        result.unwrap_or_else(|error| failure(&error)) + "\n"
    });
}
