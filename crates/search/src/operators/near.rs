//! `near`: the nearer a number, a date or a point, the better: `pivot / (pivot + distance)`.

use super::values::number_of;
use super::{Operator, string_paths};
use crate::evaluation::Evaluation;
use crate::geography::Point;
use crate::schema::Schema;
use crate::unit::{Field, Unit};
use crate::{FieldType, Reader};
use bunko_bson::{ValueRef, number};
use bunko_errors::Result;

#[derive(Debug)]
struct Near {
    paths: Vec<String>,
    origin: Origin,
    pivot: f64,
}

#[derive(Debug)]
enum Origin {
    Number(f64),
    Date(i64),
    Point(Point),
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let paths = string_paths(reader)?;
    let pivot = reader.required(reader.number("pivot")?, "pivot")?;
    if !(pivot > 0.0 && pivot.is_finite()) {
        return Err(reader.wrong("pivot", "must be positive and finite"));
    }
    let origin = match reader.required(reader.value("origin"), "origin")? {
        value @ (ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_)) => {
            Origin::Number(number::as_f64(value).unwrap_or(f64::NAN))
        }
        ValueRef::DateTime(at) => Origin::Date(at),
        ValueRef::Document(_) => Origin::Point(Point::parse(&reader.required(reader.inner("origin")?, "origin")?)?),
        _ => return Err(reader.wrong("origin", "must be a number, date, or geo point")),
    };
    Ok(Box::new(Near { paths, origin, pivot }))
}

impl Near {
    fn distance(&self, field: &Field<'_>) -> Option<f64> {
        match (&self.origin, field.value) {
            (Origin::Number(origin), value) => Some((number_of(field, value)? - origin).abs()),
            (Origin::Date(origin), ValueRef::DateTime(at)) => {
                field.types.has(|kind| matches!(kind, FieldType::Date)).then(|| at.abs_diff(*origin) as f64)
            }
            (Origin::Point(origin), value) => {
                let is_geo = field.types.mapped().iter().any(|kind| matches!(kind, FieldType::Geo { .. }));
                Some(Point::stored(value).filter(|_| is_geo)?.distance(*origin))
            }
            _ => None,
        }
    }
}

impl Operator for Near {
    fn check(&self, schema: &Schema) -> Result<()> {
        if !matches!(self.origin, Origin::Point(_)) {
            return Ok(());
        }
        self.paths.iter().try_for_each(|path| super::geo_within::check_geo(schema, path))
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let score = |distance: f64| {
            let score = self.pivot / (self.pivot + distance);
            if score.is_nan() { 0.0 } else { score as f32 }
        };
        let mut best: Option<f32> = None;
        for path in &self.paths {
            let scores =
                unit.values_within(path, &evaluation.operation)?.filter_map(|field| self.distance(field)).map(score);
            best = scores.chain(best).max_by(f32::total_cmp);
        }
        Ok(best)
    }
}
