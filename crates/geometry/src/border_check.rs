//! Finds the edges of rings that cross, in the order of their boxes and within a limit of comparisons.

use crate::effort::{Budget, Effort};
use crate::vector::{Edge, Vector};

/// Greatest number of edge comparisons that checking the ring or polygon of one geometry may take.
const CHECK_STEPS_MAX: usize = 30_000_000;
/// Steps that the exact test of two edges counts for, in place of one for the test of their boxes.
const CROSSING_STEPS: usize = 16;

/// An edge and its position: the number of its ring, and its number in the ring.
pub(crate) struct Placed {
    pub ring: usize,
    pub index: usize,
    pub edge: Edge,
    extent: Extent,
}

impl Placed {
    pub fn new(ring: usize, index: usize, edge: Edge) -> Self {
        Self { ring, index, edge, extent: Extent::of(edge) }
    }
}

/// Makes the budget of one check: [`CHECK_STEPS_MAX`] steps.
pub(crate) fn budget() -> Budget {
    Budget(CHECK_STEPS_MAX)
}

/// Reason of a check that exceeds its limit.
pub(crate) fn too_complex(edges: usize) -> String {
    format!("Loop of {edges} vertices is too complex to be checked")
}

/// Calls `visit` for all pairs of edges whose boxes meet.
/// # Errors
/// The visitor's reason, or [`too_complex`] if the budget is used up.
pub(crate) fn each_near_pair(
    mut edges: Vec<Placed>,
    budget: &mut Budget,
    visit: &mut dyn FnMut(&Placed, &Placed) -> Result<(), String>,
) -> Result<(), String> {
    edges.sort_by(|a, b| a.extent.low.x.total_cmp(&b.extent.low.x));
    for (position, one) in edges.iter().enumerate() {
        for other in &edges[position + 1..] {
            if other.extent.low.x > one.extent.high.x {
                break;
            }
            let is_near = one.extent.meets(&other.extent);
            if !budget.goes_on(if is_near { CROSSING_STEPS } else { 1 }) {
                return Err(too_complex(edges.len()));
            }
            if is_near {
                visit(one, other)?;
            }
        }
    }
    Ok(())
}

/// A box in space around one or more edges.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    low: Vector,
    high: Vector,
}

impl Extent {
    fn of(edge: Edge) -> Self {
        let (from, to) = (edge.from, edge.to);
        // The greatest distance of an arc from its chord.
        let chord = (to - from).length();
        let bulge = 1.0 - (1.0 - chord * chord / 4.0).max(0.0).sqrt() + 1e-15;
        let margin = Vector { x: bulge, y: bulge, z: bulge };
        let low = Vector { x: from.x.min(to.x), y: from.y.min(to.y), z: from.z.min(to.z) };
        let high = Vector { x: from.x.max(to.x), y: from.y.max(to.y), z: from.z.max(to.z) };
        Self { low: low - margin, high: high + margin }
    }

    /// The box around many edges; `None` without edges.
    pub fn around(edges: impl Iterator<Item = Edge>) -> Option<Self> {
        edges.map(Self::of).reduce(|one, other| Self {
            low: Vector { x: one.low.x.min(other.low.x), y: one.low.y.min(other.low.y), z: one.low.z.min(other.low.z) },
            high: Vector {
                x: one.high.x.max(other.high.x),
                y: one.high.y.max(other.high.y),
                z: one.high.z.max(other.high.z),
            },
        })
    }

    pub fn meets(&self, other: &Self) -> bool {
        self.low.x <= other.high.x
            && other.low.x <= self.high.x
            && self.low.y <= other.high.y
            && other.low.y <= self.high.y
            && self.low.z <= other.high.z
            && other.low.z <= self.high.z
    }
}
