//! Keys of geospatial indexes, and the ranges of keys that a query has to read.
//!
//! A key of `2dsphere` begins with the number of a cell from a covering of the shape. A shape that meets a region has a
//! cell inside or around one of the cells that cover the region. A key of `2d` begins with the number of a square of
//! its grid.

use bunko_bson::key_string::{self, Direction, MAX_BYTE};
use bunko_bson::{DocumentRef, ValueRef, number};
use bunko_geometry::{Cap, Cell, Centre, FlatPoint, Grid, Region, covering_of_cap, covering_of_shape};
use std::f64::consts::PI;

/// The default grid: coordinates from -180 to 180, with 26 bits each.
/// Source: MongoDB manual, "2d Index Internals".
const GRID: Grid = Grid { min: -180.0, max: 180.0, bits: 26 };

/// The surface that an index's numbers divide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Surface {
    /// `2dsphere`.
    Sphere,
    /// `2d`.
    Plane(Grid),
}

/// A geospatial field of an index.
#[derive(Clone, Copy, Debug)]
pub struct GeoField {
    /// The surface that its numbers divide.
    pub surface: Surface,
    /// Whether keys begin with this field.
    is_first: bool,
    /// Whether its numbers stand for all places in a bucket of a time series.
    is_of_buckets: bool,
}

/// Keys from the first, included, to the second, excluded.
pub type KeySpan = (Vec<u8>, Vec<u8>);

/// Numbers of cells or squares, both ends included.
pub type NumberSpan = (i64, i64);

impl GeoField {
    /// The field at a path of an index's specification; `None` if it is not geospatial.
    pub fn of(spec: DocumentRef<'_>, path: &str) -> Option<Self> {
        let key = spec.get("key").and_then(ValueRef::as_document)?;
        let (surface, is_of_buckets) = match key.get(path)?.as_str()? {
            "2dsphere" => (Surface::Sphere, false),
            "2dsphere_bucket" => (Surface::Sphere, true),
            "2d" => (Surface::Plane(grid(spec)), false),
            _ => return None,
        };
        Some(Self { surface, is_first: key.first().is_some_and(|first| first.name == path), is_of_buckets })
    }

    /// Whether a key stands for all measurements in a bucket of a time series, rather than for one place of a document.
    pub fn is_of_buckets(&self) -> bool {
        self.is_of_buckets
    }

    /// Whether a specification has a geospatial field.
    pub fn is_in(spec: DocumentRef<'_>) -> bool {
        let key = spec.get("key").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
        key.iter().any(|field| matches!(field.value.as_str(), Some("2dsphere" | "2dsphere_bucket" | "2d")))
    }

    /// All keys of an index.
    pub fn all_keys() -> Vec<KeySpan> {
        vec![all()]
    }

    /// The keys of all documents that may meet a region; `None` if the index cannot tell.
    pub fn keys_of_region(&self, region: &Region) -> Option<Vec<KeySpan>> {
        let numbers = self.numbers_of_region(region)?;
        Some(if self.is_first { key_spans(numbers) } else { vec![all()] })
    }

    /// The numbers in this field of all documents that may meet a region, ascending and disjoint; `None` if the index
    /// cannot tell.
    pub fn numbers_of_region(&self, region: &Region) -> Option<Vec<NumberSpan>> {
        match (self.surface, region) {
            (Surface::Sphere, Region::Shape(shape)) => Some(cells(&covering_of_shape(shape))),
            (Surface::Sphere, Region::Cap(cap)) => Some(cells(&covering_of_cap(*cap))),
            (Surface::Plane(grid), Region::Flat(shape)) => {
                let (low, high) = shape.extent();
                Some(squares(&grid, low, high))
            }
            (Surface::Plane(_), _) | (Surface::Sphere, Region::Flat(_)) => None,
        }
    }

    /// Whether the index can find documents by their distance from `centre`: on a sphere, from a centre on the sphere;
    /// on a plane, from any that was not given as GeoJSON.
    pub fn serves(&self, centre: Centre, is_geojson: bool) -> bool {
        match (self.surface, centre) {
            (Surface::Sphere, Centre::Sphere(_)) => true,
            (Surface::Plane(_), _) => !is_geojson,
            (Surface::Sphere, Centre::Flat(_)) => false,
        }
    }

