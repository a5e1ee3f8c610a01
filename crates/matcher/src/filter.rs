//! A filter on whole documents.

use crate::constants;
use crate::evaluation::Evaluation;
use crate::explain::{self, Implied};
use crate::expr::ExprCompiler;
use crate::expression::Expression;
use crate::failure_details::{self, Clause};
use crate::one_walk::Later;
use crate::operands::TextSearch;
use crate::parser::{NoExpr, Parser};
use crate::searches::{check_near, check_text, holds_near, text_of};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder};
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::sync::Arc;

/// A query filter, parsed.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Expression,
    holds: Holds,
    walk: Later,
    operation: Option<Arc<OperationContext>>,
    strings: StringOrder,
    /// The clauses of a validator as written, for failure details.
    written: Option<Arc<Clause>>,
}

/// Conditions that the filter was written with, even if constant folding removed them from the tree.
#[derive(Clone, Copy, Debug)]
struct Holds {
    expr: bool,
    text: bool,
    near: bool,
}

/// The place of a match in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedPosition {
    /// The value of the positional operator `$`: the index, in the outermost array on the path, of the first element
    /// that satisfied an array predicate. If there are several such predicates, the last one tested counts, in the
    /// order of [`Expression`]'s normal form. `None` if no array was searched, or only under a negation.
    pub index: Option<usize>,
}

impl Filter {
    /// Parses a filter in a context without `$expr`.
    /// # Errors
    /// As [`Filter::parse_with`]; `QueryFeatureNotAllowed` for `$expr`.
    pub fn parse(filter: DocumentRef<'_>) -> Result<Self> {
        Self::parse_collated(filter, StringOrder::BYTES)
    }

    /// As [`Filter::parse`], with a string order.
    /// # Errors
    /// As [`Filter::parse`].
    pub fn parse_collated(filter: DocumentRef<'_>, strings: &StringOrder) -> Result<Self> {
        Self::parse_with(filter, &NoExpr { strings, operation: None })
    }

    /// Parses a filter; `compiler` compiles the operands of `$expr` and has the string order.
    /// # Errors
    /// `BadValue`, `TypeMismatch` or `FailedToParse` as in MongoDB for a malformed or unsupported operator; 51091 and
    /// 51108 for a bad regular expression; errors of `compiler`.
    pub fn parse_with(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        Ok(Self::of(Parser::new(compiler).filter(filter)?, compiler))
    }

    /// Parses the filter of a plan, which may contain `$near` and `$text`.
    /// # Errors
    /// As [`Filter::parse_with`]; `BadValue` for more than one `$near` or `$text`, or if it is not a condition on every
    /// document.
    pub fn parse_for_plan(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        let root = Parser::new(compiler).for_plan().filter(filter)?;
        check_near(&root)?;
        check_text(&root)?;
        Ok(Self::of(root, compiler).folded())
    }

    /// Parses the filter of a pipeline stage, which may contain `$text`: only a plan can evaluate it.
    /// # Errors
    /// As [`Filter::parse_with`]; `BadValue` as [`Filter::parse_for_plan`].
    pub fn parse_for_stage(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        let root = Parser::new(compiler).for_stage().filter(filter)?;
        check_text(&root)?;
        Ok(Self::of(root, compiler).folded())
    }

    fn of(root: Expression, compiler: &dyn ExprCompiler) -> Self {
        let holds = Holds { expr: root.holds_expr(), text: text_of(&root).is_some(), near: holds_near(&root) };
        let strings = compiler.strings().clone();
        Self { root, holds, walk: Later::default(), operation: None, strings, written: None }
    }

    /// Removes constant conditions from the tree.
    fn folded(self) -> Self {
        Self { root: constants::folded(self.root), ..self }
    }

    /// Replaces the filter's tree by the result of `replaced`, which gets the tree and the string order.
    pub(crate) fn replace_root(&mut self, replaced: impl FnOnce(Expression, &StringOrder) -> Expression) {
        let root = std::mem::replace(&mut self.root, Expression::AlwaysTrue);
        self.root = replaced(root, &self.strings);
        self.walk = Later::default();
    }

    /// The filter's text search, if it has one.
    pub fn text(&self) -> Option<&Arc<TextSearch>> {
        text_of(&self.root)
    }

    /// Parses a collection's validator, which may not contain operators that need an index.
    /// # Errors
    /// As [`Filter::parse_with`].
    pub fn parse_validator(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        let parser = Parser::of_validator(compiler);
        let root = parser.filter(filter)?;
        let written = Some(Arc::new(Clause::parse(&parser, filter)?));
        Ok(Self { written, ..Self::of(root, compiler) })
    }

    /// Attaches an operation, which counts the work of matching and may interrupt the matching.
    #[must_use]
    pub fn for_operation(self, operation: Arc<OperationContext>) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Whether `document` matches.
    /// # Errors
    /// The first failure of an `$expr`; errors of the operation, if one is attached.
    pub fn try_matches(&self, document: DocumentRef<'_>) -> Result<bool> {
        Ok(self.matches_with_position(document)?.is_some())
    }

