//! A closed line without crossings: the border of a polygon or of a hole in one.

use crate::border_check::{Placed, budget, each_near_pair};
use crate::corner::Corner;
use crate::edge_walk::{Crossing, EdgeWalk};
use crate::orientation::{are_ordered, orthogonal};
use crate::vector::{Edge, SAME_RADIANS, Vector, are_in_line};
use std::f64::consts::PI;

/// The point from which the inside is determined: edges lead from it to other points. Its coordinates are not round,
/// because vertices are likely at round ones. Source: Google, "S2 Geometry" (2010), `S2::Origin`.
const ORIGIN: Vector = Vector { x: 0.004_567_620_772_30, y: 0.999_474_766_130_78, z: 0.032_083_153_029_33 };

/// Which side of a ring is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Winding {
    /// The smaller side, for either order of the vertices.
    Any,
    /// The side to the left of the vertices in their order.
    Counterclockwise,
}

/// **Invariant:** the inside is to the left of every edge.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    vertices: Vec<Vector>,
    /// Whether [`ORIGIN`] is inside.
    has_origin: bool,
}

impl Ring {
    /// Makes a ring of vertices. The first must not be repeated at the end.
    /// # Errors
    /// The reason: a vertex comes twice, edges cross, or there are too many edges to compare.
    pub fn new(vertices: Vec<Vector>, winding: Winding) -> Result<Self, String> {
        check_vertices(&vertices)?;
        let mut ring = Self { vertices, has_origin: false };
        ring.check_crossings()?;
        // A ring that halves the sphere keeps its order.
        if winding == Winding::Any && ring.turning() < -1e-11 {
            ring.vertices.reverse();
        }
        ring.has_origin = ring.is_right_at_second_vertex() != ring.surrounds(ring.vertices[1]);
        Ok(ring)
    }

    pub fn vertices(&self) -> &[Vector] {
        &self.vertices
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let next = self.vertices.iter().cycle().skip(1);
        self.vertices.iter().zip(next).map(|(&from, &to)| Edge { from, to })
    }

    /// The sum of all turns on the way around: 2π minus the area that is enclosed.
    fn turning(&self) -> f64 {
        let count = self.vertices.len();
        let vertex = |index: usize| self.vertices[index % count];
        (0..count)
            .map(|index| {
                let (a, b, c) = (vertex(index), vertex(index + 1), vertex(index + 2));
                let (before, after) = (a.cross(b), b.cross(c));
                // Adding 0.0 turns -0.0 into 0.0; `atan2` would count a turn back as a turn to the right otherwise.
                (before.cross(after).dot(b) + 0.0).atan2(before.dot(after))
            })
            .sum()
    }

    /// The corner at the end of an edge, by the edge's number.
    pub fn corner(&self, edge: usize) -> Corner {
        let vertex = |index: usize| self.vertices[index % self.vertices.len()];
        Corner { before: vertex(edge), at: vertex(edge + 1), after: vertex(edge + 2) }
    }

    /// Whether the second vertex counts as inside, judged by the corner there alone.
    fn is_right_at_second_vertex(&self) -> bool {
        let Corner { before, at, after } = self.corner(0);
        are_ordered(orthogonal(at), before, after, at)
    }

    /// Whether a point is inside. The answer for points on the border is arbitrary.
    pub fn surrounds(&self, point: Vector) -> bool {
        let Some((&first, _)) = self.vertices.split_first() else { return false };
        let mut walk = EdgeWalk::new(Edge { from: ORIGIN, to: point }, first);
        let ends = self.vertices.iter().skip(1).chain([&first]);
        ends.fold(self.has_origin, |is_inside, &end| is_inside ^ walk.step_over(end))
    }

    /// Whether a point is on the border.
    pub fn is_on_border(&self, point: Vector) -> bool {
        self.edges().any(|edge| edge.distance(point) <= SAME_RADIANS)
    }

    pub fn distance(&self, point: Vector) -> f64 {
        self.edges().map(|edge| edge.distance(point)).fold(PI, f64::min)
    }

    fn check_crossings(&self) -> Result<(), String> {
        let edges = self.edges().enumerate().map(|(index, edge)| Placed::new(0, index, edge)).collect();
        each_near_pair(edges, &mut budget(), &mut |one, other| match one.edge.crossing(other.edge) {
            Crossing::Inner => {
                let (first, second) = (one.index.min(other.index), one.index.max(other.index));
                Err(format!("Edges {first} and {second} cross"))
            }
            Crossing::End | Crossing::None => Ok(()),
        })
    }
}

fn check_vertices(vertices: &[Vector]) -> Result<(), String> {
    let key = |vector: &Vector| [vector.x, vector.y, vector.z].map(|part| (part + 0.0).to_bits());
    let mut sorted: Vec<(usize, [u64; 3])> = vertices.iter().map(key).enumerate().collect();
    sorted.sort_unstable_by_key(|&(index, key)| (key, index));
    for pair in sorted.windows(2) {
        if let [(first, a), (second, b)] = pair
            && a == b
        {
            return Err(format!("Duplicate vertices: {first} and {second}"));
        }
    }
    for (index, vertex) in vertices.iter().enumerate() {
        let next = vertices[(index + 1) % vertices.len()];
        if vertex.dot(next) < 0.0 && are_in_line(*vertex, next, Vector::at(12.3, 45.6)) {
            return Err(format!("Vertices {index} and {} are antipodal", (index + 1) % vertices.len()));
        }
    }
    Ok(())
}
