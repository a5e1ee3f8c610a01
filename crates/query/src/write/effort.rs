//! Estimates a write's effort before it begins, without a plan.

use crate::id_lookup::is_plain_id;
use bunko_bson::DocumentRef;
use bunko_catalog::{Collection, Index};
use bunko_update::Targets;

/// Estimated records examined by an index search for one document.
const FEW: u64 = 20;
/// A changed record takes about as long as this many examined ones.
const LOOKS_PER_CHANGE: u64 = 10;

/// Estimated effort of a statement that is not for one `_id`, in examined records. `sort` decides which of several
/// documents is meant.
///
/// A plan would give a better estimate, but it would be made twice: most writes are for one document by `_id` or
/// another key, which the names of the filter's fields show.
pub fn records_expected(
    collection: Option<&Collection>,
    filter: DocumentRef<'_>,
    sort: Option<DocumentRef<'_>>,
    targets: Targets,
) -> u64 {
    let Some(collection) = collection else { return 1 };
    let sort = sort.unwrap_or(DocumentRef::EMPTY);
    match targets {
        Targets::Many => collection.count().max(1).saturating_mul(LOOKS_PER_CHANGE),
        Targets::One if collection.indexes().iter().any(|index| decides(index, filter, sort)) => FEW,
        Targets::One => collection.count().max(1),
    }
}

/// Whether the index finds the document without examining many others that the rest of the filter excludes.
fn decides(index: &Index, filter: DocumentRef<'_>, sort: DocumentRef<'_>) -> bool {
    if index.is_hidden || index.partial_filter.is_some() {
        return false;
    }
    let Some(first) = index.fields.first() else { return false };
    let Some(value) = filter.get(&first.path) else { return false };
    let is_point = index.is_unique && index.fields.len() == 1 && is_plain_id(value);
    let mut named = filter.iter().chain(sort.iter());
    is_point || named.all(|part| index.fields.iter().any(|field| field.path == part.name))
}
