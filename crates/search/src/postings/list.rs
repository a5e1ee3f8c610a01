//! The rows of one word, compressed.

/// Ascending rows. Each is stored as its distance from the previous row, in groups of seven bits, the lowest first; the
/// highest bit of a byte says that more groups follow.
#[derive(Debug, Default)]
pub(super) struct PostingList {
    gaps: Vec<u8>,
    last: u32,
    count: u32,
}

impl PostingList {
    /// Appends a row, and returns how many bytes the list grew by.
    pub fn push(&mut self, row: u32) -> usize {
        let before = self.gaps.capacity();
        let mut gap = row - self.last;
        while gap >= 0x80 {
            self.gaps.push(gap as u8 | 0x80);
            gap >>= 7;
        }
        self.gaps.push(gap as u8);
        self.last = row;
        self.count += 1;
        self.gaps.capacity() - before
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (mut bytes, mut row) = (self.gaps.iter(), 0);
        std::iter::from_fn(move || {
            let (mut gap, mut shift) = (0, 0);
            loop {
                let byte = *bytes.next()?;
                gap |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    row += gap;
                    return Some(row);
                }
                shift += 7;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in() {
        let rows = [0, 1, 127, 128, 300, 20_000, 5_000_000, u32::MAX];
        let mut list = PostingList::default();
        for row in rows {
            list.push(row);
        }
        assert_eq!((list.count(), list.iter().collect::<Vec<_>>()), (8, rows.to_vec()));
    }
}
