//! `moreLikeThis`: documents that share the most telling words of given documents.

use super::{Operator, UseOfPostings};
use crate::evaluation::Evaluation;
use crate::paths::{Path, text_fields};
use crate::postings::{Postings, Rows};
use crate::unit::Unit;
use crate::{Mapping, Reader};
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_errors::Result;
use std::collections::{HashMap, HashSet};

/// Maximum number of words that are searched for. Source: Lucene, `MoreLikeThis.DEFAULT_MAX_QUERY_TERMS`.
const WORDS_MAX: usize = 25;

#[derive(Debug)]
struct MoreLikeThis {
    /// The given documents.
    like: Vec<DocumentBuf>,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let like = reader.one_or_several("like")?;
    let like: Vec<DocumentBuf> =
        reader.required(like, "like")?.iter().map(|reader| reader.document().to_owned()).collect();
    if like.is_empty() || like.iter().all(|document| document.as_ref().is_empty()) {
        return Err(reader.wrong("like", "cannot be empty"));
    }
    Ok(Box::new(MoreLikeThis { like }))
}

impl MoreLikeThis {
    /// Counts the words of a field in the given documents.
    fn words(&self, path: &str, evaluation: &Evaluation) -> Result<HashMap<String, u32>> {
        let mut words = HashMap::new();
        let all = Mapping::dynamic();
        for document in &self.like {
            evaluation.operation.work(1 + document.len_bytes() / 64)?;
            let unit = Unit::of(document.as_ref(), &all);
            for field in unit.values(path) {
                let (ValueRef::String(text), Some(string)) = (field.value, evaluation.schema.types(path).string())
                else {
                    continue;
                };
                let searched = evaluation.cut_searched(string, text)?;
                evaluation.operation.work(searched.tokens.len())?;
                for token in &searched.tokens {
                    *words.entry(token.text.clone()).or_insert(0) += 1;
                }
            }
        }
        Ok(words)
    }

    fn paths(&self, evaluation: &Evaluation) -> Result<Vec<Path>> {
        let all = Mapping::dynamic();
        let (mut paths, mut known) = (Vec::new(), HashSet::new());
        for document in &self.like {
            evaluation.operation.work(1 + document.len_bytes() / 16)?;
            let unit = Unit::of(document.as_ref(), &all);
            for field in unit.text_paths() {
                if known.insert(field.path.clone()) {
                    paths.push(Path::exactly(&field.path));
                }
            }
        }
        Ok(paths)
    }
}

impl Operator for MoreLikeThis {
    fn count(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<()> {
        for field in text_fields(unit, &self.paths(evaluation)?, &evaluation.operation)? {
            let words = self.words(&field.path, evaluation)?;
            evaluation.count(unit, &field, |word| Ok(words.contains_key(word)))?;
        }
        Ok(())
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let mut rows = Rows::NONE;
        for (field, _) in postings.texts(&self.paths(evaluation)?) {
            for word in self.words(&field.path, evaluation)?.keys() {
                rows = rows.or(postings.word(field, word, evaluation)?);
            }
        }
        Ok(rows)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut best: Vec<(f32, String, String)> = Vec::new();
        for path in self.paths(evaluation)? {
            for (word, count) in self.words(&path.name, evaluation)? {
                let rarity = evaluation.rarity(&path.name, std::iter::once(word.as_str()));
                best.push((rarity * count as f32, path.name.clone(), word));
            }
        }
        best.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| (&one.1, &one.2).cmp(&(&other.1, &other.2))));
        best.truncate(WORDS_MAX);
        let mut score = None;
        for field in text_fields(unit, &self.paths(evaluation)?, &evaluation.operation)? {
            let cut = evaluation.cut(unit, &field)?;
            for (_, _, word) in best.iter().filter(|(_, path, _)| *path == field.path) {
                let Some(frequency) = cut.frequencies.get(word) else { continue };
                let rarity = evaluation.rarity(&field.key, std::iter::once(word.as_str()));
                let (norms, words) = (field.string.has_norms, cut.tokens.len());
                *score.get_or_insert(0.0) += evaluation.score(&field.key, norms, rarity, *frequency as f32, words);
            }
        }
        Ok(score)
    }
}
