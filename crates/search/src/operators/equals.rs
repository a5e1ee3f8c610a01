//! `equals`: fields that hold a value.

use super::values::{Wanted, check_token, wanted};
use super::{Operator, does_not_affect, only_path};
use crate::Reader;
use crate::evaluation::Evaluation;
use crate::schema::Schema;
use crate::unit::Unit;
use bunko_errors::Result;

#[derive(Debug)]
struct Equals {
    path: String,
    value: Wanted,
    spares_facets: bool,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let path = only_path(reader)?;
    reader.value("value");
    // Null is a value, and not a missing one.
    let value = reader.required(reader.document().get("value"), "value")?;
    let spares_facets = !does_not_affect(reader)?.is_empty();
    Ok(Box::new(Equals { path, value: wanted(reader, "value", value)?, spares_facets }))
}

impl Operator for Equals {
    fn spares_facets(&self) -> bool {
        self.spares_facets
    }

    fn check(&self, schema: &Schema) -> Result<()> {
        if matches!(self.value, Wanted::Text(_)) { check_token(schema, &self.path) } else { Ok(()) }
    }

    fn score(&self, unit: &Unit<'_>, _: &Evaluation) -> Result<Option<f32>> {
        if matches!(self.value, Wanted::Number(number) if !number.is_finite()) {
            return Ok(None);
        }
        let is_there =
            unit.values(&self.path).any(|field| self.value.compare(field).is_some_and(std::cmp::Ordering::is_eq));
        Ok(is_there.then_some(1.0))
    }
}
