//! Projections that only include or exclude fields.

use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};

/// A projection that includes exactly these paths.
pub(crate) fn including(paths: &[Box<str>]) -> DocumentBuf {
    let mut projection = DocumentBuf::new();
    for path in paths {
        projection.append(path, true);
    }
    if paths.iter().all(|path| **path != *"_id") {
        projection.append("_id", false);
    }
    projection
}

/// Whether a projection only includes or excludes fields, by dotted paths.
pub(crate) fn names_fields_alone(projection: DocumentRef<'_>) -> bool {
    projection.iter().all(|element| {
        !element.name.contains('$') && (element.value.is_number() || matches!(element.value, ValueRef::Boolean(_)))
    })
}
