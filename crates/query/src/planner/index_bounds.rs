//! The part of one index that a filter needs: intervals for each field.

use super::by_path;
use super::collated::Orders;
use super::intervals::{Interval, Intervals};
use super::key_window::KeyWindow;
use super::predicates::{Bounds, Exactness, Keys, bounds};
use bunko_bson::{StringOrder, Value, hashed_keys_of_equals};
use bunko_catalog::{Answers, Index, IndexField, KeyForm, Multikey};
use bunko_matcher::Expression;
use std::ops::Range;
use std::sync::Arc;

/// The part of an index to scan.
#[derive(Clone)]
pub(crate) struct IndexBounds {
    pub index: Arc<Index>,
    /// The fields of the keys: those of the index, or for an index that answers by path, a path and its values.
    pub pattern: Arc<[IndexField]>,
    /// The wanted values of each field, ascending whatever the field's direction.
    pub fields: Vec<Intervals>,
    /// The index's paths on which documents had arrays at planning.
    pub multikey: Arc<Multikey>,
    /// Positions of the predicates that hold for every key within the bounds.
    pub decided: Vec<usize>,
    /// Conditions on the value of a field, by its position, that are checked on each key before its document is read.
    /// They only save reading: the document is checked too.
    pub on_keys: Vec<(usize, Expression)>,
    /// The range of keys to read, if `min` and `max` define it; the fields are unbounded then.
    pub window: Option<KeyWindow>,
    /// Whether each document within the bounds has a value in some field of the index.
    pub excludes_missing: bool,
    /// Whether the index omits documents that do not match either, so that scanning all of it is less work than
    /// scanning the collection.
    pub leaves_out_others: bool,
    /// Whether keys of several paths are within the bounds, so that one document may have several of them.
    pub spans_paths: bool,
}

/// Whether a path contains an array position. The index's keys and the filter see different values there.
pub(crate) fn names_array_index(path: &str) -> bool {
    path.split('.').any(|component| component.bytes().all(|byte| byte.is_ascii_digit()))
}

impl IndexBounds {
    /// Bounds that include the whole index.
    pub fn full(index: &Arc<Index>) -> Self {
        Self {
            index: Arc::clone(index),
            fields: index.fields.iter().map(|_| Intervals::full()).collect(),
            multikey: index.multikey(),
            decided: Vec::new(),
            on_keys: Vec::new(),
            window: None,
            pattern: Arc::clone(&index.fields),
            excludes_missing: false,
            leaves_out_others: false,
            spans_paths: false,
        }
    }

    /// The keys of an index within a window.
    pub fn within(index: &Arc<Index>, window: KeyWindow) -> Self {
        Self { window: Some(window), ..Self::full(index) }
    }

    /// The bounds that `predicates` together imply in the index, for a query with string order `strings`.
    pub fn derive(index: &Arc<Index>, predicates: &[Expression], strings: &StringOrder) -> Self {
        let orders = Orders { index: &index.strings, query: strings };
        if let Answers::ByPath { before } = index.kind.answers() {
            return by_path::derive(index, before, predicates, orders);
        }
        let mut this = Self::full(index);
        this.narrow(0..index.fields.len(), predicates, orders);
        if index.is_sparse {
            this.excludes_missing |= (0..index.fields.len()).any(|position| this.is_required_at(position, predicates));
            // As on MongoDB, only the first field counts: the index may hold many documents that lack another field.
            this.leaves_out_others = this.is_required_at(0, predicates);
        }
        if this.has_long_keys() {
            // For a shortened key, only the document decides.
            this.decided.clear();
        }
        this
    }

    /// Whether the predicates require the field at `position` to exist, with any value.
    fn is_required_at(&self, position: usize, predicates: &[Expression]) -> bool {
        let own = &self.pattern[position].path;
        let asks = |predicate: &Expression| matches!(predicate, Expression::Exists { path } if path.as_str() == own);
        !names_array_index(own) && predicates.iter().any(asks)
    }

    /// Narrows the bounds of fields whose keys hold their values.
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
                .filter_map(|(number, predicate)| {
                    let of_presence = self.bounds_of_presence(position, predicate);
                    Some((number, of_presence.or_else(|| bounds(predicate, path, keys, orders))?))
                })
                .map(|(number, found)| (number, self.form_of(position, found)))
                .collect();
            let decides_on_keys = keys == Keys::One
                && index.fields[position].form == KeyForm::Value
                && orders.index.is_bytes()
                && orders.query.is_bytes();
            if decides_on_keys {
                let asked = predicates.iter().filter(|asked| asked.is_on_value_at(path) && needs_value(asked));
                self.on_keys.extend(asked.map(|asked| (position, asked.clone())));
            }
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

    /// The key of null for a condition that the field does not exist, and all others if it exists, if only documents
    /// without the field have that key.
    fn bounds_of_presence(&self, position: usize, predicate: &Expression) -> Option<Bounds> {
        let asked = match predicate {
            Expression::Not(child) => &**child,
            predicate => predicate,
        };
        let own = &self.pattern[position].path;
        if !matches!(asked, Expression::Exists { path } if !path.is_itself() && path.as_str() == own) {
            return None;
        }
        let is_told = self.index.tells_types
            && !self.is_multikey_at(position)
            && self.multikey.types().lack_null_at(position)
            && self.index.kind.answers() == Answers::ByField;
        is_told.then(|| {
            let null = Intervals::points(Arc::new(vec![Value::Null]));
            let intervals = if matches!(predicate, Expression::Not(_)) { null } else { null.complement() };
            Bounds { intervals, exactness: Exactness::Exact }
        })
    }

