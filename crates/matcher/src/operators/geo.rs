//! `$geoWithin` (formerly `$within`) and `$geoIntersects`: compare a geometry in a document with one in the query.

use super::FieldOperator;
use crate::evaluate::Evaluation;
use crate::expression::Expression;
use crate::parse::{Operand, Parser};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef, order};
use bunko_errors::{Failure, Result};
use bunko_geometry::{Effort, Question, Region, Stored};
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

/// A condition on geometries.
#[derive(Clone, Debug)]
pub struct Geo {
    /// The question about the document's geometry.
    pub question: Question,
    /// The geometry in the query.
    pub region: Arc<Region>,
    name: &'static str,
    source: DocumentBuf,
}

impl Geo {
    /// The condition to be within a region.
    /// # Errors
    /// `BadValue` if it is not a region.
    pub(crate) fn within(region: DocumentRef<'_>) -> Result<Self> {
        let parsed = Region::parse(region, Question::Within).map_err(Failure::bad_value)?;
        let (question, source) = (Question::Within, region.to_owned());
        Ok(Self { question, region: Arc::new(parsed), name: GEO_WITHIN.name, source })
    }

    /// The operand as written.
    pub(crate) fn source(&self) -> &DocumentBuf {
        &self.source
    }

    /// Whether the conditions are equal, up to the types of numbers.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.question == other.question && order::compare_documents(self.source.as_ref(), other.source.as_ref()).is_eq()
    }

    /// The operator and its operand as written.
    pub(crate) fn to_document(&self) -> DocumentBuf {
        DocumentBuf::new().with(self.name, &self.source)
    }
}

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
    Ok(Expression::Geo { path: operand.path.clone(), geo })
}

/// Counts comparisons as work of the operation.
struct Counted<'e, 'o>(&'e mut Evaluation<'o>);

impl Effort for Counted<'_, '_> {
    fn goes_on(&mut self, steps: usize) -> bool {
        self.0.goes_on(steps)
    }
}

/// Whether a value is a geometry that satisfies the condition.
pub(crate) fn matches(geo: &Geo, value: Option<ValueRef<'_>>, evaluation: &mut Evaluation<'_>) -> bool {
    let Some(value @ (ValueRef::Document(_) | ValueRef::Array(_))) = value else { return false };
    Stored::parse(value).is_ok_and(|stored| geo.region.matches(geo.question, &stored, &mut Counted(evaluation)))
}
