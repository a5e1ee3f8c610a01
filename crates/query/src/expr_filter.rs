//! `$expr` in filters: aggregation expressions as the matcher's predicates.

use crate::{QuerySettings, planner};
use bunko_bson::{DocumentRef, StringOrder, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::{
    AtHand, Builtins, ConstantFailure, EvaluationContext, Expression, Offered, ParseScope, Variables,
};
use bunko_javascript::{Function, Scripts};
use bunko_matcher::{ExprCompiler, ExprPredicate, Filter};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// What one command's filters and expressions see beside the document: the variables of `let`, the time, and the order of
/// strings.
#[derive(Clone, Debug)]
pub struct QueryScope {
    /// Defined by the command's `let`.
    pub variables: Variables,
    /// `$$NOW`, in milliseconds since 1970.
    pub now_ms: i64,
    /// For whom all that is evaluated.
    pub operation: Arc<OperationContext>,
    /// In which order strings are: the command's collation, or the collection's.
    pub strings: StringOrder,
    /// What constants among the expressions fail with, found out while these are parsed.
    pub constant_failure: Arc<ConstantFailure>,
    /// Whether expressions may read what the server tells.
    pub builtins: Builtins,
    /// What is known of documents beside their fields.
    pub offered: Offered,
    /// That of the document which is looked at.
    pub at_hand: Arc<AtHand>,
    /// Those of the operation.
    pub scripts: Arc<Scripts>,
    /// What an operator set for commands like this one.
    pub settings: Option<Arc<QuerySettings>>,
    /// Whether conditions may be looked for in all documents.
    pub scans: CollectionScans,
}

/// Whether a query with conditions may read all documents of a user's collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CollectionScans {
    #[default]
    Allowed,
    /// As parameter `notablescan` asks.
    Refused,
}

impl QueryScope {
    /// A scope without variables of the user's.
    pub fn new(now_ms: i64, operation: Arc<OperationContext>) -> Self {
        Self {
            variables: Variables::default(),
            now_ms,
            scripts: Scripts::new(&operation),
            operation,
            strings: StringOrder::default(),
            constant_failure: Arc::default(),
            scans: CollectionScans::default(),
            builtins: Builtins::Available,
            offered: Offered::NONE,
            at_hand: Arc::default(),
            settings: None,
        }
    }

    /// The same with strings in another order.
    #[must_use]
    pub fn with_strings(&self, strings: &StringOrder) -> Self {
        Self { strings: strings.clone(), ..self.clone() }
    }

    /// The same where that is known of documents beside their fields.
    #[must_use]
    pub fn offering(&self, offered: Offered) -> Self {
        Self { offered, ..self.clone() }
    }

    /// The scope of what runs over other documents at the same time.
    #[must_use]
    pub fn over_others(&self) -> Self {
        Self { offered: Offered::NONE, at_hand: Arc::default(), ..self.clone() }
    }

    /// The same, in which expressions may read nothing that the server tells.
    #[must_use]
    pub fn without_builtins(&self) -> Self {
        Self { builtins: Builtins::Unavailable, ..self.clone() }
    }

    /// The scope that expressions are parsed in.
    pub fn parse_scope(&self) -> ParseScope {
        ParseScope::new(&self.variables)
            .counted_for(&self.operation)
            .folding(&self.strings, &self.constant_failure)
            .with_builtins(self.builtins)
            .offering(self.offered, &self.at_hand)
            .with_scripts(&self.scripts)
            .knowing(&self.variables, self.now_ms)
    }

    /// The context for evaluating over `document`.
    #[inline]
    pub fn context<'a>(&'a self, document: DocumentRef<'a>) -> EvaluationContext<'a> {
        EvaluationContext::new(document, &self.variables, self.now_ms, &self.operation)
            .with_strings(&self.strings)
            .with_metadata(&self.at_hand)
    }
}

/// Parses a filter that may hold `$expr`.
/// # Errors
/// As [`Filter::parse_with`], and those of the expressions.
pub fn parse_filter(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Result<Filter> {
    let filter = Filter::parse_with(filter, &ExprInFilter { scope: Arc::clone(scope) })?;
    Ok(filter.for_operation(Arc::clone(&scope.operation)))
}

/// Parses the filter of a pipeline's stage, which may hold `$text` besides.
/// # Errors
/// As [`Filter::parse_for_stage`], and those of the expressions.
pub fn parse_stage_filter(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Result<Filter> {
    let filter = Filter::parse_for_stage(filter, &ExprInFilter { scope: over_found(filter, scope) })?;
    Ok(filter.for_operation(Arc::clone(&scope.operation)))
}

/// Parses the filter of a plan, which may hold `$near` and `$text` besides.
/// # Errors
/// As [`Filter::parse_for_plan`], and those of the expressions.
pub fn parse_plan_filter(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Result<Filter> {
    let filter = Filter::parse_for_plan(filter, &ExprInPlan(ExprInFilter { scope: over_found(filter, scope) }))?;
    scope.constant_failure.check("Failed to optimize expression")?;
    Ok(filter.for_operation(Arc::clone(&scope.operation)))
}

/// The scope of the expressions in a filter: they are evaluated on what its search of texts has found, if it has one.
fn over_found(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Arc<QueryScope> {
    if planner::names_text(filter) { Arc::new(scope.offering(Offered::TEXT)) } else { Arc::clone(scope) }
}

/// Compiles the operands of `$expr`.
pub struct ExprInFilter {
    /// What the expressions see.
    pub scope: Arc<QueryScope>,
}

struct Predicate {
    expression: Expression,
    scope: Arc<QueryScope>,
}

impl ExprCompiler for ExprInFilter {
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        let expression = Expression::parse(expression, &self.scope.parse_scope())?.in_filter();
        Ok(Arc::new(Predicate { expression, scope: Arc::clone(&self.scope) }))
    }

    fn strings(&self) -> &StringOrder {
        &self.scope.strings
    }

    fn operation(&self) -> Option<&OperationContext> {
        Some(&self.scope.operation)
    }
}

/// The same for the filter of a plan, where `$where` may stand.
struct ExprInPlan(ExprInFilter);

/// A compiled `$where`.
struct Script(Function);

impl ExprCompiler for ExprInPlan {
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        self.0.compile(expression)
    }

    fn compile_where(&self, text: &str) -> Result<Arc<dyn ExprPredicate>> {
        let scripts = &self.0.scope.scripts;
        scripts.admit().map_err(|failure| {
            if failure.is_too_long() { failure } else { Failure::bad_value("no globalScriptEngine in $where parsing") }
        })?;
        Ok(Arc::new(Script(scripts.function_of_where(text)?)))
    }

    fn strings(&self) -> &StringOrder {
        self.0.strings()
    }

    fn operation(&self) -> Option<&OperationContext> {
        self.0.operation()
    }
}

impl ExprPredicate for Script {
    fn matches(&self, document: DocumentRef<'_>, _: Option<&OperationContext>) -> Result<bool> {
        self.0.is_true(document)
    }
}

impl ExprPredicate for Predicate {
    fn matches(&self, document: DocumentRef<'_>, _: Option<&OperationContext>) -> Result<bool> {
        Ok(self.expression.evaluate(&self.scope.context(document))?.is_true())
    }

    fn constant(&self) -> Option<bool> {
        if !self.expression.is_constant() {
            return None;
        }
        // An expression that fails goes on failing where it is evaluated.
        self.matches(DocumentRef::EMPTY, None).ok()
    }
}
