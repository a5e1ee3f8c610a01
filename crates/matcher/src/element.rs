//! Conditions on the elements of an array: `$pull`, `arrayFilters`, and `$elemMatch` in projections.

use crate::comparison::Comparison;
use crate::evaluate::is_object;
use crate::evaluation::Evaluation;
use crate::expression::{Condition, Expression};
use crate::operators;
use crate::parser::{NoExpr, Parser};
use crate::path::{AsElement, AsField, Path};
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;

/// The condition of `$pull`.
#[derive(Clone, Debug)]
pub struct ElementFilter {
    condition: PullCondition,
    strings: StringOrder,
}

#[derive(Clone, Debug)]
enum PullCondition {
    /// `{a: 1}`: matches elements that are matching documents.
    Document(Expression),
    /// `{$gt: 1}` or `/re/`: matches elements themselves.
    Element(Expression),
    /// Any other value: matches equal elements.
    Equal(Value),
}

impl ElementFilter {
    /// Parses a `$pull` condition. A document of operators applies to the element itself, any other document to the
    /// fields of elements that are documents, and a regex to strings; another value is compared.
    /// # Errors
    /// As [`crate::Filter::parse`].
    pub fn parse(condition: ValueRef<'_>, strings: &StringOrder, operation: Option<&OperationContext>) -> Result<Self> {
        let compiler = NoExpr { strings, operation };
        let parser = Parser::new(&compiler);
        let condition = match condition {
            ValueRef::Document(condition) if takes_element(condition) => {
                PullCondition::Element(parser.operators(&Path::itself(), condition)?)
            }
            ValueRef::Document(filter) => PullCondition::Document(parser.filter(filter)?),
            ValueRef::Regex { .. } => PullCondition::Element(operators::literal(&Path::itself(), condition)?),
            value => PullCondition::Equal(value.to_value()),
        };
        Ok(Self { condition, strings: strings.clone() })
    }

    /// Whether `element` satisfies the condition.
    /// # Errors
    /// Errors of the operation.
    pub fn matches(&self, element: ValueRef<'_>, operation: &OperationContext) -> Result<bool> {
        let mut evaluation = Evaluation::new(Some(operation), &self.strings);
        let matched = match &self.condition {
            PullCondition::Document(filter) => {
                element.as_document().is_some_and(|document| filter.evaluate(document, &mut evaluation))
            }
            PullCondition::Element(condition) => condition.evaluate(AsField(element), &mut evaluation),
            PullCondition::Equal(value) => Comparison::Eq.matches(Some(element), value.as_ref(), &self.strings),
        };
        evaluation.outcome(matched)
    }
}

/// The condition of `$elemMatch` in a projection.
#[derive(Clone, Debug)]
pub struct ElemMatch {
    condition: Expression,
    strings: StringOrder,
}

impl ElemMatch {
    /// Parses the operand of `$elemMatch`.
    /// # Errors
    /// As [`crate::Filter::parse`]; `QueryFeatureNotAllowed` for a schema.
    pub fn parse(condition: DocumentRef<'_>, strings: &StringOrder, operation: &OperationContext) -> Result<Self> {
        refuse_schema(condition)?;
        let compiler = NoExpr { strings, operation: Some(operation) };
        let condition = ValueRef::Document(condition);
        let condition = operators::parse_elem_match(&Parser::new(&compiler), &Path::itself(), condition)?;
        Ok(Self { condition, strings: strings.clone() })
    }

    /// Whether an array element satisfies the condition.
    pub fn matches(&self, element: ValueRef<'_>) -> bool {
        let mut evaluation = Evaluation::new(None, &self.strings);
        match &self.condition {
            Expression::OnPath(_, Condition::ElemMatchObject(filter)) => is_object(filter, element, &mut evaluation),
            Expression::OnPath(_, Condition::ElemMatchValue(condition)) => {
                condition.evaluate(AsElement(element), &mut evaluation)
            }
            _ => false,
        }
    }
}

