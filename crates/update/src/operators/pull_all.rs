//! `$pullAll`: removes array elements that equal a value of a list.

use super::Operator;
use super::array_cull::{ArrayCull, Culling};
use crate::trie::Plan;
use bunko_bson::{Element, StringOrder, StringUse, Value, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;

pub(super) const OPERATOR: Operator = Operator { name: "$pullAll", strings: StringUse::Collated, parse };

/// The values in sorted order.
#[derive(Debug)]
struct Listed {
    values: Vec<Value>,
    strings: StringOrder,
}

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let ValueRef::Array(values) = field.value else {
        return Err(Failure::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            field.value.kind().alias()
        )));
    };
    plan.will_take(2 * values.count() * size_of::<Value>())?;
    let mut listed: Vec<Value> = values.iter().map(ValueRef::to_value).collect();
    let strings = plan.strings().clone();
    listed.sort_by(|a, b| strings.compare(a.as_ref(), b.as_ref()));
    plan.modify(field.name, ArrayCull(Listed { values: listed, strings }))
}

impl Culling for Listed {
    fn removes(&self, element: ValueRef<'_>, _operation: &OperationContext) -> Result<bool> {
        Ok(self.values.binary_search_by(|value| self.strings.compare(value.as_ref(), element)).is_ok())
    }
}
