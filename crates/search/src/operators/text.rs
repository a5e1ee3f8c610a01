//! `text`: words, all or any, as they are or nearly so; and `term`, which takes what is searched for as one word.

use super::{Operator, queries};
use crate::details::Details;
use crate::evaluation::{Cut, Evaluation};
use crate::fuzzy::Fuzzy;
use crate::paths::{self, Path, TextField, text_fields};
use crate::unit::Unit;
use crate::{Reader, StringField};
use bunko_errors::{Failure, Result};
use std::collections::HashMap;

/// Most strings of `query`. Source: Lucene, `IndexSearcher.getMaxClauseCount`.
const QUERIES_MAX: usize = 1_024;

/// Words that are searched for.
#[derive(Debug)]
pub(super) struct Text {
    pub queries: Vec<String>,
    pub paths: Vec<Path>,
    pub fuzzy: Option<Fuzzy>,
    pub criteria: Criteria,
    pub form: Form,
}

/// How many words of a string have to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Criteria {
    Any,
    All,
}

/// Whether what is searched for is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Cut,
    Whole,
}

/// A word that is there: how often, and its part of the score.
struct Found {
    word: String,
    frequency: u32,
    rarity: f32,
    score: f32,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let queries = queries(reader)?;
    if queries.len() > QUERIES_MAX {
        return Err(reader.wrong("query", &format!("cannot have more than {QUERIES_MAX} elements")));
    }
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
    /// The words of each string.
    fn words(&self, field: &StringField, evaluation: &Evaluation) -> Result<Vec<Vec<String>>> {
        let words = |query: &String| match self.form {
            Form::Whole => Ok(vec![query.clone()]),
            Form::Cut => {
                let tokens = evaluation.cut_searched(field, query)?;
                Ok(tokens.iter().map(|token| token.text.clone()).collect())
            }
        };
        self.queries.iter().map(words).collect()
    }

    /// The words of a text that one stands for, and what each is worth.
    fn meant(&self, key: &str, word: &str, cut: &Cut, evaluation: &Evaluation) -> Vec<(String, f32)> {
        match &self.fuzzy {
            None => cut.frequencies.contains_key(word).then(|| (word.to_owned(), 1.0)).into_iter().collect(),
            Some(fuzzy) => {
                let chosen = evaluation.expansions(key, word, fuzzy);
                let there = cut.frequencies.keys().filter_map(|word| Some((word.clone(), *chosen.get(word)?)));
                there.collect()
            }
        }
    }

    fn found(&self, field: &TextField<'_>, cut: &Cut, evaluation: &Evaluation) -> Result<Option<Vec<Found>>> {
        let mut all: Vec<Found> = Vec::new();
        let mut matches = false;
        for words in self.words(field.string, evaluation)? {
            let mut found = Vec::new();
            let mut missing = words.is_empty();
            for word in words {
                let meant = self.meant(&field.key, &word, cut, evaluation);
                missing |= meant.is_empty();
                for (word, worth) in meant {
                    let rarity = evaluation.rarity(&field.key, std::iter::once(word.as_str())) * worth;
                    let frequency = cut.frequencies[&word];
                    let norms = field.string.has_norms;
                    let score = evaluation.score(&field.key, norms, rarity, frequency as f32, cut.tokens.len());
                    found.push(Found { word, frequency, rarity, score });
                }
            }
            let lacks_some = missing && self.criteria == Criteria::All;
            if !found.is_empty() && !lacks_some {
                matches = true;
                all.extend(found);
            }
        }
        Ok(matches.then_some(all))
    }
}

impl Operator for Text {
    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        evaluation.operation.work(1 + self.queries.len() / 8)?;
        for field in text_fields(unit, &self.paths) {
            let words: HashMap<String, ()> =
                self.words(field.string, evaluation)?.into_iter().flatten().map(|word| (word, ())).collect();
            evaluation.count(unit, &field, |word| match &self.fuzzy {
                None => words.contains_key(word),
                Some(fuzzy) => words.keys().any(|searched| fuzzy.distance(searched, word).is_some()),
            })?;
        }
        Ok(())
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut score = None;
        for field in text_fields(unit, &self.paths) {
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
        for word in self.words(field.string, evaluation)?.into_iter().flatten() {
            let meant = self.meant(&field.key, &word, cut, evaluation);
            for (token, mark) in cut.tokens.iter().zip(marks.iter_mut()) {
                *mark |= meant.iter().any(|(word, _)| *word == token.text);
            }
        }
        Ok(())
    }

    fn details(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Vec<Details>> {
        let mut details = Vec::new();
        for field in text_fields(unit, &self.paths) {
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
