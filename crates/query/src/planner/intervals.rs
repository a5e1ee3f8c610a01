//! Sets of values between edges, in MongoDB's order across types: the parts of bounds.

use bunko_bson::text::ValueText;
use bunko_bson::{Value, order};
use bunko_catalog::KeyKinds;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Whether an interval includes its edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Inclusive,
    Exclusive,
}

/// All values from `start` to `end`.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub start: Value,
    pub start_edge: Edge,
    pub end: Value,
    pub end_edge: Edge,
}

impl Interval {
    pub fn point(value: Value) -> Self {
        Self { start: value.clone(), start_edge: Edge::Inclusive, end: value, end_edge: Edge::Inclusive }
    }

    /// The interval of all values.
    pub fn full() -> Self {
        Self { start: Value::MinKey, start_edge: Edge::Inclusive, end: Value::MaxKey, end_edge: Edge::Inclusive }
    }

    fn as_ref(&self) -> IntervalRef<'_> {
        let Self { start, start_edge, end, end_edge } = self;
        IntervalRef { start, start_edge: *start_edge, end, end_edge: *end_edge }
    }

    fn is_point(&self) -> bool {
        self.start_edge == Edge::Inclusive
            && self.end_edge == Edge::Inclusive
            && order::equal(self.start.as_ref(), self.end.as_ref())
    }

    fn is_empty(&self) -> bool {
        match order::compare(self.start.as_ref(), self.end.as_ref()) {
            Ordering::Less => false,
            Ordering::Equal => self.start_edge == Edge::Exclusive || self.end_edge == Edge::Exclusive,
            Ordering::Greater => true,
        }
    }

    fn contains(&self, value: &Value) -> bool {
        let after_start = match order::compare(self.start.as_ref(), value.as_ref()) {
            Ordering::Less => true,
            Ordering::Equal => self.start_edge == Edge::Inclusive,
            Ordering::Greater => false,
        };
        after_start
            && match order::compare(value.as_ref(), self.end.as_ref()) {
                Ordering::Less => true,
                Ordering::Equal => self.end_edge == Edge::Inclusive,
                Ordering::Greater => false,
            }
    }

    fn intersection(&self, other: &Self) -> Option<Self> {
        let from_self = compare_starts(self, other).is_ge();
        let to_self = compare_ends(self, other).is_le();
        let (lower, upper) = (if from_self { self } else { other }, if to_self { self } else { other });
        let both = Self {
            start: lower.start.clone(),
            start_edge: lower.start_edge,
            end: upper.end.clone(),
            end_edge: upper.end_edge,
        };
        (!both.is_empty()).then_some(both)
    }
}

/// Orders intervals by start; an inclusive start comes before an exclusive one.
fn compare_starts(a: &Interval, b: &Interval) -> Ordering {
    let exclusive = |edge| edge == Edge::Exclusive;
    order::compare(a.start.as_ref(), b.start.as_ref()).then(exclusive(a.start_edge).cmp(&exclusive(b.start_edge)))
}

fn compare_ends(a: &Interval, b: &Interval) -> Ordering {
    let inclusive = |edge| edge == Edge::Inclusive;
    order::compare(a.end.as_ref(), b.end.as_ref()).then(inclusive(a.end_edge).cmp(&inclusive(b.end_edge)))
}

/// Formats an interval as explain does, in scan direction.
impl fmt::Display for IntervalRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = (bracket(self.start_edge, '[', '('), bracket(self.end_edge, ']', ')'));
        write!(f, "{open}{}, {}{close}", ValueText(self.start.as_ref()), ValueText(self.end.as_ref()))
    }
}

fn bracket(edge: Edge, inclusive: char, exclusive: char) -> char {
    match edge {
        Edge::Inclusive => inclusive,
        Edge::Exclusive => exclusive,
    }
}

/// A borrowed interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntervalRef<'i> {
    pub start: &'i Value,
    pub start_edge: Edge,
    pub end: &'i Value,
    pub end_edge: Edge,
}

impl<'i> IntervalRef<'i> {
    fn point(value: &'i Value) -> Self {
        Self { start: value, start_edge: Edge::Inclusive, end: value, end_edge: Edge::Inclusive }
    }

