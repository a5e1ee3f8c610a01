//! Whether one ring contains, meets or crosses another. Each ring's inside is to the left of its edges.
//!
//! Source: Google, "S2 Geometry" (2010), `S2Loop::Contains`, `Intersects` and `ContainsOrCrosses`.

use crate::corner::{Corner, Relation};
use crate::edge_walk::{Crossing, EdgeWalk};
use crate::effort::Effort;
use crate::ring::Ring;
use std::ops::ControlFlow;

/// Relation of a ring to another one whose inside is less than the rest of the sphere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The ring contains the other.
    Containing,
    /// Their borders cross.
    Crossing,
    /// The other ring is outside, or contains this one.
    Elsewhere,
}

/// Relation of two rings, from the corners that they share.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SharedCorners {
    pub count: usize,
    /// At one of the corners, the other ring's inside is not inside this ring's.
    pub leaves: bool,
    pub crosses: bool,
    is_wider: bool,
    is_narrower: bool,
    is_apart: bool,
}

impl SharedCorners {
    pub fn add(&mut self, own: &Corner, other: &Corner) {
        self.count += 1;
        self.leaves |= !own.contains(other);
        match own.relation(other) {
            Relation::Equal => {}
            Relation::Containing => self.is_wider = true,
            Relation::Contained => self.is_narrower = true,
            Relation::Overlapping => self.crosses = true,
            Relation::Disjoint => self.is_apart = true,
        }
        self.crosses |= self.is_wider && self.is_narrower;
    }

    /// Whether one of two rings that do not cross is inside the other.
    pub fn is_nested(self) -> bool {
        self.is_wider || self.is_narrower
    }
}

impl Ring {
    /// Whether this ring contains the other ring's inside.
    pub fn contains_ring(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        if !self.has_place_of(other, effort) {
            return false;
        }
        let mut leaves = false;
        let crosses = self.compare_borders(other, effort, &mut |own, other| {
            leaves |= !own.contains(other);
            if leaves { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // The last test refuses two rings that together cover the whole sphere.
        !crosses && !leaves && !other.has_strictly(self, effort)
    }

    /// Whether the insides overlap. A common border is not enough.
    pub fn meets_ring(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        if self.has_strictly(other, effort) {
            return true;
        }
        let mut meets = false;
        let crosses = self.compare_borders(other, effort, &mut |own, other| {
            meets |= own.meets(other);
            if meets { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        crosses || meets || other.has_strictly(self, effort)
    }

    /// Relation to a ring that is no more than half of the sphere.
    pub fn standing(&self, other: &Self, effort: &mut dyn Effort) -> Standing {
        let mut shared = SharedCorners::default();
        let crosses = self.compare_borders(other, effort, &mut |own, other| {
            shared.add(own, other);
            if shared.crosses { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if crosses || shared.crosses {
            Standing::Crossing
        } else if !shared.is_apart && !shared.is_narrower && self.has_place_of(other, effort) {
            Standing::Containing
        } else {
            Standing::Elsewhere
        }
    }

    /// Whether the other ring's first vertex is inside this ring or is one of its vertices.
    fn has_place_of(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        let first = other.vertices()[0];
        !effort.goes_on(self.vertices().len()) || self.surrounds(first) || self.vertices().contains(&first)
    }

    /// Whether the other ring's first vertex is inside this ring and is none of its vertices.
    fn has_strictly(&self, other: &Self, effort: &mut dyn Effort) -> bool {
        let first = other.vertices()[0];
        effort.goes_on(self.vertices().len()) && self.surrounds(first) && !self.vertices().contains(&first)
    }

    /// Whether two edges cross at a point that is not an end of either. Calls `shared` for the corners at common vertices,
    /// until it breaks.
    fn compare_borders(
        &self,
        other: &Self,
        effort: &mut dyn Effort,
        shared: &mut dyn FnMut(&Corner, &Corner) -> ControlFlow<()>,
    ) -> bool {
        let count = other.vertices().len();
        for (index, edge) in self.edges().enumerate() {
            if !effort.goes_on(count) {
                return false;
            }
            let mut walk = EdgeWalk::new(edge, other.vertices()[0]);
            for position in 0..count {
                let end = other.vertices()[(position + 1) % count];
                match walk.step(end) {
                    Crossing::Inner => return true,
                    Crossing::End if edge.to == end => {
                        if shared(&self.corner(index), &other.corner(position)).is_break() {
                            return false;
                        }
                    }
                    Crossing::End | Crossing::None => {}
                }
            }
        }
        false
    }
}
