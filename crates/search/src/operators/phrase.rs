//! `phrase`: words in their order, next to each other or nearly so.

use super::{Operator, queries};
use crate::Reader;
use crate::analysis::Token;
use crate::evaluation::{Cut, Evaluation};
use crate::paths::{self, Path, TextField, text_fields};
use crate::unit::Unit;
use bunko_errors::{Failure, Result};

/// Phrases that are searched for: any of them.
#[derive(Debug)]
pub(super) struct Phrase {
    pub queries: Vec<String>,
    pub paths: Vec<Path>,
    /// How far words may be from their places.
    pub slop: i64,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let (queries, paths) = (queries(reader)?, paths::parse(reader)?);
    let slop = reader.integer_within("slop", 0, i64::from(i32::MAX))?.unwrap_or(0);
    if reader.word("synonyms")?.is_some() {
        return Err(Failure::not_supported_yet(&reader.at("synonyms")));
    }
    Ok(Box::new(Phrase { queries, paths, slop }))
}

/// How often words stand in their order in a text, an inexact place counting less; the numbers of their tokens.
pub(super) fn occurrences(words: &[Token], tokens: &[Token], slop: i64) -> (f32, Vec<usize>) {
    // For each word, where its phrase would begin, and which token it is.
    let places: Vec<Vec<(i64, usize)>> = words
        .iter()
        .map(|word| {
            let tokens = tokens.iter().enumerate().filter(|(_, token)| token.text == word.text);
            tokens.map(|(number, token)| (i64::from(token.position) - i64::from(word.position), number)).collect()
        })
        .collect();
    let mut at = vec![0; places.len()];
    let (mut frequency, mut found) = (0.0, Vec::new());
    if places.is_empty() {
        return (frequency, found);
    }
    while let Some(now) =
        places.iter().zip(&at).map(|(places, at)| places.get(*at).copied()).collect::<Option<Vec<_>>>()
    {
        let least = now.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
        let most = now.iter().map(|(begin, _)| *begin).max().unwrap_or(0);
        let mut numbers: Vec<usize> = now.iter().map(|(_, number)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        // One token is not two words.
        if most - least <= slop && numbers.len() == now.len() {
            frequency += 1.0 / (1.0 + (most - least) as f32);
            found.extend(numbers);
        }
        let behind = now.iter().position(|(begin, _)| *begin == least).unwrap_or(0);
        at[behind] += 1;
    }
    (frequency, found)
}

impl Operator for Phrase {
    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        for field in text_fields(unit, &self.paths) {
            for query in &self.queries {
                let words = evaluation.cut_searched(field.string, query)?;
                evaluation.count(unit, &field, |word| words.iter().any(|token| token.text == word))?;
            }
        }
        Ok(())
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut score = None;
        for field in text_fields(unit, &self.paths).iter().filter(|field| field.string.has_positions) {
            let cut = evaluation.cut(unit, field)?;
            for query in &self.queries {
                let words = evaluation.cut_searched(field.string, query)?;
                evaluation.operation.work(words.len() * (1 + cut.tokens.len() / 16))?;
                let (frequency, _) = occurrences(&words, &cut.tokens, self.slop);
                if frequency > 0.0 {
                    let rarity = evaluation.rarity(&field.key, words.iter().map(|token| token.text.as_str()));
                    let norms = field.string.has_norms;
                    *score.get_or_insert(0.0) +=
                        evaluation.score(&field.key, norms, rarity, frequency, cut.tokens.len());
                }
            }
        }
        Ok(score)
    }

    fn mark(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation, marks: &mut [bool]) -> Result<()> {
        if self.paths.iter().any(|path| path.takes(&field.path)) {
            for query in &self.queries {
                let words = evaluation.cut_searched(field.string, query)?;
                for number in occurrences(&words, &cut.tokens, self.slop).1 {
                    marks[number] = true;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let token = |(position, word): (usize, &str)| Token {
            text: word.to_owned(),
            position: position as u32,
            start: 0,
            end: 0,
        };
        text.split(' ').enumerate().map(token).collect()
    }

    #[test]
    fn words_are_counted_in_their_order() {
        let text = tokens("a b c a x b");
        assert_eq!(occurrences(&tokens("a b"), &text, 0), (1.0, vec![0, 1]));
        assert_eq!(occurrences(&tokens("a b"), &text, 1), (1.5, vec![0, 1, 3, 5]));
        assert_eq!(occurrences(&tokens("b a"), &text, 0).0, 0.0);
        assert_eq!(occurrences(&tokens("b a"), &text, 2).0, 1.0 / 2.0 + 1.0 / 3.0);
        assert_eq!(occurrences(&tokens("a a"), &tokens("a"), 5).0, 0.0);
    }
}
