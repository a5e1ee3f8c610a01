//! The operands of `$geoWithin` and `$geoIntersects`.

use crate::cap::Cap;
use crate::effort::Effort;
use crate::flat::{FlatPoint, FlatShape};
use crate::geojson::{self, Further, Reason};
use crate::shape::Shape;
use crate::stored::Stored;
use crate::vector::Vector;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, Element, ValueRef, number};

/// Question about a region and another geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Whether the region contains all of the other.
    Within,
    /// Whether the two share a point.
    Intersects,
}

/// A part of the plane or of the sphere.
#[derive(Clone, Debug)]
pub enum Region {
    /// `$box`, `$center`, `$polygon`.
    Flat(FlatShape),
    /// `$centerSphere`.
    Cap(Cap),
    /// `$geometry`.
    Shape(Shape),
}

impl Region {
    /// Reads the operand of an operator.
    /// # Errors
    /// The reason why the operand is refused.
    pub fn parse(operand: DocumentRef<'_>, question: Question) -> Reason<Self> {
        let mut found = None;
        for field in operand.iter().filter(|field| field.name != "$uniqueDocs") {
            if found.is_some() {
                return Err(format!("can't parse extra field: {}: {}", field.name, ValueText(field.value)));
            }
            found = Some(Self::specified(&field)?);
        }
        let Some(region) = found else { return Err("geo query doesn't have any geometry".to_owned()) };
        match (&region, question) {
            (Self::Shape(shape), Question::Within) if !shape.has_area() => {
                Err(format!("$within not supported with provided geometry: {}", ValueText(ValueRef::Document(operand))))
            }
            (Self::Flat(_), Question::Intersects) => Err(format!(
                "$geoIntersect not supported with provided geometry: {}",
                ValueText(ValueRef::Document(operand))
            )),
            _ => Ok(region),
        }
    }

    fn specified(field: &Element<'_>) -> Reason<Self> {
        let value = field.value;
        match field.name {
            "$geometry" => Self::geometry(value),
            "$box" => Ok(Self::Flat(flat_box(list(field)?)?)),
            "$center" => {
                let (center, radius) = circle(list(field)?)?;
                Ok(Self::Flat(FlatShape::Circle { center, radius }))
            }
            "$centerSphere" => {
                let (center, radius) = circle(list(field)?)?;
                if !center.is_on_sphere() {
                    return Err(format!("Spherical circle/cap is invalid: {}", geojson::out_of_bounds(center)));
                }
                Ok(Self::Cap(Cap { center: Vector::at(center.x, center.y), radius }))
            }
            "$polygon" => flat_polygon(list(field)?).map(Self::Flat),
            name => Err(format!("unknown geo specifier: {name}: {}", ValueText(value))),
        }
    }

    fn geometry(value: ValueRef<'_>) -> Reason<Self> {
        if geojson::is_pair(value) {
            let point = geojson::pair(value, Further::Refused)?;
            if !point.is_on_sphere() {
                return Err(geojson::out_of_bounds(point));
            }
            return Ok(Self::Shape(Shape::point(Vector::at(point.x, point.y))));
        }
        match value {
            ValueRef::Document(geometry) => {
                let (shape, _) = geojson::shape(geometry)?;
                shape.fault().map_or(Ok(()), |fault| Err(fault.to_owned()))?;
                Ok(Self::Shape(shape))
            }
            other => Err(format!("$geometry must be an object, found {}", other.kind().alias())),
        }
    }

    /// Whether the region and a document's geometry satisfy the question. The result is meaningless once `effort`
    /// stops.
    pub fn matches(&self, question: Question, stored: &Stored, effort: &mut dyn Effort) -> bool {
        match (self, question) {
            (Self::Flat(shape), _) => {
                stored.flat().is_some_and(|point| !effort.goes_on(shape.steps()) || shape.contains(point))
            }
            (Self::Cap(cap), Question::Within) => stored.sphere().is_some_and(|shape| shape.is_within(*cap, effort)),
            (Self::Cap(cap), Question::Intersects) => {
                stored.sphere().is_some_and(|shape| cap.is_full() || shape.distance(cap.center, effort) <= cap.radius)
            }
            (Self::Shape(own), Question::Within) => stored.sphere().is_some_and(|shape| own.contains(shape, effort)),
            (Self::Shape(own), Question::Intersects) => stored.sphere().is_some_and(|shape| own.meets(shape, effort)),
        }
    }
}

/// The parts of an operand: an array, or a document whose names do not matter.
fn list<'a>(field: &Element<'a>) -> Reason<DocumentRef<'a>> {
    match field.value {
        ValueRef::Array(array) => Ok(array.as_document()),
        ValueRef::Document(document) => Ok(document),
        other => Err(format!("{} must be an array or object, instead got type {}", field.name, other.kind().alias())),
    }
}

fn corner(value: Option<ValueRef<'_>>, what: &str) -> Reason<FlatPoint> {
    geojson::pair(value.ok_or_else(|| format!("{what} is missing"))?, Further::Refused)
}

fn flat_box(parts: DocumentRef<'_>) -> Reason<FlatShape> {
    let mut corners = parts.iter().map(|field| field.value);
    let first = corner(corners.next(), "first corner of $box")?;
    let second = corner(corners.next(), "second corner of $box")?;
    let low = FlatPoint { x: first.x.min(second.x), y: first.y.min(second.y) };
    let high = FlatPoint { x: first.x.max(second.x), y: first.y.max(second.y) };
    Ok(FlatShape::Box { low, high })
}

fn circle(parts: DocumentRef<'_>) -> Reason<(FlatPoint, f64)> {
    let mut parts = parts.iter().map(|field| field.value);
    let center = corner(parts.next(), "center of a circle")?;
    let radius = parts.next().filter(|value| value.is_number()).and_then(number::as_f64);
    // The filter refuses NaN too.
    let Some(radius) = radius.filter(|radius| *radius >= 0.0) else {
        return Err("radius must be a non-negative number".to_owned());
    };
    match parts.next() {
        Some(_) => Err("Only 2 fields allowed for circular region".to_owned()),
        None => Ok((center, radius)),
    }
}

fn flat_polygon(parts: DocumentRef<'_>) -> Reason<FlatShape> {
    let vertices =
        parts.iter().map(|field| geojson::pair(field.value, Further::Refused)).collect::<Reason<Vec<FlatPoint>>>()?;
    if vertices.len() < 3 {
        return Err("Polygon must have at least 3 points".to_owned());
    }
    Ok(FlatShape::Polygon(vertices))
}
