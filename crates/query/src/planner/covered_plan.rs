//! Decides which queries an index answers alone: those whose fields its keys give back exactly.
//!
//! `FindQuery::needed` names the fields that the reader of the documents looks at; for a pipeline these are its
//! dependencies. If there are none and keys decide the filter, `KeysAlone` returns an empty document for each record.
//! Otherwise `Covered` makes documents from keys. Types keep both safe: a filter takes only a `WholeDocument`, which
//! only a stage that reads records makes, and a stage that reads none needs a `DecidedByKeys`, which only a `Residual`
//! without conditions gives. A sort reads fields of its own: a scan of documents below it copies `KeptFields::below_sort`,
//! and an index must hold these fields too.

use super::index_bounds::{IndexBounds, names_array_index};
use bunko_matcher::planted::{Fault, active};

/// Positions, in index order, of the fields that hold all of `needed`; `None` if the index does not give all of them
/// back.
pub(super) fn fields(bounds: &IndexBounds, needed: &[Box<str>]) -> Option<Vec<usize>> {
    let index = &bounds.index;
    if bounds.has_long_keys()
        || !index.tells_types
        || !(index.strings.is_bytes() || active(Fault::CollatedCovered))
        || needed.is_empty()
    {
        return None;
    }
    let types = bounds.multikey.types();
    let is_told = |position: usize, path: &str| {
        let kinds = bounds.fields[position].kinds();
        (!bounds.is_multikey_at(position) || active(Fault::ArraysCovered))
            && !names_array_index(path)
            && (types.are_exact_at(position, path, kinds) || active(Fault::TypesCovered))
    };
    let is_needed = |path: &str| needed.iter().any(|needed| **needed == *path);
    let mut found = Vec::with_capacity(needed.len());
    for (position, field) in index.fields.iter().enumerate().filter(|(_, field)| is_needed(&field.path)) {
        // Two fields below one top-level field would have to be combined in the document's order.
        let own_top = top(&field.path);
        if !is_told(position, &field.path)
            || found.iter().any(|other: &usize| top(&index.fields[*other].path) == own_top)
        {
            return None;
        }
        found.push(position);
    }
    (found.len() == needed.len() || active(Fault::HalfCovered) && !found.is_empty()).then_some(found)
}

fn top(path: &str) -> &str {
    path.split_once('.').map_or(path, |(top, _)| top)
}
