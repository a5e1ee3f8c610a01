//! Explains, operator by operator, why a document does not match: the `details` of a failed validation.
//!
//! Source: MongoDB manual, "View Existing Validation Rules" and "errInfo" in "Schema Validation"; SERVER-20547.

mod clause;
mod wording;

pub(crate) use clause::Clause;

use crate::evaluate::{Evaluation, any_value};
use crate::expression::Expression;
use crate::path::{Leaves, Path};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Type, Value, ValueRef};
use clause::Operator;
use std::cell::RefCell;
use std::collections::BTreeSet;
use wording::Wording;

/// Maximum size of a value repeated in details, in bytes: one answer may have a thousand of them.
const CONSIDERED_BYTES_MAX: usize = 16 << 10;

/// Maximum number of values of one path repeated in details.
/// Source: MongoDB, parameter `internalQueryMaxDocValidationErrorConsideredValues`.
const CONSIDERED_VALUES_MAX: usize = 10;

/// Adds the tested value, unless it is too large.
pub(crate) fn consider(details: &mut DocumentBuf, value: ValueRef<'_>) {
    if len_bytes(value) <= CONSIDERED_BYTES_MAX {
        details.append("consideredValue", value);
    }
}

fn len_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(document) => document.len_bytes(),
        ValueRef::Array(list) => list.as_document().len_bytes(),
        ValueRef::String(text) => text.len(),
        ValueRef::Binary { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

/// The answer of a clause that needs an explanation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The clause should match and does not.
    NoMatch,
    /// The clause is under a negation, and matches.
    Match,
}

impl Answer {
    fn opposite(self) -> Self {
        match self {
            Self::NoMatch => Self::Match,
            Self::Match => Self::NoMatch,
        }
    }
}

/// A clause that was tested on a document.
struct ClauseResult {
    matches: bool,
    /// The explanation of the [`Answer`].
    details: DocumentBuf,
}

/// Explains why the document does not match the validator.
pub(crate) fn of(clause: &Clause, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
    ask(clause, document, Answer::NoMatch, evaluation).details
}

fn ask(clause: &Clause, document: DocumentRef<'_>, answer: Answer, evaluation: &mut Evaluation<'_>) -> ClauseResult {
    match clause {
        Clause::And(clauses) => {
            let (details, matching) = list("$and", clauses, document, answer, evaluation);
            ClauseResult { matches: matching == clauses.len(), details }
        }
        Clause::Or(clauses) => {
            let (details, matching) = list("$or", clauses, document, answer, evaluation);
            ClauseResult { matches: matching > 0, details }
        }
        Clause::Nor(clauses) => {
            let (details, matching) = list("$nor", clauses, document, answer.opposite(), evaluation);
            ClauseResult { matches: matching == 0, details }
        }
        Clause::Not(negated) => {
            let inner = ask(negated, document, answer.opposite(), evaluation);
            let details = DocumentBuf::new().with("operatorName", "$not").with("details", &inner.details);
            ClauseResult { matches: !inner.matches, details }
        }
        Clause::Operator(operator) => {
            let matches = evaluation.goes_on(1) && operator.expression.evaluate(document, evaluation);
            // A clause with the wanted answer needs no explanation.
            let is_told = matches == (answer == Answer::Match);
            let details =
                if is_told { operator_details(operator, document, answer, evaluation) } else { DocumentBuf::new() };
            ClauseResult { matches, details }
        }
    }
}

/// The explanations of the clauses that need one, and the number of clauses that match.
fn list(
    name: &str,
    clauses: &[Clause],
    document: DocumentRef<'_>,
    answer: Answer,
    evaluation: &mut Evaluation<'_>,
) -> (DocumentBuf, usize) {
    let (mut told, mut matching) = (ArrayBuf::new(), 0);
    for (index, clause) in clauses.iter().enumerate() {
        let asked = ask(clause, document, answer, evaluation);
        matching += usize::from(asked.matches);
        if asked.matches == (answer == Answer::Match) {
            told.push(&DocumentBuf::new().with("index", index as i32).with("details", &asked.details));
        }
    }
    let field = if answer == Answer::Match { "clausesSatisfied" } else { "clausesNotSatisfied" };
    (DocumentBuf::new().with("operatorName", name).with(field, &told), matching)
}

