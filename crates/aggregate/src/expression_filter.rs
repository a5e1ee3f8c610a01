//! `$expr` in filters: expressions behind the matcher's trait.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::Result;
use bunko_expression::{Expression, ParseScope, Variables};
use bunko_matcher::{ExprCompiler, ExprPredicate};
use std::sync::Arc;

/// Compiles `$expr` for [`bunko_matcher::Filter::parse_with`].
pub struct ExpressionFilter {
    variables: Arc<Variables>,
    now_ms: i64,
}

impl ExpressionFilter {
    /// A compiler of expressions that see these variables and, as `$$NOW`, this time in milliseconds since 1970.
    pub fn new(variables: Variables, now_ms: i64) -> Self {
        Self { variables: Arc::new(variables), now_ms }
    }
}

impl ExprCompiler for ExpressionFilter {
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>> {
        let expression = Expression::parse(expression, &ParseScope::new(&self.variables))?;
        Ok(Arc::new(Predicate { expression, variables: Arc::clone(&self.variables), now_ms: self.now_ms }))
    }
}

struct Predicate {
    expression: Expression,
    variables: Arc<Variables>,
    now_ms: i64,
}

impl ExprPredicate for Predicate {
    fn matches(&self, document: DocumentRef<'_>) -> Result<bool> {
        let context = bunko_expression::EvaluationContext::new(document, &self.variables, self.now_ms);
        Ok(self.expression.evaluate(&context)?.is_true())
    }
}
