//! `$redact`: an expression that decides about a document and the documents inside.

use crate::printed::printed;
use crate::variables::{Binding, Decision, EvaluationContext};
use crate::{Expression, ParseScope, made};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// The expression of `$redact`, in which `$$CURRENT` is the document to decide about.
pub struct Redaction {
    expression: Expression,
    slot: u32,
}

impl Redaction {
    /// Reads the expression, which may name `$$KEEP`, `$$PRUNE` and `$$DESCEND`.
    /// # Errors
    /// Errors of the expression.
    pub fn parse(value: ValueRef<'_>, scope: &ParseScope) -> Result<Self> {
        let (inner, slot) = scope.deciding().bind(&["CURRENT"]);
        Ok(Self { expression: Expression::parse(value, &inner)?, slot })
    }

    /// Returns the context's document without its pruned parts; `None` if the whole document is pruned.
    /// # Errors
    /// 17053 where the expression yields no decision; errors of the expression.
    pub fn apply(&self, context: &EvaluationContext<'_>) -> Result<Option<DocumentBuf>> {
        self.document(context.root(), context)
    }

    fn document(&self, document: DocumentRef<'_>, context: &EvaluationContext<'_>) -> Result<Option<DocumentBuf>> {
        context.operation().work(1)?;
        let values = [Some(ValueRef::Document(document))];
        let binding = Binding { first_slot: self.slot, values: &values, outer: None };
        let decision = self.expression.evaluate(&context.bound(&binding))?;
        match decision.get().and_then(Decision::of) {
            Some(Decision::Prune) => Ok(None),
            Some(Decision::Keep) => {
                context.operation().work(made::steps(ValueRef::Document(document)))?;
                Ok(Some(document.to_owned()))
            }
            Some(Decision::Descend) => self.descend(document, context).map(Some),
            None => {
                let found = printed(&decision);
                let message = format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned {found}"
                );
                Err(Failure::new(ErrorCode(17053), message))
            }
        }
    }

    fn descend(&self, document: DocumentRef<'_>, context: &EvaluationContext<'_>) -> Result<DocumentBuf> {
        let mut left = DocumentBuf::new();
        for field in document {
            match field.value {
                ValueRef::Document(inner) => {
                    if let Some(inner) = self.document(inner, context)? {
                        left.append(field.name, &inner);
                    }
                }
                ValueRef::Array(array) => {
                    left.append(field.name, &self.array(array, context)?);
                }
                value => {
                    context.operation().work(made::steps(value))?;
                    left.append(field.name, value);
                }
            }
        }
        Ok(left)
    }

    fn array(&self, array: ArrayRef<'_>, context: &EvaluationContext<'_>) -> Result<ArrayBuf> {
        let mut left = ArrayBuf::new();
        for element in array.iter() {
            match element {
                ValueRef::Document(inner) => {
                    if let Some(inner) = self.document(inner, context)? {
                        left.push(&inner);
                    }
                }
                ValueRef::Array(inner) => _ = left.push(&self.array(inner, context)?),
                value => {
                    context.operation().work(made::steps(value))?;
                    left.push(value);
                }
            }
        }
        Ok(left)
    }
}
