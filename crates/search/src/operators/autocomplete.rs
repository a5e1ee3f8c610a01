//! `autocomplete`: words by their prefixes, or by other parts if the field's definition says so.

use super::{Operator, UseOfPostings, only_path, queries};
use crate::analysis::{Token, right_edges};
use crate::completion::{cut_words, field};
use crate::evaluation::{Cut, Evaluation, Searched};
use crate::fuzzy::Fuzzy;
use crate::paths::TextField;
use crate::postings::{Postings, Rows};
use crate::schema::Schema;
use crate::unit::Unit;
use crate::{Autocomplete, Reader, Refusal, Tokenization};
use bunko_bson::ValueRef;
use bunko_errors::Result;
use bunko_operation::OperationContext;
use std::sync::Arc;

#[derive(Debug)]
struct Completion {
    queries: Vec<String>,
    path: String,
    order: TokenOrder,
    fuzzy: Option<Fuzzy>,
}

/// The required order of the words of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenOrder {
    Any,
    Sequential,
}

pub(super) fn parse(reader: &Reader<'_>) -> Result<Box<dyn Operator>> {
    let (queries, path) = (queries(reader)?, only_path(reader)?);
    let order = reader.one_of("tokenOrder", &[("any", TokenOrder::Any), ("sequential", TokenOrder::Sequential)])?;
    let fuzzy = Fuzzy::parse(reader)?;
    Ok(Box::new(Completion { queries, path, order: order.unwrap_or(TokenOrder::Any), fuzzy }))
}

/// Analyzes a text of the query, once for all documents.
fn parts(field: &Autocomplete, query: &str, evaluation: &Evaluation) -> Result<Arc<Searched>> {
    evaluation.cut_completed(field, query, || cut_words(field, query, &evaluation.schema, &evaluation.operation))
}

impl Completion {
    /// Whether a word of a text has the searched part.
    /// # Errors
    /// Errors of counting work.
    fn has(&self, field: &Autocomplete, word: &str, part: &str, operation: &OperationContext) -> Result<bool> {
        operation.work(1 + word.len() / 16 + part.len() / 16)?;
        let length = part.chars().count();
        if length < field.grams_min {
            return Ok(false);
        }
        // The index has no parts of words that are longer.
        let part: String = part.chars().take(field.grams_max).collect();
        let is_there = match field.tokenization {
            Tokenization::EdgeGram => word.starts_with(&part),
            Tokenization::RightEdgeGram => word.ends_with(&part),
            Tokenization::NGram => word.contains(&part),
        };
        match &self.fuzzy {
            Some(fuzzy) if !is_there => Self::nearly(field, word, &part, fuzzy, operation),
            _ => Ok(is_there),
        }
    }

    /// Whether a part of a word is nearly the searched part.
    fn nearly(
        field: &Autocomplete,
        word: &str,
        part: &str,
        fuzzy: &Fuzzy,
        operation: &OperationContext,
    ) -> Result<bool> {
        let length = part.chars().count();
        let (least, most) = (length.saturating_sub(fuzzy.edits_max).max(field.grams_min), length + fuzzy.edits_max);
        let most = most.min(field.grams_max);
        let spans = match field.tokenization {
            Tokenization::EdgeGram => crate::analysis::edges(word, least, most),
            Tokenization::RightEdgeGram => right_edges(word, least, most),
            Tokenization::NGram => crate::analysis::all_grams(word, least, most, operation)?,
        };
        for (start, end) in spans {
            operation.work(1 + part.len() / 16)?;
            if fuzzy.distance(part, &word[start..end]).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether each of some words has its part.
    /// # Errors
    /// Errors of counting work.
    fn stands(
        &self,
        field: &Autocomplete,
        words: &[Token],
        parts: &[Token],
        operation: &OperationContext,
    ) -> Result<bool> {
        for (word, part) in words.iter().zip(parts) {
            if !self.has(field, &word.text, &part.text, operation)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Number of matches between the words of a text and the parts of a string; 0 if one of the parts has no match.
    /// # Errors
    /// Errors of counting work, which is counted for each word.
    fn count(
        &self,
        field: &Autocomplete,
        tokens: &[Token],
        parts: &[Token],
        operation: &OperationContext,
    ) -> Result<usize> {
        match self.order {
            _ if parts.is_empty() => Ok(0),
            TokenOrder::Any => {
                let mut count = 0;
                for part in parts {
                    let mut hits = 0;
                    for token in tokens {
                        hits += usize::from(self.has(field, &token.text, &part.text, operation)?);
                    }
                    if hits == 0 {
                        return Ok(0);
                    }
                    count += hits;
                }
                Ok(count)
            }
            TokenOrder::Sequential => {
                let mut count = 0;
                for window in tokens.windows(parts.len()) {
                    count += usize::from(self.stands(field, window, parts, operation)?);
                }
                Ok(count)
            }
        }
    }
}

impl Operator for Completion {
    fn check(&self, schema: &Schema) -> Result<()> {
        if field(schema.types(&self.path).mapped()).is_none() {
            let message = format!("autocomplete index field definition not present at path {}", self.path);
            return Err(Refusal::Query.failure(message));
        }
        Ok(())
    }

    fn use_of_postings(&self) -> UseOfPostings {
        UseOfPostings::Wanted
    }

    fn candidates(&self, postings: &Postings, evaluation: &Evaluation) -> Result<Rows> {
        let Some((words, field)) = postings.completion(&self.path) else { return Ok(Rows::NONE) };
        let mut rows = Rows::NONE;
        for query in &self.queries {
            let mut with_all = None;
            for part in &parts(field, query, evaluation)?.tokens {
                let with = postings
                    .words_like(words, evaluation, |word| self.has(field, word, &part.text, &evaluation.operation))?;
                with_all = Some(match with_all {
                    None => with,
                    Some(all) => with.and(all),
                });
            }
            rows = rows.or(with_all.unwrap_or(Rows::NONE));
        }
        Ok(rows)
    }

    fn score(&self, unit: &Unit<'_>, evaluation: &Evaluation) -> Result<Option<f32>> {
        let mut best: Option<f32> = None;
        for value in unit.values(&self.path) {
            let (ValueRef::String(text), Some(field)) = (value.value, field(value.types.mapped())) else { continue };
            let tokens = cut_words(field, text, &evaluation.schema, &evaluation.operation)?;
            for query in &self.queries {
                let searched = parts(field, query, evaluation)?;
                let parts = &searched.tokens;
                let count = self.count(field, &tokens, parts, &evaluation.operation)?;
                if count > 0 {
                    let mut whole = 0;
                    for part in parts {
                        evaluation.operation.work(1 + tokens.len() / 16)?;
                        whole += usize::from(tokens.iter().any(|token| token.text == part.text));
                    }
                    // A complete word counts more than a word that only begins with the part.
                    let share = (count + whole) as f32 / (1 + tokens.len()) as f32;
                    best = Some(best.unwrap_or(0.0) + 1.0 + share);
                }
            }
        }
        Ok(best)
    }

    fn mark(&self, text: &TextField<'_>, cut: &Cut, evaluation: &Evaluation, marks: &mut [bool]) -> Result<()> {
        let schema = &evaluation.schema;
        let Some(field) = field(schema.types(&self.path).mapped()).filter(|_| self.path == text.path) else {
            return Ok(());
        };
        for query in &self.queries {
            for part in &parts(field, query, evaluation)?.tokens {
                for (token, mark) in cut.tokens.iter().zip(marks.iter_mut()) {
                    *mark |= self.has(field, &token.text, &part.text, &evaluation.operation)?;
                }
            }
        }
        Ok(())
    }
}
