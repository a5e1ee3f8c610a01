//! The part of one index that a filter needs: intervals for each field.

use super::by_path;
use super::intervals::{Interval, Intervals};
use super::key_window::KeyWindow;
use super::predicates::{Bounds, Exactness, Keys, Orders, bounds};
use bunko_bson::{StringOrder, Value, hashed_keys_of_equals};
use bunko_catalog::{Answers, Index, IndexField, KeyForm, Multikey};
use bunko_matcher::Expression;
use std::ops::Range;
use std::sync::Arc;

/// What of an index has to be scanned.
#[derive(Clone)]
pub(crate) struct IndexBounds {
    pub index: Arc<Index>,
    /// The fields that the keys are made of: those of the index, or of one that answers by path a path and its values.
    pub pattern: Arc<[IndexField]>,
    /// For each of them the values that matter, ascending whatever the field's direction.
    pub fields: Vec<Intervals>,
    /// Where documents have arrays on the index's paths, as of the planning.
    pub multikey: Arc<Multikey>,
    /// Positions of the predicates that hold for every key within the bounds.
    pub decided: Vec<usize>,
    /// The stretch to read, where it was told by its keys; the fields are unbounded then.
    pub window: Option<KeyWindow>,
    /// Whether each document within the bounds has a value in some field of the index.
    pub excludes_missing: bool,
    /// Whether the index leaves out documents that the query does not ask for either, so that all of it is less than all documents.
    pub leaves_out_others: bool,
    /// Whether keys of several paths are within the bounds, and so several keys of one document.
    pub spans_paths: bool,
}

/// Whether a path names an array index, in which the index's keys and the filter see different values.
pub(crate) fn names_array_index(path: &str) -> bool {
    path.split('.').any(|component| component.bytes().all(|byte| byte.is_ascii_digit()))
}

impl IndexBounds {
    /// All of an index.
    pub fn full(index: &Arc<Index>) -> Self {
        Self {
            index: Arc::clone(index),
            fields: index.fields.iter().map(|_| Intervals::full()).collect(),
            multikey: index.multikey(),
            decided: Vec::new(),
            window: None,
            pattern: Arc::clone(&index.fields),
            excludes_missing: false,
            leaves_out_others: false,
            spans_paths: false,
        }
    }

    /// The stretch of an index between two keys.
    pub fn within(index: &Arc<Index>, window: KeyWindow) -> Self {
        Self { window: Some(window), ..Self::full(index) }
    }

    /// What documents that satisfy all of `predicates` have in the index, where the query has strings in that order.
    pub fn derive(index: &Arc<Index>, predicates: &[Expression], strings: &StringOrder) -> Self {
        let orders = Orders { index: &index.strings, query: strings };
        if let Answers::ByPath { before } = index.kind.answers() {
            return by_path::derive(index, before, predicates, orders);
        }
        let mut this = Self::full(index);
        this.narrow(0..index.fields.len(), predicates, orders);
        if index.is_sparse {
            this.excludes_missing |= (0..index.fields.len()).any(|position| this.is_required_at(position, predicates));
            // As on MongoDB only by the first field: of another many documents without it may be in the index.
            this.leaves_out_others = this.is_required_at(0, predicates);
        }
        if this.has_long_keys() {
            // Of a key that was shortened only the document tells.
            this.decided.clear();
        }
        this
    }

    /// Whether documents must have that field, whatever its value.
    fn is_required_at(&self, position: usize, predicates: &[Expression]) -> bool {
        let own = &self.pattern[position].path;
        let asks = |predicate: &Expression| matches!(predicate, Expression::Exists { path } if path.as_str() == own);
        !names_array_index(own) && predicates.iter().any(asks)
    }

    /// Narrows down fields of which the keys hold the values.
    pub(super) fn narrow(&mut self, positions: Range<usize>, predicates: &[Expression], orders: Orders<'_>) {
        let index = Arc::clone(&self.index);
        for position in positions {
            let path = &index.fields[position].path;
            if names_array_index(path) || self.shares_array_with_bounded_field(position) {
                continue;
            }
            let keys = if self.is_multikey_at(position) { Keys::Several } else { Keys::One };
            let found: Vec<(usize, Bounds)> = predicates
                .iter()
                .enumerate()
                .filter_map(|(number, predicate)| Some((number, bounds(predicate, path, keys, orders)?)))
                .map(|(number, found)| (number, self.form_of(position, found)))
                .collect();
            match keys {
                Keys::One => self.narrow_by_all(position, found),
                Keys::Several => self.narrow_by_tightest(position, found),
            }
            self.excludes_missing |= !self.fields[position].contains(&Value::Null);
            if index.fields[position].form == KeyForm::Hash {
                self.fields[position] = hashed(&self.fields[position]);
            }
        }
    }