    /// The numbers of all documents within a distance of a point, ascending and disjoint, and whether these are all
    /// numbers; `None` for all keys.
    pub fn numbers_around(&self, centre: Centre, point: FlatPoint, distance: f64) -> (Option<Vec<NumberSpan>>, Reach) {
        match (self.surface, centre) {
            (Surface::Sphere, Centre::Sphere(center)) => {
                let reach = if distance >= PI { Reach::Everything } else { Reach::Part };
                (Some(cells(&covering_of_cap(Cap { center, radius: distance }))), reach)
            }
            (Surface::Plane(grid), centre) => {
                let (low, high) = match centre {
                    Centre::Flat(_) => around(point, distance, distance),
                    Centre::Sphere(_) => degrees_around(point, distance),
                };
                let is_all = low.x <= grid.min && low.y <= grid.min && high.x >= grid.max && high.y >= grid.max;
                let is_sphere = matches!(centre, Centre::Sphere(_)) && distance >= PI;
                let reach = if is_all || is_sphere { Reach::Everything } else { Reach::Part };
                (Some(squares(&grid, low, high)), reach)
            }
            (Surface::Sphere, Centre::Flat(_)) => (None, Reach::Everything),
        }
    }

    /// Radius of the first search around a point; in most data, something lies within it, or within a few times as
    /// much.
    pub fn first_distance(&self, centre: Centre) -> f64 {
        match (self.surface, centre) {
            (Surface::Plane(grid), Centre::Flat(_)) => (grid.max - grid.min) / f64::from(1 << 14),
            _ => 2.0 * PI / f64::from(1 << 16),
        }
    }
}

/// How far the keys around a point extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reach {
    Part,
    Everything,
}

/// The grid that an index of kind `2d` is made with.
pub(crate) fn grid(spec: DocumentRef<'_>) -> Grid {
    let option = |name| spec.get(name).and_then(number::as_f64);
    Grid {
        min: option("min").unwrap_or(GRID.min),
        max: option("max").unwrap_or(GRID.max),
        bits: option("bits").map_or(GRID.bits, |bits| bits as u32),
    }
}

fn all() -> KeySpan {
    (Vec::new(), vec![MAX_BYTE])
}

fn cells(cells: &[Cell]) -> Vec<NumberSpan> {
    let mut ranges: Vec<NumberSpan> = cells.iter().map(|cell| cell.range()).collect();
    ranges.extend(cells.iter().flat_map(|cell| cell.ancestors()).map(|cell| (cell.number(), cell.number())));
    disjoint(ranges)
}

fn squares(grid: &Grid, low: FlatPoint, high: FlatPoint) -> Vec<NumberSpan> {
    disjoint(grid.covering(low, high).into_iter().map(bunko_geometry::GridCell::range).collect())
}

/// The spans are disjoint and ordered, so that one cursor walks all of them.
fn disjoint(mut ranges: Vec<NumberSpan>) -> Vec<NumberSpan> {
    ranges.sort_unstable();
    ranges.dedup_by(|later, earlier| {
        let meets = later.0 <= earlier.1;
        if meets {
            earlier.1 = earlier.1.max(later.1);
        }
        meets
    });
    ranges
}

fn key_spans(ranges: Vec<NumberSpan>) -> Vec<KeySpan> {
    let key = |number| {
        let mut key = Vec::with_capacity(12);
        key_string::append(&mut key, ValueRef::Int64(number), Direction::Ascending);
        key
    };
    let span = |(low, high)| {
        let mut end: Vec<u8> = key(high);
        end.push(MAX_BYTE);
        (key(low), end)
    };
    ranges.into_iter().map(span).collect()
}

fn around(point: FlatPoint, x: f64, y: f64) -> (FlatPoint, FlatPoint) {
    (FlatPoint { x: point.x - x, y: point.y - y }, FlatPoint { x: point.x + x, y: point.y + y })
}

/// A box of longitudes and latitudes around all points within an angle.
fn degrees_around(point: FlatPoint, angle: f64) -> (FlatPoint, FlatPoint) {
    const WHOLE: f64 = 361.0;
    let height = angle.to_degrees() * (1.0 + 1e-9) + 1e-9;
    let widest = (angle.sin() / point.y.to_radians().cos()).asin().to_degrees() * (1.0 + 1e-9) + 1e-9;
    // A cap around a pole has all longitudes. A cap across the date line is treated as if it had all, too.
    let has_pole = point.y.abs() + height >= 90.0;
    let width = if has_pole || widest.is_nan() || point.x.abs() + widest > 180.0 { WHOLE } else { widest };
    around(point, width, if angle >= PI { WHOLE } else { height })
}
