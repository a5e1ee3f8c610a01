//! Why a document does not match, operator by operator: the `details` of a failed validation.
//!
//! Source: MongoDB manual, "View Existing Validation Rules" and "errInfo" in "Schema Validation".

use crate::evaluate::Evaluation;
use crate::explain;
use crate::expression::Expression;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};

/// Largest value that details repeat, in bytes: there may be a thousand of them in one answer.
const CONSIDERED_BYTES_MAX: usize = 16 << 10;

/// Adds the value that was looked at, unless it is large.
pub(crate) fn consider(details: &mut DocumentBuf, value: ValueRef<'_>) {
    let len_bytes = match value {
        ValueRef::Document(document) => document.len_bytes(),
        ValueRef::Array(list) => list.as_document().len_bytes(),
        ValueRef::String(text) => text.len(),
        ValueRef::Binary { bytes, .. } => bytes.len(),
        _ => 0,
    };
    if len_bytes <= CONSIDERED_BYTES_MAX {
        details.append("consideredValue", value);
    }
}

/// Which of a node's answers is to be explained.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It does not match, and should.
    NoMatch,
    /// It matches, and should not: it stands under a negation.
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

/// Why the document does not match the tree.
pub(crate) fn of(expression: &Expression, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> DocumentBuf {
    details(expression, document, Answer::NoMatch, evaluation)
}

fn details(
    expression: &Expression,
    document: DocumentRef<'_>,
    answer: Answer,
    evaluation: &mut Evaluation<'_>,
) -> DocumentBuf {
    match expression {
        Expression::And(children) => clauses("$and", children, document, answer, evaluation),
        Expression::Or(children) => clauses("$or", children, document, answer, evaluation),
        Expression::Nor(children) => clauses("$nor", children, document, answer.opposite(), evaluation),
        Expression::Not(child) => {
            let inner = details(child, document, answer.opposite(), evaluation);
            DocumentBuf::new().with("operatorName", "$not").with("details", &inner)
        }
        Expression::JsonSchema(schema) => {
            let name = DocumentBuf::new().with("operatorName", "$jsonSchema");
            match answer {
                Answer::Match => name.with("reason", "schema matched"),
                Answer::NoMatch => {
                    let mut details = name;
                    details.extend(schema.explain(document, evaluation).as_ref());
                    details
                }
            }
        }
        leaf => leaf_details(leaf, document, answer),
    }
}

/// Of a list of filters those that have the answer.
fn clauses(
    name: &str,
    children: &[Expression],
    document: DocumentRef<'_>,
    answer: Answer,
    evaluation: &mut Evaluation<'_>,
) -> DocumentBuf {
    let mut list = ArrayBuf::new();
    for (index, child) in children.iter().enumerate() {
        let matches = evaluation.goes_on(1) && child.evaluate(document, evaluation);
        if matches == (answer == Answer::Match) {
            let details = details(child, document, answer, evaluation);
            list.push(&DocumentBuf::new().with("index", index as i32).with("details", &details));
        }
    }
    let field = if answer == Answer::Match { "clausesSatisfied" } else { "clausesNotSatisfied" };
    DocumentBuf::new().with("operatorName", name).with(field, &list)
}

fn leaf_details(leaf: &Expression, document: DocumentRef<'_>, answer: Answer) -> DocumentBuf {
    let specified = explain::document(leaf);
    let operator = match (leaf.path(), specified.as_ref().first().map(|first| first.value)) {
        (Some(_), Some(ValueRef::Document(operator))) => operator.first().map(|first| first.name),
        _ => None,
    };
    let operator = operator.or_else(|| specified.as_ref().first().map(|first| first.name)).unwrap_or_default();
    let details = DocumentBuf::new().with("operatorName", operator).with("specifiedAs", &specified);
    let value = leaf.path().and_then(|path| plain_value(document, path.as_str()));
    let is_missing = leaf.path().is_some() && value.is_none();
    if is_missing && answer == Answer::NoMatch && !matches!(leaf, Expression::Exists { .. }) {
        return details.with("reason", "field was missing");
    }
    let mut details = details.with("reason", reason(leaf, answer));
    if let Some(value) = value.filter(|_| !matches!(leaf, Expression::Exists { .. })) {
        consider(&mut details, value);
        if matches!(leaf, Expression::Type { .. }) {
            details.append("consideredType", value.kind().alias());
        }
    }
    if matches!(leaf, Expression::Expr(_)) {
        details.append("expressionResult", answer == Answer::Match);
    }
    details
}

/// The value at a path that goes through documents only.
fn plain_value<'d>(document: DocumentRef<'d>, path: &str) -> Option<ValueRef<'d>> {
    match path.split_once('.') {
        None => document.get(path),
        Some((first, rest)) => plain_value(document.get(first)?.as_document()?, rest),
    }
}

fn reason(leaf: &Expression, answer: Answer) -> &'static str {
    let (no_match, matched) = match leaf {
        Expression::Compare { .. } => ("comparison failed", "comparison succeeded"),
        Expression::In { .. } => ("no matching value found in array", "matching value found in array"),
        Expression::Regex { .. } => ("regular expression did not match", "regular expression did match"),
        Expression::Exists { .. } => ("path does not exist", "path does exist"),
        Expression::Type { .. } => ("type did not match", "type did match"),
        Expression::Mod { .. } => {
            ("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder")
        }
        Expression::Size { .. } => ("array length was not equal to given size", "array length was equal to given size"),
        Expression::ElemMatchObject { .. } | Expression::ElemMatchValue { .. } => {
            ("array did not satisfy the child predicate", "array did satisfy the child predicate")
        }
        Expression::Bits { .. } => ("bitwise operator failed to match", "bitwise operator matched successfully"),
        Expression::Geo { .. } => (
            "none of the considered geometries satisfied the expression's geometry",
            "at least one of the considered geometries satisfied the expression's geometry",
        ),
        Expression::Expr(_) | Expression::Text(_) => ("expression did not match", "expression did match"),
        Expression::AlwaysTrue => ("expression always evaluates to true", "expression always evaluates to true"),
        Expression::AlwaysFalse => ("expression always evaluates to false", "expression always evaluates to false"),
        _ => ("expression did not match", "expression did match"),
    };
    if answer == Answer::Match { matched } else { no_match }
}
