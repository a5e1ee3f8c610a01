//! What `$pull` and `$pullAll` share.

use super::{BlockedPath, Effect, Modifier, Scene};
use bunko_bson::{ArrayBuf, Value, ValueRef};
use bunko_errors::{Failure, Result};
use std::fmt;

/// Which elements go.
pub(super) trait Culling: fmt::Debug + Send + Sync {
    fn removes(&self, element: ValueRef<'_>) -> bool;
}

/// Removes an array's elements that the culling names.
#[derive(Debug)]
pub(super) struct ArrayCull<C>(pub C);

impl<C: Culling> Modifier for ArrayCull<C> {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, _scene: &Scene<'a>) -> Result<Effect<'a>> {
        let Some(current) = current else { return Ok(Effect::Keep) };
        let ValueRef::Array(array) = current else {
            return Err(Failure::bad_value("Cannot apply $pull to a non-array value"));
        };
        if !array.iter().any(|element| self.0.removes(element)) {
            return Ok(Effect::Keep);
        }
        let kept: ArrayBuf = array.iter().filter(|element| !self.0.removes(*element)).collect();
        Ok(Effect::Make(Value::Array(kept)))
    }

    fn on_blocked_path(&self) -> BlockedPath {
        BlockedPath::Refused
    }
}
