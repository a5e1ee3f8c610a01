//! Sets of rows that may match.

/// A set of rows of the postings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// All rows, and documents without a row.
    All,
    /// Only these rows, one bit each.
    These(Vec<u64>),
}

impl Rows {
    pub const NONE: Self = Self::These(Vec::new());

    pub fn set(bits: &mut Vec<u64>, row: u32) {
        let word = row as usize / 64;
        if word >= bits.len() {
            bits.resize(word + 1, 0);
        }
        bits[word] |= 1 << (row % 64);
    }

    pub fn has(bits: &[u64], row: u32) -> bool {
        bits.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// The intersection.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All, rows) | (rows, Self::All) => rows,
            (Self::These(mut one), Self::These(other)) => {
                one.truncate(other.len());
                one.iter_mut().zip(&other).for_each(|(one, other)| *one &= other);
                Self::These(one)
            }
        }
    }

    /// The union.
    pub fn or(self, other: Self) -> Self {
        let (Self::These(mut one), Self::These(mut other)) = (self, other) else { return Self::All };
        if one.len() < other.len() {
            std::mem::swap(&mut one, &mut other);
        }
        one.iter_mut().zip(&other).for_each(|(one, other)| *one |= other);
        Self::These(one)
    }

    /// The numbers of the rows in a set, ascending.
    pub fn numbers(bits: &[u64]) -> impl Iterator<Item = u32> + '_ {
        bits.iter().enumerate().flat_map(|(at, word)| {
            let mut word = *word;
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                word &= word.checked_sub(1)?;
                Some(at as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_different_lengths_go_together() {
        let rows = |numbers: &[u32]| {
            let mut bits = Vec::new();
            for row in numbers {
                Rows::set(&mut bits, *row);
            }
            Rows::These(bits)
        };
        let numbers = |rows: Rows| match rows {
            Rows::All => panic!("all"),
            Rows::These(bits) => Rows::numbers(&bits).collect::<Vec<_>>(),
        };
        let (one, other) = (rows(&[0, 63, 64, 200]), rows(&[63, 65]));
        assert_eq!(numbers(one.clone().and(other.clone())), [63]);
        assert_eq!(numbers(one.clone().or(other.clone())), [0, 63, 64, 65, 200]);
        assert_eq!(one.clone().and(Rows::All), one);
        assert_eq!(one.or(Rows::All), Rows::All);
        assert_eq!(numbers(Rows::NONE.or(other)), [63, 65]);
    }
}
