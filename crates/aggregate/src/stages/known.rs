//! Stages of MongoDB 8.2 beyond the table of stages. They are reported as not supported instead of unknown.
//! Source: MongoDB manual 8.2, "Aggregation Stages".

/// Sorted for binary search.
const NAMES: &[&str] = &[
    "$changeStream",
    "$changeStreamSplitLargeEvent",
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
    "$searchBeta",
    "$shardedDataDistribution",
];

/// Whether the list has a stage with that name.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_halves() {
        assert!(NAMES.is_sorted_by(|one, next| one < next));
        assert!(is_known("$changeStream") && !is_known("$lookdown"));
    }
}
