// What two replies of serverStatus, one after the other, say about the time between them.

const OPERATIONS = ["query", "insert", "update", "delete", "getmore", "command"];

const secondsBetween = (before, now) => (Number(now.uptimeMillis) - Number(before.uptimeMillis)) / 1000;

/// A counter's rate per second; null if the server has started again between the two.
const rate = (before, now, value) => {
  const elapsed = secondsBetween(before, now);
  const grown = value(now) - value(before);
  return elapsed > 0 && grown >= 0 ? grown / elapsed : null;
};

/// Buckets `[lower bound in µs, count]` of a histogram, in either form in which serverStatus has them.
const buckets = (histogram) =>
  Array.isArray(histogram)
    ? histogram.map(({ micros, count }) => [Number(micros), Number(count)])
    : Object.entries(histogram ?? {}).map(([micros, count]) => [Number(micros), Number(count)]);

/// The lower bound of the bucket in which that share of the new durations ends, in µs; null if there are none.
const percentile = (before, now, share) => {
  const earlier = new Map(buckets(before));
  const grown = buckets(now)
    .map(([micros, count]) => [micros, count - (earlier.get(micros) ?? 0)])
    .filter(([, count]) => count > 0)
    .sort(([one], [other]) => one - other);
  const total = grown.reduce((sum, [, count]) => sum + count, 0);
  let left = total * share;
  for (const [micros, count] of grown) {
    left -= count;
    if (left <= 1e-9) return micros;
  }
  return null;
};

const sum = (object, names) => names.reduce((total, name) => total + Number(object?.[name] ?? 0), 0);

/// Bytes of the engines' caches.
const cacheBytes = (status) => sum(status.lsm?.cache, ["documentsBytes", "logBytes", "treesBytes"]);

/// The share of lookups that the cache answered since the earlier reply; null if there were none.
const hitShare = (before, now) => {
  const grown = (name) => Number(now.lsm?.cache?.[name] ?? 0) - Number(before.lsm?.cache?.[name] ?? 0);
  const [hits, misses] = [grown("hits"), grown("misses")];
  return hits + misses > 0 ? (100 * hits) / (hits + misses) : null;
};

/// The figures of one moment, by name.
export const figures = (before, now) => {
  const { bunko } = now;
  const { memory, disk } = bunko;
  const figures = { at: Date.now() };
  for (const name of OPERATIONS) figures[name] = rate(before, now, (status) => Number(status.opcounters[name]));
  for (const kind of ["reads", "writes", "commands"]) {
    for (const [name, share] of [["p50", 0.5], ["p99", 0.99]]) {
      figures[`${kind}-${name}`] = percentile(before.opLatencies[kind].histogram, now.opLatencies[kind].histogram, share);
    }
  }
  const [held, messages, replies] = [memory.heldBytes, memory.messageBytes, memory.replyBytes].map(Number);
  return {
    ...figures,
    resident: Number(now.mem.resident) * 1024 * 1024,
    cache: cacheBytes(now),
    messages,
    replies,
    work: Math.max(0, held - messages - replies),
    cursors: Number(bunko.idleCursors.heldBytes),
    unflushed: Number(bunko.unflushedBytes),
    memoryLimit: Number(memory.limitBytes),
    cacheLimit: Number(now.lsm?.cache?.maximumBytes ?? 0),
    hits: hitShare(before, now),
    diskFree: Number(disk?.freeBytes ?? NaN),
    diskTotal: Number(disk?.totalBytes ?? NaN),
    reserveInUse: bunko.diskReserve?.isInUse === true,
    records: rate(before, now, (status) => Number(status.bunko.log.appendedRecords)),
    syncs: rate(before, now, (status) => Number(status.bunko.log.syncedGroups)),
    "sync-p99": percentile(before.bunko.log.syncLatencies?.histogram, bunko.log.syncLatencies?.histogram, 0.99),
    segments: Number(bunko.log.segments),
    stalled: rate(before, now, (status) => Number(status.bunko.stalledWrites)),
    checkpoints: Number(bunko.checkpoints.count),
    checkpointMillis: Number(bunko.checkpoints.lastMillis),
    connections: Number(now.connections.current),
    bytesIn: rate(before, now, (status) => Number(status.network.bytesIn)),
    bytesOut: rate(before, now, (status) => Number(status.network.bytesOut)),
  };
};

/// The members of a set, and how far each is behind the primary, in seconds.
export const lags = (set) => {
  const at = (member) => Date.parse(member.optimeDate?.$date ?? "");
  const primary = set.members.find((member) => member.stateStr === "PRIMARY");
  return set.members.map((member) => ({
    name: member.name,
    state: member.stateStr,
    seconds: primary && Number.isFinite(at(member)) ? Math.max(0, (at(primary) - at(member)) / 1000) : null,
  }));
};
