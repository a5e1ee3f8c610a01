//! `$push`: adds values to an array, then sorts and shortens it: `$each`, `$position`, `$sort`, `$slice`.

use super::push_sort::PushSort;
use super::{Effect, Modifier, Operator, Scene, whole_number};
use crate::trie::Plan;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentRef, Element, StringOrder, StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;

pub(super) const OPERATOR: Operator = Operator { name: "$push", strings: StringUse::Collated, parse };

#[derive(Debug, Default)]
struct Push {
    values: ArrayBuf,
    /// The insertion position, counted from the end if negative; `None` means the end.
    position: Option<i64>,
    sort: Option<PushSort>,
    /// Number of elements to keep: the first ones, or the last ones if negative.
    slice: Option<i64>,
    strings: StringOrder,
}

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let push = match field.value {
        ValueRef::Document(clauses) if clauses.get("$each").is_some() => Push::parse(clauses, plan.strings())?,
        single => Push { values: [single].into_iter().collect(), ..Push::default() },
    };
    plan.modify(field.name, push)
}

impl Push {
    fn parse(clauses: DocumentRef<'_>, strings: &StringOrder) -> Result<Self> {
        let mut push = Self { strings: strings.clone(), ..Self::default() };
        for clause in clauses {
            match clause.name {
                "$each" => push.values = parse_each(clause.value)?.to_owned(),
                "$position" => push.position = Some(parse_position(clause.value)?),
                "$sort" => push.sort = Some(PushSort::parse(clause.value)?),
                "$slice" => push.slice = Some(parse_slice(clause.value)?),
                other => return Err(Failure::bad_value(format!("Unrecognized clause in $push: {other}"))),
            }
        }
        Ok(push)
    }

    /// Whether values are only appended to an array of `count` elements, so that its bytes can be kept.
    fn only_appends(&self, count: usize) -> bool {
        self.position.is_none_or(|position| insertion_point(position, count) == count)
            && self.sort.is_none()
            && self.slice.is_none()
    }

    fn rearrange(&self, array: ArrayRef<'_>, operation: &OperationContext) -> Result<ArrayBuf> {
        let mut values: Vec<ValueRef<'_>> = array.iter().collect();
        let at = self.position.map_or(values.len(), |position| insertion_point(position, values.len()));
        values.splice(at..at, self.values.as_ref().iter());
        if let Some(sort) = &self.sort {
            values = sort.sorted(&values, &self.strings, operation)?;
        }
        if let Some(slice) = self.slice {
            let kept = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX).min(values.len());
            let dropped = values.len() - kept;
            values.drain(if slice < 0 { 0..dropped } else { kept..values.len() });
        }
        Ok(values.into_iter().collect())
    }
}

fn insertion_point(position: i64, count: usize) -> usize {
    let distance = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
    if position < 0 { count.saturating_sub(distance) } else { distance.min(count) }
}

fn parse_each(value: ValueRef<'_>) -> Result<ArrayRef<'_>> {
    value.as_array().ok_or_else(|| {
        Failure::bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {}",
            value.kind().alias()
        ))
    })
}

fn parse_position(value: ValueRef<'_>) -> Result<i64> {
    whole_number(value).ok_or_else(|| {
        Failure::bad_value(format!(
            "The value for $position must be an integer value, not of type: {}",
            value.kind().alias()
        ))
    })
}

fn parse_slice(value: ValueRef<'_>) -> Result<i64> {
    whole_number(value).ok_or_else(|| {
        Failure::bad_value(format!(
            "The value for $slice must be an integer value but was given type: {}",
            value.kind().alias()
        ))
    })
}

impl Modifier for Push {
    fn modify<'a>(&'a self, current: Option<ValueRef<'a>>, scene: &Scene<'a>) -> Result<Effect<'a>> {
        let array = match current {
            None => ArrayRef::EMPTY,
            Some(ValueRef::Array(array)) => array,
            Some(other) => {
                return Err(Failure::bad_value(format!(
                    "The field '{}' must be an array but is of type {} in document {{{}}}",
                    scene.trail,
                    other.kind().alias(),
                    scene.id()
                )));
            }
        };
        let operation = scene.context.operation;
        operation.work((array.as_document().len_bytes() + self.values.as_ref().as_document().len_bytes()) / 64)?;
        if !self.only_appends(self.position.map_or(0, |_| array.iter().count())) {
            return Ok(Effect::Make(Value::Array(self.rearrange(array, operation)?)));
        }
        if self.values.as_ref().iter().next().is_none() && current.is_some() {
            return Ok(Effect::Keep);
        }
        let mut pushed = array.to_owned();
        for value in self.values.as_ref().iter() {
            pushed.push(value);
        }
        Ok(Effect::Append(pushed))
    }
}
