//! `$pop`: removes the first or last element of an array.

use super::{BlockedPath, Effect, Modifier, Operator, Scene, whole_number};
use crate::trie::Plan;
use bunko_bson::text::ElementText;
use bunko_bson::{ArrayBuf, Element, StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$pop", strings: StringUse::AsBytes, parse };

#[derive(Debug)]
enum Pop {
    First,
    Last,
}

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    if !field.value.is_number() {
        let message = format!("Expected a number in: {}", ElementText(field));
        return Err(Failure::failed_to_parse(message));
    }
    let modifier = match whole_number(field.value) {
        Some(1) => Pop::Last,
        Some(-1) => Pop::First,
        Some(other) => return Err(Failure::failed_to_parse(format!("$pop expects 1 or -1, found: {other}"))),
        None => {
            let message = format!("Expected an integer: {}", ElementText(field));
            return Err(Failure::failed_to_parse(message));
        }
    };
    plan.modify(field.name, modifier)
}

impl Modifier for Pop {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        let Some(current) = current else { return Ok(Effect::Keep) };
        let ValueRef::Array(array) = current else {
            return Err(Failure::type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                scene.trail,
                current.kind().alias()
            )));
        };
        scene.context.operation.work(array.as_document().len_bytes() / 64)?;
        let left = array.count().saturating_sub(1);
        let kept: ArrayBuf = match self {
            Self::First => array.iter().skip(1).collect(),
            Self::Last => array.iter().take(left).collect(),
        };
        Ok(Effect::Make(Value::Array(kept)))
    }

    fn on_blocked_path(&self) -> BlockedPath {
        BlockedPath::Refused
    }
}
