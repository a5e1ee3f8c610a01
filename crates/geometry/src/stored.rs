//! The geometry that a document holds at a path.

use crate::effort::Effort;
use crate::flat::FlatPoint;
use crate::geojson::{self, Further};
use crate::near::Centre;
use crate::shape::Shape;
use crate::vector::Vector;
use bunko_bson::ValueRef;
use bunko_bson::text::ValueText;

/// A coordinate pair or GeoJSON.
#[derive(Clone, Debug)]
pub struct Stored {
    flat: Option<FlatPoint>,
    sphere: Option<Shape>,
}

impl Stored {
    /// Reads a value. Strict winding is only for queries: in a document it makes a geometry invalid.
    /// # Errors
    /// The reason why it is not geometry.
    pub fn parse(value: ValueRef<'_>) -> Result<Self, String> {
        let stored = Self::kept(value)?;
        match stored.sphere.as_ref().and_then(Shape::fault) {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(stored),
        }
    }

    /// Whether [`Stored::parse`] may refuse a value that [`Stored::kept`] accepts.
    pub fn may_have_faults(value: ValueRef<'_>) -> bool {
        let kind = value.as_document().and_then(|geometry| geometry.get("type")?.as_str());
        matches!(kind, Some("GeometryCollection" | "MultiPolygon" | "Polygon"))
    }

    /// Reads a value that is stored already: polygons of an earlier version may have holes that [`Stored::parse`]
    /// refuses.
    /// # Errors
    /// The reason why it is not geometry.
    pub fn kept(value: ValueRef<'_>) -> Result<Self, String> {
        if geojson::is_pair(value) {
            let flat = geojson::pair(value, Further::Allowed)?;
            let sphere = flat.is_on_sphere().then(|| Shape::point(Vector::at(flat.x, flat.y)));
            return Ok(Self { flat: Some(flat), sphere });
        }
        let Some(geometry) = value.as_document() else {
            return Err(format!("geo element must be an array or object: {}", ValueText(value)));
        };
        let (shape, flat) = geojson::shape(geometry)?;
        if shape.has_strict_winding() {
            return Err("can't index geometry with strict winding order".to_owned());
        }
        Ok(Self { flat, sphere: Some(shape) })
    }

    /// The point in the plane; `None` for a geometry that is no point.
    pub fn flat(&self) -> Option<FlatPoint> {
        self.flat
    }

    /// The geometry on the sphere; `None` for a pair that is not a longitude and latitude.
    pub fn sphere(&self) -> Option<&Shape> {
        self.sphere.as_ref()
    }

    /// The distance from a point, in the units of [`Centre`]; `None` if the geometry has no place in the plane or on
    /// the sphere, as the centre requires.
    pub fn distance(&self, centre: Centre, effort: &mut dyn Effort) -> Option<f64> {
        match centre {
            Centre::Flat(point) => self.flat.map(|flat| flat.distance(point)),
            Centre::Sphere(point) => self.sphere.as_ref().map(|shape| shape.distance(point, effort)),
        }
    }
}
