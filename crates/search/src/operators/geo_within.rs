//! `geoWithin`: points, and shapes where the index has them, inside a box, a circle or polygons.

use super::{Operator, string_paths};
use crate::evaluation::Evaluation;
use crate::geography::{Point, Polygon};
use crate::schema::Schema;
use crate::unit::{Field, Unit};
use crate::{FieldType, Reader, Refusal};
use bunko_bson::{DocumentBuf, DocumentRef};
use bunko_errors::{Failure, Result};
use bunko_geometry::{Effort, Question, Region, Stored};

#[derive(Debug)]
struct GeoWithin {
    paths: Vec<String>,
    area: Area,
}

#[derive(Debug)]
enum Area {
    Box { low: Point, high: Point },
    Circle { center: Point, radius: f64 },
    Polygons { polygons: Vec<Polygon>, region: Region },
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let paths = string_paths(reader)?;
    let ways = ["box", "circle", "geometry"];
    if ways.iter().filter(|way| reader.value(way).is_some()).count() != 1 {
        return Err(reader.failure("must have one of [box, circle, geometry]"));
    }
    let area = if let Some(corners) = reader.inner("box")? {
        let low = Point::parse(&corners.required(corners.inner("bottomLeft")?, "bottomLeft")?)?;
        let high = Point::parse(&corners.required(corners.inner("topRight")?, "topRight")?)?;
        corners.done()?;
        Area::Box { low, high }
    } else if let Some(circle) = reader.inner("circle")? {
        let center = Point::parse(&circle.required(circle.inner("center")?, "center")?)?;
        let radius = circle.required(circle.number("radius")?, "radius")?;
        circle.done()?;
        if radius.is_nan() || radius < 0.0 {
            return Err(circle.wrong("radius", "cannot be negative"));
        }
        Area::Circle { center, radius }
    } else {
        let geometry = reader.required(reader.inner("geometry")?, "geometry")?;
        let polygons = Polygon::several(geometry.document()).map_err(|why| geometry.failure(&why))?;
        let region = region(geometry.document()).map_err(|why| geometry.failure(&why))?;
        Area::Polygons { polygons, region }
    };
    Ok(Box::new(GeoWithin { paths, area }))
}

/// Parses a geometry of a query.
pub(super) fn region(geometry: DocumentRef<'_>) -> Result<Region, String> {
    let asked = DocumentBuf::new().with("$geometry", geometry);
    Region::parse(asked.as_ref(), Question::Within)
}

/// Refuses a path at which the index has no geometries.
pub(super) fn check_geo(schema: &Schema, path: &str) -> Result<()> {
    let is_geo = schema.types(path).mapped().iter().any(|kind| matches!(kind, FieldType::Geo { .. }));
    if is_geo { Ok(()) } else { Err(no_geo_field(path)) }
}

fn no_geo_field(path: &str) -> Failure {
    Refusal::Query.failure(format!("geo index field definition not present at path {path}"))
}

/// Counts steps of geometry as work of the operation, and holds the error with which the operation stops them.
pub(super) struct Counted<'e>(pub &'e Evaluation, pub Result<()>);

impl Effort for Counted<'_> {
    fn goes_on(&mut self, steps: usize) -> bool {
        if self.1.is_ok() {
            self.1 = self.0.operation.work(steps);
        }
        self.1.is_ok()
    }
}

impl GeoWithin {
    fn has(&self, field: &Field<'_>, evaluation: &Evaluation) -> Result<bool> {
        let shapes = field.types.mapped().iter().find_map(|kind| match kind {
            FieldType::Geo { shapes } => Some(*shapes),
            _ => None,
        });
        let Some(shapes) = shapes else { return Ok(false) };
        let Some(point) = Point::stored(field.value) else {
            let Area::Polygons { region, .. } = &self.area else { return Ok(false) };
            let Some(stored) = Stored::parse(field.value).ok().filter(|_| shapes) else { return Ok(false) };
            let mut effort = Counted(evaluation, Ok(()));
            let is_inside = region.matches(Question::Within, &stored, &mut effort);
            return effort.1.map(|()| is_inside);
        };
        Ok(match &self.area {
            Area::Box { low, high } => {
                let longitude = low.longitude..=high.longitude;
                // A box whose left side is right of its right one goes over the date line.
                let fits = if low.longitude <= high.longitude {
                    longitude.contains(&point.longitude)
                } else {
                    point.longitude >= low.longitude || point.longitude <= high.longitude
                };
                fits && (low.latitude..=high.latitude).contains(&point.latitude)
            }
            Area::Circle { center, radius } => point.distance(*center) <= *radius,
            Area::Polygons { polygons, .. } => polygons.iter().any(|polygon| polygon.contains(point)),
        })
    }
}

impl Operator for GeoWithin {
    fn check(&self, schema: &Schema) -> Result<()> {
        self.paths.iter().try_for_each(|path| check_geo(schema, path))
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        for path in &self.paths {
            for field in unit.values_within(path, &evaluation.operation)? {
                if self.has(field, evaluation)? {
                    return Ok(Some(1.0));
                }
            }
        }
        Ok(None)
    }
}
