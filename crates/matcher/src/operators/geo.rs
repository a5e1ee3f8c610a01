//! `$geoWithin` (formerly `$within`) and `$geoIntersects`: compare a geometry in a document with one in the query.

use super::FieldOperator;
use crate::expression::{Condition, Expression};
use crate::operands::Geo;
use crate::parser::{Operand, Parser};
use bunko_bson::text::ValueText;
use bunko_bson::{StringUse, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_geometry::{Question, Region};
use std::sync::Arc;

/// Memory for parsing a region, as a multiple of its document's size: points as numbers and as vectors, edges, and
/// their order.
const REGION_PARTS: usize = 6;

pub(crate) const GEO_WITHIN: FieldOperator = FieldOperator {
    name: "$geoWithin",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, Question::Within),
};
pub(crate) const WITHIN: FieldOperator = FieldOperator {
    name: "$within",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, Question::Within),
};
pub(crate) const GEO_INTERSECTS: FieldOperator = FieldOperator {
    name: "$geoIntersects",
    strings: StringUse::AsBytes,
    parse: |parser, operand| parse(parser, operand, Question::Intersects),
};

fn parse(parser: &Parser<'_>, operand: &Operand<'_>, question: Question) -> Result<Expression> {
    // Unlike other operators, a geo operator must be the only one of its field.
    if operand.siblings.first().is_none_or(|first| first.name != operand.name) {
        let text = ValueText(ValueRef::Document(operand.siblings));
        return Err(Failure::bad_value(format!("invalid geo query: {text}")));
    }
    if let Some(extra) = operand.siblings.iter().nth(1) {
        return Err(Failure::bad_value(format!("can't parse extra field: {}: {}", extra.name, ValueText(extra.value))));
    }
    let ValueRef::Document(source) = operand.value else {
        return Err(Failure::bad_value(format!(
            "{} must be an object, found {}",
            operand.name,
            ValueText(operand.value)
        )));
    };
    parser.will_take(REGION_PARTS * source.len_bytes())?;
    let region = Region::parse(source, question).map_err(Failure::bad_value)?;
    let geo = Geo { question, region: Arc::new(region), name: operand.name, source: source.to_owned() };
    Ok(Condition::Geo(geo).at(operand.path))
}