/// Refuses filters with a schema, for contexts that do not allow one.
/// # Errors
/// `QueryFeatureNotAllowed`.
pub fn refuse_schema(filter: DocumentRef<'_>) -> Result<()> {
    if has_schema(filter) {
        let message = "$jsonSchema is not allowed in this context";
        return Err(Failure::new(ErrorCode::QUERY_FEATURE_NOT_ALLOWED, message));
    }
    Ok(())
}

/// Whether a filter has a schema at its top level or in a logical operator there.
fn has_schema(filter: DocumentRef<'_>) -> bool {
    filter.iter().any(|field| match (field.name, field.value) {
        ("$jsonSchema", _) => true,
        ("$and" | "$or" | "$nor", ValueRef::Array(parts)) => {
            parts.iter().filter_map(ValueRef::as_document).any(has_schema)
        }
        _ => false,
    })
}

/// Whether a condition's operators apply to the element itself; `{$or: [{a: 1}]}` is a filter on documents.
fn takes_element(condition: DocumentRef<'_>) -> bool {
    condition.first().is_some_and(|first| operators::on_field(first.name).is_some())
}

/// One entry of `arrayFilters`: selects the elements of `$[identifier]`.
#[derive(Clone, Debug)]
pub struct ArrayFilter {
    identifier: String,
    condition: Expression,
    strings: StringOrder,
}

impl ArrayFilter {
    /// Parses an entry, whose paths must all start with one identifier. The caller checks that each identifier is used,
    /// and has only one filter.
    /// # Errors
    /// `FailedToParse` for no or several identifiers, `BadValue` for a malformed one; otherwise as
    /// [`crate::Filter::parse`]. The message names the array filter as context.
    pub fn parse(filter: DocumentRef<'_>, strings: &StringOrder, operation: Option<&OperationContext>) -> Result<Self> {
        Self::parse_entry(filter, &NoExpr { strings, operation }).map_err(|failure| match failure.message() {
            WITHOUT_IDENTIFIER => failure,
            _ => failure.with_prefix("Error parsing array filter :: caused by :: "),
        })
    }

    fn parse_entry(filter: DocumentRef<'_>, compiler: &NoExpr<'_>) -> Result<Self> {
        let mut condition = Parser::new(compiler).filter(filter)?;
        let strings = compiler.strings;
        let mut identifiers: Vec<String> = Vec::new();
        condition.for_each_path_mut(&mut |path| {
            let first = path.components()[0].name();
            if !identifiers.iter().any(|known| known == first) {
                identifiers.push(first.to_owned());
            }
            *path = path.below_first();
        });
        match &identifiers[..] {
            [] => Err(Failure::failed_to_parse(WITHOUT_IDENTIFIER)),
            [identifier] if !is_identifier(identifier) => Err(Failure::bad_value(format!(
                "The top-level field name must be an alphanumeric string beginning with a lowercase letter, \
                 found '{identifier}'"
            ))),
            [identifier] => Ok(Self { identifier: identifier.clone(), condition, strings: strings.clone() }),
            [first, second, ..] => Err(Failure::failed_to_parse(format!(
                "Expected a single top-level field name, found '{first}' and '{second}'"
            ))),
        }
    }

    /// The name between the brackets of `$[name]`.
    pub fn identifier(&self) -> &str {
        &self.identifier
    }

    /// Whether `$[identifier]` selects the element.
    /// # Errors
    /// Errors of the operation.
    pub fn matches(&self, element: ValueRef<'_>, operation: &OperationContext) -> Result<bool> {
        let mut evaluation = Evaluation::new(Some(operation), &self.strings);
        let matched = self.condition.evaluate(AsField(element), &mut evaluation);
        evaluation.outcome(matched)
    }
}

const WITHOUT_IDENTIFIER: &str = "Cannot use an expression without a top-level field name in arrayFilters";

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
