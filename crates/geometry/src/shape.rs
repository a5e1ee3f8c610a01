//! The shapes of GeoJSON: points, lines and polygons on the sphere, one or many.

use crate::cap::Cap;
use crate::cell::Cell;
use crate::edge_walk::Crossing;
use crate::effort::Effort;
use crate::polygon::Polygon;
use crate::vector::{Edge, SAME_RADIANS, Vector};

/// A line of at least two vertices.
#[derive(Clone, Debug)]
pub(crate) struct Line(pub Vec<Vector>);

impl Line {
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.0.windows(2).map(|ends| Edge { from: ends[0], to: ends[1] })
    }

    fn distance(&self, point: Vector) -> f64 {
        self.edges().map(|edge| edge.distance(point)).fold(f64::INFINITY, f64::min)
    }
}

/// A geometry of any type, split into its parts.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub(crate) points: Vec<Vector>,
    pub(crate) lines: Vec<Line>,
    pub(crate) polygons: Vec<Polygon>,
    /// Whether a polygon's inside is determined by the order of its vertices, so that it may be more than half of the
    /// sphere.
    pub(crate) has_strict_winding: bool,
}

impl Shape {
    /// A shape of one point.
    pub fn point(point: Vector) -> Self {
        Self { points: vec![point], ..Self::default() }
    }

    /// The point, if the shape is a single point and nothing else.
    pub fn as_point(&self) -> Option<Vector> {
        match (&self.points[..], self.lines.is_empty() && self.polygons.is_empty()) {
            (&[point], true) => Some(point),
            _ => None,
        }
    }

    /// The reason why the shape is invalid, if it is: the rings of a polygon do not fit together.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.polygons.iter().find_map(Polygon::fault)
    }

    /// Whether the shape is one point, one line or one polygon.
    pub fn is_single(&self) -> bool {
        self.points.len() + self.lines.len() + self.polygons.len() == 1
    }

    /// Whether the shape has a polygon, and so an inside.
    pub fn has_area(&self) -> bool {
        !self.polygons.is_empty()
    }

    /// Whether the order of vertices determines the shape's inside. Such shapes are allowed only in queries.
    pub fn has_strict_winding(&self) -> bool {
        self.has_strict_winding
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        self.lines.iter().flat_map(Line::edges).chain(self.polygons.iter().flat_map(Polygon::edges))
    }

    /// Number of points and edges.
    pub fn len(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| line.0.len()).sum();
        self.points.len() + lines + self.polygons.iter().map(Polygon::len).sum::<usize>()
    }

    /// Whether the shape has no parts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the other shape has no point outside. Each of its parts must be inside a single polygon.
    pub fn contains(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        let mut inside = |test: &mut dyn FnMut(&Polygon, &mut dyn Effort) -> bool| {
            self.polygons.iter().any(|polygon| test(polygon, effort))
        };
        other.points.iter().all(|&point| inside(&mut |polygon, effort| polygon.contains(point, effort)))
            && other
                .lines
                .iter()
                .all(|line| inside(&mut |polygon, effort| line.edges().all(|edge| polygon.contains_edge(edge, effort))))
            && other.polygons.iter().all(|part| inside(&mut |polygon, effort| polygon.contains_polygon(part, effort)))
    }

    /// Whether the two share a point. Two polygons must share a part of their insides.
    pub fn meets(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        self.points.iter().any(|&point| other.meets_point(point, effort))
            || other.points.iter().any(|&point| self.meets_point(point, effort))
            || self.lines.iter().flat_map(Line::edges).any(|edge| other.meets_edge(edge, effort))
            || other
                .lines
                .iter()
                .flat_map(Line::edges)
                .any(|edge| self.polygons.iter().any(|polygon| polygon.meets_edge(edge, effort)))
            || self.polygons.iter().any(|one| other.polygons.iter().any(|polygon| polygon.meets_polygon(one, effort)))
    }

    fn meets_point(&self, point: Vector, effort: &mut dyn Effort) -> bool {
        self.points.iter().any(|own| Cell::of_point(*own) == Cell::of_point(point))
            || self.lines.iter().any(|line| !effort.goes_on(line.0.len()) || line.distance(point) <= SAME_RADIANS)
            || self.polygons.iter().any(|polygon| polygon.contains(point, effort))
    }

    /// Whether a line or polygon of this one shares a point with an edge.
    fn meets_edge(&self, edge: Edge, effort: &mut dyn Effort) -> bool {
        self.lines
            .iter()
            .any(|line| !effort.goes_on(line.0.len()) || line.edges().any(|own| own.crossing(edge) != Crossing::None))
            || self.polygons.iter().any(|polygon| polygon.meets_edge(edge, effort))
    }

    /// Whether all of the shape is within a cap.
    pub fn is_within(&self, cap: Cap, effort: &mut dyn Effort) -> bool {
        if cap.is_full() {
            return true;
        }
        let outside = cap.complement();
        self.points.iter().all(|&point| cap.contains(point))
            && (self.lines.is_empty() && self.polygons.is_empty()
                || self.without_points().distance(outside.center, effort) >= outside.radius - SAME_RADIANS)
    }

    fn without_points(&self) -> Self {
        Self { points: Vec::new(), ..self.clone() }
    }

    /// The angle between a point and the nearest part of the shape, in radians; 0 inside.
    pub fn distance(&self, point: Vector, effort: &mut dyn Effort) -> f64 {
        let of_points = self.points.iter().map(|own| own.angle(point)).fold(f64::INFINITY, f64::min);
        let of_lines = self.lines.iter().map(|line| line.distance(point)).fold(of_points, f64::min);
        self.polygons.iter().map(|polygon| polygon.distance(point, effort)).fold(of_lines, f64::min)
    }
}
