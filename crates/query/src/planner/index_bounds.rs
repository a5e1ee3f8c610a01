//! The part of one index that a filter needs: intervals for each field.

use super::by_path;
use super::collated::Orders;
use super::elements::is_told_by_element;
use super::intervals::{Interval, Intervals};
use super::key_window::KeyWindow;
use super::positions;
use super::predicates::{Bounds, Exactness, Keys, bounds};
use bunko_bson::{StringOrder, Value, hashed_keys_of_equals};
use bunko_catalog::{Answers, Index, IndexField, KeyForm, Multikey};
use bunko_matcher::planted::{Fault, active};
use bunko_matcher::{Condition, Expression};
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

/// Whether a path contains a name of digits, which may be the position of an element in an array. There a filter sees
/// more than the keys hold: see [`positions`].
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
        if this.has_long_keys() && !active(Fault::LongKeysDecide) {
            // For a shortened key, only the document decides.
            this.decided.clear();
        }
        this
    }

    /// Whether the predicates require the field at `position` to exist, with any value.
    fn is_required_at(&self, position: usize, predicates: &[Expression]) -> bool {
        let own = &self.pattern[position].path;
        predicates.iter().any(|predicate| asks_presence(predicate, own))
    }

    /// Narrows the bounds of fields whose keys hold their values.
    pub(super) fn narrow(&mut self, positions: Range<usize>, predicates: &[Expression], orders: Orders<'_>) {
        let index = Arc::clone(&self.index);
        // The predicate that bounds each field with arrays.
        let mut bounded_by = vec![None; index.fields.len()];
        for position in positions {
            let path = &index.fields[position].path;
            let may_be_position = names_array_index(path) && !active(Fault::PositionHasBounds);
            let Some(usable) = self.usable_at(position, predicates, &bounded_by) else { continue };
            let keys = if self.is_multikey_at(position) { Keys::Several } else { Keys::One };
            let is_served = |asked: &Expression| !may_be_position || positions::is_served(asked, path, keys);
            let is_inexact = may_be_position && keys == Keys::Several && !active(Fault::PositionsDecide);
            let found: Vec<(usize, Bounds)> = predicates
                .iter()
                .enumerate()
                .filter(|(number, predicate)| usable.contains(number) && is_served(predicate))
                .filter_map(|(number, predicate)| {
                    let of_presence = self.bounds_of_presence(position, predicate);
                    Some((number, of_presence.or_else(|| bounds(predicate, path, keys, orders))?))
                })
                .map(|(number, found)| (number, self.form_of(position, found)))
                .map(|(number, found)| (number, if is_inexact { found.inexact() } else { found }))
                .collect();
            match keys {
                keys if keys == Keys::One || active(Fault::ElementsNarrowTogether) => {
                    self.narrow_by_all(position, found);
                }
                _ => bounded_by[position] = self.narrow_by_tightest(position, found),
            }
            let are_bytes = orders.index.is_bytes() && orders.query.is_bytes();
            let decides_on_keys = (index.fields[position].form == KeyForm::Value || active(Fault::HashesChecked))
                && (are_bytes || active(Fault::CollatedKeysChecked));
            if decides_on_keys {
                // A document has several keys of a field with arrays. Only one condition may choose among them, and an
                // element must satisfy it alone.
                let is_checked = |(number, asked): &(usize, &Expression)| match keys {
                    Keys::Several if !active(Fault::ArraysChecked) => {
                        bounded_by[position] == Some(*number) && is_told_by_element(asked, path)
                    }
                    _ => asked.is_on_value_at(path) && is_served(asked),
                };
                let asked = predicates.iter().enumerate().filter(|(_, asked)| needs_value(asked)).filter(is_checked);
                self.on_keys.extend(asked.map(|(_, asked)| (position, asked.clone())));
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
        if !asks_presence(asked, &self.pattern[position].path) {
            return None;
        }
        let is_told = self.index.tells_types
            && !self.is_multikey_at(position)
            && (self.multikey.types().lack_null_at(position) || active(Fault::NullNeverExists))
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
            KeyForm::Hash if active(Fault::HashIsExact) => bounds,
            KeyForm::Hash => Bounds { exactness: Exactness::Inexact, ..bounds },
        }
    }

    /// Whether the index holds every document that satisfies the predicates and its partial filter. A sparse index
    /// omits documents that have none of its fields.
    pub fn is_complete(&self) -> bool {
        let leaves_out_missing = self.index.is_sparse || matches!(self.index.kind.answers(), Answers::ByPath { .. });
        !leaves_out_missing || self.excludes_missing || self.index.is_sparse && active(Fault::SparseHoldsAll)
    }

    fn narrow_by_all(&mut self, position: usize, found: Vec<(usize, Bounds)>) {
        let exact = found.iter().filter(|(_, bounds)| bounds.exactness == Exactness::Exact);
        self.decided.extend(exact.map(|(number, _)| *number));
        if let Some(all) = Intervals::in_all(found.into_iter().map(|(_, bounds)| bounds.intervals).collect()) {
            self.fields[position] = all;
        }
    }

    /// Different elements of an array may satisfy two predicates, so only one predicate can choose the keys. Returns its
    /// number.
    fn narrow_by_tightest(&mut self, position: usize, found: Vec<(usize, Bounds)>) -> Option<usize> {
        let (number, tightest) = found.into_iter().min_by_key(|(_, bounds)| bounds.looseness())?;
        if tightest.exactness == Exactness::Exact {
            self.decided.push(number);
        }
        self.fields[position] = tightest.intervals;
        Some(number)
    }

    /// The predicates that may bound a field beside the earlier fields: all if no bounded field leads through an array
    /// with it; `None` if different elements of such an array may satisfy the predicates, since their values are in
    /// different keys.
    ///
    /// One element satisfies all conditions within an `$elemMatch`. So the one that bounds the earlier field may bound
    /// this field too, unless the two lead through another array inside the element.
    fn usable_at(
        &self,
        position: usize,
        predicates: &[Expression],
        bounded_by: &[Option<usize>],
    ) -> Option<Range<usize>> {
        let all = 0..predicates.len();
        let is_sharing = |earlier: &usize| !self.fields[*earlier].is_full() && self.share_array(*earlier, position, 0);
        let mut sharing = (0..position).filter(is_sharing).peekable();
        let Some(first) = sharing.peek().filter(|_| !active(Fault::FieldsOfArrayBothBound)) else { return Some(all) };
        let common = bounded_by[*first]?;
        let components = components_to_element(&predicates[common])?;
        let is_same_element = |earlier: usize| {
            bounded_by[earlier] == Some(common)
                && (!self.share_array(earlier, position, components) || active(Fault::ArraysOfElementBothBound))
        };
        let usable = if active(Fault::ElementsBoundTogether) { all } else { common..common + 1 };
        sharing.all(is_same_element).then_some(usable)
    }

    /// Whether some document may have an array on the common part of two fields' paths, from a component on.
    fn share_array(&self, one: usize, other: usize, from: usize) -> bool {
        let components = |field: usize| self.pattern[field].path.split('.');
        let common = components(one).zip(components(other)).take_while(|(one, other)| one == other).count();
        (from..common)
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
                    if active(Fault::PartsUnsplit) {
                        return one;
                    }
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

    /// Whether a scan within the bounds reads all keys that a scan within other bounds reads: it has the other bounds, up
    /// to a field without bounds of its own.
    pub fn reads_all_keys_of(&self, other: &Self) -> bool {
        let narrowed = self.fields.iter().filter(|field| !field.is_full()).count();
        let own = self.pattern.iter().zip(&self.fields).take(narrowed);
        self.index.keyspace == other.index.keyspace
            && self.window.is_none()
            && own.zip(other.pattern.iter().zip(&other.fields)).all(|((field, own), (other_field, other))| {
                field.path == other_field.path && !own.is_full() && own.are_same(other)
            })
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

    /// Whether a scan within the bounds finds records that can be compared with the records of another index. A clustered
    /// collection has its documents in the index.
    pub fn can_be_intersected(&self) -> bool {
        !self.index.is_clustered && self.window.is_none() && self.is_narrowed()
    }

    /// Whether all values of a field are equal within the bounds.
    pub fn is_constant_at(&self, position: usize) -> bool {
        self.fields[position].is_single_point()
    }

    /// Whether a document has one value in the field, so that equal bounds mean equal keys of a sort by its path.
    pub fn has_one_value_at(&self, position: usize) -> bool {
        let is_single = !self.is_multikey_at(position) || active(Fault::ArraysSort);
        is_single && self.pattern[position].form == KeyForm::Value
    }

    /// Whether a scan meets documents first at the keys by which a sort by the field's path orders them.
    ///
    /// A sort takes the least element of an array, or the greatest. That is the first of the document's keys in the
    /// direction of the scan, if all of its keys are within the bounds. So the field has no bounds, and no bounds are on a
    /// field below the same array, whose elements would choose among the keys.
    pub fn sorts_at(&self, position: usize) -> bool {
        if self.has_one_value_at(position) {
            return true;
        }
        let chooses =
            |other: usize| other != position && !self.fields[other].is_full() && self.share_array(other, position, 0);
        self.pattern[position].form == KeyForm::Value
            && self.index.kind.answers() == Answers::ByField
            && self.window.is_none()
            && (self.fields[position].is_full() || active(Fault::ElementsOutsideSort))
            && (!(0..self.fields.len()).any(chooses) || active(Fault::NeighboursOutsideSort))
    }
}

/// The number of components of the path to the element that satisfies all of a predicate, if it is an `$elemMatch`.
fn components_to_element(predicate: &Expression) -> Option<usize> {
    let Expression::OnPath(path, Condition::ElemMatchObject(filter)) = predicate else { return None };
    Some(path.as_str().split('.').count() + components_to_element(filter).unwrap_or(0))
}

/// Whether a predicate is that the field exists, with any value.
fn asks_presence(predicate: &Expression, field: &str) -> bool {
    matches!(predicate, Expression::OnPath(path, Condition::Exists) if path.is(field))
}

/// Whether bounds alone do not decide a condition on one value.
fn needs_value(condition: &Expression) -> bool {
    match condition {
        Expression::And(children) | Expression::Or(children) => children.iter().any(needs_value),
        Expression::OnPath(_, Condition::Regex(_) | Condition::Mod { .. }) => true,
        Expression::OnPath(_, Condition::In { regexes, .. }) => !regexes.is_empty(),
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
        let count = if active(Fault::EqualsHaveOneHash) { 1 } else { equals.len() };
        hashes.extend(equals.into_iter().take(count).map(|hash| Interval::point(Value::Int64(hash))));
    }
    Intervals::union(hashes)
}
