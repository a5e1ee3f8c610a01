//! `$pullAll`: removes an array's elements that equal one of a list.

use super::Operator;
use super::array_cull::{ArrayCull, Culling};
use crate::trie::Plan;
use bunko_bson::{ArrayBuf, Element, ValueRef, order};
use bunko_errors::{Failure, Result};

pub(super) const OPERATOR: Operator = Operator { name: "$pullAll", parse };

#[derive(Debug)]
struct Listed(ArrayBuf);

fn parse(plan: &mut Plan, field: Element<'_>) -> Result<()> {
    let ValueRef::Array(values) = field.value else {
        return Err(Failure::bad_value(format!(
            "$pullAll requires an array argument but was given a {}",
            field.value.kind().alias()
        )));
    };
    plan.modify(field.name, ArrayCull(Listed(values.to_owned())))
}

impl Culling for Listed {
    fn removes(&self, element: ValueRef<'_>) -> bool {
        self.0.as_ref().iter().any(|value| order::equal(value, element))
    }
}
