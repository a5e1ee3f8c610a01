// `sh`: sharding is not supported, and each of its methods says so.
((shell) => {
  const METHODS = ["abortReshardCollection", "addShard", "addShardTag", "addShardToZone", "addTagRange", "balancerCollectionStatus",
    "checkMetadataConsistency", "commitReshardCollection", "disableAutoMerger", "disableAutoSplit", "disableBalancing",
    "enableAutoMerger", "enableAutoSplit", "enableBalancing", "enableSharding", "getBalancerState", "getShardedDataDistribution",
    "isBalancerRunning", "isConfigShardEnabled", "listShards", "moveChunk", "moveCollection", "moveRange", "removeRangeFromZone",
    "removeShardFromZone", "removeShardTag", "removeTagRange", "reshardCollection", "setBalancerState", "shardAndDistributeCollection",
    "shardCollection", "splitAt", "splitFind", "startAutoMerger", "startBalancer", "status", "stopAutoMerger", "stopBalancer",
    "unshardCollection", "updateZoneKeyRange", "waitForBalancer", "waitForBalancerOff", "waitForPingChange"];

  shell.refuseSharding = (what) => shell.unsupported(what, "there is no sharding");
  const sh = {};
  for (const name of METHODS) sh[name] = () => shell.refuseSharding(`sh.${name}()`);
  shell.globals({ sh });
})
