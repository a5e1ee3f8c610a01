//! `in`: fields that hold one of several values.

use super::values::{Wanted, check_token, number_of, wanted};
use super::{Operator, does_not_affect, string_paths};
use crate::Reader;
use crate::evaluation::Evaluation;
use crate::schema::Schema;
use crate::unit::{Field, Unit};
use bunko_bson::ValueRef;
use bunko_errors::Result;

#[derive(Debug)]
struct In {
    paths: Vec<String>,
    values: Vec<Wanted>,
    spares_facets: bool,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let paths = string_paths(reader)?;
    reader.value("value");
    let spares_facets = !does_not_affect(reader)?.is_empty();
    let values = match reader.required(reader.document().get("value"), "value")? {
        ValueRef::Array(array) => {
            array.iter().map(|value| wanted(reader, "value", value)).collect::<Result<Vec<_>>>()?
        }
        ValueRef::Null => return Err(reader.wrong("value", "is required")),
        other => vec![wanted(reader, "value", other)?],
    };
    let Some(first) = values.first() else { return Err(reader.wrong("value", "cannot be empty")) };
    if !values.iter().all(|value| value.is_like(first)) {
        return Err(reader.wrong("value", "must have elements of one type"));
    }
    Ok(Box::new(In { paths, values, spares_facets }))
}

impl In {
    fn has(&self, field: &Field<'_>) -> bool {
        self.values.iter().any(|value| match value {
            Wanted::Number(own) if own.is_nan() => number_of(field, field.value).is_some_and(f64::is_nan),
            other => other.compare(field).is_some_and(std::cmp::Ordering::is_eq),
        })
    }
}

impl Operator for In {
    fn spares_facets(&self) -> bool {
        self.spares_facets
    }

    fn check(&self, schema: &Schema) -> Result<()> {
        if matches!(self.values.first(), Some(Wanted::Text(_))) {
            self.paths.iter().try_for_each(|path| check_token(schema, path))?;
        }
        Ok(())
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        for path in &self.paths {
            for field in unit.values_within(path, &evaluation.operation)? {
                evaluation.operation.work(1 + self.values.len() / 8)?;
                if self.has(field) {
                    return Ok(Some(1.0));
                }
            }
        }
        Ok(None)
    }
}
