//! Plans `$text`: the index, its keys, and the stages.
//!
//! A filter is parsed without knowledge of any text index (`TextSearch` of `matcher`). The plan finds the collection's
//! text index and tells the filter its fields, language and terms, which the filter keeps: a write asks it again about
//! the newest version. `TextOr` walks the keys of the terms, which hold the scores; `TextMatch` checks phrases and
//! negations on the documents.

use super::asked_paths::asks_for;
use super::steps::steps_of_copy;
use super::{AccessPath, Builder, IndexBounds, Order, TextSuffix, choose, near_plan, whole_scan};
use crate::find_query::FindQuery;
use crate::hint::Hint;
use crate::stages::{KeysAlone, OrScan, RecordStage, Residual, ScoreUse, TermScan, TextInput, TextMatch, TextOr};
use bunko_bson::{StringOrder, Value};
use bunko_catalog::{Index, KeySpan, TextIndex};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_matcher::{AskedText, Comparison, Condition, Expression, TextSearch};
use bunko_store::Direction;
use bunko_text::{Search, TextFields};
use std::sync::Arc;

const PREFIX_MISSING: &str = "failed to use text index to satisfy $text query (if text index is compound, are \
                              equality predicates given for all prefix fields?)";
const NOT_INDEXED: &str = "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have \
                           to be indexed as well.";

const TOO_MANY: &str = "the filter has too many alternatives beside $text";

/// The text index of a collection.
struct Texts {
    index: Arc<Index>,
    fields: Arc<TextFields>,
}

/// Facts about the documents that a text search finds.
struct Found<'f> {
    /// The values of the fields before the texts.
    prefix: &'f [Value],
    /// Conditions that all of them satisfy.
    beside: &'f [Expression],
}

/// Refuses options that cannot be combined with `$text`.
/// # Errors
/// `BadValue`.
fn check(query: &FindQuery) -> Result<()> {
    match &query.hint {
        None => {}
        Some(Hint::Natural(_)) => {
            return Err(Failure::bad_value("text expression not allowed with $natural sort order"));
        }
        Some(_) => return Err(Failure::bad_value("text and hint not allowed in same query")),
    }
    if query.near.is_some() {
        return Err(Failure::bad_value("text and geoNear not allowed in same query"));
    }
    Ok(())
}

/// The text index; a collection has at most one.
/// # Errors
/// `IndexNotFound`.
fn index(indexes: &[Arc<Index>]) -> Result<Texts> {
    let found = indexes.iter().find_map(|index| {
        index.kind.text().map(|text| Texts { index: Arc::clone(index), fields: Arc::clone(&text.fields) })
    });
    found.ok_or_else(|| Failure::new(ErrorCode::INDEX_NOT_FOUND, "text index required for $text query"))
}

/// Whether an alternative of an `$or` is a text search, or contains one in a conjunction.
fn holds_text(alternative: &Expression) -> bool {
    alternative.conjuncts().iter().any(|predicate| matches!(predicate, Expression::Text(_)))
}

impl Texts {
    fn kind(&self) -> Option<&TextIndex> {
        self.index.kind.text()
    }

    /// The values of the fields before the texts, if the predicates demand one for each, and the index holds all
    /// documents that match the predicates.
    fn prefix(&self, predicates: &[Expression], strings: &StringOrder) -> Option<Vec<Value>> {
        if !choose::takes_all(&self.index, predicates, strings) {
            return None;
        }
        let named = |path: &str| {
            predicates.iter().find_map(|predicate| match predicate {
                Expression::OnPath(own, Condition::Compare(Comparison::Eq, value))
                    if own.as_str() == path && is_comparable(value, strings) =>
                {
                    Some(value.clone())
                }
                _ => None,
            })
        };
        self.kind()?.prefix.iter().map(|field| named(&field.path)).collect()
    }

    /// The key spans of a search's terms.
    fn spans(&self, prefix: &[Value], search: &Search) -> Vec<KeySpan> {
        let Some(kind) = self.kind() else { return Vec::new() };
        let prefix: Vec<_> = prefix.iter().map(Value::as_ref).collect();
        search.terms.iter().map(|term| kind.span(&prefix, term)).collect()
    }
}

