//! `$meta`: what a query knows of a document beside its fields. There is nothing of that kind here; it is refused by
//! name.

use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure};

/// What an order may be given by.
const SORTABLE: &[&str] = &["textScore", "randVal", "geoNearDistance", "searchScore", "vectorSearchScore"];
/// What may be shown besides.
const SHOWN: &[&str] = &[
    "geoNearPoint",
    "indexKey",
    "recordId",
    "searchHighlights",
    "searchScoreDetails",
    "searchSequenceToken",
    "sortKey",
    "timeseriesBucketMinTime",
    "timeseriesBucketMaxTime",
];

/// The refusal of `{$meta: argument}` as a projected field.
pub(crate) fn in_projection(argument: ValueRef<'_>) -> Failure {
    match argument {
        ValueRef::String(name) if SORTABLE.contains(&name) || SHOWN.contains(&name) => missing(name),
        ValueRef::String(name) => Failure::new(ErrorCode(17308), format!("Unsupported argument to $meta: {name}")),
        _ => Failure::new(ErrorCode(17307), "$meta only supports string arguments"),
    }
}

/// The refusal of a document in place of a direction.
pub(crate) fn in_sort(document: DocumentRef<'_>) -> Failure {
    let Some(meta) = document.first().filter(|first| first.name == "$meta") else {
        return Failure::new(ErrorCode(17312), "$meta is the only expression supported by $sort right now");
    };
    if document.count() > 1 {
        return Failure::failed_to_parse("Cannot have additional keys in a $meta sort specification");
    }
    match meta.value {
        ValueRef::String(name) if SORTABLE.contains(&name) => missing(name),
        other => Failure::new(ErrorCode(31138), format!("Illegal $meta sort: $meta: {}", ValueText(other))),
    }
}

fn missing(name: &str) -> Failure {
    if name == "textScore" {
        let message = "query requires text score metadata, but it is not available";
        return Failure::new(ErrorCode(40218), message);
    }
    Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, format!("$meta: \"{name}\" is not supported"))
}