fn operator_details(
    operator: &Operator,
    document: DocumentRef<'_>,
    answer: Answer,
    evaluation: &mut Evaluation<'_>,
) -> DocumentBuf {
    if let Expression::JsonSchema(schema) = &operator.expression {
        let mut details = DocumentBuf::new().with("operatorName", "$jsonSchema");
        match answer {
            Answer::Match => details.append("reason", "schema matched"),
            Answer::NoMatch => details.extend(schema.explain(document, evaluation).as_ref()),
        };
        return details;
    }
    let mut details = DocumentBuf::new();
    details.append("operatorName", operator.name.as_str()).append("specifiedAs", &operator.specified);
    let wording = wording::of(&operator.name);
    // `$ne`, `$nin` and `$exists: false` negate the condition that the wording describes.
    let is_negation = matches!(operator.expression, Expression::Not(_));
    let answer = if is_negation { answer.opposite() } else { answer };
    let reason = if answer == Answer::Match { wording.matched } else { wording.no_match };
    match (wording.leaves, operator.specified.as_ref().first().and_then(|first| Path::parse(first.name).ok())) {
        (Some(leaves), Some(path)) => {
            let considered = Considered::at(&path, leaves, document, evaluation);
            considered.tell(&operator.name, reason, &wording, &mut details);
        }
        _ => {
            details.append("reason", reason);
        }
    }
    if let Expression::Expr(expr) = &operator.expression
        && let Some(result) = evaluation.result(expr, document)
    {
        details.append("expressionResult", result.as_ref());
    }
    details
}

/// The values that an operator tested.
#[derive(Default)]
struct Considered {
    /// The first values.
    values: Vec<Value>,
    /// The type names of all values.
    types: BTreeSet<&'static str>,
    is_truncated: bool,
}

impl Considered {
    fn at(path: &Path, leaves: Leaves, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> Self {
        let considered = RefCell::new(Self::default());
        any_value(document, path, leaves, evaluation, |value, _, _| {
            if let Some(value) = value {
                considered.borrow_mut().add(value);
            }
            false
        });
        considered.into_inner()
    }

    fn add(&mut self, value: ValueRef<'_>) {
        self.types.insert(value.kind().alias());
        if self.values.len() == CONSIDERED_VALUES_MAX || len_bytes(value) > CONSIDERED_BYTES_MAX {
            self.is_truncated = true;
        } else {
            self.values.push(value.to_value());
        }
    }

    fn tell(&self, operator: &str, reason: &str, wording: &Wording, details: &mut DocumentBuf) {
        let is_expected = |kind: &Type| self.types.contains(kind.alias());
        if self.types.is_empty() {
            details.append("reason", "field was missing");
        } else if wording.types.is_empty() || wording.types.iter().any(is_expected) {
            details.append("reason", reason);
        } else {
            details.append("reason", "type did not match");
            append_names(details, "consideredType", self.types.iter().copied());
            append_names(details, "expectedType", wording.types.iter().map(|kind| kind.alias()));
        }
        match &self.values[..] {
            [] => {}
            [value] if !self.is_truncated => {
                details.append("consideredValue", value.as_ref());
            }
            values => {
                details.append("consideredValues", &values.iter().map(Value::as_ref).collect::<ArrayBuf>());
            }
        }
        if self.is_truncated && !self.values.is_empty() {
            details.append("consideredValuesTruncated", true);
        }
        if operator == "$type" && !self.types.is_empty() {
            append_names(details, "consideredType", self.types.iter().copied());
        }
    }
}

/// Appends one name under `field`, or several under its plural.
fn append_names<'n>(details: &mut DocumentBuf, field: &str, names: impl Iterator<Item = &'n str>) {
    let names: Vec<_> = names.collect();
    match names[..] {
        [name] => details.append(field, name),
        _ => details.append(&format!("{field}s"), &names.iter().copied().collect::<ArrayBuf>()),
    };
}
