//! `$expr` and `$where` in a filter: another crate compiles them.

use crate::comparison::Comparison;
use bunko_bson::{DocumentRef, StringOrder, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use std::fmt;
use std::sync::Arc;

/// The caller's context for parsing a filter: it compiles the operand of `$expr` in another crate, and has the string
/// order and the operation.
pub trait ExprCompiler {
    /// Compiles one operand.
    /// # Errors
    /// Errors of the expression's parser.
    fn compile(&self, expression: ValueRef<'_>) -> Result<Arc<dyn ExprPredicate>>;

    /// Compiles the text of a `$where`.
    /// # Errors
    /// `BadValue` if `$where` is not allowed here; errors of the script's compiler.
    fn compile_where(&self, text: &str) -> Result<Arc<dyn ExprPredicate>> {
        let _ = text;
        Err(Failure::bad_value("$where is not allowed in this context"))
    }

    /// The order in which the filter compares strings.
    fn strings(&self) -> &StringOrder {
        StringOrder::BYTES
    }

    /// The operation of the parsing, which can interrupt it and limit its memory. Every caller provides one if it can:
    /// a filter may have a million values.
    fn operation(&self) -> Option<&OperationContext>;
}

/// A compiled `$expr` or `$where`.
pub trait ExprPredicate: Send + Sync {
    /// Whether the expression is true for the document. The work counts for `operation`, if given, unless the
    /// expression has an operation of its own.
    /// # Errors
    /// Errors of the evaluation, such as a division by zero.
    fn matches(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<bool>;

    /// The truth of the expression, if it is the same for every document; else `None`.
    fn constant(&self) -> Option<bool> {
        None
    }

    /// Comparisons of fields with constants that hold for every document for which the expression is true.
    fn implied(&self) -> &[ExprComparison] {
        &[]
    }

    /// The result of the expression, for the details of a failed validation; `None` for a missing value.
    /// # Errors
    /// As [`ExprPredicate::matches`].
    fn result(&self, document: DocumentRef<'_>, operation: Option<&OperationContext>) -> Result<Option<Value>> {
        Ok(Some(Value::Boolean(self.matches(document, operation)?)))
    }
}

/// A comparison of a field with a constant inside an `$expr`. It orders all values of all types, a missing one as
/// undefined, and compares arrays whole.
#[derive(Clone, Debug)]
pub struct ExprComparison {
    /// The dotted path of the field. Its components are names, never array positions.
    pub path: String,
    /// How the field compares with the value.
    pub op: Comparison,
    /// The constant; not undefined, and no array.
    pub value: Value,
}

/// `$expr` or `$where` in the tree.
#[derive(Clone)]
pub struct Expr {
    pub(crate) name: &'static str,
    pub(crate) source: Value,
    pub(crate) predicate: Arc<dyn ExprPredicate>,
    /// The implied comparisons with values in the form of an index's keys, if the planner translated them.
    in_keys: Option<Arc<[ExprComparison]>>,
}

impl Expr {
    pub(crate) fn new(name: &'static str, source: Value, predicate: Arc<dyn ExprPredicate>) -> Self {
        Self { name, source, predicate, in_keys: None }
    }

    /// The operand as written.
    pub fn source(&self) -> ValueRef<'_> {
        self.source.as_ref()
    }

    /// Comparisons that hold for every document for which the expression is true.
    pub fn implied(&self) -> &[ExprComparison] {
        self.in_keys.as_deref().unwrap_or_else(|| self.predicate.implied())
    }

    /// Copies the expression for bounds, with other values in its implied comparisons.
    #[must_use]
    pub fn with_implied_values(&self, value: impl Fn(&Value) -> Value) -> Self {
        let of = |implied: &ExprComparison| ExprComparison { value: value(&implied.value), ..implied.clone() };
        Self { in_keys: Some(self.implied().iter().map(of).collect()), ..self.clone() }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.source).finish()
    }
}
