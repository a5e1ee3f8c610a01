//! The side of an edge that a point is on, decided for any three points.
//!
//! Rounding moves points on one great circle a little aside of it. The answer for them is arbitrary, but it must be the
//! same each time, and the same as MongoDB's: it determines whether two polygons that share a part of their borders
//! meet. So the tests follow those of the library that MongoDB uses, step by step.
//! Source: Google, "S2 Geometry" (2010), `RobustCCW` and `OrderedCCW`.

use crate::vector::Vector;

/// Magnitude above which the sign of a determinant of three points is right in spite of rounding.
const DETERMINANT_ERROR: f64 = 0.8e-15;

/// Which way three points turn: 1 counterclockwise, -1 clockwise, 0 only if two of them are the same.
pub(crate) fn turn(a: Vector, b: Vector, c: Vector) -> i8 {
    turn_about(a, b, c, a.cross(b))
}

/// As [`turn`], for points whose cross product `a x b` is known.
pub(crate) fn turn_about(a: Vector, b: Vector, c: Vector, normal: Vector) -> i8 {
    let determinant = normal.dot(c);
    if determinant > DETERMINANT_ERROR {
        1
    } else if determinant < -DETERMINANT_ERROR {
        -1
    } else {
        turn_of_near(a, b, c)
    }
}

/// Whether three directions around a point come in this order, counterclockwise. Two of them may be the same, but not
/// the first and the last.
pub(crate) fn are_ordered(a: Vector, b: Vector, c: Vector, around: Vector) -> bool {
    let held =
        [turn(b, around, a) >= 0, turn(c, around, b) >= 0, turn(a, around, c) > 0].into_iter().filter(|it| *it).count();
    held >= 2
}

/// Returns a point a quarter of a circle away from `point`; it is always the same for the same `point`.
pub(crate) fn orthogonal(point: Vector) -> Vector {
    let Vector { x, y, z } = point;
    let mut other = Vector { x: 0.012, y: 0.0053, z: 0.004_57 };
    // The chosen axis is the one before the axis that the point is nearest to.
    if x.abs() > y.abs() {
        *(if x.abs() > z.abs() { &mut other.z } else { &mut other.y }) = 1.0;
    } else {
        *(if y.abs() > z.abs() { &mut other.x } else { &mut other.y }) = 1.0;
    }
    point.cross(other).unit()
}

/// The turn of three points that are nearly on one great circle. It is computed from differences, which are small and
/// therefore rounded less.
fn turn_of_near(a: Vector, b: Vector, c: Vector) -> i8 {
    if a == b || b == c || c == a {
        return 0;
    }
    // Nearly opposite points are added, others are subtracted.
    let factor = |one: Vector, other: Vector| if one.dot(other) > 0.0 { -1.0 } else { 1.0 };
    let (factor_ab, factor_bc, factor_ca) = (factor(a, b), factor(b, c), factor(c, a));
    let (ab, bc, ca) = (a + b * factor_ab, b + c * factor_bc, c + a * factor_ca);
    let (length_ab, length_bc, length_ca) = (ab.dot(ab), bc.dot(bc), ca.dot(ca));
    let is_less = |one: f64, other: f64, from: Vector, to: Vector| one < other || one == other && is_before(from, to);
    // The vertex opposite the longest side is the origin.
    let volume = if is_less(length_ca, length_bc, a, b) {
        if is_less(length_ab, length_bc, a, c) {
            ab.cross(ca).dot(a) * factor_ab
        } else {
            ca.cross(bc).dot(c) * factor_ca
        }
    } else if is_less(length_ab, length_ca, b, c) {
        bc.cross(ab).dot(b) * factor_bc
    } else {
        ca.cross(bc).dot(c) * factor_ca
    };
    match sign(volume) {
        0 => turn_of_coplanar(a, b, c),
        sign => sign,
    }
}

/// The turn of three points that cannot be told from points on a great circle, because of rounding. It is computed as
/// though all were moved by one infinitely small vector, whose part along each axis is infinitely smaller than along
/// the axis before.
fn turn_of_coplanar(a: Vector, b: Vector, c: Vector) -> i8 {
    let planes: [fn(Vector) -> (f64, f64); 3] = [|it| (it.y, it.z), |it| (it.z, it.x), |it| (it.x, it.y)];
    planes
        .into_iter()
        .map(|plane| {
            let (a, b, c) = (plane(a), plane(b), plane(c));
            (flat_turn(a, b) + flat_turn(b, c) + flat_turn(c, a)).signum()
        })
        .find(|turn| *turn != 0)
        .unwrap_or(0)
}

/// The direction in which the edge between two points of a plane goes around the origin.
fn flat_turn(a: (f64, f64), b: (f64, f64)) -> i8 {
    let factor = if a.0 * b.0 + a.1 * b.1 > 0.0 { -1.0 } else { 1.0 };
    let ab = (a.0 + factor * b.0, a.1 + factor * b.1);
    let cross = |one: (f64, f64), other: (f64, f64)| one.0 * other.1 - one.1 * other.0;
    let (length_a, length_b) = (a.0 * a.0 + a.1 * a.1, b.0 * b.0 + b.1 * b.1);
    if length_a < length_b || length_a == length_b && a < b { sign(cross(a, ab) * factor) } else { sign(cross(ab, b)) }
}

fn is_before(one: Vector, other: Vector) -> bool {
    (one.x, one.y, one.z) < (other.x, other.y, other.z)
}

fn sign(value: f64) -> i8 {
    i8::from(value > 0.0) - i8::from(value < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_changes_its_sign_with_the_order() {
        let points =
            [(0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (-1.0, -1.5), (-1.0, -1.0), (-1.0, 1.0), (0.0, 90.0), (180.0, 0.0)];
        let points = points.map(|(longitude, latitude)| Vector::at(longitude, latitude));
        for a in points {
            for b in points {
                for c in points {
                    let first = turn(a, b, c);
                    assert_eq!(first, turn(b, c, a));
                    assert_eq!(first, -turn(c, b, a));
                    // This holds for points on the equator too, which are exactly on one great circle.
                    assert_eq!(first == 0, a == b || b == c || c == a, "{a:?} {b:?} {c:?}");
                }
            }
        }
    }
}
