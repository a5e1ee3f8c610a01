//! Commands of MongoDB 8.2's mongod that this server lacks: a client that sends one learns that it is not supported,
//! not that it is misspelt. Commands in this server's own table are not listed. Commands that only mongos has, such as
//! `shardCollection`, are unknown to mongod and to this server.
//! Source: MongoDB manual 8.2, "Database Commands".

/// Sorted for the binary search.
const NAMES: &[&str] = &[
    "analyze",
    "analyzeShardKey",
    "checkShardingIndex",
    "cleanupOrphaned",
    "configureQueryAnalyzer",
    "flushRouterConfig",
    "getShardMap",
    "getShardVersion",
    "medianKey",
    "replSetStepUp",
    "shardingState",
    "splitVector",
    "whatsmysni",
];

/// Whether the name is in the list.
pub(crate) fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_halves() {
        assert!(NAMES.is_sorted_by(|one, next| one < next));
        assert!(is_known("medianKey") && !is_known("medianKeys"));
    }
}
