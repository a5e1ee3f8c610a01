//! Words that are nearly the same.

use crate::Reader;
use bunko_errors::Result;
use std::collections::HashMap;

/// How different words may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fuzzy {
    /// Characters that are put in, left out, changed, or exchanged with their neighbour.
    pub edits_max: usize,
    /// Characters at the beginning that have to be the same.
    pub prefix: usize,
    /// Words that one word may stand for.
    pub expansions_max: usize,
}

impl Fuzzy {
    /// Reads `fuzzy`, if it is there.
    /// # Errors
    /// It is malformed.
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

    /// How different a word is from another, if it is not too different.
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
        let distance = edits(&word[prefix..], &other[prefix..]);
        (distance <= self.edits_max).then_some(distance)
    }

    /// The words among those there are that one stands for: the nearest, and what each is worth.
    pub fn chosen(&self, word: &str, there: impl Iterator<Item = String>) -> HashMap<String, f32> {
        let length = word.chars().count();
        let mut found: Vec<(f32, String)> = there
            .filter_map(|other| {
                let distance = self.distance(word, &other)?;
                let shorter = length.min(other.chars().count()).max(1);
                Some(((1.0 - distance as f32 / shorter as f32).max(0.0), other))
            })
            .collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        found.truncate(self.expansions_max);
        found.into_iter().map(|(worth, word)| (word, worth)).collect()
    }
}

/// How many characters have to be put in, left out, changed, or exchanged with their neighbour.
fn edits(one: &[char], other: &[char]) -> usize {
    let width = other.len() + 1;
    let mut before_last = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut this = vec![row + 1; width];
        for column in 1..width {
            let same = usize::from(*letter != other[column - 1]);
            this[column] = (last[column] + 1).min(this[column - 1] + 1).min(last[column - 1] + same);
            if row > 0 && column > 1 && *letter == other[column - 2] && one[row - 1] == other[column - 1] {
                this[column] = this[column].min(before_last[column - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, this);
    }
    last[width - 1]
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
        let chosen = fuzzy.chosen("abcd", ["abcx", "abxx", "abcd"].map(str::to_owned).into_iter());
        assert_eq!((chosen.len(), chosen["abcd"], chosen["abcx"]), (2, 1.0, 0.75));
    }
}
