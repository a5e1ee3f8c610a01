//! `$type`: the types of values, by number, alias, `"number"` or a list of those.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::operands::TypeSet;
use crate::parser::Operand;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const TYPE: FieldOperator =
    FieldOperator { name: "$type", strings: StringUse::AsBytes, parse: |_, operand| parse(operand) };

fn parse(operand: &Operand<'_>) -> Result<Expression> {
    let mut types = TypeSet::default();
    match operand.value {
        ValueRef::Array(list) if list.is_empty() => {
            return Err(Failure::failed_to_parse(format!("{} must match at least one type", operand.path)));
        }
        ValueRef::Array(list) => list.iter().try_for_each(|value| types.insert(value).map(drop))?,
        value => drop(types.insert(value)?),
    }
    Ok(Condition::Type(types.sorted()).at(operand.path))
}
