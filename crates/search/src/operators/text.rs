//! `text`: any or all of some words, exact or fuzzy; and `term`, which treats the query as one word.

use super::{Operator, UseOfPostings, queries};
use crate::details::Details;
use crate::evaluation::{Cut, Evaluation, Searched};
use crate::fuzzy::Fuzzy;
use crate::paths::{self, Path, TextField, text_fields};
use crate::postings::{FieldPostings, Postings, Rows};
use crate::unit::Unit;
use crate::{Reader, StringField};
use bunko_errors::{Failure, Result};
use std::collections::HashSet;
use std::sync::Arc;

/// Searched words.
#[derive(Debug)]
pub(super) struct Text {
    pub queries: Vec<String>,
    pub paths: Vec<Path>,
    pub fuzzy: Option<Fuzzy>,
    pub criteria: Criteria,
    pub form: Form,
}

/// The number of words of a string that must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Criteria {
    Any,
    All,
}

/// Whether the searched text is analyzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Cut,
    Whole,
}

/// A matching word: its frequency, and its part of the score.
struct MatchedWord {
    word: String,
    frequency: u32,
    rarity: f32,
    score: f32,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let queries = queries(reader)?;
    let paths = paths::parse(reader)?;
    let fuzzy = Fuzzy::parse(reader)?;
    let criteria = reader.one_of("matchCriteria", &[("any", Criteria::Any), ("all", Criteria::All)])?;
    if reader.word("synonyms")?.is_some() {
        if fuzzy.is_some() {
            return Err(reader.failure("cannot have both fuzzy and synonyms"));
        }
        return Err(Failure::not_supported_yet(&reader.at("synonyms")));
    }
    Ok(Box::new(Text { queries, paths, fuzzy, criteria: criteria.unwrap_or(Criteria::Any), form: Form::Cut }))
}

pub(super) fn parse_term(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let (queries, paths) = (queries(reader)?, paths::parse(reader)?);
    reader.not_supported_yet(&["wildcard", "regex", "prefix", "fuzzy"])?;
    Ok(Box::new(Text { queries, paths, fuzzy: None, criteria: Criteria::Any, form: Form::Whole }))
}

impl Text {
    /// The searched words of each string.
    fn searched(&self, field: &StringField, evaluation: &Evaluation) -> Result<Vec<Arc<Searched>>> {
        let searched = |query: &String| match self.form {
            Form::Whole => evaluation.searched_whole(query),
            Form::Cut => evaluation.cut_searched(field, query),
        };
        self.queries.iter().map(searched).collect()
    }