    /// The bounds for a field's form of key: bounds on a hashed field are inexact, since two values may have one hash.
    fn form_of(&self, position: usize, bounds: Bounds) -> Bounds {
        match self.pattern[position].form {
            KeyForm::Value => bounds,
            KeyForm::Hash => Bounds { exactness: Exactness::Inexact, ..bounds },
        }
    }

    /// Whether the index holds every document that satisfies the predicates and its partial filter. A sparse index
    /// omits documents that have none of its fields.
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

    /// Different elements of an array may satisfy two predicates, so only one predicate can choose the keys.
    fn narrow_by_tightest(&mut self, position: usize, found: Vec<(usize, Bounds)>) {
        let Some((number, tightest)) = found.into_iter().min_by_key(|(_, bounds)| bounds.looseness()) else { return };
        if tightest.exactness == Exactness::Exact {
            self.decided.push(number);
        }
        self.fields[position] = tightest.intervals;
    }

    /// Whether an earlier bounded field may lead through the same array. Then different elements may satisfy the two
    /// predicates, and their values are in different keys.
    fn shares_array_with_bounded_field(&self, position: usize) -> bool {
        (0..position).any(|earlier| self.share_array(earlier, position) && !self.fields[earlier].is_full())
    }

    /// Whether some document may have an array on the common part of two fields' paths.
    fn share_array(&self, one: usize, other: usize) -> bool {
        let components = |field: usize| self.pattern[field].path.split('.');
        let common = components(one).zip(components(other)).take_while(|(one, other)| one == other).count();
        (0..common)
            .any(|component| self.multikey.has_array_at(one, component) && self.multikey.has_array_at(other, component))
    }

    pub fn is_multikey_at(&self, position: usize) -> bool {
        self.multikey.is_multikey_at(position)
    }

    /// Whether the index may have shortened keys: these are not in order, and their values cannot be decoded.
    pub fn has_long_keys(&self) -> bool {
        self.multikey.types().has_long_keys()
    }

    /// The bounds in parts, one for each combination of the values of the first `fields` fields.
    pub fn by_value(self, fields: usize) -> Vec<Self> {
        (0..fields).fold(vec![self], |parts, position| {
            let of_part = |part: &Self| {
                let points = part.fields[position].iter().map(|point| point.start.clone());
                let narrowed = |value| {
                    let mut one = part.clone();
                    one.fields[position] = Intervals::points(Arc::new(vec![value]));
                    one
                };
                points.map(narrowed).collect::<Vec<_>>()
            };
            parts.iter().flat_map(of_part).collect()
        })
    }

    /// Whether a scan within other bounds reads the same keys.
    pub fn reads_the_same_keys(&self, other: &Self) -> bool {
        self.index.keyspace == other.index.keyspace
            && self.window.is_none()
            && other.window.is_none()
            && self.pattern.iter().map(|field| &field.path).eq(other.pattern.iter().map(|field| &field.path))
            && self.fields.iter().zip(&other.fields).all(|(own, other)| own.are_same(other))
    }

    /// Whether the bounds exclude anything.
    pub fn is_narrowed(&self) -> bool {
        !self.fields[0].is_full() || self.leaves_out_others
    }

    /// Number of leading fields bound to single values.
    pub fn leading_points(&self) -> usize {
        self.fields.iter().take_while(|intervals| intervals.is_points()).count()
    }

    /// Whether at most one key can be found.
    pub fn is_unique_lookup(&self) -> bool {
        self.index.is_unique && self.fields.iter().all(Intervals::is_single_point)
    }

    /// Whether a scan within the bounds finds each record once, in ascending order: keys of one value end with the record.
    pub fn are_in_record_order(&self) -> bool {
        self.index.kind.answers() == Answers::ByField
            && self.index.ends_with_record()
            && !self.index.is_clustered
            && !self.has_long_keys()
            && self.window.is_none()
            && self.fields.iter().all(Intervals::is_single_point)
    }

    /// Whether all values of a field are equal within the bounds.
    pub fn is_constant_at(&self, position: usize) -> bool {
        self.fields[position].is_single_point()
    }

    /// Whether the field's keys are in the order of a sort by its path.
    pub fn sorts_at(&self, position: usize) -> bool {
        let field = &self.pattern[position];
        !self.is_multikey_at(position) && !names_array_index(&field.path) && field.form == KeyForm::Value
    }
}

/// Whether bounds alone do not decide a condition on one value.
fn needs_value(condition: &Expression) -> bool {
    match condition {
        Expression::And(children) | Expression::Or(children) => children.iter().any(needs_value),
        Expression::Regex { .. } | Expression::Mod { .. } => true,
        Expression::In { regexes, .. } => !regexes.is_empty(),
        _ => false,
    }
}

/// The intervals of the values' hashes. Hashes have no order, so only single values can be looked up.
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
