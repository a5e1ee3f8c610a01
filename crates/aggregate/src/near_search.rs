//! The search of `$geoNear`.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Expression;
use bunko_matcher::near_of;
use bunko_query::{NearAsked, NearOutput, QueryScope};
use std::sync::Arc;

/// The stage as sent. Points and distances may be variables, whose values are known only when it is opened.
#[derive(Clone)]
pub struct GeoNear {
    pub(crate) near: Arc<Expression>,
    pub(crate) min: Option<Arc<Expression>>,
    pub(crate) max: Option<Arc<Expression>>,
    pub(crate) key: Option<String>,
    pub(crate) output: NearOutput,
    /// `$nearSphere` or `$near`.
    pub(crate) operator: &'static str,
    pub(crate) query: DocumentBuf,
}

impl GeoNear {
    /// The filter for the documents to search.
    pub(crate) fn query(&self) -> DocumentRef<'_> {
        self.query.as_ref()
    }

    /// The search for the planner. `None` while a variable of an enclosing stage has no value, as when the pipeline is
    /// only checked.
    /// # Errors
    /// 5860401 for a value that is not a point, `TypeMismatch` and `BadValue` for distances; errors of the point.
    pub fn asked(&self, scope: &QueryScope) -> Result<Option<NearAsked>> {
        let context = scope.context(DocumentRef::EMPTY);
        let near = self.near.evaluate(&context)?;
        let Some(near) = near.get() else { return Ok(None) };
        if !matches!(near, ValueRef::Document(_) | ValueRef::Array(_)) {
            let kind = near.kind().alias();
            let message = format!("$geoNear requires that 'near' is an object or an array, found: {kind}");
            return Err(Failure::new(ErrorCode(5_860_401), message));
        }
        let mut operators = DocumentBuf::new().with(self.operator, near);
        for (field, name, expression) in
            [("minDistance", "$minDistance", &self.min), ("maxDistance", "$maxDistance", &self.max)]
        {
            let Some(expression) = expression else { continue };
            let distance = expression.evaluate(&context)?;
            let Some(distance) = distance.get() else { return Ok(None) };
            operators.append(name, not_negative(field, distance)?);
        }
        let near = near_of(operators.as_ref())?;
        Ok(Some(NearAsked { path: self.key.clone(), near: Arc::new(near), output: self.output.clone() }))
    }
}

pub(crate) fn not_negative(name: &str, value: ValueRef<'_>) -> Result<f64> {
    let Some(number) = number::as_f64(value).filter(|_| value.is_number()) else {
        return Err(Failure::type_mismatch(format!(
            "$geoNear requires that the '{name}' option is a number, found: {}",
            value.kind().alias()
        )));
    };
    if number >= 0.0 {
        return Ok(number);
    }
    Err(Failure::bad_value(format!("$geoNear requires that the '{name}' option is nonnegative, found: {number}")))
}
