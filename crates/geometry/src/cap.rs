//! Caps: all points of the sphere within an angle around one point.

use crate::vector::{SAME_RADIANS, Vector};
use std::f64::consts::PI;

/// The operand of `$centerSphere`.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    /// The centre of the cap.
    pub center: Vector,
    /// The angle, in radians, at least 0. From π on, the cap is the whole sphere.
    pub radius: f64,
}

impl Cap {
    /// Whether a point is inside or on the border.
    pub fn contains(self, point: Vector) -> bool {
        self.is_full() || self.center.angle(point) <= self.radius + SAME_RADIANS
    }

    /// Whether the cap is the whole sphere.
    pub fn is_full(self) -> bool {
        self.radius >= PI
    }

    /// The cap that covers the rest of the sphere.
    pub(crate) fn complement(self) -> Self {
        Self { center: -self.center, radius: (PI - self.radius).max(0.0) }
    }
}
