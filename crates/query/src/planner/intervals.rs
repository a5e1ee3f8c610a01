//! Sets of values between edges, in MongoDB's order across types: what bounds are made of.

use bunko_bson::text::ValueText;
use bunko_bson::{Value, order};
use std::cmp::Ordering;
use std::fmt;

/// Whether an interval holds its edge.
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

    /// Every value there is.
    pub fn full() -> Self {
        Self { start: Value::MinKey, start_edge: Edge::Inclusive, end: Value::MaxKey, end_edge: Edge::Inclusive }
    }

    pub fn is_point(&self) -> bool {
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

/// Which interval begins first; one that holds its edge begins before one that does not.
fn compare_starts(a: &Interval, b: &Interval) -> Ordering {
    let exclusive = |edge| edge == Edge::Exclusive;
    order::compare(a.start.as_ref(), b.start.as_ref()).then(exclusive(a.start_edge).cmp(&exclusive(b.start_edge)))
}

fn compare_ends(a: &Interval, b: &Interval) -> Ordering {
    let inclusive = |edge| edge == Edge::Inclusive;
    order::compare(a.end.as_ref(), b.end.as_ref()).then(inclusive(a.end_edge).cmp(&inclusive(b.end_edge)))
}

/// An interval as explain prints it, from its first edge in the direction of the scan.
impl fmt::Display for Interval {
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

/// A union of intervals.
///
/// **Invariant:** ascending, not empty each, and no two overlap or touch.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    intervals: Vec<Interval>,
    /// Whether it is made of single values: asked again and again, of many.
    is_points: bool,
}

impl Intervals {
    /// The invariant holds.
    fn of(intervals: Vec<Interval>) -> Self {
        let is_points = intervals.iter().all(Interval::is_point);
        Self { intervals, is_points }
    }

    pub fn full() -> Self {
        Self::of(vec![Interval::full()])
    }

    /// The union of any intervals.
    pub fn union(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_by(compare_starts);
        let mut merged: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if reaches(last, &interval) => {
                    if compare_ends(last, &interval).is_lt() {
                        (last.end, last.end_edge) = (interval.end, interval.end_edge);
                    }
                }
                _ => merged.push(interval),
            }
        }
        Self::of(merged)
    }

    pub fn intersection(&self, other: &Self) -> Self {
        if self.is_full() {
            return other.clone();
        }
        let mut both = Vec::new();
        let (mut left, mut right) = (self.as_slice(), other.as_slice());
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

    pub fn contains(&self, value: &Value) -> bool {
        let after =
            self.intervals.partition_point(|interval| order::compare(interval.start.as_ref(), value.as_ref()).is_le());
        // An interval that starts behind the value cannot hold it; of the others only the last may end behind it.
        after.checked_sub(1).is_some_and(|last| self.intervals[last].contains(value))
    }

    pub fn as_slice(&self) -> &[Interval] {
        &self.intervals
    }

    pub fn into_vec(self) -> Vec<Interval> {
        self.intervals
    }

    /// Whether every value is in it.
    pub fn is_full(&self) -> bool {
        matches!(
            self.as_slice(),
            [Interval {
                start: Value::MinKey,
                start_edge: Edge::Inclusive,
                end: Value::MaxKey,
                end_edge: Edge::Inclusive
            }]
        )
    }

    /// Whether it is made of single values.
    pub fn is_points(&self) -> bool {
        self.is_points
    }

    pub fn is_single_point(&self) -> bool {
        self.intervals.len() == 1 && self.is_points
    }
}

/// Whether the later interval begins before or where the earlier one ends.
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
        intervals.as_slice().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
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
