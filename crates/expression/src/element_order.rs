//! The order of array elements in `$push` and `$sortArray`: by `1` or `-1`, with arrays compared as a whole.

use bunko_bson::key_string::Direction;
use bunko_bson::{StringOrder, ValueRef, number};
use std::cmp::Ordering;

/// How `$sortArray` sorts elements.
pub(crate) enum ElementOrder {
    Whole(Direction),
    /// By dotted paths, the first deciding first.
    Fields(Box<[(Box<str>, Direction)]>),
}

/// The direction that a number stands for; `None` for anything but 1 and -1.
pub fn element_direction(value: ValueRef<'_>) -> Option<Direction> {
    match number::as_i64_exact(value)? {
        1 => Some(Direction::Ascending),
        -1 => Some(Direction::Descending),
        _ => None,
    }
}

/// Compares two values, strings by `strings`; reversed for `Descending`.
pub fn compare_elements(direction: Direction, a: ValueRef<'_>, b: ValueRef<'_>, strings: &StringOrder) -> Ordering {
    let ordering = strings.compare(a, b);
    match direction {
        Direction::Ascending => ordering,
        Direction::Descending => ordering.reverse(),
    }
}

/// Compares two elements field by field; the first field that differs decides.
pub fn compare_fields<P>(
    fields: &[(P, Direction)],
    a: &[ValueRef<'_>],
    b: &[ValueRef<'_>],
    strings: &StringOrder,
) -> Ordering {
    let each = fields.iter().zip(a.iter().zip(b));
    let mut orders = each.map(|((_, direction), (a, b))| compare_elements(*direction, *a, *b, strings));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
