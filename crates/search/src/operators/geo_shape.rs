//! `geoShape`: shapes that stand in a relation to a given shape.

use super::geo_within::{Counted, region};
use super::{Operator, string_paths};
use crate::evaluation::Evaluation;
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{FieldType, Reader, Refusal};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_geometry::{Question, Region, Stored};

#[derive(Debug)]
struct GeoShape {
    paths: Vec<String>,
    relation: Relation,
    region: Region,
    shape: Stored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Contains,
    Disjoint,
    Intersects,
    Within,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let paths = string_paths(reader)?;
    let relations = &[
        ("contains", Relation::Contains),
        ("disjoint", Relation::Disjoint),
        ("intersects", Relation::Intersects),
        ("within", Relation::Within),
    ];
    let relation = reader.required(reader.one_of("relation", relations)?, "relation")?;
    let geometry = reader.required(reader.inner("geometry")?, "geometry")?;
    let kind = geometry.required(geometry.string("type")?, "type")?;
    if relation == Relation::Within && matches!(kind, "Point" | "LineString") {
        return Err(reader.wrong("relation", &format!("\"within\" cannot be used with a {kind}")));
    }
    let region = region(geometry.document()).map_err(|why| geometry.failure(&why))?;
    let shape = Stored::parse(ValueRef::Document(geometry.document())).map_err(|why| geometry.failure(&why))?;
    Ok(Box::new(GeoShape { paths, relation, region, shape }))
}

impl GeoShape {
    fn has(&self, stored: &Stored, effort: &mut Counted<'_>) -> bool {
        match self.relation {
            Relation::Within => self.region.matches(Question::Within, stored, effort),
            Relation::Intersects => self.region.matches(Question::Intersects, stored, effort),
            Relation::Disjoint => !self.region.matches(Question::Intersects, stored, effort),
            Relation::Contains => match (stored.sphere(), self.shape.sphere()) {
                (Some(stored), Some(own)) => stored.contains(own, effort),
                _ => false,
            },
        }
    }
}

impl Operator for GeoShape {
    fn check(&self, schema: &Schema) -> Result<()> {
        for path in &self.paths {
            super::geo_within::check_geo(schema, path)?;
            if !schema.types(path).mapped().iter().any(|kind| matches!(kind, FieldType::Geo { shapes: true })) {
                let message = format!("geo field at path {path} must be indexed with indexShapes=true");
                return Err(Refusal::Query.failure(message));
            }
        }
        Ok(())
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut effort = Counted(evaluation, Ok(()));
        for path in &self.paths {
            for field in unit.values_within(path, &evaluation.operation)? {
                let Ok(stored) = Stored::parse(field.value) else { continue };
                let has = self.has(&stored, &mut effort);
                effort.1.clone()?;
                if has {
                    return Ok(Some(1.0));
                }
            }
        }
        Ok(None)
    }
}
