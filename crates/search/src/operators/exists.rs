//! `exists`: documents that have a field, whatever it holds.

use super::{Operator, only_path};
use crate::Reader;
use crate::evaluation::Evaluation;
use crate::unit::Unit;
use bunko_errors::Result;

#[derive(Debug)]
struct Exists {
    path: String,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Exists { path: only_path(reader)? }))
}

impl Exists {
    /// Whether a path is the searched path or below it.
    fn is(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.path.as_str());
        !self.path.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl Operator for Exists {
    fn score(&self, unit: &Unit<'_>, _: &Evaluation) -> Result<Option<f32>> {
        let mut paths =
            unit.fields.iter().map(|field| &field.path).chain(unit.children.iter().map(|child| &child.path));
        Ok(paths.any(|path| self.is(path)).then_some(1.0))
    }
}
