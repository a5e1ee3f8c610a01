//! Points and shapes in the plane.

/// A point in the plane: a legacy coordinate pair.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct FlatPoint {
    pub x: f64,
    pub y: f64,
}

impl FlatPoint {
    /// The distance between two points, rounded as MongoDB rounds it, because a point may be exactly at a circle's
    /// radius.
    pub fn distance(self, other: Self) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        if x == 0.0 {
            y.abs()
        } else if y == 0.0 {
            x.abs()
        } else {
            (x * x + y * y).sqrt()
        }
    }

    /// Whether the coordinates are a longitude and a latitude.
    pub fn is_on_sphere(self) -> bool {
        self.x.abs() <= 180.0 && self.y.abs() <= 90.0
    }
}

/// The operands of `$box`, `$center` and `$polygon`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum FlatShape {
    Box { low: FlatPoint, high: FlatPoint },
    Circle { center: FlatPoint, radius: f64 },
    Polygon(Vec<FlatPoint>),
}

impl FlatShape {
    /// Whether a point is inside. The borders of boxes and circles are inside; for polygons see `is_in_polygon`.
    pub fn contains(&self, point: FlatPoint) -> bool {
        match self {
            Self::Box { low, high } => low.x <= point.x && point.x <= high.x && low.y <= point.y && point.y <= high.y,
            Self::Circle { center, radius } => center.distance(point) - radius <= 0.0,
            Self::Polygon(vertices) => is_in_polygon(vertices, point),
        }
    }

    /// Number of comparisons that [`FlatShape::contains`] makes.
    pub fn steps(&self) -> usize {
        match self {
            Self::Box { .. } | Self::Circle { .. } => 1,
            Self::Polygon(vertices) => vertices.len(),
        }
    }

    /// The lowest and the highest corner of the box around the shape.
    pub fn extent(&self) -> (FlatPoint, FlatPoint) {
        match self {
            Self::Box { low, high } => (*low, *high),
            Self::Circle { center, radius } => {
                let radius = radius * (1.0 + 1e-12);
                let low = FlatPoint { x: center.x - radius, y: center.y - radius };
                (low, FlatPoint { x: center.x + radius, y: center.y + radius })
            }
            Self::Polygon(vertices) => {
                let (mut low, mut high) = (vertices[0], vertices[0]);
                for vertex in vertices {
                    low = FlatPoint { x: low.x.min(vertex.x), y: low.y.min(vertex.y) };
                    high = FlatPoint { x: high.x.max(vertex.x), y: high.y.max(vertex.y) };
                }
                (low, high)
            }
        }
    }
}

/// Whether a ray from the point to the right crosses the border an odd number of times. Points on vertices and on
/// horizontal or vertical edges are inside. Points on a slanted edge count as left of it, so that they are inside if
/// the polygon's inside is to the left of the edge.
fn is_in_polygon(vertices: &[FlatPoint], point: FlatPoint) -> bool {
    let mut crossings = 0;
    let next = vertices.iter().cycle().skip(1);
    for (from, to) in vertices.iter().zip(next) {
        let (left, right) = (from.x.min(to.x), from.x.max(to.x));
        let (bottom, top) = (from.y.min(to.y), from.y.max(to.y));
        let is_between = |value: f64, low: f64, high: f64| low <= value && value <= high;
        if point == *from || point == *to {
            return true;
        }
        if bottom == top {
            if point.y == bottom && is_between(point.x, left, right) {
                return true;
            }
            continue;
        }
        if left == right && point.x == left && is_between(point.y, bottom, top) {
            return true;
        }
        // An edge does not include its lower end, which belongs to the edge below.
        if bottom < point.y && point.y <= top {
            let crossing = from.x + (point.y - from.y) * (to.x - from.x) / (to.y - from.y);
            crossings += usize::from(point.x <= crossing);
        }
    }
    crossings % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_border_to_the_right_is_inside() {
        let vertex = |x, y| FlatPoint { x, y };
        let triangle = FlatShape::Polygon(vec![vertex(4.0, 4.0), vertex(6.0, 4.0), vertex(5.0, 6.0)]);
        for inside in [vertex(5.5, 5.0), vertex(4.5, 4.0), vertex(5.0, 6.0), vertex(4.0, 4.0), vertex(5.0, 5.0)] {
            assert!(triangle.contains(inside), "{inside:?}");
        }
        for outside in [vertex(4.5, 5.0), vertex(4.0, 4.5), vertex(5.0, 6.5), vertex(3.0, 4.0)] {
            assert!(!triangle.contains(outside), "{outside:?}");
        }
    }
}
