//! GeoJSON and legacy coordinate pairs.
//!
//! Errors are reasons as text. The caller knows whether it is a bad query or a document that cannot be indexed.

use crate::flat::FlatPoint;
use crate::polygon::Polygon;
use crate::ring::{Ring, Winding};
use crate::shape::{Line, Shape};
use crate::vector::Vector;
use bunko_bson::text::ValueText;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};

pub(crate) type Reason<T> = Result<T, String>;

/// Whether a coordinate pair may have a third number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Further {
    Allowed,
    Refused,
}

/// Name of the coordinate system in which the order of a polygon's vertices determines the inside.
/// Source: MongoDB manual, "$geometry".
const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";
const USUAL_SYSTEMS: &[&str] = &["EPSG:4326", "urn:ogc:def:crs:OGC:1.3:CRS84"];

/// Whether a value is a coordinate pair rather than GeoJSON.
pub(crate) fn is_pair(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Array(_) => true,
        ValueRef::Document(document) => document.first().is_some_and(|first| first.value.is_number()),
        _ => false,
    }
}

/// Reads two numbers from an array, or from a document with any names.
pub(crate) fn pair(value: ValueRef<'_>, further: Further) -> Reason<FlatPoint> {
    let fields = match value {
        ValueRef::Array(array) => array.as_document(),
        ValueRef::Document(document) => document,
        other => return Err(format!("Point must be an array or object, instead got type {}", other.kind().alias())),
    };
    let mut fields = fields.iter().map(|field| field.value);
    let mut coordinate = || match fields.next() {
        Some(value) if value.is_number() => number::as_f64(value).ok_or("Point must only contain numeric elements"),
        _ => Err("Point must only contain numeric elements"),
    };
    let (x, y) = (coordinate()?, coordinate()?);
    if further == Further::Refused && fields.next().is_some() {
        return Err(format!("Point must only contain two numeric elements: {}", ValueText(value)));
    }
    if !x.is_finite() || !y.is_finite() {
        return Err(format!("Point coordinates must be finite numbers: {}", ValueText(value)));
    }
    Ok(FlatPoint { x, y })
}

/// Reads a longitude and a latitude.
pub(crate) fn position(value: ValueRef<'_>) -> Reason<FlatPoint> {
    let point = pair(value, Further::Allowed)?;
    if !point.is_on_sphere() {
        return Err(out_of_bounds(point));
    }
    Ok(point)
}

pub(crate) fn out_of_bounds(point: FlatPoint) -> String {
    format!("Longitude/latitude is out of bounds, lng: {} lat: {}", point.x, point.y)
}

/// Reads the coordinates of a GeoJSON point.
pub(crate) fn point(geometry: DocumentRef<'_>) -> Reason<FlatPoint> {
    let coordinates =
        geometry.get("coordinates").ok_or("Point must be an array or object, instead got type missing")?;
    position(coordinates)
}

/// Reads a geometry of any type. Also returns its coordinates if it is a point.
pub(crate) fn shape(geometry: DocumentRef<'_>) -> Reason<(Shape, Option<FlatPoint>)> {
    let Some(ValueRef::String(kind)) = geometry.get("type") else { return Err(unknown(geometry)) };
    if kind == "GeometryCollection" {
        return Ok((collection(geometry)?, None));
    }
    single(geometry, kind)
}

fn unknown(geometry: DocumentRef<'_>) -> String {
    format!("unknown GeoJSON type: {}", ValueText(ValueRef::Document(geometry)))
}

fn single(geometry: DocumentRef<'_>, kind: &str) -> Reason<(Shape, Option<FlatPoint>)> {
    let winding = coordinate_system(geometry)?;
    if winding == Winding::Counterclockwise && kind != "Polygon" {
        return Err(format!("Strict winding order is only supported by polygon, not by {kind}"));
    }
    let mut shape = Shape { has_strict_winding: winding == Winding::Counterclockwise, ..Shape::default() };
    match kind {
        "Point" => {
            let point = point(geometry)?;
            shape.points.push(Vector::at(point.x, point.y));
            return Ok((shape, Some(point)));
        }
        "MultiPoint" => shape.points = vertices(filled(coordinates(geometry, kind)?, "MultiPoint coordinates")?)?,
        "LineString" => shape.lines.push(line(coordinates(geometry, kind)?)?),
        "MultiLineString" => {
            for part in filled(coordinates(geometry, kind)?, "MultiLineString coordinates")?.iter() {
                shape.lines.push(line(array(part, "MultiLineString coordinates")?)?);
            }
        }
        "Polygon" => shape.polygons.push(polygon(coordinates(geometry, kind)?, winding)?),
        "MultiPolygon" => {
            for part in filled(coordinates(geometry, kind)?, "MultiPolygon coordinates")?.iter() {
                shape.polygons.push(polygon(array(part, "MultiPolygon coordinates")?, winding)?);
            }
        }
        _ => return Err(unknown(geometry)),
    }
    Ok((shape, None))
}

