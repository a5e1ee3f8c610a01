//! `$near` and `$nearSphere`: documents by distance from a point, nearest first.
//!
//! The planner finds the documents and their order; as conditions these match every document.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::operands::{NearPoint, near_of};
use crate::parser::{FilterUse, Operand, Parser};
use crate::path::Path;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use std::sync::Arc;

pub(crate) const NEAR: FieldOperator =
    FieldOperator { name: "$near", strings: StringUse::AsBytes, parse: |parser, operand| misplaced(parser, operand) };
pub(crate) const NEAR_SPHERE: FieldOperator = FieldOperator {
    name: "$nearSphere",
    strings: StringUse::AsBytes,
    parse: |parser, operand| misplaced(parser, operand),
};
pub(crate) const GEO_NEAR: FieldOperator = FieldOperator {
    name: "$geoNear",
    strings: StringUse::AsBytes,
    parse: |parser, operand| misplaced(parser, operand),
};

/// Whether the operators of a field are a search by distance. All of them are then parsed together, since
/// `$maxDistance` may be a sibling of `$near`.
pub(crate) fn is_near(condition: DocumentRef<'_>) -> bool {
    condition.first().is_some_and(|first| {
        matches!(first.name, "$near" | "$nearSphere" | "$geoNear")
            && matches!(first.value, ValueRef::Document(_) | ValueRef::Array(_))
    })
}

pub(crate) fn parse(parser: &Parser<'_>, path: &Path, condition: DocumentRef<'_>) -> Result<Expression> {
    refuse_place(parser)?;
    let near = near_of(condition)?;
    let point = NearPoint { near: Arc::new(near), source: condition.to_owned() };
    Ok(Condition::Near(point).at(path))
}

fn misplaced(parser: &Parser<'_>, operand: &Operand<'_>) -> Result<Expression> {
    refuse_place(parser)?;
    let text = ValueText(ValueRef::Document(operand.siblings));
    Err(Failure::bad_value(format!("near must be first in: {text}")))
}

fn refuse_place(parser: &Parser<'_>) -> Result<()> {
    match parser.place {
        FilterUse::Plan => Ok(()),
        FilterUse::Stage | FilterUse::Elsewhere => {
            let message = "$geoNear, $near, and $nearSphere are not allowed in this context";
            Err(Failure::new(ErrorCode(5_626_500), message))
        }
    }
}