    /// The interval from end to start.
    pub fn reversed(self) -> Self {
        Self { start: self.end, start_edge: self.end_edge, end: self.start, end_edge: self.start_edge }
    }
}

/// A union of intervals.
///
/// **Invariant:** ascending; no interval is empty, and no two overlap or touch.
#[derive(Clone, Debug)]
pub(crate) struct Intervals(Held);

#[derive(Clone, Debug)]
enum Held {
    /// Single values. A list of a million values is shared with the filter and takes no memory here.
    Points(Arc<Vec<Value>>),
    /// Any intervals, at least one of which is not a single value.
    Any(Vec<Interval>),
}

impl Intervals {
    /// Wraps intervals that satisfy the invariant.
    fn of(intervals: Vec<Interval>) -> Self {
        if intervals.iter().all(Interval::is_point) {
            return Self::points(Arc::new(intervals.into_iter().map(|interval| interval.start).collect()));
        }
        Self(Held::Any(intervals))
    }

    /// Single values, ascending and distinct.
    pub fn points(values: Arc<Vec<Value>>) -> Self {
        debug_assert!(values.is_sorted_by(|one, other| order::compare(one.as_ref(), other.as_ref()).is_lt()));
        Self(Held::Points(values))
    }

    pub fn full() -> Self {
        Self::of(vec![Interval::full()])
    }

