//! The context for parsing a filter's operators. [`crate::parse`] parses whole filters in it.

use crate::expr::{ExprCompiler, ExprPredicate};
use crate::path::Path;
use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// Counted steps for parsing one condition.
const CONDITION_STEPS: usize = 16;

/// The context for parsing one filter's operators.
#[derive(Clone, Copy)]
pub(crate) struct Parser<'p> {
    pub compiler: &'p dyn ExprCompiler,
    pub level: Level,
    pub place: FilterUse,
}

/// The user of the filter, which decides whether the filter may need an index.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterUse {
    /// A plan, which can search by distance and by text.
    Plan,
    /// A pipeline stage, which a plan may take over: the filter may contain `$text`.
    Stage,
    Elsewhere,
}

/// The subject of the filter being parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// A whole document.
    Document,
    /// A document that is being written, without any index.
    Validator,
    /// An element under `$elemMatch`, where no condition may refer to the whole document.
    Element,
}

/// An operator's operand and its context.
pub(crate) struct Operand<'a> {
    pub name: &'static str,
    pub path: &'a Path,
    pub value: ValueRef<'a>,
    /// The document around the operator: `$regex` and `$options` read each other.
    pub siblings: DocumentRef<'a>,
}

impl<'p> Parser<'p> {
    pub fn new(compiler: &'p dyn ExprCompiler) -> Self {
        Self { compiler, level: Level::Document, place: FilterUse::Elsewhere }
    }

    /// The parser of a collection's validator.
    pub fn of_validator(compiler: &'p dyn ExprCompiler) -> Self {
        Self { compiler, level: Level::Validator, place: FilterUse::Elsewhere }
    }

    /// The parser for conditions inside `$elemMatch`.
    pub fn inside_element(&self) -> Self {
        Self { level: Level::Element, ..*self }
    }

    /// The parser for the filter of a plan.
    pub fn for_plan(self) -> Self {
        Self { place: FilterUse::Plan, ..self }
    }

    /// The parser for the filter of a stage.
    pub fn for_stage(self) -> Self {
        Self { place: FilterUse::Stage, ..self }
    }

    /// Counts the parsing of one condition.
    /// # Errors
    /// As `OperationContext::work`, which includes `Interrupted` if the operation is killed.
    pub fn count_condition(&self) -> Result<()> {
        self.count(CONDITION_STEPS)
    }

    /// Counts `steps` of work.
    /// # Errors
    /// As `OperationContext::work`, which includes `Interrupted` if the operation is killed.
    pub fn count(&self, steps: usize) -> Result<()> {
        self.compiler.operation().map_or(Ok(()), |operation| operation.work(steps))
    }

    /// Checks before `bytes` are allocated.
    /// # Errors
    /// As `OperationContext::will_take`, which includes `Interrupted` if the operation is killed.
    pub fn will_take(&self, bytes: usize) -> Result<()> {
        self.compiler.operation().map_or(Ok(()), |operation| operation.will_take(bytes))
    }

    /// Parses the parts of a list in order. Checks memory before the list grows, since a growing list needs its old and
    /// its new memory at once.
    /// # Errors
    /// The error of the first part that fails; errors of the operation.
    pub fn gathered<T>(&self, parts: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
        let mut gathered = Vec::new();
        for part in parts {
            if gathered.len() == gathered.capacity() {
                self.will_take(2 * gathered.len() * size_of::<T>())?;
            }
            gathered.push(part?);
        }
        Ok(gathered)
    }
}

/// Whether a document holds operators and is not a value: its first field decides, unless it is a DBRef.
pub(crate) fn holds_operators(document: DocumentRef<'_>) -> bool {
    let is_reference = || document.get("$ref").is_some() && document.get("$id").is_some();
    document.first().is_some_and(|first| first.name.starts_with('$')) && !is_reference()
}

/// Whether a filter's field is an operator.
pub(crate) fn is_operator(name: &str) -> bool {
    // DBRef fields start with a dollar but are ordinary fields.
    name.starts_with('$') && !matches!(name, "$ref" | "$id" | "$db")
}

/// Refuses `$expr`: for contexts without a whole document, and for callers without a compiler.
pub(crate) struct NoExpr<'s> {
    pub strings: &'s StringOrder,
    pub operation: Option<&'s OperationContext>,
}

impl ExprCompiler for NoExpr<'_> {
    fn compile(&self, _expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        Err(Failure::new(ErrorCode::QUERY_FEATURE_NOT_ALLOWED, "$expr is not allowed in this context"))
    }

    fn strings(&self) -> &StringOrder {
        self.strings
    }

    fn operation(&self) -> Option<&OperationContext> {
        self.operation
    }
}
