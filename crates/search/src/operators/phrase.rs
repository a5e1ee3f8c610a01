//! `phrase`: words in order, adjacent or nearly so.

use super::{Operator, UseOfPostings, queries};
use crate::Reader;
use crate::analysis::Token;
use crate::evaluation::{Cut, Evaluation};
use crate::paths::{self, Path, TextField, text_fields};
use crate::postings::{Postings, Rows};
use crate::unit::Unit;
use bunko_errors::{Failure, Result};
use bunko_operation::OperationContext;
use std::collections::HashMap;

/// Searched phrases, one of which must match.
#[derive(Debug)]
pub(super) struct Phrase {
    pub queries: Vec<String>,
    pub paths: Vec<Path>,
    /// Maximum number of positions by which words may be displaced.
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

/// The number of occurrences of a phrase in a text, where displaced words count less; and the indexes of their tokens.
/// # Errors
/// Errors of counting work.
pub(super) fn occurrences(
    words: &[Token],
    tokens: &[Token],
    slop: i64,
    operation: &OperationContext,
) -> Result<(f32, Vec<usize>)> {
    let (mut frequency, mut found) = (0.0, Vec::new());
    // A token cannot match two words.
    if words.is_empty() || words.len() > tokens.len() {
        return Ok((frequency, found));
    }
    // For each word, the possible starts of its phrase, each with the index of the token.
    let mut places: Vec<Vec<(i64, usize)>> = Vec::with_capacity(words.len());
    for word in words {
        operation.work(1 + tokens.len() / 16)?;
        let tokens = tokens.iter().enumerate().filter(|(_, token)| token.text == word.text);
        let places_of_word: Vec<_> =
            tokens.map(|(number, token)| (i64::from(token.position) - i64::from(word.position), number)).collect();
        if places_of_word.is_empty() {
            return Ok((frequency, found));
        }
        places.push(places_of_word);
    }
    // For each word, the previous equal word, whose token must come first: exchanging the two would only displace both
    // further.
    let mut last_of = HashMap::new();
    let same_before: Vec<Option<usize>> =
        words.iter().enumerate().map(|(number, word)| last_of.insert(word.text.as_str(), number)).collect();
    let mut at = vec![0; places.len()];
    part_same(&same_before, &mut at);
    while let Some(now) =
        places.iter().zip(&at).map(|(places, at)| places.get(*at).copied()).collect::<Option<Vec<_>>>()
    {
        operation.work(1 + now.len() / 4)?;
        let least = now.iter().map(|(begin, _)| *begin).min().unwrap_or(0);
        let most = now.iter().map(|(begin, _)| *begin).max().unwrap_or(0);
        if most - least <= slop {
            frequency += 1.0 / (1.0 + (most - least) as f32);
            let mut numbers: Vec<usize> = now.iter().map(|(_, number)| *number).collect();
            numbers.sort_unstable();
            found.extend(numbers);
        }
        let behind = now.iter().position(|(begin, _)| *begin == least).unwrap_or(0);
        at[behind] += 1;
        part_same(&same_before, &mut at);
    }
    Ok((frequency, found))
}

/// Moves each word after its previous equal word, so that no token matches both. Each word takes the first remaining
/// place, so no possible match is skipped.
fn part_same(same_before: &[Option<usize>], at: &mut [usize]) {
    for (word, before) in same_before.iter().enumerate() {
        if let Some(before) = before {
            at[word] = at[word].max(at[*before] + 1);
        }
    }
}

impl Operator for Phrase {
    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        for field in text_fields(unit, &self.paths, &evaluation.operation)? {
            for query in &self.queries {
                let words = evaluation.cut_searched(field.string, query)?;
                evaluation.count(unit, &field, |word| Ok(words.has(word)))?;
            }
        }
        Ok(())
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut all = Rows::NONE;
        for (field, string) in postings.texts(&self.paths) {
            for query in &self.queries {
                let mut with_all = None;
                for token in &evaluation.cut_searched(string, query)?.tokens {
                    let rows = postings.word(field, &token.text, evaluation)?;
                    with_all = Some(match with_all {
                        None => rows,
                        Some(all) => rows.and(all),
                    });
                }
                all = all.or(with_all.unwrap_or(Rows::NONE));
            }
        }
        Ok(all)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut score = None;
        for field in
            text_fields(unit, &self.paths, &evaluation.operation)?.iter().filter(|field| field.string.has_positions())
        {
            let cut = evaluation.cut(unit, field)?;
            for query in &self.queries {
                let words = evaluation.cut_searched(field.string, query)?;
                let (frequency, _) = occurrences(&words.tokens, &cut.tokens, self.slop, &evaluation.operation)?;
                if frequency > 0.0 {
                    let rarity = evaluation.rarity(&field.key, words.tokens.iter().map(|token| token.text.as_str()));
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
                for number in occurrences(&words.tokens, &cut.tokens, self.slop, &evaluation.operation)?.1 {
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
        let operation = OperationContext::unlimited();
        let occurrences = |words: &str, text: &str, slop| {
            occurrences(&tokens(words), &tokens(text), slop, &operation).expect("nothing fails")
        };
        let text = "a b c a x b";
        assert_eq!(occurrences("a b", text, 0), (1.0, vec![0, 1]));
        assert_eq!(occurrences("a b", text, 1), (1.5, vec![0, 1, 3, 5]));
        assert_eq!(occurrences("b a", text, 0).0, 0.0);
        assert_eq!(occurrences("b a", text, 2).0, 1.0 / 2.0 + 1.0 / 3.0);
        assert_eq!(occurrences("a a", "a", 5).0, 0.0);
    }

    /// The least displacement of the words, where each has a token of its own.
    fn nearest(words: &[Token], tokens: &[Token], taken: &mut Vec<usize>) -> Option<i64> {
        let Some(word) = words.get(taken.len()) else {
            let begins = taken.iter().enumerate().map(|(place, token)| *token as i64 - place as i64);
            return Some(begins.clone().max()? - begins.min()?);
        };
        let mut least = None;
        for token in (0..tokens.len()).filter(|token| tokens[*token].text == word.text) {
            if !taken.contains(&token) {
                taken.push(token);
                let found = nearest(words, tokens, taken);
                least = [least, found].into_iter().flatten().min();
                taken.pop();
            }
        }
        least
    }

    #[test]
    fn a_phrase_is_found_wherever_it_is_near_enough() {
        let operation = OperationContext::unlimited();
        let all = |count: u32| {
            (0..3_u32.pow(count)).map(move |number| {
                let word = |place| ["a", "b", "c"][(number / 3_u32.pow(place) % 3) as usize];
                (0..count).map(word).collect::<Vec<_>>().join(" ")
            })
        };
        for text in all(6).map(|text| tokens(&text)) {
            for words in (2..=3).flat_map(all).map(|words| tokens(&words)) {
                let nearest = nearest(&words, &text, &mut Vec::new());
                for slop in [0, 1, 2, 4, i64::from(i32::MAX)] {
                    let found = occurrences(&words, &text, slop, &operation).expect("nothing fails").0 > 0.0;
                    assert_eq!(found, nearest.is_some_and(|nearest| nearest <= slop), "{words:?} in {text:?}, {slop}");
                }
            }
        }
    }
}
