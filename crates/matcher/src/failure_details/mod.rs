//! Explains, operator by operator, why a document does not match: the `details` of a failed validation.
//!
//! Source: MongoDB manual, "View Existing Validation Rules" and "errInfo" in "Schema Validation"; SERVER-20547.

mod clause;
mod considered;
mod wording;

pub(crate) use clause::Clause;
pub(crate) use considered::consider;

use crate::evaluation::Evaluation;
use crate::expression::Expression;
use crate::path::Path;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef};
use clause::Operator;
use considered::Considered;

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
        && let Some(result) = evaluation.settled(expr.predicate.result(document, evaluation.operation), None)
    {
        details.append("expressionResult", result.as_ref());
    }
    details
}
