//! The commands that MongoDB 8.2 has for clients: whoever asks for one that is not here hears that it is missing, and
//! not that it misspelt it. Those of the table of commands need not stand here.
//! Source: MongoDB manual 8.2, "Database Commands".

/// Sorted, so that a name is found by halves.
const NAMES: &[&str] = &[
    "abortMoveCollection",
    "abortReshardCollection",
    "abortUnshardCollection",
    "addShard",
    "addShardToZone",
    "analyze",
    "analyzeShardKey",
    "appendOplogNote",
    "balancerCollectionStatus",
    "balancerStart",
    "balancerStatus",
    "balancerStop",
    "checkMetadataConsistency",
    "checkShardingIndex",
    "cleanupOrphaned",
    "cleanupReshardCollection",
    "clearJumboFlag",
    "commitReshardCollection",
    "configureQueryAnalyzer",
    "enableSharding",
    "flushRouterConfig",
    "getShardMap",
    "getShardVersion",
    "isdbgrid",
    "listShards",
    "medianKey",
    "mergeAllChunksOnShard",
    "mergeChunks",
    "moveChunk",
    "moveCollection",
    "movePrimary",
    "moveRange",
    "netstat",
    "refineCollectionShardKey",
    "removeShard",
    "removeShardFromZone",
    "replSetResizeOplog",
    "replSetStepUp",
    "reshardCollection",
    "setAllowMigrations",
    "shardCollection",
    "shardingState",
    "split",
    "splitVector",
    "transitionFromDedicatedConfigServer",
    "transitionToDedicatedConfigServer",
    "unmoveCollection",
    "unshardCollection",
    "updateZoneKeyRange",
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
