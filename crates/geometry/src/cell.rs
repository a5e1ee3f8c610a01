//! Cells of the sphere: the numbers under which an index keeps shapes.
//!
//! The sphere is projected onto the six faces of a cube. Each face is quartered again and again, and a Hilbert curve
//! numbers the quarters, so that near cells mostly have near numbers. A number holds three bits for the face, two for
//! each level, then a one that marks the level. All cells inside a cell have numbers within [`Cell::range`].
//! Source: Google, "S2 Geometry", cell hierarchy.

use crate::cap::Cap;
use crate::vector::Vector;

/// The level of the smallest cells, about a centimetre wide.
pub(crate) const LEAF_LEVEL: u32 = 30;
const FACES: u64 = 6;
/// Quarter at each position on the curve, by orientation.
const QUARTER_OF_POSITION: [[u64; 4]; 4] = [[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1], [3, 1, 0, 2]];
/// Change of the curve's orientation in each of its four parts.
const TURN_OF_POSITION: [usize; 4] = [1, 0, 0, 3];

/// A cell: a square on one of the six faces of the cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u64);

impl Cell {
    /// The smallest cell around a point.
    pub fn of_point(point: Vector) -> Self {
        let (face, u, v) = face_of(point);
        let (i, j) = (steps(u), steps(v));
        let mut number = face;
        let mut orientation = (face & 1) as usize;
        for level in (0..LEAF_LEVEL).rev() {
            let quarter = (i >> level & 1) << 1 | (j >> level & 1);
            let position = QUARTER_OF_POSITION[orientation].iter().position(|&one| one == quarter).unwrap_or(0);
            number = number << 2 | position as u64;
            orientation ^= TURN_OF_POSITION[position];
        }
        Self(number << 1 | 1)
    }

    /// The cell's number, as an index keeps it.
    pub fn number(self) -> i64 {
        self.0 as i64
    }

    fn lowest_bit(self) -> u64 {
        self.0 & self.0.wrapping_neg()
    }

    pub(crate) fn level(self) -> u32 {
        LEAF_LEVEL - self.0.trailing_zeros() / 2
    }

    /// The least and the greatest number of the cells inside this one.
    pub fn range(self) -> (i64, i64) {
        let inside = self.lowest_bit() - 1;
        ((self.0 - inside) as i64, (self.0 + inside) as i64)
    }

    /// The cells that contain this one, the smallest first.
    pub fn ancestors(self) -> impl Iterator<Item = Self> {
        (0..self.level()).rev().map(move |level| {
            let bit = 1_u64 << (2 * (LEAF_LEVEL - level));
            Self(self.0 & bit.wrapping_neg() | bit)
        })
    }

    pub(crate) fn faces() -> impl Iterator<Item = Self> {
        (0..FACES).map(|face| Self((face << 1 | 1) << (2 * LEAF_LEVEL)))
    }

    pub(crate) fn children(self) -> impl Iterator<Item = Self> {
        let bit = self.lowest_bit() >> 2;
        let first = self.0 - self.lowest_bit() + bit;
        (0..4).map(move |child| Self(first + child * 2 * bit))
    }

    /// A cap that contains the cell.
    pub(crate) fn surrounding(self) -> Cap {
        let face = self.0 >> (2 * LEAF_LEVEL + 1);
        let level = self.level();
        let (mut i, mut j) = (0_u64, 0_u64);
        let mut orientation = (face & 1) as usize;
        for step in 0..level {
            let position = (self.0 >> (2 * LEAF_LEVEL - 1 - 2 * step) & 3) as usize;
            let quarter = QUARTER_OF_POSITION[orientation][position];
            i = i << 1 | quarter >> 1;
            j = j << 1 | quarter & 1;
            orientation ^= TURN_OF_POSITION[position];
        }
        let width = 1.0 / (1_u64 << level) as f64;
        let at = |i: f64, j: f64| point_on(face, plane(i * width), plane(j * width));
        let (i, j) = (i as f64, j as f64);
        let center = at(i + 0.5, j + 0.5);
        let corners = [at(i, j), at(i + 1.0, j), at(i, j + 1.0), at(i + 1.0, j + 1.0)];
        let radius = corners.into_iter().map(|corner| center.angle(corner)).fold(0.0, f64::max);
        Cap { center, radius }
    }
}

/// The face of the cube on which a point is projected, and the coordinates there.
fn face_of(point: Vector) -> (u64, f64, f64) {
    let Vector { x, y, z } = point;
    if x.abs() >= y.abs() && x.abs() >= z.abs() {
        if x >= 0.0 { (0, y / x, z / x) } else { (3, z / x, y / x) }
    } else if y.abs() >= z.abs() {
        if y >= 0.0 { (1, -x / y, z / y) } else { (4, z / y, -x / y) }
    } else if z >= 0.0 {
        (2, -x / z, -y / z)
    } else {
        (5, -y / z, -x / z)
    }
}

fn point_on(face: u64, u: f64, v: f64) -> Vector {
    let at = |x, y, z| Vector { x, y, z };
    let point = match face {
        0 => at(1.0, u, v),
        1 => at(-u, 1.0, v),
        2 => at(-u, -v, 1.0),
        3 => at(-1.0, -v, -u),
        4 => at(v, -1.0, -u),
        _ => at(v, u, -1.0),
    };
    point.unit()
}

/// Converts a coordinate on a face, from -1 to 1, to a number of widths of the smallest cell. The square root makes
/// cells of one level about equally large.
fn steps(coordinate: f64) -> u64 {
    const WIDTHS: f64 = (1_u64 << LEAF_LEVEL) as f64;
    let place = if coordinate >= 0.0 {
        0.5 * (1.0 + 3.0 * coordinate).sqrt()
    } else {
        1.0 - 0.5 * (1.0 - 3.0 * coordinate).sqrt()
    };
    (place * WIDTHS).clamp(0.0, WIDTHS - 1.0) as u64
}

/// The coordinate, from -1 to 1, of a place from 0 to 1: the inverse of the square root in [`steps`].
fn plane(place: f64) -> f64 {
    if place >= 0.5 { (4.0 * place * place - 1.0) / 3.0 } else { (1.0 - 4.0 * (1.0 - place) * (1.0 - place)) / 3.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_in_the_range_of_every_cell_around_it() {
        for (longitude, latitude) in
            [(0.0, 0.0), (-73.97, 40.77), (180.0, 0.0), (12.5, -89.9), (0.0, 90.0), (-120.0, 45.0)]
        {
            let point = Vector::at(longitude, latitude);
            let leaf = Cell::of_point(point);
            assert_eq!(leaf.level(), LEAF_LEVEL);
            assert_eq!(leaf.ancestors().count(), 30);
            for cell in leaf.ancestors() {
                let (low, high) = cell.range();
                assert!((low..=high).contains(&leaf.number()));
                let around = cell.surrounding();
                assert!(around.center.angle(point) <= around.radius + 1e-12, "{longitude} {latitude} {}", cell.level());
                assert!(cell.children().any(|child| child == leaf || leaf.ancestors().any(|one| one == child)));
            }
        }
    }
}
