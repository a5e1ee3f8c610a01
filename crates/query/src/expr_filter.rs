//! `$expr` in filters: aggregation expressions as the matcher's predicates.

use crate::QuerySettings;
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::{
    Builtins, ConstantFailure, CurrentMetadata, EvaluationContext, Expression, FieldComparison, Offered, ParseScope,
    Variables,
};
use bunko_javascript::{Function, Scripts};
use bunko_matcher::{Comparison, ExprComparison, ExprCompiler, ExprPredicate, Filter};
use bunko_operation::OperationContext;
use std::sync::{Arc, OnceLock};

/// Input of one command's filters and expressions beside the document: `let` variables, the time, and the string order.
#[derive(Clone, Debug)]
pub struct QueryScope {
    /// Defined by the command's `let`.
    pub variables: Variables,
    /// `$$NOW`, in milliseconds since 1970.
    pub now_ms: i64,
    /// The operation that evaluates the expressions.
    pub operation: Arc<OperationContext>,
    /// String order: the command's collation, or the collection's.
    pub strings: StringOrder,
    /// The failure of a constant expression, found during parsing.
    pub constant_failure: Arc<ConstantFailure>,
    /// Whether expressions may read facts about the server.
    pub builtins: Builtins,
    /// Kinds of metadata that documents have.
    pub offered: Offered,
    /// The metadata of the current document.
    pub at_hand: Arc<CurrentMetadata>,
    /// State shared by the JavaScript functions of the operation.
    pub scripts: Arc<Scripts>,
    /// Query settings that an administrator set for commands of this shape.
    pub settings: Option<Arc<QuerySettings>>,
    /// Whether a query with conditions may scan the collection.
    pub scans: CollectionScans,
}

/// Whether a query with conditions may read all documents of a user's collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CollectionScans {
    #[default]
    Allowed,
    /// Refused because parameter `notablescan` is set.
    Refused,
}

impl QueryScope {
    /// A scope without user variables.
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

    /// A copy with another string order.
    #[must_use]
    pub fn with_strings(&self, strings: &StringOrder) -> Self {
        Self { strings: strings.clone(), ..self.clone() }
    }

    /// A copy that offers these kinds of metadata.
    #[must_use]
    pub fn offering(&self, offered: Offered) -> Self {
        Self { offered, ..self.clone() }
    }

    /// The scope of expressions that run over other documents at the same time.
    #[must_use]
    pub fn over_others(&self) -> Self {
        Self { offered: Offered::NONE, at_hand: Arc::default(), ..self.clone() }
    }

    /// A copy in which expressions may not read facts about the server.
    #[must_use]
    pub fn without_builtins(&self) -> Self {
        Self { builtins: Builtins::Unavailable, ..self.clone() }
    }

    /// The scope for parsing expressions.
    pub fn parse_scope(&self) -> ParseScope {
        ParseScope::new(&self.variables)
            .counted_for(&self.operation)
            .folding(&self.strings, &self.constant_failure)
            .with_builtins(self.builtins)
            .offering(self.offered, &self.at_hand)
            .with_scripts(&self.scripts)
            .knowing(&self.variables)
    }

    /// The context for evaluating over `document`.
    #[inline]
    pub fn context<'a>(&'a self, document: DocumentRef<'a>) -> EvaluationContext<'a> {
        EvaluationContext::new(document, &self.variables, self.now_ms, &self.operation)
            .with_strings(&self.strings)
            .with_metadata(&self.at_hand)
    }
}

