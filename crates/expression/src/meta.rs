//! `$meta`: its names, and the check that the pipeline offers that metadata.

use crate::ParseScope;
use crate::metadata::Offered;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// A name of `$meta`.
struct Known {
    name: &'static str,
    source: Source,
    place: AllowedIn,
}

/// The source of the value.
#[derive(Clone, Copy)]
enum Source {
    /// An earlier stage must make the metadata; the text names the metadata in messages.
    Stage(Offered, &'static str),
    /// The plan of the query or a `$sort` knows the metadata.
    Plan(Offered),
    /// A search makes the metadata; without a search the value is missing.
    SearchNode,
    /// Not supported yet.
    Unsupported,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowedIn {
    Anywhere,
    NotInSort,
}

/// The names. Source: MongoDB manual 8.2, "$meta (aggregation)".
const NAMES: &[Known] = &[
    Known {
        name: "geoNearDistance",
        source: Source::Stage(Offered::NEAR, "$geoNear distance"),
        place: AllowedIn::Anywhere,
    },
    Known { name: "geoNearPoint", source: Source::Stage(Offered::NEAR, "$geoNear point"), place: AllowedIn::NotInSort },
    Known { name: "indexKey", source: Source::Plan(Offered::INDEX_KEY), place: AllowedIn::NotInSort },
    // `$sample` uses it only internally: an expression always reads it as missing.
    Known { name: "randVal", source: Source::SearchNode, place: AllowedIn::Anywhere },
    Known { name: "recordId", source: Source::Plan(Offered::RECORD_ID), place: AllowedIn::NotInSort },
    Known { name: "score", source: Source::Stage(Offered::SCORE, "score"), place: AllowedIn::Anywhere },
    Known {
        name: "scoreDetails",
        source: Source::Stage(Offered::SCORE_DETAILS, "scoreDetails"),
        place: AllowedIn::NotInSort,
    },
    Known { name: "searchHighlights", source: Source::SearchNode, place: AllowedIn::NotInSort },
    Known { name: "searchScore", source: Source::SearchNode, place: AllowedIn::Anywhere },
    Known { name: "searchScoreDetails", source: Source::SearchNode, place: AllowedIn::NotInSort },
    Known { name: "searchSequenceToken", source: Source::SearchNode, place: AllowedIn::NotInSort },
    Known { name: "sortKey", source: Source::Plan(Offered::SORT_KEY), place: AllowedIn::NotInSort },
    Known { name: "textScore", source: Source::Stage(Offered::TEXT, "text score"), place: AllowedIn::Anywhere },
    Known { name: "timeseriesBucketMaxTime", source: Source::Unsupported, place: AllowedIn::NotInSort },
    Known { name: "timeseriesBucketMinTime", source: Source::Unsupported, place: AllowedIn::NotInSort },
    Known { name: "vectorSearchScore", source: Source::SearchNode, place: AllowedIn::Anywhere },
];

/// Reads the argument of `$meta`; returns the name of the metadata.
/// # Errors
/// 17307 and 17308 for an invalid name, 40218 where no earlier stage makes the metadata.
pub(crate) fn parse(argument: ValueRef<'_>, scope: &ParseScope) -> Result<&'static str> {
    let ValueRef::String(name) = argument else {
        return Err(Failure::new(ErrorCode(17307), "$meta only supports string arguments"));
    };
    let known = NAMES.iter().find(|known| known.name == name);
    let unknown = || Failure::new(ErrorCode(17308), format!("Unsupported argument to $meta: {name}"));
    known.ok_or_else(unknown)?.wanted(scope)
}

/// Reads `{$meta: name}` in place of a sort direction.
/// # Errors
/// 17312 and 31138 for another document, `FailedToParse` for additional fields; 40218 as [`parse`].
pub(crate) fn parse_in_sort(document: DocumentRef<'_>, scope: &ParseScope) -> Result<&'static str> {
    let Some(meta) = document.first().filter(|first| first.name == "$meta") else {
        return Err(Failure::new(ErrorCode(17312), "$meta is the only expression supported by $sort right now"));
    };
    if document.count() > 1 {
        return Err(Failure::failed_to_parse("Cannot have additional keys in a $meta sort specification"));
    }
    let known =
        NAMES.iter().find(|known| known.place == AllowedIn::Anywhere && meta.value.as_str() == Some(known.name));
    let illegal = || Failure::new(ErrorCode(31138), format!("Illegal $meta sort: $meta: {}", ValueText(meta.value)));
    known.ok_or_else(illegal)?.wanted(scope)
}

impl Known {
    fn wanted(&self, scope: &ParseScope) -> Result<&'static str> {
        match self.source {
            Source::Unsupported => {
                let message = format!("$meta: \"{}\" is not supported", self.name);
                return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
            }
            Source::Stage(needed, called) if !scope.offers(needed) => {
                let message = format!("query requires {called} metadata, but it is not available");
                return Err(Failure::new(ErrorCode(40218), message));
            }
            Source::Plan(needed) if !scope.offers(needed) => {
                let message =
                    format!("$meta: \"{}\" is not supported yet where nothing before it tells that", self.name);
                return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
            }
            Source::Plan(Offered::SORT_KEY) if scope.has_collation() => {
                let message = "$meta: \"sortKey\" is not supported yet together with a collation";
                return Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message));
            }
            Source::Stage(needed, _) | Source::Plan(needed) => scope.want_metadata(needed),
            // After a search the metadata is available; otherwise the value is missing, which is no error.
            Source::SearchNode => scope.want_metadata(Offered::NONE),
        }
        Ok(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_once_and_in_order() {
        assert!(NAMES.is_sorted_by(|one, next| one.name < next.name));
    }

    #[test]
    fn metadata_that_no_stage_offers_cannot_be_read() {
        let scope = ParseScope::default();
        let code = |name: &str| parse(ValueRef::String(name), &scope).map_err(|failure| failure.code().0);
        assert_eq!(code("textScore"), Err(40218));
        assert_eq!(code("searchScore"), Ok("searchScore"));
        assert_eq!(code("recordId"), Err(115));
        assert_eq!(code("nothing"), Err(17308));
    }
}