    /// The bounds as far as the keys of a field tell: two values may have one hash.
    fn form_of(&self, position: usize, bounds: Bounds) -> Bounds {
        match self.pattern[position].form {
            KeyForm::Value => bounds,
            KeyForm::Hash => Bounds { exactness: Exactness::Inexact, ..bounds },
        }
    }

    /// Whether each document that satisfies the predicates is in the index, of those that its partial filter takes: a sparse
    /// one leaves out what has no value in any of its fields.
    pub fn is_complete(&self) -> bool {
        let leaves_out_missing = self.index.is_sparse || matches!(self.index.kind.answers(), Answers::ByPath { .. });
        !leaves_out_missing || self.excludes_missing
    }

    fn narrow_by_all(&mut self, position: usize, found: Vec<(usize, Bounds)>) {
        for (number, bounds) in found {
            self.fields[position] = if self.fields[position].is_full() {
                bounds.intervals
            } else {
                self.fields[position].intersection(&bounds.intervals)
            };
            if bounds.exactness == Exactness::Exact {
                self.decided.push(number);
            }
        }
    }

    /// Two predicates may be satisfied by two elements of an array: only one of them can choose the keys.
    fn narrow_by_tightest(&mut self, position: usize, found: Vec<(usize, Bounds)>) {
        let Some((number, tightest)) = found.into_iter().min_by_key(|(_, bounds)| bounds.looseness()) else { return };
        if tightest.exactness == Exactness::Exact {
            self.decided.push(number);
        }
        self.fields[position] = tightest.intervals;
    }

    /// Whether an earlier field with bounds may lead through the same array: then the two predicates may be satisfied
    /// by different elements, whose values stand in different keys.
    fn shares_array_with_bounded_field(&self, position: usize) -> bool {
        (0..position).any(|earlier| self.share_array(earlier, position) && !self.fields[earlier].is_full())
    }

    /// Whether some document may have an array on the part of their paths that two fields have in common.
    fn share_array(&self, one: usize, other: usize) -> bool {
        let components = |field: usize| self.pattern[field].path.split('.');
        let common = components(one).zip(components(other)).take_while(|(one, other)| one == other).count();
        (0..common)
            .any(|component| self.multikey.has_array_at(one, component) && self.multikey.has_array_at(other, component))
    }

    pub fn is_multikey_at(&self, position: usize) -> bool {
        self.multikey.is_multikey_at(position)
    }

    /// Whether the index may have keys that were shortened: these have no order, and their values cannot be read.
    pub fn has_long_keys(&self) -> bool {
        self.multikey.types().has_long_keys()
    }

    /// Whether the bounds are of any use.
    pub fn is_narrowed(&self) -> bool {
        !self.fields[0].is_full() || self.leaves_out_others
    }

    /// How many of the first fields are bound to single values.
    pub fn leading_points(&self) -> usize {
        self.fields.iter().take_while(|intervals| intervals.is_points()).count()
    }

    /// Whether at most one key can be found.
    pub fn is_unique_lookup(&self) -> bool {
        self.index.is_unique && self.fields.iter().all(Intervals::is_single_point)
    }

    /// Whether all values of a field are equal within the bounds.
    pub fn is_constant_at(&self, position: usize) -> bool {
        self.fields[position].is_single_point()
    }

    /// Whether the path of a field is one whose values in the index order documents as a sort does.
    pub fn sorts_at(&self, position: usize) -> bool {
        let field = &self.pattern[position];
        !self.is_multikey_at(position) && !names_array_index(&field.path) && field.form == KeyForm::Value
    }
}

/// Where the hashes of those values are: hashes have no order, so that only single values can be found.
fn hashed(intervals: &Intervals) -> Intervals {
    if !intervals.is_points() {
        return Intervals::full();
    }
    let mut hashes = Vec::with_capacity(intervals.len());
    for interval in intervals.iter() {
        let Some(equals) = hashed_keys_of_equals(interval.start.as_ref()) else { return Intervals::full() };
        hashes.extend(equals.into_iter().map(|hash| Interval::point(Value::Int64(hash))));
    }
    Intervals::union(hashes)
}