fn collection(geometry: DocumentRef<'_>) -> Reason<Shape> {
    let name = "GeometryCollection geometries";
    let parts = match geometry.get("geometries") {
        Some(value) => filled(array(value, name)?, name)?,
        None => return Err(format!("{name} must be an array, but it is missing")),
    };
    let mut shape = Shape::default();
    for (index, part) in parts.iter().enumerate() {
        let Some(part) = part.as_document() else {
            return Err(format!("Element {index} of \"geometries\" must be an object, found {}", part.kind().alias()));
        };
        let kind = part.get("type").and_then(ValueRef::as_str).ok_or_else(|| unknown(part))?;
        if kind == "GeometryCollection" {
            return Err(format!("GeometryCollections cannot be nested: {}", ValueText(ValueRef::Document(part))));
        }
        let (part, _) = single(part, kind)?;
        if part.has_strict_winding {
            return Err("Strict winding order is not supported in a GeometryCollection".to_owned());
        }
        shape.points.extend(part.points);
        shape.lines.extend(part.lines);
        shape.polygons.extend(part.polygons);
    }
    Ok(shape)
}

fn coordinates<'a>(geometry: DocumentRef<'a>, kind: &str) -> Reason<ArrayRef<'a>> {
    match geometry.get("coordinates") {
        Some(ValueRef::Array(coordinates)) => Ok(coordinates),
        Some(other) => Err(format!("{kind} coordinates must be an array, instead got type {}", other.kind().alias())),
        None => Err(format!("{kind} coordinates must be an array, instead got type missing")),
    }
}

fn array<'a>(value: ValueRef<'a>, name: &str) -> Reason<ArrayRef<'a>> {
    value.as_array().ok_or_else(|| format!("{name} must be an array, instead got type {}", value.kind().alias()))
}

fn filled<'a>(array: ArrayRef<'a>, name: &str) -> Reason<ArrayRef<'a>> {
    if array.is_empty() { Err(format!("{name} must have at least 1 element")) } else { Ok(array) }
}

/// Reads all positions in an array. Callers drop those that repeat the one before.
fn vertices(coordinates: ArrayRef<'_>) -> Reason<Vec<Vector>> {
    coordinates.iter().map(|value| position(value).map(|point| Vector::at(point.x, point.y))).collect()
}

fn line(coordinates: ArrayRef<'_>) -> Reason<Line> {
    let mut line = vertices(coordinates)?;
    line.dedup();
    if line.len() < 2 {
        let text = ValueText(ValueRef::Array(coordinates));
        return Err(format!("GeoJSON LineString must have at least 2 vertices: {text}"));
    }
    Ok(Line(line))
}

fn polygon(coordinates: ArrayRef<'_>, winding: Winding) -> Reason<Polygon> {
    let mut rings = Vec::new();
    for coordinates in filled(coordinates, "Polygon coordinates")?.iter() {
        if winding == Winding::Counterclockwise && !rings.is_empty() {
            return Err("Only one simple loop is allowed in a big polygon".to_owned());
        }
        rings.push(ring(array(coordinates, "Polygon coordinates")?, winding)?);
    }
    let outer = rings.remove(0);
    Ok(Polygon::new(outer, rings))
}

fn ring(coordinates: ArrayRef<'_>, winding: Winding) -> Reason<Ring> {
    let mut vertices = vertices(coordinates)?;
    let text = || ValueText(ValueRef::Array(coordinates));
    if vertices.is_empty() {
        return Err(format!("Loop has no vertices: {}", text()));
    }
    if vertices.first() != vertices.last() {
        return Err(format!("Loop is not closed: {}", text()));
    }
    vertices.dedup();
    vertices.pop();
    if vertices.len() < 3 {
        return Err(format!("Loop must have at least 3 different vertices: {}", text()));
    }
    Ring::new(vertices, winding).map_err(|reason| format!("Loop is not valid: {} {reason}", text()))
}

/// How a polygon's vertices determine its inside, by its coordinate system.
fn coordinate_system(geometry: DocumentRef<'_>) -> Reason<Winding> {
    let Some(system) = geometry.get("crs") else { return Ok(Winding::Any) };
    let Some(system) = system.as_document() else {
        return Err(format!("GeoJSON CRS must be an object, not {}", ValueText(system)));
    };
    let kind = system.get("type");
    if kind.and_then(ValueRef::as_str) != Some("name") {
        return Err("GeoJSON CRS must have field \"type\": \"name\"".to_owned());
    }
    let Some(properties) = system.get("properties").and_then(ValueRef::as_document) else {
        return Err("CRS must have field \"properties\" which is an object".to_owned());
    };
    match properties.get("name").and_then(ValueRef::as_str) {
        Some(STRICT_WINDING) => Ok(Winding::Counterclockwise),
        Some(name) if USUAL_SYSTEMS.contains(&name) => Ok(Winding::Any),
        Some(name) => Err(format!("Unknown CRS name: {name}")),
        None => Err("In CRS, \"properties.name\" must be a string".to_owned()),
    }
}
