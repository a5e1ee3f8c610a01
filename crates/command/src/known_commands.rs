//! The commands that a mongod of MongoDB 8.2 has for clients: whoever asks for one that is not here hears that it is
//! missing, and not that it misspelt it. Those of the table of commands need not stand here. A mongod does not know the
//! commands that only mongos has, such as `shardCollection`, and neither does this server.
//! Source: MongoDB manual 8.2, "Database Commands".

/// Sorted, so that a name is found by halves.
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

/// Whether MongoDB has a command of that name.
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
