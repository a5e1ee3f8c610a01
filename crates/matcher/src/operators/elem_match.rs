//! `$elemMatch`: one array element satisfies all conditions.

use super::{FieldOperator, is_top_level};
use crate::expression::{Condition, Expression};
use crate::parser::{Parser, is_operator};
use crate::path::Path;
use bunko_bson::{DocumentRef, StringUse, ValueRef};
use bunko_errors::{Failure, Result};

pub(crate) const ELEM_MATCH: FieldOperator = FieldOperator {
    name: "$elemMatch",
    strings: StringUse::Collated,
    parse: |parser, operand| parse(parser, operand.path, operand.value),
};

/// Parses either form: operators apply to the element itself, any other document is a filter on its fields.
pub(crate) fn parse(parser: &Parser<'_>, path: &Path, operand: ValueRef<'_>) -> Result<Expression> {
    let ValueRef::Document(condition) = operand else {
        return Err(Failure::bad_value("$elemMatch needs an Object"));
    };
    let parser = parser.inside_element();
    let condition = if is_on_values(condition) {
        Condition::ElemMatchValue(Box::new(parser.operators(&Path::itself(), condition)?))
    } else {
        Condition::ElemMatchObject(Box::new(parser.filter(condition)?))
    };
    Ok(condition.at(path))
}

fn is_on_values(condition: DocumentRef<'_>) -> bool {
    condition.first().is_some_and(|first| is_operator(first.name) && !is_top_level(first.name))
}