/// Parses a filter that may contain `$expr`.
/// # Errors
/// As [`Filter::parse_with`], and errors of the expressions.
pub fn parse_filter(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Result<Filter> {
    let filter = Filter::parse_with(filter, &ExprInFilter { scope: Arc::clone(scope) })?;
    Ok(filter.for_operation(Arc::clone(&scope.operation)))
}

/// Parses the filter of a pipeline stage, which may contain `$text` too.
/// # Errors
/// As [`Filter::parse_for_stage`], and errors of the expressions.
pub fn parse_stage_filter(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Result<Filter> {
    let filter = Filter::parse_for_stage(filter, &ExprInFilter { scope: over_found(filter, scope) })?;
    Ok(filter.for_operation(Arc::clone(&scope.operation)))
}

/// Parses the filter of a plan, which may contain `$near` and `$text` too.
/// # Errors
/// As [`Filter::parse_for_plan`], and errors of the expressions.
pub fn parse_plan_filter(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Result<Filter> {
    let filter = Filter::parse_for_plan(filter, &ExprInPlan(ExprInFilter { scope: over_found(filter, scope) }))?;
    scope.constant_failure.check("Failed to optimize expression")?;
    Ok(filter.for_operation(Arc::clone(&scope.operation)))
}

/// The scope of a filter's expressions. They may read text metadata if the filter has a `$text`.
fn over_found(filter: DocumentRef<'_>, scope: &Arc<QueryScope>) -> Arc<QueryScope> {
    if names_text(filter) { Arc::new(scope.offering(Offered::TEXT)) } else { Arc::clone(scope) }
}

/// Compiles the operands of `$expr`.
pub struct ExprInFilter {
    /// The scope of the expressions.
    pub scope: Arc<QueryScope>,
}

struct Predicate {
    expression: Expression,
    scope: Arc<QueryScope>,
    /// Computed when a planner first asks: most filters only match documents.
    implied: OnceLock<Vec<ExprComparison>>,
}

impl Predicate {
    fn find_implied(&self) -> Vec<ExprComparison> {
        let context = self.scope.context(DocumentRef::EMPTY);
        let with_value = |op, path, constant: &Expression| {
            // A constant that fails gives no bounds, and the failure appears when the expression is evaluated.
            let value = constant.evaluate(&context).ok()?.into_value()?;
            // A missing field is equal to undefined, but has the key of null; arrays have the keys of their elements.
            let is_bound = !matches!(value, Value::Undefined | Value::Array(_));
            is_bound.then_some(ExprComparison { path, op, value })
        };
        let implied = self.expression.implied_comparisons().into_iter();
        implied.filter_map(|found| with_value(comparison_of(found.op), found.path, found.constant)).collect()
    }
}

fn comparison_of(op: FieldComparison) -> Comparison {
    match op {
        FieldComparison::Eq => Comparison::Eq,
        FieldComparison::Lt => Comparison::Lt,
        FieldComparison::Lte => Comparison::Lte,
        FieldComparison::Gt => Comparison::Gt,
        FieldComparison::Gte => Comparison::Gte,
    }
}

impl ExprCompiler for ExprInFilter {
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        let expression = Expression::parse(expression, &self.scope.parse_scope())?.in_filter();
        Ok(Arc::new(Predicate { expression, scope: Arc::clone(&self.scope), implied: OnceLock::new() }))
    }

    fn strings(&self) -> &StringOrder {
        &self.scope.strings
    }

    fn operation(&self) -> Option<&OperationContext> {
        Some(&self.scope.operation)
    }
}

/// Compiles `$expr` and `$where` for the filter of a plan.
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
        // A constant expression that fails is not folded, so it fails again at each evaluation.
        self.matches(DocumentRef::EMPTY, None).ok()
    }

    fn implied(&self) -> &[ExprComparison] {
        self.implied.get_or_init(|| self.find_implied())
    }
}

/// Whether a filter, not parsed yet, contains a `$text` where a plan could run it.
pub(crate) fn names_text(filter: DocumentRef<'_>) -> bool {
    filter.iter().any(|field| match (field.name, field.value) {
        ("$text", _) => true,
        ("$and" | "$or", ValueRef::Array(parts)) => parts.iter().filter_map(ValueRef::as_document).any(names_text),
        _ => false,
    })
}
