//! Points and regions on the globe, as a search index sees them: edges of regions are straight on a map.

use crate::Reader;
use bunko_bson::{ArrayRef, DocumentRef, ValueRef, number};
use bunko_errors::Result;

/// Source: Lucene, `GeoUtils.EARTH_MEAN_RADIUS_METERS`.
const EARTH_RADIUS_M: f64 = 6_371_008.771_4;

/// A point in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

impl Point {
    /// Reads coordinates; the error says why they are no place on the globe.
    pub fn read(coordinates: ArrayRef<'_>) -> Result<Self, &'static str> {
        let numbers: Vec<f64> = coordinates
            .iter()
            .map(|value| value.is_number().then(|| number::as_f64(value)).flatten())
            .collect::<Option<_>>()
            .ok_or("must be numbers")?;
        let [longitude, latitude] = numbers[..] else { return Err("must be 2 numbers") };
        if !(-180.0..=180.0).contains(&longitude) {
            return Err("longitude must be within bounds [-180, 180]");
        }
        if !(-90.0..=90.0).contains(&latitude) {
            return Err("latitude must be within bounds [-90, 90]");
        }
        Ok(Self { longitude, latitude })
    }

    /// Reads a point of a stored document; `None` if the value is no point.
    pub fn stored(value: ValueRef<'_>) -> Option<Self> {
        let document = value.as_document()?;
        if document.get("type")?.as_str()? != "Point" {
            return None;
        }
        Self::read(document.get("coordinates")?.as_array()?).ok()
    }

    /// Reads a point that an operator names.
    pub fn parse(reader: &Reader<'_>) -> Result<Self> {
        reader.one_of("type", &[("Point", ())])?;
        reader.required(reader.string("type")?, "type")?;
        let coordinates = reader.required(reader.array("coordinates")?, "coordinates")?;
        reader.done()?;
        Self::read(coordinates).map_err(|why| reader.wrong("coordinates", why))
    }

    /// The distance along the globe, in meters.
    pub fn distance(self, other: Self) -> f64 {
        let (one, two) = (self.latitude.to_radians(), other.latitude.to_radians());
        let latitudes = ((two - one) / 2.0).sin();
        let longitudes = ((other.longitude - self.longitude).to_radians() / 2.0).sin();
        let chord = latitudes * latitudes + one.cos() * two.cos() * longitudes * longitudes;
        2.0 * EARTH_RADIUS_M * chord.sqrt().min(1.0).asin()
    }
}

/// A border, and the borders of holes inside it.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    rings: Vec<Vec<Point>>,
}

impl Polygon {
    fn read(rings: ArrayRef<'_>) -> Result<Self, String> {
        let ring = |value: ValueRef<'_>| {
            let points = value.as_array().ok_or("must be arrays of positions")?;
            let point = |value: ValueRef<'_>| {
                Point::read(value.as_array().ok_or("must be arrays of positions")?).map_err(str::to_owned)
            };
            let points = points.iter().map(point).collect::<Result<Vec<_>, String>>()?;
            if points.len() < 4 {
                return Err("must have at least 4 positions".to_owned());
            }
            if points.first() != points.last() {
                return Err("must begin and end with the same position".to_owned());
            }
            Ok(points)
        };
        let rings = rings.iter().map(ring).collect::<Result<Vec<_>, String>>()?;
        if rings.is_empty() { Err("must have a ring".to_owned()) } else { Ok(Self { rings }) }
    }

    /// Reads the polygons of a geometry of type `Polygon` or `MultiPolygon`.
    pub fn several(geometry: DocumentRef<'_>) -> Result<Vec<Self>, String> {
        let kind = geometry.get("type").and_then(ValueRef::as_str);
        let coordinates = geometry.get("coordinates").and_then(ValueRef::as_array).ok_or("coordinates are required")?;
        match kind {
            Some("Polygon") => Ok(vec![Self::read(coordinates)?]),
            Some("MultiPolygon") => {
                let read = |value: ValueRef<'_>| Self::read(value.as_array().ok_or("must be arrays of rings")?);
                coordinates.iter().map(read).collect()
            }
            _ => Err("type must be one of [MultiPolygon, Polygon]".to_owned()),
        }
    }

    pub fn contains(&self, point: Point) -> bool {
        let mut rings = self.rings.iter();
        rings.next().is_some_and(|outer| surrounds(outer, point)) && !rings.any(|hole| surrounds(hole, point))
    }
}

fn surrounds(ring: &[Point], point: Point) -> bool {
    let mut inside = false;
    for ends in ring.windows(2) {
        let (from, to) = (ends[0], ends[1]);
        let cross = (to.longitude - from.longitude) * (point.latitude - from.latitude)
            - (to.latitude - from.latitude) * (point.longitude - from.longitude);
        let between = |at: f64, one: f64, two: f64| at >= one.min(two) && at <= one.max(two);
        if cross == 0.0
            && between(point.longitude, from.longitude, to.longitude)
            && between(point.latitude, from.latitude, to.latitude)
        {
            return true;
        }
        if (from.latitude > point.latitude) != (to.latitude > point.latitude) {
            let at = from.longitude
                + (point.latitude - from.latitude) / (to.latitude - from.latitude) * (to.longitude - from.longitude);
            inside ^= point.longitude < at;
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(longitude: f64, latitude: f64) -> Point {
        Point { longitude, latitude }
    }

    #[test]
    fn a_degree_of_latitude_is_111_kilometers() {
        assert!((point(0.0, 0.0).distance(point(0.0, 1.0)) - 111_195.0).abs() < 1.0);
    }

    #[test]
    fn a_ring_surrounds_what_is_inside_and_on_it() {
        let ring = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0)].map(|(x, y)| point(x, y));
        assert!(
            surrounds(&ring, point(1.0, 1.0))
                && surrounds(&ring, point(4.0, 2.0))
                && !surrounds(&ring, point(5.0, 1.0))
        );
    }
}
