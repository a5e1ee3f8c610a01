//! Vectors of one kind, stored one after the other.

/// Vectors in a block. A lane grows by blocks, so that it is never copied.
const BLOCK_VECTORS: usize = 256;

/// Vectors of one kind and width, each with the row that it belongs to. Rows ascend.
#[derive(Debug)]
pub(crate) struct Lane<E> {
    width: usize,
    blocks: Vec<Vec<E>>,
    rows: Vec<u32>,
}

impl<E: Copy> Lane<E> {
    /// Makes a lane for vectors of `width` elements, at least one.
    pub(crate) fn new(width: usize) -> Self {
        Self { width: width.max(1), blocks: Vec::new(), rows: Vec::new() }
    }

    /// Adds a row's vector at the end, if it has the lane's width. Returns whether it has.
    pub(crate) fn push(&mut self, row: u32, vector: &[E]) -> bool {
        if vector.len() != self.width {
            return false;
        }
        if self.rows.len().is_multiple_of(BLOCK_VECTORS) {
            self.blocks.push(Vec::with_capacity(BLOCK_VECTORS * self.width));
        }
        let Some(block) = self.blocks.last_mut() else { return false };
        block.extend_from_slice(vector);
        self.rows.push(row);
        true
    }

    /// Number of vectors.
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// The row of the vector at a position, which must be below [`Self::count`].
    #[inline]
    pub(crate) fn row(&self, position: usize) -> u32 {
        self.rows[position]
    }

    #[inline]
    pub(crate) fn vector(&self, position: usize) -> &[E] {
        let start = position % BLOCK_VECTORS * self.width;
        &self.blocks[position / BLOCK_VECTORS][start..start + self.width]
    }

    /// Number of elements of each vector.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK_VECTORS * self.width * size_of::<E>() + self.rows.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_found_where_they_were_put() {
        let mut lane = Lane::new(2);
        assert!(!lane.push(0, &[1]) && !lane.push(0, &[1, 2, 3]));
        for row in 0..600_u32 {
            assert!(lane.push(row * 2, &[row, row + 1]));
        }
        assert_eq!((lane.count(), lane.row(300), lane.vector(300)), (600, 600, &[300, 301][..]));
    }
}
