//! Points on the unit sphere, and edges: the shorter arcs of great circles between them.

use std::ops::{Add, Mul, Neg, Sub};

/// Distance up to which two points count as one, in radians: about 6 mm on the ground, the size of the smallest cell of
/// an index.
pub(crate) const SAME_RADIANS: f64 = 1e-9;

/// A vector. It has length 1 if it stands for a point.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Vector {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

impl Vector {
    /// The point at a longitude and latitude in degrees.
    pub fn at(longitude: f64, latitude: f64) -> Self {
        let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
        let radius = latitude.cos();
        Self { x: radius * longitude.cos(), y: radius * longitude.sin(), z: latitude.sin() }
    }

    pub(crate) fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    pub(crate) fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - self.z * other.y,
            y: self.z * other.x - self.x * other.z,
            z: self.x * other.y - self.y * other.x,
        }
    }

    pub(crate) fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    pub(crate) fn unit(self) -> Self {
        let length = self.length();
        if length > 0.0 { self * (1.0 / length) } else { self }
    }

    /// The angle between two points, in radians.
    pub fn angle(self, other: Self) -> f64 {
        self.cross(other).length().atan2(self.dot(other))
    }
}

impl Vector {
    /// The angle between two points, computed from the chord between them. An index in the plane computes angles in
    /// this way, and rounds them as MongoDB's does.
    pub fn angle_by_chord(self, other: Self) -> f64 {
        2.0 * ((self - other).length() / 2.0).min(1.0).asin()
    }
}

impl Add for Vector {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y, z: self.z + other.z }
    }
}

impl Sub for Vector {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { x: self.x - other.x, y: self.y - other.y, z: self.z - other.z }
    }
}

impl Mul<f64> for Vector {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { x: self.x * factor, y: self.y * factor, z: self.z * factor }
    }
}

impl Neg for Vector {
    type Output = Self;

    fn neg(self) -> Self {
        self * -1.0
    }
}

/// Whether rounding hides which way three points turn.
pub(crate) fn are_in_line(a: Vector, b: Vector, c: Vector) -> bool {
    clear_turn(a, b, c) == 0
}

/// The turn of three points: 1 counterclockwise, -1 clockwise, 0 if rounding hides it.
fn clear_turn(a: Vector, b: Vector, c: Vector) -> i8 {
    const ROUNDING: f64 = 1e-15;
    let (ab, ac) = (b - a, c - a);
    let volume = ab.cross(ac).dot(a);
    let doubt = ROUNDING * ab.length().max(ac.length());
    if volume > doubt {
        1
    } else if volume < -doubt {
        -1
    } else {
        0
    }
}

/// An arc of a great circle, shorter than half of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub from: Vector,
    pub to: Vector,
}

impl Edge {
    /// Whether two edges clearly cross at a point that is an end of neither. An edge along the other does not cross it.
    pub fn crosses(self, other: Self) -> bool {
        let (a, b, c, d) = (self.from, self.to, other.from, other.to);
        let first = clear_turn(a, c, b);
        first != 0 && first == clear_turn(b, d, a) && first == clear_turn(c, b, d) && first == clear_turn(d, a, c)
    }

    /// The angle between a point and the nearest point of the edge, in radians.
    pub fn distance(self, point: Vector) -> f64 {
        let normal = self.from.cross(self.to);
        let length = normal.length();
        let is_beside = normal.cross(self.from).dot(point) >= 0.0 && self.to.cross(normal).dot(point) >= 0.0;
        if length > 1e-15 && is_beside {
            // The angle to the nearest point is computed as for other points, so that rounding is the same.
            let nearest = point - normal * (point.dot(normal) / normal.dot(normal));
            return point.angle(nearest);
        }
        point.angle(self.from).min(point.angle(self.to))
    }

    /// The point of the edge above a fraction of the chord between the ends.
    pub fn at(self, fraction: f64) -> Vector {
        (self.from * (1.0 - fraction) + self.to * fraction).unit()
    }
}
