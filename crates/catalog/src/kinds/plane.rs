//! Indexes of points on a plane by squares of a grid, with other fields by their values: `{a: '2d', b: 1}`.

use super::sphere::plain_values;
use crate::geo_index::grid;
use crate::index_kind::{Answers, IndexKind, KeySet, KindEntry, ReadKind};
use crate::key_pattern::read_fields;
use crate::{IndexSpec, Multikey};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_geometry::{FlatPoint, Grid, values_at};
use std::sync::Arc;

pub(super) const ENTRY: KindEntry = KindEntry { name: NAME, options: &["bits", "min", "max"], read };

const NAME: &str = "2d";

#[derive(Debug)]
struct Plane {
    grid: Grid,
}

fn read(key: DocumentRef<'_>, spec: DocumentRef<'_>) -> Result<ReadKind> {
    let fields = read_fields(key)?;
    if key.iter().filter(|field| field.value.as_str() == Some(NAME)).count() > 1 {
        return Err(Failure::new(ErrorCode(16800), "can't have 2 geo fields"));
    }
    if key.first().is_none_or(|first| first.value.as_str() != Some(NAME)) {
        return Err(Failure::new(ErrorCode(16801), "2d has to be first in index"));
    }
    let mut options = DocumentBuf::new();
    for name in ["bits", "min", "max"] {
        let Some(value) = spec.get(name) else { continue };
        if !value.is_number() {
            return Err(super::wrong_number(name, value));
        }
        options.append(name, value);
    }
    if let Some(bits) = spec.get("bits") {
        let is_right = number::as_i64_exact(bits).is_some_and(|bits| (1..=32).contains(&bits));
        if !is_right || matches!(bits, ValueRef::Decimal128(_)) {
            let message = format!("bits for hash must be > 0 and <= 32, but {} bits were specified", ValueText(bits));
            return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
        }
    }
    let grid = grid(spec);
    if !grid.min.is_finite() || !grid.max.is_finite() || grid.min >= grid.max {
        let message = format!(
            "region for hash must be valid and have positive area, but [{}, {}] was specified",
            grid.min, grid.max
        );
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    Ok(ReadKind { kind: Arc::new(Plane { grid }), fields, key: None, options })
}

impl IndexKind for Plane {
    fn name(&self) -> &'static str {
        NAME
    }

    fn keys(&self, index: &IndexSpec, document: DocumentRef<'_>, keys: &mut KeySet<'_>) -> Result<Multikey> {
        let Some((first, others)) = index.fields.split_first() else { return Ok(Multikey::default()) };
        let mut squares = Vec::new();
        for value in values_at(document, &first.path) {
            self.add_squares(value, &mut squares)?;
        }
        if squares.is_empty() {
            return Ok(Multikey::default());
        }
        let mut parts = vec![squares];
        for field in others {
            let values = plain_values(document, &field.path)?;
            parts.push(if values.is_empty() { vec![Value::Null] } else { values });
        }
        super::add_combinations(index, &parts, keys)?;
        Ok(Multikey::default())
    }

    fn answers(&self) -> Answers {
        Answers::ByItself
    }

    fn check_strings(&self, strings: &StringOrder) -> Result<()> {
        super::refuse_strings(NAME, strings)
    }
}

impl Plane {
    /// Adds the number of the square of a pair of coordinates, or of each pair in an array. Empty pairs have none.
    fn add_squares(&self, value: ValueRef<'_>, squares: &mut Vec<Value>) -> Result<()> {
        let fields = match value {
            ValueRef::Array(array) => array.as_document(),
            ValueRef::Document(document) => document,
            _ => return Ok(()),
        };
        match fields.first() {
            None => Ok(()),
            Some(first) if first.value.is_number() => {
                squares.push(Value::Int64(self.square(fields)?));
                Ok(())
            }
            Some(_) => {
                for element in fields {
                    let pair = match element.value {
                        ValueRef::Array(array) => array.as_document(),
                        ValueRef::Document(document) => document,
                        _ => {
                            let message = "location object expected, location array not in correct format";
                            return Err(Failure::new(ErrorCode(16804), message));
                        }
                    };
                    if !pair.is_empty() {
                        squares.push(Value::Int64(self.square(pair)?));
                    }
                }
                Ok(())
            }
        }
    }

    fn square(&self, pair: DocumentRef<'_>) -> Result<i64> {
        let mut fields = pair.iter().map(|field| field.value);
        let mut coordinate = || fields.next().filter(|value| value.is_number()).and_then(number::as_f64);
        let (Some(x), Some(y)) = (coordinate(), coordinate()) else {
            let message = "geo values must be 'legacy coordinate pairs' for 2d indexes";
            return Err(Failure::new(ErrorCode(13026), message));
        };
        let point = FlatPoint { x, y };
        if !self.grid.holds(point) {
            let Grid { min, max, .. } = self.grid;
            let message = format!("point not in interval of [ {min}, {max} ] :: caused by :: {{ 0: {x}, 1: {y} }}");
            return Err(Failure::new(ErrorCode(13027), message));
        }
        Ok(self.grid.number(point))
    }
}