    /// The union of the intervals.
    pub fn union(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|interval| !interval.is_empty());
        // Intervals from a list are sorted already, and a sort would allocate as much memory again.
        if !intervals.is_sorted_by(|one, other| compare_starts(one, other).is_le()) {
            intervals.sort_by(compare_starts);
        }
        intervals.dedup_by(|later, earlier| {
            let is_one = reaches(earlier, later);
            if is_one && compare_ends(earlier, later).is_lt() {
                std::mem::swap(&mut earlier.end, &mut later.end);
                earlier.end_edge = later.end_edge;
            }
            is_one
        });
        Self::of(intervals)
    }

    pub fn intersection(&self, other: &Self) -> Self {
        if self.is_full() {
            return other.clone();
        }
        let (left, right) = match (&self.0, &other.0) {
            (Held::Any(left), Held::Any(right)) => (left, right),
            (Held::Points(values), _) => return Self::of_those_in(values, other),
            (_, Held::Points(values)) => return Self::of_those_in(values, self),
        };
        let mut both = Vec::new();
        let (mut left, mut right) = (left.as_slice(), right.as_slice());
        while let (Some((a, after_a)), Some((b, after_b))) = (left.split_first(), right.split_first()) {
            both.extend(a.intersection(b));
            if compare_ends(a, b).is_le() {
                left = after_a;
            } else {
                right = after_b;
            }
        }
        Self::of(both)
    }

    /// The values that are in all of these; `None` if there are none of these. Pairs are intersected, then pairs of the
    /// results: one after the other, the gaps between ten thousand excluded values would be copied ten thousand times.
    pub fn in_all(mut all: Vec<Self>) -> Option<Self> {
        while all.len() > 1 {
            let mut rest = all.into_iter();
            let mut joined = Vec::with_capacity(rest.len().div_ceil(2));
            while let Some(one) = rest.next() {
                joined.push(match rest.next() {
                    Some(other) => one.intersection(&other),
                    None => one,
                });
            }
            all = joined;
        }
        all.pop()
    }

    /// All values that these intervals do not contain.
    pub fn complement(&self) -> Self {
        let opposite = |edge| if edge == Edge::Inclusive { Edge::Exclusive } else { Edge::Inclusive };
        let mut between = Vec::with_capacity(self.len() + 1);
        let mut gap = Interval::full();
        for interval in self.iter() {
            between.push(Interval { end: interval.start.clone(), end_edge: opposite(interval.start_edge), ..gap });
            gap = Interval { start: interval.end.clone(), start_edge: opposite(interval.end_edge), ..Interval::full() };
        }
        between.push(gap);
        between.retain(|gap| !gap.is_empty());
        Self::of(between)
    }

    /// The single values that are in `other`.
    fn of_those_in(values: &Arc<Vec<Value>>, other: &Self) -> Self {
        if values.iter().all(|value| other.contains(value)) {
            return Self::points(Arc::clone(values));
        }
        Self::points(Arc::new(values.iter().filter(|value| other.contains(value)).cloned().collect()))
    }

    /// The kinds of values that the intervals hold.
    pub fn kinds(&self) -> KeyKinds {
        let of =
            |interval: IntervalRef<'_>| KeyKinds::between(interval.start.as_ref().kind(), interval.end.as_ref().kind());
        self.iter().map(of).fold(KeyKinds::default(), KeyKinds::with)
    }

    pub fn contains(&self, value: &Value) -> bool {
        match &self.0 {
            Held::Points(values) => {
                values.binary_search_by(|point| order::compare(point.as_ref(), value.as_ref())).is_ok()
            }
            Held::Any(intervals) => {
                let is_begun = |interval: &Interval| order::compare(interval.start.as_ref(), value.as_ref()).is_le();
                let after = intervals.partition_point(is_begun);
                // An interval that starts after the value excludes it. Only the last of the others can end after it.
                after.checked_sub(1).is_some_and(|last| intervals[last].contains(value))
            }
        }
    }

    /// The first interval that starts above a value that they do not contain.
    pub fn above(&self, value: &Value) -> Option<IntervalRef<'_>> {
        self.get(self.number_below(value))
    }

    /// The last interval that ends below a value that they do not contain.
    pub fn below(&self, value: &Value) -> Option<IntervalRef<'_>> {
        self.get(self.number_below(value).checked_sub(1)?)
    }

    /// Number of intervals below a value that they do not contain.
    fn number_below(&self, value: &Value) -> usize {
        let is_below = |end: &Value, edge| match order::compare(end.as_ref(), value.as_ref()) {
            Ordering::Less => true,
            Ordering::Equal => edge == Edge::Exclusive,
            Ordering::Greater => false,
        };
        match &self.0 {
            Held::Points(values) => values.partition_point(|point| is_below(point, Edge::Inclusive)),
            Held::Any(intervals) => intervals.partition_point(|interval| is_below(&interval.end, interval.end_edge)),
        }
    }

    /// Whether they contain the same values.
    pub fn are_same(&self, other: &Self) -> bool {
        // Branches of an `$or` share a list beside it.
        if let (Held::Points(own), Held::Points(others)) = (&self.0, &other.0)
            && Arc::ptr_eq(own, others)
        {
            return true;
        }
        let equal = |one: &Value, other: &Value| order::equal(one.as_ref(), other.as_ref());
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|(one, other)| {
                (one.start_edge, one.end_edge) == (other.start_edge, other.end_edge)
                    && equal(one.start, other.start)
                    && equal(one.end, other.end)
            })
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Points(values) => values.len(),
            Held::Any(intervals) => intervals.len(),
        }
    }

    /// The interval at a position.
    pub fn get(&self, position: usize) -> Option<IntervalRef<'_>> {
        match &self.0 {
            Held::Points(values) => values.get(position).map(IntervalRef::point),
            Held::Any(intervals) => intervals.get(position).map(Interval::as_ref),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = IntervalRef<'_>> {
        (0..self.len()).filter_map(|position| self.get(position))
    }

    pub fn into_vec(self) -> Vec<Interval> {
        match self.0 {
            Held::Points(values) => Arc::unwrap_or_clone(values).into_iter().map(Interval::point).collect(),
            Held::Any(intervals) => intervals,
        }
    }

    /// Whether all values are included.
    pub fn is_full(&self) -> bool {
        matches!(
            &self.0,
            Held::Any(intervals)
                if matches!(
                    intervals.as_slice(),
                    [Interval {
                        start: Value::MinKey,
                        start_edge: Edge::Inclusive,
                        end: Value::MaxKey,
                        end_edge: Edge::Inclusive
                    }]
                )
        )
    }

    /// Whether all intervals are single values.
    pub fn is_points(&self) -> bool {
        matches!(self.0, Held::Points(_))
    }

    pub fn is_single_point(&self) -> bool {
        matches!(&self.0, Held::Points(values) if values.len() == 1)
    }
}

