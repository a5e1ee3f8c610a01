//! `$addToSet`: appends values that an array does not hold yet.

use super::{Effect, Modifier, Operator, Scene};
use crate::trie::Plan;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, Value, ValueRef, order};
use bunko_errors::{Failure, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$addToSet", parse };

/// The values to add, each once.
#[derive(Debug)]
struct AddToSet(ArrayBuf);

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let mut values = ArrayBuf::new();
    match field.value {
        ValueRef::Document(each) if each.first().is_some_and(|first| first.name == "$each") => {
            add_missing(&mut values, parse_each(each)?);
        }
        single => {
            values.push(single);
        }
    }
    plan.modify(field.name, AddToSet(values))
}

fn parse_each(argument: DocumentRef<'_>) -> Result<ArrayRef<'_>> {
    let each = argument.get("$each").unwrap_or(ValueRef::Null);
    let ValueRef::Array(values) = each else {
        return Err(Failure::type_mismatch(format!(
            "The argument to $each in $addToSet must be an array but it was of type {}",
            each.kind().alias()
        )));
    };
    if argument.count() > 1 {
        return Err(Failure::bad_value(format!(
            "Found unexpected fields after $each in $addToSet: {}",
            ValueText(argument.into())
        )));
    }
    Ok(values)
}

fn add_missing(set: &mut ArrayBuf, values: ArrayRef<'_>) {
    for value in values.iter() {
        if !set.as_ref().iter().any(|held| order::equal(held, value)) {
            set.push(value);
        }
    }
}

impl Modifier for AddToSet {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        match current {
            None => Ok(Effect::Set((&self.0).into())),
            Some(ValueRef::Array(array)) => {
                let mut set = array.to_owned();
                add_missing(&mut set, self.0.as_ref());
                Ok(if set.count() == array.count() { Effect::Keep } else { Effect::Make(Value::Array(set)) })
            }
            Some(other) => Err(Failure::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                scene.trail.name(),
                other.kind().alias()
            ))),
        }
    }
}
