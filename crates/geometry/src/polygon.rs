//! A ring and the holes in it.

use crate::effort::Effort;
use crate::ring::Ring;
use crate::vector::{Edge, SAME_RADIANS, Vector};

/// **Invariant:** the holes are inside the ring.
#[derive(Clone, Debug)]
pub(crate) struct Polygon {
    outer: Ring,
    holes: Vec<Ring>,
}

impl Polygon {
    /// # Errors
    /// The reason: a hole that is not inside the ring.
    pub fn new(outer: Ring, holes: Vec<Ring>) -> Result<Self, String> {
        for hole in &holes {
            let is_outside = |vertex: &Vector| !outer.surrounds(*vertex) && !outer.is_on_border(*vertex);
            let shares_edge = || hole.edges().any(|edge| outer.distance(edge.at(0.5)) <= SAME_RADIANS);
            if hole.vertices().iter().any(is_outside) || shares_edge() {
                return Err(
                    "Secondary loops not contained by first exterior loop - secondary loops must be holes".into()
                );
            }
        }
        Ok(Self { outer, holes })
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.outer).chain(&self.holes)
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.rings().flat_map(Ring::edges)
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        self.rings().map(|ring| ring.vertices().len()).sum()
    }

    /// Whether a point is inside or on the border.
    pub fn contains(&self, point: Vector, effort: &mut dyn Effort) -> bool {
        !effort.goes_on(2 * self.len()) || self.is_strictly_inside(point) || self.is_on_border(point)
    }

    fn is_on_border(&self, point: Vector) -> bool {
        self.rings().any(|ring| ring.is_on_border(point))
    }

    /// Whether a point is inside; on the border any answer will do.
    fn is_strictly_inside(&self, point: Vector) -> bool {
        self.outer.surrounds(point) && !self.holes.iter().any(|hole| hole.surrounds(point))
    }

    /// The angle between a point and the polygon, 0 inside.
    pub fn distance(&self, point: Vector, effort: &mut dyn Effort) -> f64 {
        if !effort.goes_on(2 * self.len()) || self.is_strictly_inside(point) {
            return 0.0;
        }
        self.rings().map(|ring| ring.distance(point)).fold(f64::INFINITY, f64::min)
    }

    /// Whether some edges cross.
    fn is_crossed_by(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        !effort.goes_on(self.len()) || self.edges().any(|own| own.crosses(edge))
    }

    /// Whether an edge has no point outside.
    pub fn contains_edge(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        self.contains(edge.from, effort)
            && self.contains(edge.to, effort)
            && self.contains(edge.at(0.5), effort)
            && !self.is_crossed_by(edge, effort)
    }

    /// Whether an edge has a point inside or on the border.
    pub fn meets_edge(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        self.contains(edge.from, effort) || self.contains(edge.to, effort) || self.is_crossed_by(edge, effort)
    }

    /// Whether the other has no point outside.
    pub fn contains_polygon(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        other.edges().all(|edge| self.contains_edge(edge, effort))
            && other.outer.edges().all(|edge| self.has_left_of(edge, effort))
            && !self.holes.iter().flat_map(Ring::edges).any(|edge| other.has_left_of(edge, effort))
    }

    /// Whether the two share some of their insides: a common border is not enough.
    pub fn meets_polygon(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        other.edges().any(|edge| self.is_crossed_by(edge, effort))
            || other.outer.edges().any(|edge| self.has_left_of(edge, effort))
            || self.outer.edges().any(|edge| other.has_left_of(edge, effort))
    }

    /// Whether what is beside the middle of an edge, to its left, is inside.
    fn has_left_of(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        let step = SAME_RADIANS.max(edge.from.angle(edge.to) * 1e-6);
        !effort.goes_on(self.len()) || self.is_strictly_inside((edge.at(0.5) + edge.left() * step).unit())
    }
}
