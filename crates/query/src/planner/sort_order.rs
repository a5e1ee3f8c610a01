//! Decides whether an index yields documents in the order of a sort.

use super::index_bounds::IndexBounds;
use bunko_bson::key_string;
use bunko_expression::SortPattern;
use bunko_store::Direction;

/// The scan direction that yields the sort's order within the bounds, if any does.
///
/// The sort's fields must be adjacent in the index. Fields bound to one value may come between and before them, and are
/// ignored in the sort. A field with arrays gives no order, since a document's position depends on which of its keys
/// are within the bounds. Shortened keys give no order either.
pub(crate) fn scan_direction(bounds: &IndexBounds, sort: &SortPattern) -> Option<Direction> {
    if sort.reads_metadata() || bounds.has_long_keys() {
        return None;
    }
    let fields = &bounds.pattern;
    let mut direction = None;
    let mut next = 0;
    for (path, wanted) in sort.parts() {
        let path = path.dotted();
        let is_constant = |position: usize| bounds.is_constant_at(position) && bounds.sorts_at(position);
        if (0..fields.len()).any(|position| fields[position].path == path && is_constant(position)) {
            continue;
        }
        while next < fields.len() && fields[next].path != path && bounds.is_constant_at(next) {
            next += 1;
        }
        let field = fields.get(next).filter(|field| field.path == path && bounds.sorts_at(next))?;
        let needed = scan_towards(field.direction, wanted);
        if direction.is_some_and(|direction| direction != needed) {
            return None;
        }
        direction = Some(needed);
        next += 1;
    }
    Some(direction.unwrap_or(Direction::Forward))
}

fn scan_towards(stored: key_string::Direction, wanted: key_string::Direction) -> Direction {
    if stored == wanted { Direction::Forward } else { Direction::Backward }
}
