//! Search by distance: its parameters, and the fields that it adds to documents.

use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_errors::{Failure, Result};
use bunko_expression::FieldPath;
use bunko_geometry::{Centre, Effort, Near, Stored, Vector, stored_at};
use bunko_operation::OperationContext;
use std::sync::Arc;

/// A search by distance as the client asks for it.
#[derive(Clone, Debug)]
pub struct NearAsked {
    /// The field; `None` for the field of the only index that serves.
    pub path: Option<String>,
    /// The point.
    pub near: Arc<Near>,
    /// The fields to add to documents.
    pub output: NearOutput,
}

impl NearAsked {
    /// The operand of `$geoWithin` for a region that covers all places near enough. `None` if it would
    /// cover everything.
    pub fn region(&self) -> Option<DocumentBuf> {
        // A slightly larger radius is safe: the exact distance of each document is checked afterwards.
        let radius = self.near.max * (1.0 + 1e-9) + 1e-9;
        let name = match self.near.centre {
            Centre::Sphere(_) if radius < std::f64::consts::PI => "$centerSphere",
            Centre::Flat(_) if radius.is_finite() => "$center",
            Centre::Sphere(_) | Centre::Flat(_) => return None,
        };
        let mut circle = ArrayBuf::new();
        circle.push(&[self.near.point.x, self.near.point.y].into_iter().collect::<ArrayBuf>()).push(radius);
        Some(DocumentBuf::new().with(name, &circle))
    }

    /// The search for the geometry at a path, without an index.
    pub fn at(self, path: String) -> NearSearch {
        NearSearch { path, near: self.near, output: self.output, measure: Measure::Angle }
    }
}

/// Searches documents by the distance of a field's geometry from a point.
#[derive(Clone, Debug)]
pub struct NearSearch {
    /// The field.
    pub(crate) path: String,
    /// The point.
    pub(crate) near: Arc<Near>,
    /// The fields to add to documents.
    pub(crate) output: NearOutput,
    pub(crate) measure: Measure,
}

/// How distances on the sphere are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// As angles, for any geometry.
    Angle,
    /// By chords, for points in a 2d index.
    Chord,
}

/// The fields that `$geoNear` adds to documents; by default none.
#[derive(Clone, Debug, Default)]
pub struct NearOutput {
    /// The field for the distance.
    pub distance_field: Option<String>,
    /// The field for the geometry.
    pub geometry_field: Option<String>,
    /// Factor that distances are multiplied by.
    pub multiplier: Option<f64>,
}

impl NearSearch {
    /// Measures a document that did not come from an index, and adds the output fields. `None` if it is not near.
    /// # Errors
    /// Errors of the operation; 5984700 for a path with too many parts to write to.
    pub fn measured(&self, document: DocumentRef<'_>, operation: &OperationContext) -> Result<Option<DocumentBuf>> {
        let found = self.nearest(document, operation)?;
        found.map(|(distance, geometry)| self.told(document, distance, geometry)).transpose()
    }

    /// The distance of a document's nearest geometry, in the point's units, and that geometry.
    /// # Errors
    /// Errors of the operation.
    pub(crate) fn nearest<'d>(
        &self,
        document: DocumentRef<'d>,
        operation: &OperationContext,
    ) -> Result<Option<(f64, ValueRef<'d>)>> {
        let mut effort = Counted { operation, failure: None };
        let nearest = stored_at(document, &self.path)
            .into_iter()
            .filter_map(|(stored, value)| self.distance(&stored, &mut effort).map(|distance| (distance, value)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        match effort.failure {
            Some(failure) => Err(failure),
            None => Ok(nearest.filter(|(distance, _)| self.near.holds(*distance))),
        }
    }

    fn distance(&self, stored: &Stored, effort: &mut Counted<'_>) -> Option<f64> {
        match (self.measure, self.near.centre, stored.flat()) {
            (Measure::Chord, Centre::Sphere(centre), Some(point)) if point.is_on_sphere() => {
                let distance = Vector::at(point.x, point.y).angle_by_chord(centre);
                self.near.is_reached_in_plane(point, distance).then_some(distance)
            }
            _ => stored.distance(self.near.centre, effort),
        }
    }

    /// Whether documents stay as they are stored.
    pub(crate) fn adds_nothing(&self) -> bool {
        self.output.distance_field.is_none() && self.output.geometry_field.is_none()
    }

    /// The `$meta` values of a document.
    pub(crate) fn metadata(&self, distance: f64, geometry: ValueRef<'_>) -> DocumentBuf {
        DocumentBuf::new().with("geoNearDistance", distance * self.near.unit).with("geoNearPoint", geometry)
    }

    /// Adds the output fields to a document.
    /// # Errors
    /// 5984700 for a path with too many parts to write to.
    pub(crate) fn told(&self, document: DocumentRef<'_>, distance: f64, geometry: ValueRef<'_>) -> Result<DocumentBuf> {
        let mut told = document.to_owned();
        if let Some(field) = &self.output.distance_field {
            FieldPath::check_place(field.split('.').count())?;
            let distance = distance * self.near.unit * self.output.multiplier.unwrap_or(1.0);
            told = with_field(told.as_ref(), field, ValueRef::Double(distance));
        }
        if let Some(field) = &self.output.geometry_field {
            FieldPath::check_place(field.split('.').count())?;
            told = with_field(told.as_ref(), field, geometry);
        }
        Ok(told)
    }
}

/// Sets a value at a dotted path, in place of any value there.
fn with_field(document: DocumentRef<'_>, path: &str, value: ValueRef<'_>) -> DocumentBuf {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let set = |present: Option<ValueRef<'_>>, into: &mut DocumentBuf| match rest {
        None => drop(into.append(name, value)),
        Some(rest) => {
            let inner = present.and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY);
            into.append(name, &with_field(inner, rest, value));
        }
    };
    let mut made = DocumentBuf::new();
    let mut is_set = false;
    for field in document {
        if field.name == name {
            set(Some(field.value), &mut made);
            is_set = true;
        } else {
            made.append(field.name, field.value);
        }
    }
    if !is_set {
        set(None, &mut made);
    }
    made
}

/// Counts comparisons as work of an operation.
struct Counted<'o> {
    operation: &'o OperationContext,
    failure: Option<Failure>,
}

impl Effort for Counted<'_> {
    fn goes_on(&mut self, steps: usize) -> bool {
        if let Err(failure) = self.operation.work(steps) {
            self.failure.get_or_insert(failure);
        }
        self.failure.is_none()
    }
}
