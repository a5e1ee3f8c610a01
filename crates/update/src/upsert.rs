//! The document that an upsert starts from.

use crate::array_filters::ArrayFilters;
use crate::context::{ApplyContext, Insertion, Telling};
use crate::dotted_path::is_below;
use crate::immutable_id::{self, ID};
use crate::merge_walk::MergeWalk;
use crate::operators::Set;
use crate::trie::Plan;
use bunko_bson::{ArrayRef, DocumentBuf, DocumentRef, StringOrder, Timestamp, ValueRef, order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use std::collections::{HashMap, HashSet};

/// The equalities of the filter that an upsert writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    All,
    OnlyId,
}

/// Writes the filter's equalities into an empty document, sorted by path, with `_id` in front.
pub(crate) fn base(filter: DocumentRef<'_>, fields: Fields, operation: &OperationContext) -> Result<DocumentBuf> {
    let mut equalities = Equalities { fields, found: Vec::new(), paths: HashSet::new(), first_below: HashMap::new() };
    equalities.collect(filter)?;
    equalities.found.sort_by_key(|(path, _)| *path);
    let mut plan = Plan::new(ArrayFilters::default(), StringOrder::default());
    for (path, value) in equalities.found {
        plan.modify(path, Set(value.to_value()))?;
    }
    let context = ApplyContext {
        matched_position: None,
        now_ms: 0,
        timestamp: Timestamp { seconds: 0, increment: 0 },
        insert: Insertion::Upsert,
        operation,
    };
    let written = MergeWalk::run(&plan.finish(), DocumentRef::EMPTY, &context, Telling::Nothing)?;
    Ok(immutable_id::moved_to_front(written.map(|(document, _)| document).unwrap_or_default()))
}

/// The values that a filter demands at paths, where it demands exactly one.
struct Equalities<'a> {
    fields: Fields,
    found: Vec<(&'a str, ValueRef<'a>)>,
    /// The paths of all equalities found.
    paths: HashSet<&'a str>,
    /// For each parent of the paths found, the first path below it.
    first_below: HashMap<&'a str, &'a str>,
}

impl<'a> Equalities<'a> {
    fn collect(&mut self, filter: DocumentRef<'a>) -> Result<()> {
        for condition in filter {
            match (condition.name, condition.value) {
                ("$and", ValueRef::Array(clauses)) => self.collect_clauses(clauses.iter())?,
                ("$or", ValueRef::Array(clauses)) if clauses.count() == 1 => self.collect_clauses(clauses.iter())?,
                (name, _) if name.starts_with('$') => {}
                (path, ValueRef::Document(operators)) if is_operators(operators) => {
                    self.collect_operators(path, operators)?;
                }
                (_, ValueRef::Regex { .. }) => {}
                (path, value) => self.add(path, value)?,
            }
        }
        Ok(())
    }

    fn collect_clauses(&mut self, mut clauses: impl Iterator<Item = ValueRef<'a>>) -> Result<()> {
        clauses.try_for_each(|clause| clause.as_document().map_or(Ok(()), |clause| self.collect(clause)))
    }

    fn collect_operators(&mut self, path: &'a str, operators: DocumentRef<'a>) -> Result<()> {
        for operator in operators {
            match (operator.name, operator.value) {
                ("$eq", value) => self.add(path, value)?,
                ("$in", ValueRef::Array(values)) => {
                    only_value(values).map_or(Ok(()), |value| self.add(path, value))?;
                }
                ("$all", ValueRef::Array(values)) => {
                    values.iter().filter(|value| !is_pattern(*value)).try_for_each(|value| self.add(path, value))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &'a str, value: ValueRef<'a>) -> Result<()> {
        if self.fields == Fields::OnlyId && path != ID {
            if !is_below(path, ID) {
                return Ok(());
            }
            // The missing blank is in MongoDB's message too.
            let message = format!("field at '{ID}' must be exactly specified, field at sub-path '{path}'found");
            return Err(Failure::new(ErrorCode::NOT_EXACT_VALUE_FIELD, message));
        }
        let prefixes = || path.match_indices('.').map(|(end, _)| &path[..end]);
        if !self.paths.insert(path) {
            let message = format!("cannot infer query fields to set, path '{path}' is matched twice");
            return Err(Failure::new(ErrorCode::NOT_SINGLE_VALUE_FIELD, message));
        }
        let above = prefixes().find(|prefix| self.paths.contains(prefix));
        if let Some(other) = above.or_else(|| self.first_below.get(path).copied()) {
            let message = format!("cannot infer query fields to set, both paths '{path}' and '{other}' are matched");
            return Err(Failure::new(ErrorCode::NOT_SINGLE_VALUE_FIELD, message));
        }
        for prefix in prefixes() {
            self.first_below.entry(prefix).or_insert(path);
        }
        self.found.push((path, value));
        Ok(())
    }
}

/// Whether a document consists of operators. A DBRef is a value although its field names start with `$`.
fn is_operators(document: DocumentRef<'_>) -> bool {
    document.first().is_some_and(|first| first.name.starts_with('$') && !matches!(first.name, "$ref" | "$id" | "$db"))
}

/// The only value of an `$in`, even if listed several times.
fn only_value(values: ArrayRef<'_>) -> Option<ValueRef<'_>> {
    let first = values.get(0).filter(|first| !is_pattern(*first))?;
    values.iter().all(|value| order::equal(value, first)).then_some(first)
}

/// Whether an element of `$all` or `$in` is a regex or operators, which match more than one value.
fn is_pattern(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Regex { .. } => true,
        ValueRef::Document(document) => is_operators(document),
        _ => false,
    }
}
