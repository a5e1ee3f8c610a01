//! `$addToSet`: appends values that an array does not contain yet.

use super::sorted_values::SortedValues;
use super::{Effect, Modifier, Operator, Scene};
use crate::trie::Plan;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, StringOrder, StringUse, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;

pub(super) const OPERATOR: Operator = Operator { name: "$addToSet", strings: StringUse::Collated, parse };

/// Number of values up to which comparing each with each element is fastest.
const FEW_VALUES: usize = 8;

/// The values to add, without duplicates.
#[derive(Debug)]
struct AddToSet {
    values: ArrayBuf,
    strings: StringOrder,
}

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let values = match field.value {
        ValueRef::Document(each) if each.first().is_some_and(|first| first.name == "$each") => {
            let values = parse_each(each)?;
            plan.will_take(values.as_document().len_bytes() + SortedValues::bytes_of(values.count()))?;
            distinct(values, plan.strings())
        }
        single => std::iter::once(single).collect(),
    };
    let strings = plan.strings().clone();
    plan.modify(field.name, AddToSet { values, strings })
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

fn distinct(values: ArrayRef<'_>, strings: &StringOrder) -> ArrayBuf {
    let mut kept = SortedValues::new(values, strings).distinct().into_iter().peekable();
    let is_kept = |(position, _): &(usize, ValueRef<'_>)| kept.next_if_eq(position).is_some();
    values.iter().enumerate().filter(is_kept).map(|(_, value)| value).collect()
}

/// For each value, whether `array` contains it.
fn held(array: ArrayRef<'_>, added: &AddToSet, operation: &OperationContext) -> Result<Vec<bool>> {
    let AddToSet { values, strings } = added;
    let mut held = vec![false; values.count()];
    if values.count() <= FEW_VALUES {
        for element in array.iter() {
            operation.work(1)?;
            for (held, value) in held.iter_mut().zip(values.as_ref().iter()) {
                *held = *held || strings.equal(value, element);
            }
        }
        return Ok(held);
    }
    operation.will_take(SortedValues::bytes_of(held.len()))?;
    let sorted = SortedValues::new(values.as_ref(), strings);
    for element in array.iter() {
        operation.work(1)?;
        if let Some(position) = sorted.find(element) {
            held[position] = true;
        }
    }
    Ok(held)
}

impl Modifier for AddToSet {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        match current {
            None => Ok(Effect::Set((&self.values).into())),
            Some(ValueRef::Array(array)) => {
                let held = held(array, self, scene.context.operation)?;
                if held.iter().all(|held| *held) {
                    return Ok(Effect::Keep);
                }
                let mut set = array.to_owned();
                for (value, _) in self.values.as_ref().iter().zip(held).filter(|(_, held)| !held) {
                    set.push(value);
                }
                Ok(Effect::Append(set))
            }
            Some(other) => Err(Failure::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                scene.trail.name(),
                other.kind().alias()
            ))),
        }
    }
}