impl Builder<'_> {
    /// Finds documents by a text search.
    pub(super) fn text(&mut self, text: &TextSearch) -> Result<AccessPath> {
        let query = self.query;
        check(query)?;
        let indexes = self.usable_indexes();
        let index = index(&indexes).map_err(|failure| self.of_hidden(failure, |index| index.kind.text().is_some()))?;
        let asked = text.ask(&index.fields)?;
        let predicates = query.filter.root().conjuncts();
        let score = if query.holds_metadata() { ScoreUse::Wanted } else { ScoreUse::Ignored };
        if let Some(position) = predicates.iter().position(|predicate| matches!(predicate, Expression::Text(_))) {
            let Some(prefix) = index.prefix(predicates, &query.scope.strings) else {
                return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, PREFIX_MISSING));
            };
            let found = Found { prefix: &prefix, beside: predicates };
            let terms = Box::new(self.text_or(&index, &found, &asked, score));
            let mut residual = Residual::without(&[position], predicates.len());
            if !asked.search.is_decided_by_terms() {
                residual = residual.and_above();
            }
            let input = match self.keys_suffice(&residual) {
                Some(decided) => TextInput::Terms(KeysAlone::new(terms, decided)),
                None => TextInput::Documents(self.fetched(terms, residual)),
            };
            let stage = TextMatch { number: self.number(), index: index.index, prefix, asked, input };
            return Ok(AccessPath { stage: Box::new(stage), order: Order::Any });
        }
        self.text_beside_others(&index, &asked, score)
    }

    /// Finds documents by a text search or other alternatives of an `$or`, each of which an index must serve.
    fn text_beside_others(&mut self, index: &Texts, asked: &AskedText, score: ScoreUse) -> Result<AccessPath> {
        let (query, strings) = (self.query, &self.query.scope.strings);
        let predicates = query.filter.root().conjuncts();
        let alternatives = predicates.iter().find_map(|predicate| match predicate {
            Expression::Or(alternatives) if alternatives.iter().any(holds_text) => Some(alternatives),
            _ => None,
        });
        let indexes = self.allowed_indexes();
        let mut branches: Vec<Box<dyn RecordStage>> = Vec::new();
        let is_beside = |predicate: &&Expression| !matches!(predicate, Expression::Or(_));
        let beside: Vec<Expression> = predicates.iter().filter(is_beside).cloned().collect();
        let copied: usize = beside.iter().map(steps_of_copy).sum();
        for alternative in alternatives.into_iter().flatten() {
            if !self.steps.spend(copied) {
                return self.text_or_all(index, asked, score);
            }
            let own = alternative.conjuncts();
            let all: Vec<Expression> = own.iter().chain(&beside).cloned().collect();
            let branch: Option<Box<dyn RecordStage>> = if holds_text(alternative) {
                let prefix = index.prefix(&all, strings);
                prefix.map(|prefix| {
                    let found = Found { prefix: &prefix, beside: &all };
                    Box::new(self.text_or(index, &found, asked, score)) as _
                })
            } else {
                self.beside_text(&indexes, own, &all)?
            };
            match branch {
                // The text search comes first, so that documents it finds have a score.
                Some(branch) if holds_text(alternative) => branches.insert(0, branch),
                Some(branch) => branches.push(branch),
                None if self.steps.are_used_up() => return self.text_or_all(index, asked, score),
                None => {
                    return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, NOT_INDEXED));
                }
            }
        }
        if branches.is_empty() {
            return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, NOT_INDEXED));
        }
        let or = OrScan { number: self.number(), branches };
        Ok(self.fetch(Box::new(or), Residual::whole(), Order::Any))
    }

    /// Finds documents by a text search or other alternatives of an `$or`, once the steps of planning are used up: the
    /// alternatives beside the search have all records of the collection, each of which is tested.
    fn text_or_all(&mut self, index: &Texts, asked: &AskedText, score: ScoreUse) -> Result<AccessPath> {
        let prefix = index.prefix(self.query.filter.root().conjuncts(), &self.query.scope.strings);
        let ids = self.collection.id_index();
        let Some(prefix) = prefix.filter(|_| !ids.is_clustered) else {
            return Err(self.planner_error(ErrorCode::NO_QUERY_EXECUTION_PLANS, TOO_MANY));
        };
        let found = Found { prefix: &prefix, beside: &[] };
        let text: Box<dyn RecordStage> = Box::new(self.text_or(index, &found, asked, score));
        let all: Box<dyn RecordStage> = Box::new(self.scan(IndexBounds::full(&ids), Direction::Forward));
        let or = OrScan { number: self.number(), branches: vec![text, all] };
        Ok(self.fetch(Box::new(or), Residual::whole(), Order::Any))
    }

    /// The records for an alternative without text search, by one or several indexes. As on MongoDB, an index must serve
    /// its own conditions; those beside the `$or` narrow the scan too.
    fn beside_text(
        &mut self,
        indexes: &[Arc<Index>],
        own: &[Expression],
        all: &[Expression],
    ) -> Result<Option<Box<dyn RecordStage>>> {
        let strings = &self.query.scope.strings;
        let ranked = choose::ranked(indexes, all, None, strings, &self.steps);
        let mut narrowed = ranked.into_iter().map(|candidate| candidate.bounds).filter(IndexBounds::is_narrowed);
        if let Some(bounds) = narrowed.find(|bounds| serves_any(bounds, own)) {
            return Ok(Some(Box::new(self.scan(bounds, Direction::Forward))));
        }
        if !self.steps.look(indexes.len() * all.len()) {
            return Ok(None);
        }
        if let Some(region) = near_plan::region(indexes, own, strings, &self.steps) {
            return Ok(Some(self.branch_scan(region)));
        }
        if let Some(several) = self.alternatives(indexes, own, None)? {
            let beside = if all.len() > own.len() { self.alternatives(indexes, all, None)? } else { None };
            let several = beside.unwrap_or(several);
            return Ok(Some(Box::new(self.several_scans(several.branches))));
        }
        if !self.steps.look(indexes.len() * own.len()) {
            return Ok(None);
        }
        let whole = whole_scan::bounds(indexes, own, strings);
        Ok(whole.map(|whole| Box::new(self.scan(whole, Direction::Forward)) as Box<dyn RecordStage>))
    }

    fn text_or(&mut self, texts: &Texts, found: &Found<'_>, asked: &AskedText, score: ScoreUse) -> TextOr {
        self.note(&texts.index, texts.index.multikey());
        let spans = texts.spans(found.prefix, &asked.search);
        let beside = if self.steps.take(&texts.index, found.beside) { found.beside } else { &[] };
        let suffix = Arc::new(TextSuffix::new(&texts.index, beside, &self.query.scope.strings));
        let scan = |span| TermScan {
            number: self.number(),
            index: Arc::clone(&texts.index),
            span,
            suffix: Arc::clone(&suffix),
        };
        let terms = spans.into_iter().map(scan).collect();
        TextOr { number: self.number(), terms, score }
    }
}

/// Whether the bounds are those of one of these conditions, among others.
fn serves_any(bounds: &IndexBounds, predicates: &[Expression]) -> bool {
    let fields = bounds.pattern.iter().zip(&bounds.fields).enumerate();
    let mut narrowed = fields.filter(|(position, (_, intervals))| !intervals.is_full() || *position == 0);
    narrowed.any(|(_, (field, _))| predicates.iter().any(|predicate| asks_for(predicate, &field.path)))
}

/// Whether a value equals one in a key exactly if their bytes are equal. No key holds an array.
fn is_comparable(value: &Value, strings: &StringOrder) -> bool {
    !matches!(value, Value::Array(_)) && (strings.is_bytes() || !StringOrder::holds_strings(value.as_ref()))
}
