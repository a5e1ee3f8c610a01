//! Grids over a square of the plane, whose cells are numbered by the alternating bits of both coordinates.

use crate::flat::FlatPoint;

/// Greatest number of cells that cover a box.
const COVERING_CELLS_MAX: usize = 20;

/// A square and its number of divisions: the options of a `2d` index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// Minimum coordinate.
    pub min: f64,
    /// Greatest coordinate.
    pub max: f64,
    /// Number of times that the square is halved in each direction, from 1 to 32.
    pub bits: u32,
}

/// A square of a grid: `level` leading bits of each coordinate in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridCell {
    number: u64,
    level: u32,
}

impl GridCell {
    /// The least and the greatest number inside the cell, in the order of signed numbers.
    pub fn range(self) -> (i64, i64) {
        let inside = u64::MAX.checked_shr(2 * self.level).unwrap_or(0);
        (signed(self.number), signed(self.number | inside))
    }
}

fn signed(number: u64) -> i64 {
    (number ^ 1 << 63) as i64
}

impl Grid {
    /// Whether a point is in the square, its borders included.
    pub fn holds(&self, point: FlatPoint) -> bool {
        let is_inside = |value: f64| self.min <= value && value <= self.max;
        is_inside(point.x) && is_inside(point.y)
    }

    /// The number of the smallest cell around a point of the square.
    pub fn number(&self, point: FlatPoint) -> i64 {
        let (x, y) = (self.step(point.x), self.step(point.y));
        signed(spread(x) << 1 | spread(y))
    }

    /// The 32 bits of a coordinate. Only the leading `bits` may be set.
    fn step(&self, value: f64) -> u64 {
        let cells = (1_u64 << self.bits) as f64;
        let step = ((value - self.min) / (self.max - self.min) * cells).clamp(0.0, cells - 1.0) as u64;
        step << (32 - self.bits)
    }

    /// The corners of a cell.
    fn extent(&self, cell: GridCell) -> (FlatPoint, FlatPoint) {
        let width = (self.max - self.min) / (1_u64 << cell.level) as f64;
        let place = |bits: u64| self.min + (gathered(bits) >> (32 - cell.level)) as f64 * width;
        let low = FlatPoint { x: place(cell.number >> 1), y: place(cell.number) };
        (low, FlatPoint { x: low.x + width, y: low.y + width })
    }

    /// Cells that cover a box, clipped to the square. A box outside the square has no cells.
    pub fn covering(&self, low: FlatPoint, high: FlatPoint) -> Vec<GridCell> {
        // The margin keeps points that rounding moves over a border.
        let margin = (self.max - self.min) * 1e-12;
        let meets = |cell: GridCell| {
            let (cell_low, cell_high) = self.extent(cell);
            cell_low.x - margin <= high.x
                && low.x <= cell_high.x + margin
                && cell_low.y - margin <= high.y
                && low.y <= cell_high.y + margin
        };
        let mut cells = vec![GridCell { number: 0, level: 0 }];
        cells.retain(|cell| meets(*cell));
        while let Some((largest, cell)) = cells.iter().copied().enumerate().min_by_key(|(_, cell)| cell.level) {
            if cell.level == self.bits {
                break;
            }
            let level = cell.level + 1;
            let quarters: Vec<GridCell> = (0..4_u64)
                .map(|quarter| GridCell { number: cell.number | quarter << (64 - 2 * level), level })
                .filter(|quarter| meets(*quarter))
                .collect();
            if cells.len() - 1 + quarters.len() > COVERING_CELLS_MAX {
                break;
            }
            cells.swap_remove(largest);
            cells.extend(quarters);
        }
        cells.sort_unstable_by_key(|cell| cell.range());
        cells
    }
}

/// Moves each of the low 32 bits to an even place.
fn spread(value: u64) -> u64 {
    (0..32).fold(0, |number, bit| number | (value >> bit & 1) << (2 * bit))
}

/// Gathers the bits at even places.
fn gathered(number: u64) -> u64 {
    (0..32).fold(0, |value, bit| value | (number >> (2 * bit) & 1) << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_covering_has_the_numbers_of_all_points() {
        for bits in [1, 8, 26, 32] {
            let grid = Grid { min: -180.0, max: 180.0, bits };
            let (low, high) = (FlatPoint { x: -10.0, y: 3.0 }, FlatPoint { x: 20.5, y: 3.5 });
            let covering = grid.covering(low, high);
            assert!(!covering.is_empty() && covering.len() <= COVERING_CELLS_MAX);
            for step in 0..100 {
                let part = f64::from(step) / 99.0;
                let point = FlatPoint { x: low.x + (high.x - low.x) * part, y: low.y + (high.y - low.y) * part };
                let number = grid.number(point);
                assert!(covering.iter().any(|cell| (cell.range().0..=cell.range().1).contains(&number)), "{point:?}");
            }
        }
        let grid = Grid { min: -180.0, max: 180.0, bits: 26 };
        assert!(grid.covering(FlatPoint { x: 200.0, y: 0.0 }, FlatPoint { x: 300.0, y: 1.0 }).is_empty());
    }
}
