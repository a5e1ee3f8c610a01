//! Fuzzy matching of words.

use crate::Reader;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::collections::HashMap;

/// Limits of fuzzy matching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fuzzy {
    /// Maximum number of edits: characters inserted, deleted, replaced, or exchanged with their neighbour.
    pub edits_max: usize,
    /// Number of leading characters that must be equal.
    pub prefix: usize,
    /// Maximum number of words that one word may match.
    pub expansions_max: usize,
}

impl Fuzzy {
    /// Parses `fuzzy`, if present.
    /// # Errors
    /// If it is malformed.
    pub fn parse(reader: &Reader<'_>) -> Result<Option<Self>> {
        let Some(fuzzy) = reader.inner("fuzzy")? else { return Ok(None) };
        let most = i64::from(i32::MAX);
        let parsed = Self {
            edits_max: fuzzy.integer_within("maxEdits", 1, 2)?.unwrap_or(2) as usize,
            prefix: fuzzy.integer_within("prefixLength", 0, most)?.unwrap_or(0) as usize,
            expansions_max: fuzzy.integer_within("maxExpansions", 1, 1_000)?.unwrap_or(50) as usize,
        };
        fuzzy.done()?;
        Ok(Some(parsed))
    }

    /// Number of edits between two words; `None` if there are too many, or the prefix differs.
    pub fn distance(&self, word: &str, other: &str) -> Option<usize> {
        if word == other {
            return Some(0);
        }
        let (word, other): (Vec<char>, Vec<char>) = (word.chars().collect(), other.chars().collect());
        if word.len().abs_diff(other.len()) > self.edits_max {
            return None;
        }
        let prefix = self.prefix.min(word.len());
        if other.len() < prefix || word[..prefix] != other[..prefix] {
            return None;
        }
        edits(&word[prefix..], &other[prefix..], self.edits_max)
    }

    /// The words that match a word: the nearest ones, each with its weight.
    /// # Errors
    /// Errors of counting work.
    pub fn chosen(
        &self,
        word: &str,
        there: impl Iterator<Item = String>,
        operation: &OperationContext,
    ) -> Result<HashMap<String, f32>> {
        let length = word.chars().count();
        let mut found: Vec<(f32, String)> = Vec::new();
        for other in there {
            operation.work(1 + (word.len() + other.len()) / 16)?;
            let Some(distance) = self.distance(word, &other) else { continue };
            let shorter = length.min(other.chars().count()).max(1);
            found.push(((1.0 - distance as f32 / shorter as f32).max(0.0), other));
        }
        found.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        found.truncate(self.expansions_max);
        Ok(found.into_iter().map(|(worth, word)| (word, worth)).collect())
    }
}

/// The number of characters to insert, delete, replace, or exchange with their neighbour; `None` for more than `most`.
/// A cell further than `most` from the diagonal has a larger value, so each row needs few cells, however long the words
/// are.
/// Source: Ukkonen, "Algorithms for Approximate String Matching".
fn edits(one: &[char], other: &[char], most: usize) -> Option<usize> {
    let far = most + 1;
    // The cell of `row` and `column` is at `column + most - row`. There is spare room at both ends.
    let width = 2 * most + 1;
    let mut before_last = vec![far; width + 1];
    let mut last: Vec<usize> =
        (0..=width).map(|place| place.checked_sub(most).map_or(far, |edits| edits.min(far))).collect();
    let mut this = vec![far; width + 1];
    for row in 1..=one.len() {
        let mut least = far;
        for place in 0..width {
            let cell = match (row + place).checked_sub(most) {
                Some(0) => row,
                Some(column) if column <= other.len() => {
                    let same = usize::from(one[row - 1] != other[column - 1]);
                    let left = if place > 0 { this[place - 1] } else { far };
                    let mut cell = (last[place + 1] + 1).min(left + 1).min(last[place] + same);
                    let is_exchanged = row > 1 && column > 1 && one[row - 1] == other[column - 2];
                    if is_exchanged && one[row - 2] == other[column - 1] {
                        cell = cell.min(before_last[place] + 1);
                    }
                    cell
                }
                _ => far,
            };
            this[place] = cell.min(far);
            least = least.min(this[place]);
        }
        if least > most {
            return None;
        }
        std::mem::swap(&mut before_last, &mut last);
        std::mem::swap(&mut last, &mut this);
        this.fill(far);
    }
    let end = (other.len() + most).checked_sub(one.len()).filter(|place| *place < width)?;
    (last[end] <= most).then_some(last[end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_in_characters() {
        let fuzzy = Fuzzy { edits_max: 2, prefix: 1, expansions_max: 2 };
        assert_eq!(fuzzy.distance("cafe", "café"), Some(1));
        assert_eq!(fuzzy.distance("quick", "qiuck"), Some(1));
        assert_eq!(fuzzy.distance("quick", "buick"), None);
        assert_eq!(fuzzy.distance("quick", "qu"), None);
        let there = ["abcx", "abxx", "abcd"].map(str::to_owned).into_iter();
        let chosen = fuzzy.chosen("abcd", there, &OperationContext::unlimited()).expect("without limits");
        assert_eq!((chosen.len(), chosen["abcd"], chosen["abcx"]), (2, 1.0, 0.75));
    }

    /// The whole table, by the definition of the distance.
    fn edits_by_table(one: &[char], other: &[char]) -> usize {
        let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
        for row in 0..=one.len() {
            for column in 0..=other.len() {
                table[row][column] = if row == 0 || column == 0 {
                    row + column
                } else {
                    let same = usize::from(one[row - 1] != other[column - 1]);
                    let mut cell = (table[row - 1][column] + 1).min(table[row][column - 1] + 1);
                    cell = cell.min(table[row - 1][column - 1] + same);
                    let exchanged = row > 1 && column > 1;
                    if exchanged && one[row - 1] == other[column - 2] && one[row - 2] == other[column - 1] {
                        cell = cell.min(table[row - 2][column - 2] + 1);
                    }
                    cell
                };
            }
        }
        table[one.len()][other.len()]
    }

    #[test]
    fn the_narrow_way_counts_as_the_whole_table() {
        // All words of up to five letters from an alphabet of three.
        let mut words: Vec<Vec<char>> = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..5 {
            let end = words.len();
            for word in from..end {
                let longer = ['a', 'b', 'c'].map(|letter| [words[word].as_slice(), &[letter]].concat());
                words.extend(longer);
            }
            from = end;
        }
        for one in &words {
            for other in &words {
                let expected = edits_by_table(one, other);
                for most in [1, 2] {
                    assert_eq!(edits(one, other, most), (expected <= most).then_some(expected), "{one:?} {other:?}");
                }
            }
        }
    }
}
