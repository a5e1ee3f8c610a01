//! A set of rows.

/// One bit for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// Makes a set of the first `rows` rows.
    pub(crate) fn full(rows: usize) -> Self {
        let mut words = vec![u64::MAX; rows / 64];
        if !rows.is_multiple_of(64) {
            words.push((1 << (rows % 64)) - 1);
        }
        Self { words }
    }

    /// Makes an empty set with room for the first `rows` rows.
    pub(crate) fn empty(rows: usize) -> Self {
        Self { words: vec![0; rows.div_ceil(64)] }
    }

    pub(crate) fn has(&self, row: u32) -> bool {
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    pub(crate) fn set(&mut self, row: u32) {
        let word = row as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
    }

    /// Adds a row. Returns whether it is new.
    pub(crate) fn add(&mut self, row: u32) -> bool {
        let is_new = !self.has(row);
        self.set(row);
        is_new
    }

    pub(crate) fn clear(&mut self, row: u32) {
        if let Some(word) = self.words.get_mut(row as usize / 64) {
            *word &= !(1 << (row % 64));
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Keeps the rows that both sets have.
    pub(crate) fn and(&mut self, other: &Self) {
        for (position, word) in self.words.iter_mut().enumerate() {
            *word &= other.words.get(position).copied().unwrap_or(0);
        }
    }

    /// Adds the rows of the other set.
    pub(crate) fn or(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Removes the rows of the other set.
    pub(crate) fn and_not(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_combined_whatever_their_lengths() {
        let mut some = Bitmap::empty(3);
        assert!(some.add(2) && !some.add(2) && some.add(130));
        assert!(some.has(2) && some.has(130) && !some.has(3) && !some.has(100_000));
        let mut all = Bitmap::full(70);
        assert_eq!(all.count(), 70);
        all.and(&some);
        assert_eq!((all.count(), all.has(2)), (1, true));
        all.or(&some);
        assert_eq!(all.count(), 2);
        all.and_not(&Bitmap::full(3));
        assert_eq!((all.count(), all.has(130)), (1, true));
        all.clear(130);
        all.clear(5_000);
        assert_eq!(all.count(), 0);
        assert_eq!(Bitmap::full(64).count(), 64);
    }
}
