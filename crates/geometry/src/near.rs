//! The operands of `$near` and `$nearSphere`.

use crate::EARTH_RADIUS_METERS;
use crate::flat::FlatPoint;
use crate::geojson::{self, Further, Reason};
use crate::vector::Vector;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef, number};

/// The point that distances are measured from. It determines their units: those of the plane, or radians on the sphere.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Centre {
    Flat(FlatPoint),
    Sphere(Vector),
}

/// A point, and the range of distances from it that is near.
#[derive(Clone, Debug)]
pub struct Near {
    /// The point, in the plane or on the sphere.
    pub centre: Centre,
    /// The coordinates of the point.
    pub point: FlatPoint,
    /// Minimum distance, in the units of [`Centre`].
    pub min: f64,
    /// Greatest distance, in the units of [`Centre`].
    pub max: f64,
    /// Factor from the units of [`Centre`] to shown distances: metres in a radian for GeoJSON.
    pub unit: f64,
    /// Least and greatest distance as they were asked for, in the units of shown distances.
    shown: (f64, f64),
    /// Whether the search needs an index on the sphere: `$near` with GeoJSON does.
    pub is_geojson: bool,
}

/// Why an operand is refused: MongoDB's code and message.
#[derive(Debug)]
pub struct NearFailure {
    /// MongoDB's error code.
    pub code: i32,
    /// The message.
    pub reason: String,
}

const BAD_VALUE: i32 = 2;