    /// Whether one of the strings searches for the word.
    fn searches(&self, searched: &[Arc<Searched>], word: &str, evaluation: &Evaluation) -> Result<bool> {
        let Some(fuzzy) = &self.fuzzy else { return Ok(searched.iter().any(|searched| searched.has(word))) };
        for token in searched.iter().flat_map(|searched| &searched.tokens) {
            evaluation.operation.work(1 + word.len() / 16)?;
            if fuzzy.distance(&token.text, word).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The words of a text that match a fuzzy word, each with its weight.
    fn nearly(fuzzy: &Fuzzy, key: &str, word: &str, cut: &Cut, evaluation: &Evaluation) -> Result<Vec<(String, f32)>> {
        let chosen = evaluation.expansions(key, word, fuzzy)?;
        evaluation.operation.work(1 + cut.frequencies.len() / 16)?;
        let there = cut.frequencies.keys().filter_map(|word| Some((word.clone(), *chosen.get(word)?)));
        let mut there: Vec<(String, f32)> = there.collect();
        // Sorted, because a sum of floating-point numbers depends on their order.
        there.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(there)
    }

    /// The words of a text that match a string, in the string's order, each with its weight; and whether a word of the
    /// string has no match.
    fn meant(
        &self,
        searched: &Searched,
        key: &str,
        cut: &Cut,
        evaluation: &Evaluation,
    ) -> Result<(Vec<(String, f32)>, bool)> {
        evaluation.operation.work(1 + searched.tokens.len().min(cut.frequencies.len()) / 16)?;
        let Some(fuzzy) = &self.fuzzy else {
            let there = searched.tokens_in(cut);
            let missing = there.len() < searched.tokens.len();
            return Ok((there.into_iter().map(|token| (token.text.clone(), 1.0)).collect(), missing));
        };
        let (mut all, mut missing) = (Vec::new(), false);
        for token in &searched.tokens {
            let meant = Self::nearly(fuzzy, key, &token.text, cut, evaluation)?;
            missing |= meant.is_empty();
            all.extend(meant);
        }
        Ok((all, missing))
    }

    /// The rows that may match one string.
    fn candidates_of(
        &self,
        searched: &Searched,
        field: &FieldPostings,
        postings: &Postings,
        evaluation: &Evaluation,
    ) -> Result<Rows> {
        let mut all: Option<Rows> = None;
        for token in &searched.tokens {
            let rows = match &self.fuzzy {
                None => postings.word(field, &token.text, evaluation)?,
                Some(fuzzy) => postings.nearly(field, &token.text, fuzzy, evaluation)?,
            };
            all = Some(match (all, self.criteria) {
                (None, _) => rows,
                (Some(all), Criteria::Any) => all.or(rows),
                (Some(all), Criteria::All) => all.and(rows),
            });
        }
        Ok(all.unwrap_or(Rows::NONE))
    }

    fn found(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation) -> Result<Option<Vec<MatchedWord>>> {
        let mut all: Vec<MatchedWord> = Vec::new();
        let mut matches = false;
        for searched in self.searched(field.string, evaluation)? {
            let (meant, missing) = self.meant(&searched, &field.key, cut, evaluation)?;
            if meant.is_empty() || missing && self.criteria == Criteria::All {
                continue;
            }
            matches = true;
            all.extend(meant.into_iter().map(|(word, worth)| {
                let rarity = evaluation.rarity(&field.key, std::iter::once(word.as_str())) * worth;
                let frequency = cut.frequencies[&word];
                let norms = field.string.has_norms;
                let score = evaluation.score(&field.key, norms, rarity, frequency as f32, cut.tokens.len());
                MatchedWord { word, frequency, rarity, score }
            }));
        }
        Ok(matches.then_some(all))
    }
}

impl Operator for Text {
    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        evaluation.operation.work(1 + self.queries.len() / 8)?;
        for field in text_fields(unit, &self.paths, &evaluation.operation)? {
            let searched = self.searched(field.string, evaluation)?;
            evaluation.count(unit, &field, |word| self.searches(&searched, word, evaluation))?;
        }
        Ok(())
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut all = Rows::NONE;
        for (field, string) in postings.texts(&self.paths) {
            for searched in self.searched(string, evaluation)? {
                all = all.or(self.candidates_of(&searched, field, postings, evaluation)?);
            }
        }
        Ok(all)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut score = None;
        for field in text_fields(unit, &self.paths, &evaluation.operation)? {
            let cut = evaluation.cut(unit, &field)?;
            if let Some(found) = self.found(&field, &cut, evaluation)? {
                *score.get_or_insert(0.0) += found.iter().map(|found| found.score).sum::<f32>();
            }
        }
        Ok(score)
    }

    fn mark(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation, marks: &mut [bool]) -> Result<()> {
        if !self.paths.iter().any(|path| path.takes(&field.path)) {
            return Ok(());
        }
        for searched in self.searched(field.string, evaluation)? {
            let (meant, _) = self.meant(&searched, &field.key, cut, evaluation)?;
            let meant: HashSet<String> = meant.into_iter().map(|(word, _)| word).collect();
            for (token, mark) in cut.tokens.iter().zip(marks.iter_mut()) {
                *mark |= meant.contains(&token.text);
            }
        }
        Ok(())
    }

    fn details(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Vec<Details>> {
        let mut details = Vec::new();
        for field in text_fields(unit, &self.paths, &evaluation.operation)? {
            let cut = evaluation.cut(unit, &field)?;
            for found in self.found(&field, &cut, evaluation)?.unwrap_or_default() {
                let (with, all) = evaluation.frequency(&field.key, &found.word);
                let rarity = Details {
                    value: found.rarity,
                    description: "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:".to_owned(),
                    parts: vec![
                        Details::leaf(with as f32, "n, number of documents containing term"),
                        Details::leaf(all as f32, "N, total number of documents with field"),
                    ],
                };
                let frequency = Details {
                    value: if found.rarity > 0.0 { found.score / found.rarity } else { 0.0 },
                    description: "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:".to_owned(),
                    parts: vec![
                        Details::leaf(found.frequency as f32, "freq, occurrences of term within document"),
                        Details::leaf(1.2, "k1, term saturation parameter"),
                        Details::leaf(0.75, "b, length normalization parameter"),
                        Details::leaf(cut.tokens.len() as f32, "dl, length of field"),
                        Details::leaf(evaluation.average(&field.key), "avgdl, average length of field"),
                    ],
                };
                details.push(Details {
                    value: found.score,
                    description: format!("$type:string/{}:{} [BM25Similarity], result of:", field.path, found.word),
                    parts: vec![rarity, frequency],
                });
            }
        }
        Ok(details)
    }
}
