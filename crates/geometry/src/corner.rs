//! Corners: a vertex of a ring with the edges beside it, compared with a corner of another ring at the same vertex.

use crate::orientation::are_ordered;
use crate::vector::Vector;

/// Three successive vertices of a ring. The inside is to the left of both edges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corner {
    pub before: Vector,
    pub at: Vector,
    pub after: Vector,
}

/// Relation of the insides of two corners at one vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Containing,
    Contained,
    Overlapping,
    Disjoint,
}

impl Corner {
    /// Whether the inside of the other corner is inside this one.
    pub fn contains(&self, other: &Self) -> bool {
        are_ordered(self.after, other.after, other.before, self.at)
            && are_ordered(other.before, self.before, self.after, self.at)
    }

    /// Whether the insides overlap.
    pub fn meets(&self, other: &Self) -> bool {
        !(are_ordered(self.before, other.after, other.before, self.at)
            && are_ordered(other.before, self.after, self.before, self.at))
    }

    pub fn relation(&self, other: &Self) -> Relation {
        let is_ordered = |a, b, c| are_ordered(a, b, c, self.at);
        if self.before == other.before && self.after == other.after {
            Relation::Equal
        } else if is_ordered(self.before, self.after, other.after) {
            match () {
                () if is_ordered(other.after, other.before, self.before) => Relation::Containing,
                () if self.after == other.after => Relation::Contained,
                () => Relation::Overlapping,
            }
        } else if is_ordered(self.before, other.before, other.after) {
            Relation::Contained
        } else if is_ordered(self.before, other.before, self.after) {
            Relation::Disjoint
        } else {
            Relation::Overlapping
        }
    }
}