/// Whether the later interval starts before the earlier one ends, or touches it.
fn reaches(earlier: &Interval, later: &Interval) -> bool {
    match order::compare(later.start.as_ref(), earlier.end.as_ref()) {
        Ordering::Less => true,
        Ordering::Equal => earlier.end_edge == Edge::Inclusive || later.start_edge == Edge::Inclusive,
        Ordering::Greater => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start: i32, start_edge: Edge, end: i32, end_edge: Edge) -> Interval {
        Interval { start: Value::Int32(start), start_edge, end: Value::Int32(end), end_edge }
    }

    fn print(intervals: &Intervals) -> String {
        intervals.iter().map(|interval| interval.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn unions_merge_what_overlaps_or_touches() {
        let union = Intervals::union(vec![
            interval(5, Edge::Exclusive, 9, Edge::Inclusive),
            interval(1, Edge::Inclusive, 5, Edge::Exclusive),
            interval(0, Edge::Inclusive, 2, Edge::Inclusive),
            interval(9, Edge::Exclusive, 9, Edge::Inclusive),
            Interval::point(Value::Int32(12)),
            Interval::point(Value::Double(12.0)),
        ]);
        assert_eq!(print(&union), "[0, 5) (5, 9] [12, 12]");
        assert!(!union.contains(&Value::Int32(5)));
        assert!(union.contains(&Value::Double(4.5)) && union.contains(&Value::Int64(9)));
        assert!(!union.contains(&Value::Int32(10)) && !union.contains(&Value::MinKey));
    }

    #[test]
    fn several_are_intersected_in_pairs() {
        let excluded = |value: i32| Intervals::points(Arc::new(vec![Value::Int32(value)])).complement();
        let range = Intervals::union(vec![interval(0, Edge::Inclusive, 4, Edge::Exclusive)]);
        let all = vec![excluded(3), excluded(1), range, excluded(9), excluded(2)];
        assert_eq!(Intervals::in_all(all).map(|all| print(&all)).as_deref(), Some("[0, 1) (1, 2) (2, 3) (3, 4)"));
        assert!(Intervals::in_all(Vec::new()).is_none());
    }

    #[test]
    fn a_value_outside_has_neighbours() {
        let union = Intervals::union(vec![
            interval(1, Edge::Inclusive, 3, Edge::Exclusive),
            interval(3, Edge::Exclusive, 5, Edge::Inclusive),
            Interval::point(Value::Int32(8)),
        ]);
        let points = Intervals::points(Arc::new([2, 4].map(Value::Int32).to_vec()));
        let cases = [
            (&union, 0, "", "[1, 3)"),
            (&union, 3, "[1, 3)", "(3, 5]"),
            (&union, 6, "(3, 5]", "[8, 8]"),
            (&union, 9, "[8, 8]", ""),
            (&points, 3, "[2, 2]", "[4, 4]"),
            (&points, 5, "[4, 4]", ""),
        ];
        for (intervals, value, below, above) in cases {
            let said = |found: Option<IntervalRef<'_>>| found.map_or_else(String::new, |interval| interval.to_string());
            let value = Value::Int32(value);
            assert_eq!(said(intervals.below(&value)), below, "below {value:?}");
            assert_eq!(said(intervals.above(&value)), above, "above {value:?}");
        }
    }

    #[test]
    fn intersections_keep_the_narrower_edge() {
        let wide = Intervals::union(vec![
            interval(1, Edge::Inclusive, 5, Edge::Inclusive),
            interval(7, Edge::Inclusive, 9, Edge::Inclusive),
        ]);
        let narrow = Intervals::union(vec![interval(5, Edge::Inclusive, 9, Edge::Exclusive)]);
        assert_eq!(print(&wide.intersection(&narrow)), "[5, 5] [7, 9)");
        assert_eq!(print(&wide.intersection(&Intervals::union(Vec::new()))), "");
        assert!(Intervals::full().intersection(&Intervals::full()).is_full());
    }
}
