//! Whether an index yields documents in the order that a sort asks for.

use super::index_bounds::IndexBounds;
use bunko_bson::key_string;
use bunko_expression::SortPattern;
use bunko_store::Direction;

/// The direction in which a scan within the bounds yields the sort's order, if either does.
///
/// The sort's fields must follow each other in the index; fields bound to one value may stand between and before them,
/// and in the sort count for nothing. A field with arrays gives no order: a document's place depends on which of its
/// keys are within the bounds. Nor do keys that were shortened.
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
