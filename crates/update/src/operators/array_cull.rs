//! Shared code of `$pull` and `$pullAll`.

use super::{BlockedPath, Effect, Modifier, Scene};
use bunko_bson::{ArrayBuf, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use std::fmt;

/// Decides which elements to remove.
pub(super) trait Culling: fmt::Debug + Send + Sync {
    /// # Errors
    /// Errors of the operation.
    fn removes(&self, element: ValueRef<'_>, operation: &OperationContext) -> Result<bool>;
}

/// The modifier that removes the array elements for which [`Culling::removes`] is true.
#[derive(Debug)]
pub(super) struct ArrayCull<C>(pub C);

impl<C: Culling> Modifier for ArrayCull<C> {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        let Some(current) = current else { return Ok(Effect::Keep) };
        let ValueRef::Array(array) = current else {
            return Err(Failure::bad_value("Cannot apply $pull to a non-array value"));
        };
        let operation = scene.context.operation;
        let mut kept = ArrayBuf::new();
        let mut count = 0;
        for element in array.iter() {
            operation.work(1)?;
            count += 1;
            if !self.0.removes(element, operation)? {
                kept.push(element);
            }
        }
        Ok(if kept.count() == count { Effect::Keep } else { Effect::Make(Value::Array(kept)) })
    }

    fn on_blocked_path(&self) -> BlockedPath {
        BlockedPath::Refused
    }
}
