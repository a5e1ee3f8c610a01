//! How long a write may take, judged before it begins and without a plan.

use crate::id_lookup::{id_lookup, is_plain_id};
use bunko_bson::DocumentRef;
use bunko_catalog::{Collection, Index};
use bunko_update::Targets;

/// Records that a search for one document by an index is taken to look at.
const FEW: u64 = 20;

/// About how many records a statement with that filter must look at.
///
/// Making a plan would say it better, but it would be made twice: most writes are for one document by `_id` or another
/// key, which the names of the filter's fields tell.
pub fn records_expected(collection: Option<&Collection>, filter: DocumentRef<'_>, targets: Targets) -> u64 {
    let Some(collection) = collection else { return 1 };
    if id_lookup(filter).is_some() {
        return 1;
    }
    let is_narrow = targets == Targets::One && collection.indexes().iter().any(|index| decides(index, filter));
    if is_narrow { FEW } else { collection.count().max(1) }
}

/// Whether the index finds a document without passing over many that the rest of the filter refuses.
fn decides(index: &Index, filter: DocumentRef<'_>) -> bool {
    let Some(first) = index.fields.first() else { return false };
    let Some(value) = filter.get(&first.path) else { return false };
    let is_point = index.is_unique && index.fields.len() == 1 && is_plain_id(value);
    is_point || filter.iter().all(|part| index.fields.iter().any(|field| field.path == part.name))
}
