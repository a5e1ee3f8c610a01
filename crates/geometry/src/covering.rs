//! Coverings of shapes and caps by cells, for the lookup in an index.

use crate::cap::Cap;
use crate::cell::{Cell, LEAF_LEVEL};
use crate::effort::Unlimited;
use crate::shape::Shape;
use crate::vector::{SAME_RADIANS, Vector};
use std::f64::consts::FRAC_PI_2;

/// Greatest number of cells that cover a shape.
const COVERING_CELLS_MAX: usize = 20;

/// Cells that cover a cap, as small as their number allows.
pub fn covering_of_cap(cap: Cap) -> Vec<Cell> {
    refined(Cell::faces().collect(), &|around| {
        cap.is_full() || cap.center.angle(around.center) <= cap.radius + around.radius + SAME_RADIANS
    })
}

/// Cells that cover a shape.
pub fn covering_of_shape(shape: &Shape) -> Vec<Cell> {
    if let Some(point) = shape.as_point() {
        return vec![Cell::of_point(point)];
    }
    if shape.lines.is_empty() && shape.polygons.is_empty() && shape.points.len() <= COVERING_CELLS_MAX {
        let mut cells: Vec<Cell> = shape.points.iter().map(|&point| Cell::of_point(point)).collect();
        cells.sort_unstable();
        cells.dedup();
        return cells;
    }
    let coarse = match bounding_cap(shape) {
        Some(cap) => covering_of_cap(cap),
        None => Cell::faces().collect(),
    };
    let meets = |around: Cap| shape.distance(around.center, &mut Unlimited) <= around.radius + 2.0 * SAME_RADIANS;
    refined(coarse.into_iter().filter(|cell| meets(cell.surrounding())).collect(), &meets)
}

/// Quarters cells, the largest first, and drops quarters that do not meet the covered region, as long as the number of
/// cells allows.
fn refined(mut cells: Vec<Cell>, meets: &dyn Fn(Cap) -> bool) -> Vec<Cell> {
    cells.retain(|cell| meets(cell.surrounding()));
    while let Some((largest, cell)) = cells.iter().copied().enumerate().min_by_key(|(_, cell)| cell.level()) {
        if cell.level() == LEAF_LEVEL {
            break;
        }
        let quarters: Vec<Cell> = cell.children().filter(|child| meets(child.surrounding())).collect();
        if cells.len() - 1 + quarters.len() > COVERING_CELLS_MAX {
            break;
        }
        cells.swap_remove(largest);
        cells.extend(quarters);
    }
    cells.sort_unstable();
    cells
}

/// A cap that contains the shape; `None` if that is not clearly less than half of the sphere, or the shape's winding is
/// strict.
fn bounding_cap(shape: &Shape) -> Option<Cap> {
    if shape.has_strict_winding() {
        return None;
    }
    let vertices = || shape.points.iter().copied().chain(shape.edges().flat_map(|edge| [edge.from, edge.to]));
    let center = vertices().fold(Vector { x: 0.0, y: 0.0, z: 0.0 }, |sum, vertex| sum + vertex).unit();
    let radius = vertices().map(|vertex| center.angle(vertex)).fold(0.0, f64::max) + SAME_RADIANS;
    // Arcs between points of a cap less than half of the sphere stay inside it, as does the smaller side of a ring.
    (center.length() > 0.5 && radius < 0.9 * FRAC_PI_2).then_some(Cap { center, radius })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_covering_has_all_of_a_cap() {
        let cap = Cap { center: Vector::at(10.0, 20.0), radius: 0.01 };
        let covering = covering_of_cap(cap);
        assert!(covering.len() <= COVERING_CELLS_MAX && covering.iter().all(|cell| cell.level() > 3));
        for step in 0..100 {
            let angle = f64::from(step) * 0.0628;
            let point = Vector::at(10.0 + 0.59 * angle.cos(), 20.0 + 0.55 * angle.sin());
            assert_eq!(
                cap.contains(point),
                cap.contains(point)
                    && covering
                        .iter()
                        .any(|cell| (cell.range().0..=cell.range().1).contains(&Cell::of_point(point).number()))
            );
        }
    }
}
