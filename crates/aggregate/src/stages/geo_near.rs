//! `$geoNear`: documents of the collection by distance from a point. The query planner runs it.

use super::geo_near_distance::GeoNearDistance;
use super::search_filter::{refuse_elsewhere_only, visit_conditions};
use super::{Definition, Plannable, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::near_search::{GeoNear, not_negative};
use crate::{DocumentStream, Environment};
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Evaluated, Expression, FieldPath, Offered};
use bunko_matcher::Path;
use bunko_query::NearOutput;
use bunko_timeseries::TimeSeries;
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::GEO_NEAR, strings: StringUse::AsBytes, parse };

/// Errors: 10065 if it is not a document; `TypeMismatch`, `BadValue`, 16606 and 16607 for fields; 5860400 without
/// `near`; 5860402, 7555701 and 7555702 for values that depend on a document; 50856 to 50858 for obsolete fields;
/// errors of the filter.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let specification = match value {
        ValueRef::Document(specification) => specification,
        ValueRef::Array(array) => array.as_document(),
        other => {
            let message = format!("invalid parameter: expected an object ($geoNear), found: {}", other.kind().alias());
            return Err(Failure::new(ErrorCode(10065), message));
        }
    };
    let mut reader = Reader::default();
    if matches!(value, ValueRef::Document(_)) {
        for field in specification {
            reader.field(field.name, field.value, environment)?;
        }
    }
    let Some(near) = reader.near else {
        return Err(Failure::new(ErrorCode(5_860_400), "$geoNear requires a 'near' argument"));
    };
    let stage = GeoNear {
        near,
        min: reader.min,
        max: reader.max,
        key: reader.key,
        output: reader.output,
        operator: if reader.is_spherical { "$nearSphere" } else { "$near" },
        query: reader.query,
    };
    // Errors in values that are known already must not wait until the stage is opened.
    stage.asked(&environment.scope)?;
    Ok(vec![Box::new(stage)])
}

#[derive(Default)]
struct Reader {
    near: Option<Arc<Expression>>,
    min: Option<Arc<Expression>>,
    max: Option<Arc<Expression>>,
    key: Option<String>,
    output: NearOutput,
    is_spherical: bool,
    query: DocumentBuf,
}

impl Reader {
    fn field(&mut self, name: &str, value: ValueRef<'_>, environment: &Environment) -> Result<()> {
        match name {
            "near" => self.near = Some(constant(name, 5_860_402, value, environment)?),
            "minDistance" => self.min = Some(constant(name, 7_555_701, value, environment)?),
            "maxDistance" => self.max = Some(constant(name, 7_555_702, value, environment)?),
            "distanceField" => self.output.distance_field = Some(written_path(name, 16606, value)?),
            "includeLocs" => self.output.geometry_field = Some(written_path(name, 16607, value)?),
            "distanceMultiplier" => self.output.multiplier = Some(not_negative(name, value)?),
            "spherical" => self.is_spherical = Evaluated::Ref(value).is_true(),
            // Obsolete: it mattered when a document could be returned several times.
            "uniqueDocs" => {}
            "query" => self.query = query(value, environment)?,
            "key" => self.key = Some(key(value)?),
            "limit" => return Err(of_old(50858, "'limit' parameter. Use a $limit stage instead.")),
            "num" => return Err(of_old(50857, "'num' parameter. Use a $limit stage instead.")),
            "start" => return Err(of_old(50856, "'start' argument.")),
            _ => return Err(Failure::bad_value(format!("Unknown argument to $geoNear: {name}"))),
        }
        Ok(())
    }
}

fn of_old(code: i32, what: &str) -> Failure {
    Failure::new(ErrorCode(code), format!("$geoNear no longer supports the {what}"))
}

/// Parses an expression that depends on no document, so that it has one value.
fn constant(name: &str, code: i32, value: ValueRef<'_>, environment: &Environment) -> Result<Arc<Expression>> {
    let expression = Expression::parse(value, &environment.scope.parse_scope())?;
    let mut dependencies = Dependencies::default();
    expression.add_dependencies(&mut dependencies);
    if dependencies != Dependencies::default() || !expression.is_constant() {
        let message = format!("$geoNear requires '{name}' to be constant, found: {}", ValueText(value));
        return Err(Failure::new(ErrorCode(code), message));
    }
    Ok(Arc::new(expression))
}

/// Reads a path that the stage writes to.
fn written_path(name: &str, code: i32, value: ValueRef<'_>) -> Result<String> {
    let ValueRef::String(path) = value else {
        let message = format!("$geoNear requires that the '{name}' option is a String");
        return Err(Failure::new(ErrorCode(code), message));
    };
    FieldPath::parse(path)?;
    Ok(path.to_owned())
}