    /// Whether `document` matches, and at which position: for the positional operator `$`.
    /// # Errors
    /// As [`Filter::try_matches`].
    pub fn matches_with_position(&self, document: DocumentRef<'_>) -> Result<Option<MatchedPosition>> {
        let mut evaluation = Evaluation::new(self.operation.as_deref(), &self.strings);
        let matched = self.evaluate(document, &mut evaluation);
        let position = MatchedPosition { index: evaluation.position };
        Ok(evaluation.outcome(matched)?.then_some(position))
    }

    #[inline]
    fn evaluate(&self, document: DocumentRef<'_>, evaluation: &mut Evaluation<'_>) -> bool {
        let decision = self.walk.of(&self.root).and_then(|walk| walk.decide(&self.root, document, evaluation));
        decision.unwrap_or_else(|| self.root.evaluate(document, evaluation))
    }

    /// Whether `document` matches; counts the work for `operation`.
    /// # Errors
    /// As [`Filter::try_matches`].
    pub fn matches_within(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<bool> {
        let mut evaluation = Evaluation::new(Some(operation), &self.strings);
        let matched = self.evaluate(document, &mut evaluation);
        evaluation.outcome(matched)
    }

    /// Explains, operator by operator, why a document does not match a validator: the `details` of a failed validation.
    /// Empty unless [`Filter::parse_validator`] parsed the filter.
    /// # Errors
    /// As [`Filter::try_matches`].
    pub fn failure_details(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<DocumentBuf> {
        let Some(written) = &self.written else { return Ok(DocumentBuf::new()) };
        let mut evaluation = Evaluation::new(Some(operation), &self.strings);
        let details = failure_details::of(written, document, &mut evaluation);
        evaluation.outcome(true).map(|_| details)
    }

    /// Whether the filter depends only on values at paths of the document, so that any thread may evaluate it.
    pub fn looks_at_values_only(&self) -> bool {
        self.root.looks_at_values_only()
    }

    /// Whether the filter was written with an `$expr` or `$where`.
    pub fn holds_expr(&self) -> bool {
        self.holds.expr
    }

    /// Whether the filter was written with a `$text`.
    pub fn holds_text(&self) -> bool {
        self.holds.text
    }

    /// Whether the filter was written with a search by distance.
    pub fn holds_near(&self) -> bool {
        self.holds.near
    }

    /// The order in which the filter compares strings.
    pub fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// The parsed tree, in normal form.
    pub fn root(&self) -> &Expression {
        &self.root
    }

    /// The normal form as a filter. It may be many times larger than the filter that was sent.
    pub fn to_document(&self) -> DocumentBuf {
        self.part_within(&|_| true, usize::MAX).unwrap_or_default()
    }

    /// Explain's `parsedQuery`: the normal form, with the comparisons that each `$expr` implies. `None` if it needs more
    /// than `bytes_max`; building stops there.
    pub fn parsed_query_within(&self, bytes_max: usize) -> Option<DocumentBuf> {
        explain::document_within(&self.root, Implied::Shown, &|_| true, bytes_max)
    }

    /// The normal form of some predicates of the top-level conjunction: those whose positions `is_taken` accepts.
    /// `None` if that needs more than `bytes_max`; building stops there.
    pub fn part_within(&self, is_taken: &dyn Fn(usize) -> bool, bytes_max: usize) -> Option<DocumentBuf> {
        explain::document_within(&self.root, Implied::Hidden, is_taken, bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExprPredicate;
    use bunko_bson::ValueRef;
    use bunko_errors::Failure;

    /// Compiles the name of a boolean field; a field that is not a boolean fails.
    struct FieldIsTrue;

    struct NamedField(String);

    impl ExprCompiler for FieldIsTrue {
        fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
            let name = expression.as_str().ok_or_else(|| Failure::bad_value("a name"))?;
            Ok(Arc::new(NamedField(name.to_owned())))
        }

        fn operation(&self) -> Option<&OperationContext> {
            None
        }
    }

    impl ExprPredicate for NamedField {
        fn matches(&self, document: DocumentRef<'_>, _: Option<&OperationContext>) -> Result<bool> {
            match document.get(&self.0) {
                Some(ValueRef::Boolean(boolean)) => Ok(boolean),
                _ => Err(Failure::bad_value("not a boolean")),
            }
        }
    }

    #[test]
    fn expr_is_compiled_by_the_caller_and_its_failures_surface() {
        let source = DocumentBuf::new().with("$expr", "flag");
        let filter = Filter::parse_with(source.as_ref(), &FieldIsTrue).expect("compiles");
        assert_eq!(filter.to_document(), source);
        let (yes, no) = (DocumentBuf::new().with("flag", true), DocumentBuf::new().with("flag", false));
        assert!(filter.try_matches(yes.as_ref()).expect("a boolean"));
        assert!(!filter.try_matches(no.as_ref()).expect("a boolean"));
        assert_eq!(filter.try_matches(DocumentRef::EMPTY).expect_err("fails").message(), "not a boolean");
    }

    #[test]
    fn a_negation_does_not_turn_a_failure_into_a_match() {
        let inner: bunko_bson::ArrayBuf = [&DocumentBuf::new().with("$expr", "flag")].into_iter().collect();
        let filter = DocumentBuf::new().with("$nor", &inner);
        let filter = Filter::parse_with(filter.as_ref(), &FieldIsTrue).expect("compiles");
        assert!(filter.try_matches(DocumentRef::EMPTY).is_err());
    }
}
