//! The stages that MongoDB 8.2 has: one that is not here is called missing, and not unknown. Those of the table of stages
//! need not stand here.
//! Source: MongoDB manual 8.2, "Aggregation Stages".

/// Sorted, so that a name is found by halves.
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

/// Whether MongoDB has a stage of that name.
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
