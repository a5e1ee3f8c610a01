//! Compares an edge with the edges of a border, one after the other.

use crate::orientation::{are_ordered, orthogonal, turn_about};
use crate::vector::{Edge, Vector};

/// The points that two edges share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// A point that is an end of neither.
    Inner,
    /// An end of both.
    End,
    None,
}

/// An edge, and the vertex of the border that the walk is at.
/// **Invariant:** `turn` is that of the edge's end, the edge's beginning, and `place`, in this order.
pub(crate) struct EdgeWalk {
    edge: Edge,
    normal: Vector,
    place: Vector,
    turn: i8,
}

impl Edge {
    /// Finds the points that the two edges share.
    pub fn crossing(self, other: Self) -> Crossing {
        EdgeWalk::new(self, other.from).step(other.to)
    }
}

impl EdgeWalk {
    /// Begins at the first vertex of a border.
    pub fn new(edge: Edge, first: Vector) -> Self {
        let normal = edge.from.cross(edge.to);
        Self { edge, normal, place: first, turn: -turn_about(edge.from, edge.to, first, normal) }
    }

    /// Goes on to the next vertex of the border, and compares the edge with the one that leads there.
    pub fn step(&mut self, next: Vector) -> Crossing {
        let Edge { from, to } = self.edge;
        let (place, here) = (self.place, self.turn);
        let there = turn_about(from, to, next, self.normal);
        (self.place, self.turn) = (next, -there);
        if there == -here && there != 0 {
            return Crossing::None;
        }
        if there == 0 || here == 0 {
            return Crossing::End;
        }
        let normal = place.cross(next);
        let is_inner = -turn_about(place, next, to, normal) == here && turn_about(place, next, from, normal) == here;
        if is_inner { Crossing::Inner } else { Crossing::None }
    }

    /// As [`EdgeWalk::step`]. Returns whether the edge leads to the other side of the border. At an end that both edges
    /// share, that is so for exactly one of two successive edges of the border.
    pub fn step_over(&mut self, next: Vector) -> bool {
        let place = self.place;
        match self.step(next) {
            Crossing::Inner => true,
            Crossing::None => false,
            Crossing::End => crosses_at_end(self.edge, Edge { from: place, to: next }),
        }
    }
}

fn crosses_at_end(one: Edge, other: Edge) -> bool {
    let (Edge { from: a, to: b }, Edge { from: c, to: d }) = (one, other);
    match () {
        () if a == b || c == d => false,
        () if a == d => are_ordered(orthogonal(a), c, b, a),
        () if b == c => are_ordered(orthogonal(b), d, a, b),
        () if a == c => are_ordered(orthogonal(a), d, b, a),
        () if b == d => are_ordered(orthogonal(b), c, a, b),
        () => false,
    }
}
