//! A filter on whole documents.

use crate::constants;
use crate::evaluate::Evaluation;
use crate::explain;
use crate::expression::{ExprCompiler, Expression};
use crate::failure_details::{self, Clause};
use crate::one_walk::Later;
use crate::operators::near;
use crate::operators::text::{self, TextSearch};
use crate::parse::{NoExpr, Parser};
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
    /// A validator as it was written.
    written: Option<Arc<Clause>>,
}

/// What a filter was written with, also where constants beside it keep it out of the tree.
#[derive(Clone, Copy, Debug)]
struct Holds {
    expr: bool,
    text: bool,
    near: bool,
}

/// Where a matching document matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedPosition {
    /// What the positional operator `$` stands for: the index, in the outermost array on the path, of the first
    /// element that satisfied an array predicate. Of several such predicates the last one tested counts, in the
    /// order of [`Expression`]'s normal form. `None` if no array was searched, or only under a negation.
    pub index: Option<usize>,
}

impl Filter {
    /// Parses a filter in a context without `$expr`.
    /// # Errors
    /// As [`Filter::parse_with`]; `QueryFeatureNotAllowed` where `$expr` is used.
    pub fn parse(filter: DocumentRef<'_>) -> Result<Self> {
        Self::parse_collated(filter, StringOrder::BYTES)
    }

    /// The same where strings are in that order.
    /// # Errors
    /// As [`Filter::parse`].
    pub fn parse_collated(filter: DocumentRef<'_>, strings: &StringOrder) -> Result<Self> {
        Self::parse_with(filter, &NoExpr { strings, operation: None })
    }

    /// Parses a filter; `compiler` takes the operands of `$expr` and has the order of strings.
    /// # Errors
    /// `BadValue`, `TypeMismatch` or `FailedToParse` as MongoDB for a malformed or unsupported operator; 51091 and
    /// 51108 for a bad regular expression; what `compiler` reports.
    pub fn parse_with(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        Ok(Self::of(Parser::new(compiler).filter(filter)?, compiler))
    }

    /// Parses the filter of a plan, which may hold `$near` and `$text`.
    /// # Errors
    /// As [`Filter::parse_with`]; `BadValue` for more than one `$near` or `$text`, and one that is no condition on every
    /// document.
    pub fn parse_for_plan(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        let root = Parser::new(compiler).for_plan().filter(filter)?;
        near::check(&root)?;
        text::check(&root)?;
        Ok(Self::of(root, compiler).folded())
    }

    /// Parses the filter of a pipeline's stage, which may hold `$text`: only a plan finds documents by it.
    /// # Errors
    /// As [`Filter::parse_with`]; `BadValue` as [`Filter::parse_for_plan`].
    pub fn parse_for_stage(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        let root = Parser::new(compiler).for_stage().filter(filter)?;
        text::check(&root)?;
        Ok(Self::of(root, compiler).folded())
    }

    fn of(root: Expression, compiler: &dyn ExprCompiler) -> Self {
        let holds =
            Holds { expr: root.holds_expr(), text: text::search(&root).is_some(), near: near::holds_near(&root) };
        let strings = compiler.strings().clone();
        Self { root, holds, walk: Later::default(), operation: None, strings, written: None }
    }

    /// Takes the filter's constant conditions out of its tree.
    fn folded(self) -> Self {
        Self { root: constants::folded(self.root), ..self }
    }

    /// What it looks for in texts, if it does.
    pub fn text(&self) -> Option<&Arc<TextSearch>> {
        text::search(&self.root)
    }

    /// Parses a collection's validator, which takes no operators that need an index.
    /// # Errors
    /// As [`Filter::parse_with`].
    pub fn parse_validator(filter: DocumentRef<'_>, compiler: &dyn ExprCompiler) -> Result<Self> {
        let parser = Parser::of_validator(compiler);
        let root = parser.filter(filter)?;
        let written = Some(Arc::new(Clause::parse(&parser, filter)?));
        Ok(Self { written, ..Self::of(root, compiler) })
    }

    /// The filter of an operation, which is asked whether it has to stop where a document has many elements to look at.
    #[must_use]
    pub fn for_operation(self, operation: Arc<OperationContext>) -> Self {
        Self { operation: Some(operation), ..self }
    }

    /// Whether the document matches.
    /// # Errors
    /// The first failure of an `$expr`; what the operation says, if it is an operation's.
    pub fn try_matches(&self, document: DocumentRef<'_>) -> Result<bool> {
        Ok(self.matches_with_position(document)?.is_some())
    }

    /// Whether the document matches, and where: for the positional operator `$`.
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

    /// Whether the document matches, as work of the operation given.
    /// # Errors
    /// As [`Filter::try_matches`].
    pub fn matches_within(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<bool> {
        let mut evaluation = Evaluation::new(Some(operation), &self.strings);
        let matched = self.evaluate(document, &mut evaluation);
        evaluation.outcome(matched)
    }

    /// Why the document does not match a validator, operator by operator: the `details` of a failed validation. Empty for
    /// what [`Filter::parse_validator`] has not parsed.
    /// # Errors
    /// As [`Filter::try_matches`].
    pub fn failure_details(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<DocumentBuf> {
        let Some(written) = &self.written else { return Ok(DocumentBuf::new()) };
        let mut evaluation = Evaluation::new(Some(operation), &self.strings);
        let details = failure_details::of(written, document, &mut evaluation);
        evaluation.outcome(true).map(|_| details)
    }

    /// Whether it looks at nothing but the values at paths, so that what it says of a document depends on nothing else,
    /// and any thread may ask it.
    pub fn looks_at_values_only(&self) -> bool {
        self.root.looks_at_values_only()
    }

    /// Whether it was written with an `$expr`.
    pub fn holds_expr(&self) -> bool {
        self.holds.expr
    }

    /// Whether it was written with a `$text`.
    pub fn holds_text(&self) -> bool {
        self.holds.text
    }

    /// Whether it was written with a search by distance.
    pub fn holds_near(&self) -> bool {
        self.holds.near
    }

    /// In which order it compares strings.
    pub fn strings(&self) -> &StringOrder {
        &self.strings
    }

    /// The parsed tree, in normal form.
    pub fn root(&self) -> &Expression {
        &self.root
    }

    /// The normal form as a filter: explain's `parsedQuery`. It may take many times the bytes of what was sent.
    pub fn to_document(&self) -> DocumentBuf {
        self.part_within(&|_| true, usize::MAX).unwrap_or_default()
    }

    /// The same of those predicates of the outermost conjunction that `is_taken` takes by their positions; `None` where that
    /// takes more than `bytes_max`. No more is made than that.
    pub fn part_within(&self, is_taken: &dyn Fn(usize) -> bool, bytes_max: usize) -> Option<DocumentBuf> {
        explain::document_within(&self.root, is_taken, bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExprPredicate;
    use bunko_bson::ValueRef;
    use bunko_errors::Failure;

    /// Compiles the name of a boolean field; a field that is no boolean fails.
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