impl NearFailure {
    fn new(code: i32, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

impl From<String> for NearFailure {
    fn from(reason: String) -> Self {
        Self::new(BAD_VALUE, reason)
    }
}

/// Whether a field's name is one of the names of `$near`.
fn is_near(name: &str) -> bool {
    matches!(name, "$near" | "$nearSphere" | "$geoNear")
}

fn is_distance(name: &str) -> bool {
    matches!(name, "$minDistance" | "$maxDistance")
}

/// The facts of an operand before its units are known.
#[derive(Clone, Copy)]
struct Given {
    point: FlatPoint,
    is_geojson: bool,
    is_sphere: bool,
    min: f64,
    max: f64,
}

impl Near {
    /// Reads all operators of one field: `{$near: [x, y], $maxDistance: d}` or `{$near: {$geometry: ..}}`.
    /// # Errors
    /// MongoDB's code and message for an operand that is refused.
    pub fn parse(operators: DocumentRef<'_>) -> Result<Self, NearFailure> {
        let given = match legacy(operators)? {
            Some(given) => given,
            None => geometry(operators)?,
        };
        Self::of(given)
    }

    /// Makes the operand for `$geoNear` and others, with distances in the units that are shown.
    pub fn around(
        point: FlatPoint,
        is_geojson: bool,
        is_sphere: bool,
        min: f64,
        max: f64,
    ) -> Result<Self, NearFailure> {
        Self::of(Given { point, is_geojson, is_sphere, min, max })
    }

    fn of(given: Given) -> Result<Self, NearFailure> {
        let Given { point, is_geojson, is_sphere, min, max } = given;
        if is_sphere && !point.is_on_sphere() {
            return Err(NearFailure::new(17444, "Legacy point is out of bounds for spherical query"));
        }
        let unit = if is_geojson { EARTH_RADIUS_METERS } else { 1.0 };
        let centre =
            if is_sphere || is_geojson { Centre::Sphere(Vector::at(point.x, point.y)) } else { Centre::Flat(point) };
        Ok(Self { centre, point, min: min / unit, max: max / unit, unit, shown: (min, max), is_geojson })
    }

    /// Whether a distance in the units of [`Centre`] is near. Distances are compared in shown units: a client that asks
    /// again with a shown distance as the limit finds the same point.
    pub fn holds(&self, distance: f64) -> bool {
        let shown = distance * self.unit;
        self.shown.0 <= shown && shown <= self.shown.1
    }

    /// Whether a search in the plane for points within `radians` on the sphere reaches `point`. Such a search looks at
    /// longitudes and latitudes around the centre, and does not continue beyond 180 degrees.
    pub fn is_reached_in_plane(&self, point: FlatPoint, radians: f64) -> bool {
        const ROUNDING: f64 = 1e-9;
        let degrees = radians.to_degrees();
        let latitude = self.point.y;
        let (top, bottom) = ((latitude + degrees).min(89.0), (latitude - degrees).max(-89.0));
        let widened = degrees / top.to_radians().cos().min(bottom.to_radians().cos());
        self.point.distance(point) <= degrees + widened + ROUNDING
    }
}

/// Reads `{$near: [x, y]}` and its siblings; `None` if the operand is something else.
fn legacy(operators: DocumentRef<'_>) -> Result<Option<Given>, NearFailure> {
    let mut found: Option<(FlatPoint, bool, bool)> = None;
    let (mut min, mut max) = (0.0, f64::INFINITY);
    for field in operators {
        match field.name {
            name if is_near(name) => {
                if !matches!(field.value, ValueRef::Document(_) | ValueRef::Array(_)) {
                    return Ok(None);
                }
                let is_geometry = field.value.as_document().is_some_and(|it| it.get("$geometry").is_some());
                let has_distances =
                    field.value.as_document().is_some_and(|it| it.iter().all(|it| is_distance(it.name)));
                if has_distances && !is_geometry {
                    return Err(NearFailure::new(2, "$geometry is required for geo near query"));
                }
                if let Ok((point, is_geojson)) = query_point(field.value) {
                    found = Some((point, is_geojson, name == "$nearSphere"));
                } else if let Some((point, distance)) = point_and_distance(field.value) {
                    if distance.is_nan() || distance < 0.0 {
                        return Err(NearFailure::new(18522, "max distance must be non-negative"));
                    }
                    max = distance;
                    found = Some((point, false, name == "$nearSphere"));
                }
            }
            "$minDistance" => min = legacy_distance(field.name, field.value, 16893, 16894)?,
            "$maxDistance" => max = legacy_distance(field.name, field.value, 16895, 16896)?,
            "$uniqueDocs" => {}
            name => return Err(NearFailure::new(34413, format!("invalid argument in geo near query: {name}"))),
        }
    }
    Ok(found.map(|(point, is_geojson, is_sphere)| Given { point, is_geojson, is_sphere, min, max }))
}

fn legacy_distance(name: &str, value: ValueRef<'_>, no_number: i32, negative: i32) -> Result<f64, NearFailure> {
    match number::as_f64(value).filter(|_| value.is_number()) {
        None => Err(NearFailure::new(no_number, format!("{name} must be a number"))),
        Some(distance) if distance >= 0.0 => Ok(distance),
        Some(_) => Err(NearFailure::new(negative, format!("{name} must be non-negative"))),
    }
}

/// `[x, y, max]`.
fn point_and_distance(value: ValueRef<'_>) -> Option<(FlatPoint, f64)> {
    let ValueRef::Array(array) = value else { return None };
    let point = geojson::pair(value, Further::Allowed).ok()?;
    let mut further = array.iter().skip(2);
    let distance = further.next().filter(|value| value.is_number()).and_then(number::as_f64)?;
    further.next().is_none().then_some((point, distance))
}

/// Reads a pair or a GeoJSON point, whose type may be missing. Also returns whether it is GeoJSON.
pub(crate) fn query_point(value: ValueRef<'_>) -> Reason<(FlatPoint, bool)> {
    if geojson::is_pair(value) {
        return geojson::pair(value, Further::Refused).map(|point| (point, false));
    }
    let Some(geometry) = value.as_document() else {
        return Err(format!("Point must be an array or object, instead got type {}", value.kind().alias()));
    };
    match geometry.get("type") {
        None | Some(ValueRef::String("Point")) => geojson::point(geometry).map(|point| (point, true)),
        Some(other) => Err(format!("invalid type of point: {}", ValueText(other))),
    }
}

/// `{$near: {$geometry: point, $minDistance: a, $maxDistance: b}}`, distances in metres.
fn geometry(operators: DocumentRef<'_>) -> Result<Given, NearFailure> {
    let mut fields = operators.iter();
    let Some(field) = fields.next() else { return Err("empty geo near query object".to_owned().into()) };
    if let Some(extra) = fields.next() {
        return Err(format!(
            "geo near accepts just one argument when querying for a GeoJSON point. Extra field found: {}: {}",
            extra.name,
            ValueText(extra.value)
        )
        .into());
    }
    let operand = match field.value {
        ValueRef::Document(operand) => operand,
        ValueRef::Array(array) => array.as_document(),
        other => return Err(format!("geo near query argument is not an object: {}", ValueText(other)).into()),
    };
    let mut found = None;
    let (mut min, mut max) = (0.0, f64::INFINITY);
    for part in operand {
        match part.name {
            "$geometry" => {
                if !matches!(part.value, ValueRef::Document(_) | ValueRef::Array(_)) {
                    continue;
                }
                let (point, is_geojson) = query_point(part.value).map_err(|reason| {
                    format!("invalid point in geo near query $geometry argument: {} {reason}", ValueText(part.value))
                })?;
                if !is_geojson {
                    let reason = format!("$near requires geojson point, given {}", ValueText(part.value));
                    return Err(NearFailure::new(16681, reason));
                }
                found = Some(point);
            }
            "$minDistance" => {
                min = distance(part.name, part.value)?;
                if min.is_infinite() {
                    return Err(format!("$minDistance must be finite, found {}", ValueText(part.value)).into());
                }
            }
            "$maxDistance" => max = distance(part.name, part.value)?,
            name => return Err(format!("invalid argument in geo near query: {name}").into()),
        }
    }
    let Some(point) = found else { return Err("$geometry is required for geo near query".to_owned().into()) };
    Ok(Given { point, is_geojson: true, is_sphere: field.name == "$nearSphere", min, max })
}

fn distance(name: &str, value: ValueRef<'_>) -> Reason<f64> {
    match number::as_f64(value).filter(|_| value.is_number()) {
        None => Err(format!("{name} must be a number")),
        Some(distance) if distance >= 0.0 => Ok(distance),
        Some(_) => Err(format!("{name} must be non-negative")),
    }
}
