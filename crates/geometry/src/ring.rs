//! A closed line without crossings: the border of a polygon or of a hole in one.

use crate::effort::{Budget, Effort};
use crate::vector::{Edge, SAME_RADIANS, Vector, turn};
use std::f64::consts::PI;

/// Most comparisons of two edges that checking one ring may take.
const CHECK_STEPS_MAX: usize = 30_000_000;
/// What the exact test of two edges is counted for, beside the test of their boxes.
const CROSSING_STEPS: usize = 16;

/// Which side of a ring is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Winding {
    /// The smaller side, whichever way the vertices go.
    Any,
    /// The side to the left of the vertices in their order.
    Counterclockwise,
}

/// **Invariant:** what is inside lies to the left of every edge.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    vertices: Vec<Vector>,
    /// A point inside; `None` where the ring encloses nothing.
    inner: Option<Vector>,
}

impl Ring {
    /// A ring of vertices of which the first does not come again at the end.
    /// # Errors
    /// The reason: vertices that come twice, edges that cross, too many of them to be compared.
    pub fn new(vertices: Vec<Vector>, winding: Winding) -> Result<Self, String> {
        check_vertices(&vertices)?;
        let mut ring = Self { vertices, inner: None };
        ring.check_crossings()?;
        // A ring that halves the sphere is taken as it is.
        if winding == Winding::Any && ring.turning() < -1e-11 {
            ring.vertices.reverse();
        }
        ring.inner = ring.inner_point();
        Ok(ring)
    }

    pub fn vertices(&self) -> &[Vector] {
        &self.vertices
    }

    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let next = self.vertices.iter().cycle().skip(1);
        self.vertices.iter().zip(next).map(|(&from, &to)| Edge { from, to })
    }

    /// The sum of all turns on the way around: 2π less the area that is enclosed.
    fn turning(&self) -> f64 {
        let count = self.vertices.len();
        let vertex = |index: usize| self.vertices[index % count];
        (0..count)
            .map(|index| {
                let (a, b, c) = (vertex(index), vertex(index + 1), vertex(index + 2));
                let (before, after) = (a.cross(b), b.cross(c));
                // Without the addition a turn back would be to the right where the zero has a sign.
                (before.cross(after).dot(b) + 0.0).atan2(before.dot(after))
            })
            .sum()
    }

    /// A point a little to the left of some edge, nearer to that edge than to any other.
    fn inner_point(&self) -> Option<Vector> {
        const TRIED_EDGES: usize = 4;
        // Fractions that no round coordinates have: lines to the point shall meet no vertex.
        const ALONG: f64 = 0.414_213_562_373;
        const ASIDE: f64 = 0.173_205_080_757;
        let mut longest: Vec<(f64, Edge)> = self.edges().map(|edge| (edge.from.angle(edge.to), edge)).collect();
        longest.sort_by(|a, b| b.0.total_cmp(&a.0));
        longest.into_iter().take(TRIED_EDGES).find_map(|(length, edge)| {
            let base = edge.at(ALONG);
            let room = self
                .edges()
                .filter(|other| other.from != edge.from)
                .map(|other| other.distance(base))
                .fold(length, f64::min);
            (room > SAME_RADIANS).then(|| (base + edge.left() * (room * ASIDE)).unit())
        })
    }

    /// Whether a point is inside; on the border any answer will do.
    pub fn surrounds(&self, point: Vector) -> bool {
        let Some(inner) = self.inner else { return false };
        if point.dot(inner) > -0.5 {
            return !self.separates(point, inner);
        }
        // An arc to the other side of the world may be any: the way goes by a point between them.
        let aside = point.cross(inner);
        let between = if aside.length() > 1e-3 { aside } else { inner.cross(Vector::at(12.3, 45.6)) }.unit();
        self.separates(point, between) == self.separates(between, inner)
    }

    fn separates(&self, from: Vector, to: Vector) -> bool {
        let way = Edge { from, to };
        self.edges().filter(|edge| edge.crosses(way)).count() % 2 == 1
    }

    /// Whether a point is on the border.
    pub fn is_on_border(&self, point: Vector) -> bool {
        self.edges().any(|edge| edge.distance(point) <= SAME_RADIANS)
    }

    pub fn distance(&self, point: Vector) -> f64 {
        self.edges().map(|edge| edge.distance(point)).fold(PI, f64::min)
    }

    fn check_crossings(&self) -> Result<(), String> {
        let mut boxed: Vec<(usize, Edge, Extent)> =
            self.edges().enumerate().map(|(index, edge)| (index, edge, Extent::of(edge))).collect();
        boxed.sort_by(|a, b| a.2.low.x.total_cmp(&b.2.low.x));
        let mut budget = Budget(CHECK_STEPS_MAX);
        for (position, (index, edge, extent)) in boxed.iter().enumerate() {
            let later = &boxed[position + 1..];
            for (other_index, other, other_extent) in later {
                if other_extent.low.x > extent.high.x {
                    break;
                }
                let steps = if extent.meets(other_extent) { CROSSING_STEPS } else { 1 };
                if !budget.goes_on(steps) {
                    return Err(format!("Loop of {} vertices is too complex to be checked", self.vertices.len()));
                }
                if steps > 1 && edge.crosses(*other) {
                    let (first, second) = (index.min(other_index), index.max(other_index));
                    return Err(format!("Edges {first} and {second} cross"));
                }
            }
        }
        Ok(())
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
        if vertex.dot(next) < 0.0 && turn(*vertex, next, Vector::at(12.3, 45.6)) == 0 {
            return Err(format!("Vertices {index} and {} are antipodal", (index + 1) % vertices.len()));
        }
    }
    Ok(())
}

/// The box around an edge.
struct Extent {
    low: Vector,
    high: Vector,
}

impl Extent {
    fn of(edge: Edge) -> Self {
        let (from, to) = (edge.from, edge.to);
        // How far an arc can be from its chord.
        let chord = (to - from).length();
        let bulge = 1.0 - (1.0 - chord * chord / 4.0).max(0.0).sqrt() + 1e-15;
        let margin = Vector { x: bulge, y: bulge, z: bulge };
        let low = Vector { x: from.x.min(to.x), y: from.y.min(to.y), z: from.z.min(to.z) };
        let high = Vector { x: from.x.max(to.x), y: from.y.max(to.y), z: from.z.max(to.z) };
        Self { low: low - margin, high: high + margin }
    }

    fn meets(&self, other: &Self) -> bool {
        self.low.x <= other.high.x
            && other.low.x <= self.high.x
            && self.low.y <= other.high.y
            && other.low.y <= self.high.y
            && self.low.z <= other.high.z
            && other.low.z <= self.high.z
    }
}
