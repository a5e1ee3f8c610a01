//! `range`: fields that hold a value between bounds.

use super::values::Wanted;
use super::{Operator, does_not_affect, string_paths};
use crate::evaluation::Evaluation;
use crate::schema::{Schema, Types};
use crate::unit::{Field, Unit};
use crate::{FieldType, Reader, Refusal};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use std::cmp::Ordering;

#[derive(Debug)]
struct Range {
    paths: Vec<String>,
    lower: Option<Bound>,
    upper: Option<Bound>,
    spares_facets: bool,
}

#[derive(Debug)]
struct Bound {
    value: Wanted,
    is_inside: bool,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let paths = string_paths(reader)?;
    let spares_facets = !does_not_affect(reader)?.is_empty();
    let lower = bound(reader, "gt", "gte")?;
    let upper = bound(reader, "lt", "lte")?;
    match (&lower, &upper) {
        (None, None) => return Err(reader.failure("must have at least one of [gt, gte, lt, lte]")),
        (Some(lower), Some(upper)) => check_interval(reader, lower, upper)?,
        _ => {}
    }
    Ok(Box::new(Range { paths, lower, upper, spares_facets }))
}

fn bound(reader: &Reader<'_>, outside: &str, inside: &str) -> Result<Option<Bound>> {
    let (open, closed) = (reader.document().get(outside), reader.document().get(inside));
    reader.value(outside);
    reader.value(inside);
    let (name, value, is_inside) = match (open, closed) {
        (Some(_), Some(_)) => return Err(reader.failure(&format!("only one of [{outside}, {inside}] may be present"))),
        (Some(value), None) => (outside, value, false),
        (None, Some(value)) => (inside, value, true),
        (None, None) => return Ok(None),
    };
    let wrong = || reader.wrong(name, "must be a number, string, date, or objectId");
    let value = match value {
        ValueRef::Boolean(_) | ValueRef::Null | ValueRef::Binary { .. } => return Err(wrong()),
        value => Wanted::read(value).ok_or_else(wrong)?,
    };
    Ok(Some(Bound { value, is_inside }))
}

fn check_interval(reader: &Reader<'_>, lower: &Bound, upper: &Bound) -> Result<()> {
    let order = match (&lower.value, &upper.value) {
        (Wanted::Number(lower), Wanted::Number(upper)) => lower.partial_cmp(upper),
        (Wanted::Date(lower), Wanted::Date(upper)) => Some(lower.cmp(upper)),
        (Wanted::Text(lower), Wanted::Text(upper)) => Some(lower.cmp(upper)),
        (Wanted::ObjectId(lower), Wanted::ObjectId(upper)) => Some(lower.cmp(upper)),
        _ => return Err(reader.failure("bounds must be of the same type")),
    };
    match order {
        Some(Ordering::Greater) => Err(reader.failure("lower bound must not be greater than upper bound")),
        Some(Ordering::Equal) if !(lower.is_inside && upper.is_inside) => {
            Err(reader.failure("bounds must not exclude all values"))
        }
        _ => Ok(()),
    }
}

impl Range {
    fn takes(&self, field: &Field<'_>) -> bool {
        let above = self.lower.as_ref().is_none_or(|bound| match bound.value.compare(field) {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) => bound.is_inside,
            _ => false,
        });
        above
            && self.upper.as_ref().is_none_or(|bound| match bound.value.compare(field) {
                Some(Ordering::Less) => true,
                Some(Ordering::Equal) => bound.is_inside,
                _ => false,
            })
    }
}

impl Operator for Range {
    fn spares_facets(&self) -> bool {
        self.spares_facets
    }

    fn check(&self, schema: &Schema) -> Result<()> {
        let is_text =
            |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| matches!(bound.value, Wanted::Text(_)));
        if !is_text(&self.lower) && !is_text(&self.upper) {
            return Ok(());
        }
        for path in &self.paths {
            let types = schema.types(path);
            let can_be_none = types.mapped().iter().any(|kind| matches!(kind, FieldType::Number { .. }));
            if types.token().is_none() && !can_be_none && !matches!(types, Types::None) {
                let message = format!("Path '{path}' needs to be indexed as token");
                return Err(Refusal::Query.failure(message));
            }
        }
        Ok(())
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        for path in &self.paths {
            if unit.values_within(path, &evaluation.operation)?.any(|field| self.takes(field)) {
                return Ok(Some(1.0));
            }
        }
        Ok(None)
    }
}