fn query(value: ValueRef<'_>, environment: &Environment) -> Result<DocumentBuf> {
    let ValueRef::Document(filter) = value else {
        let kind = value.kind().alias();
        let message = format!("$geoNear requires that the 'query' option is an object, found: {kind}");
        return Err(Failure::type_mismatch(message));
    };
    visit_conditions(filter, &mut refuse_elsewhere_only)?;
    bunko_query::parse_filter(filter, &environment.scope)?;
    Ok(filter.to_owned())
}

fn key(value: ValueRef<'_>) -> Result<String> {
    let ValueRef::String(key) = value else {
        let kind = value.kind().alias();
        let message = format!("$geoNear parameter 'key' must be of type string but found type: {kind}");
        return Err(Failure::type_mismatch(message));
    };
    if key.is_empty() {
        return Err(Failure::bad_value("$geoNear parameter 'key' cannot be the empty string"));
    }
    FieldPath::parse(key)?;
    // The key becomes the path of a filter, whose length is limited.
    Path::parse(key)?;
    Ok(key.to_owned())
}

/// The form of `$geoNear` over the measurements of a time series.
pub(crate) enum OverMeasurements {
    /// A search of buckets by their meta field before they are unpacked, and the fields that it adds to them.
    Before(Box<dyn Stage>, Vec<String>),
    /// Stages after the one that unpacks.
    Behind(Stages),
}

impl GeoNear {
    /// Turns this search into one over measurements, which are unpacked before or after it.
    /// # Errors
    /// 5892921 without a key, 1938439 with a filter; 5860206 and 5860208 for a location in measurements without
    /// `distanceField` or with `includeLocs`; errors of the point.
    pub(crate) fn over_measurements(&self, series: &TimeSeries, environment: &Environment) -> Result<OverMeasurements> {
        let Some(key) = &self.key else {
            let message = "Must specify 'key' option for $geoNear on a time-series collection";
            return Err(Failure::new(ErrorCode(5_892_921), message));
        };
        if !self.query.as_ref().is_empty() {
            let message = "Must not specify 'query' for $geoNear on a time-series collection; use $match instead";
            return Err(Failure::new(ErrorCode(1_938_439), message));
        }
        if let Some(of_source) = bunko_timeseries::path_in_source(key, series) {
            let before = Self { key: Some(of_source), query: DocumentBuf::new(), ..self.clone() };
            let added = [&self.output.distance_field, &self.output.geometry_field].into_iter().flatten();
            let added = added.map(|path| path.split('.').next().unwrap_or(path).to_owned()).collect();
            return Ok(OverMeasurements::Before(Box::new(before), added));
        }
        let Some(distance_field) = &self.output.distance_field else {
            let message = "$geoNear distanceField is required for time-series queries";
            return Err(Failure::new(ErrorCode(5_860_206), message));
        };
        if self.output.geometry_field.is_some() {
            let message = "$geoNear 'includeLocs' is not supported on time-series metrics";
            return Err(Failure::new(ErrorCode(5_860_208), message));
        }
        // While variables have no values, the pipeline is only checked.
        let Some(asked) = self.asked(&environment.scope)? else { return Ok(OverMeasurements::Behind(Vec::new())) };
        let stage_of = |document: &DocumentBuf| {
            super::parse(crate::pipeline::stage_field(ValueRef::Document(document.as_ref()))?, environment)
        };
        let mut stages = Stages::new();
        if let Some(region) = asked.region() {
            let within = DocumentBuf::new().with("$geoWithin", &region);
            let filter = DocumentBuf::new().with(key, &within);
            stages.extend(stage_of(&DocumentBuf::new().with("$match", &filter))?);
        }
        let sort = DocumentBuf::new().with(distance_field, 1_i32);
        stages.push(Box::new(GeoNearDistance { search: asked.at(key.clone()) }));
        stages.extend(stage_of(&DocumentBuf::new().with("$sort", &sort))?);
        Ok(OverMeasurements::Behind(stages))
    }
}

impl Stage for GeoNear {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, _: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(WithoutIndexes)
    }

    fn plannable(&self) -> Plannable<'_> {
        Plannable::Near(self)
    }

    fn metadata(&self) -> Carried {
        Carried::Made(Offered::NEAR)
    }

    fn add_dependencies(&self, dependencies: &mut Dependencies) -> Reads {
        dependencies.add_all();
        Reads::OthersToo
    }
}

/// The stream of `$geoNear` over input that is not from the planner: such input has no index.
struct WithoutIndexes;

impl DocumentStream for WithoutIndexes {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let message = "$geoNear requires a 2d or 2dsphere index, but none were found";
        Err(Failure::new(ErrorCode::INDEX_NOT_FOUND, message))
    }
}
