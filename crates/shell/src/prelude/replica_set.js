// `rs`: the replica set.
((shell) => {
  const { printed, demand, demandString } = shell;
  const { MongoshRuntimeError, MongoshInvalidInputError } = shell.errors;

  const mongo = () => shell.database()._mongo;
  const admin = (command) => mongo()._admin(command);
  const configuration = () => {
    try {
      return admin({ replSetGetConfig: 1 }).config;
    } catch (error) {
      if (error.codeName !== "CommandNotFound") throw error;
      const found = mongo().getDB("local").getCollection("system.replset").findOne();
      if (found === null) throw new MongoshRuntimeError("No documents in local.system.replset");
      return found;
    }
  };
  const reconfigure = (change) => {
    const config = configuration();
    change(config);
    config.version += 1;
    return admin({ replSetReconfig: config });
  };
  const nextId = (config) => Math.max(-1, ...config.members.map((member) => member._id)) + 1;
  const find = (config, host) => {
    const at = config.members.findIndex((member) => member.host === host);
    if (at < 0) throw new MongoshInvalidInputError(`[COMMON-10001] Couldn't find ${host} in ${JSON.stringify(config.members.map((member) => member.host))}`);
    return at;
  };

  const rs = {
    initiate: (config = {}) => admin({ replSetInitiate: config }),
    config: configuration,
    conf: configuration,
    status: () => admin({ replSetGetStatus: 1 }),
    hello: () => admin({ hello: 1 }),
    isMaster: () => admin({ isMaster: 1 }),
    reconfig(config, options = {}) {
      demand(config, 0, "ReplicaSet.reconfig");
      const { version, protocolVersion } = configuration();
      return admin({ replSetReconfig: { version: version + 1, protocolVersion, ...config, ...{ version: version + 1 } }, ...options });
    },
    reconfigForPSASet() { shell.unsupported("ReplicaSet.reconfigForPSASet()", "add the member without a vote, then give it one with rs.reconfig()"); },
    add(member, isArbiter) {
      demand(member, 0, "ReplicaSet.add");
      return reconfigure((config) => {
        const made = typeof member === "string" ? { host: member } : { ...member };
        if (isArbiter === true) made.arbiterOnly = true;
        made._id ??= nextId(config);
        config.members.push(made);
      });
    },
    addArb(host) { return rs.add({ host: demandString(host, 0, "ReplicaSet.addArb"), arbiterOnly: true }); },
    remove(host) {
      demandString(host, 0, "ReplicaSet.remove");
      return reconfigure((config) => { config.members.splice(find(config, host), 1); });
    },
    freeze: (seconds) => admin({ replSetFreeze: demand(seconds, 0, "ReplicaSet.freeze") }),
    stepDown: (seconds = 60, catchUpSeconds) => admin({
      replSetStepDown: seconds, ...(catchUpSeconds !== undefined && { secondaryCatchUpPeriodSecs: catchUpSeconds }),
    }),
    syncFrom: (host) => admin({ replSetSyncFrom: demandString(host, 0, "ReplicaSet.syncFrom") }),
    secondaryOk: () => mongo().setSecondaryOk(),
    compareOpTimes(first, second) {
      const order = (a, b) => a.ts.compare(b.ts);
      return first.t === second.t || first.t === undefined ? order(first, second) : Number(first.t) - Number(second.t);
    },
    printReplicationInfo: () => shell.replicationInfo(shell.database(), true),
    printSecondaryReplicationInfo() {
      const { members } = rs.status();
      const primary = members.find((member) => member.state === 1);
      const lines = members.filter((member) => member.state === 2 || member.state === 5).map((member) => {
        const behind = primary === undefined ? undefined : (primary.optimeDate - member.optimeDate) / 1000;
        const lag = behind === undefined ? "no primary to compare with" : `${behind} secs (${(behind / 3600).toFixed(2)} hrs) behind the primary`;
        return `source: ${member.name}\n{\n  syncedTo: '${member.optimeDate}',\n  replLag: '${lag} '\n}`;
      });
      globalThis.print(lines.join("\n---\n"));
    },
    printSlaveReplicationInfo: () => rs.printSecondaryReplicationInfo(),
    help: () => shell.helpOf("ReplicaSet", rs),
  };
  Object.defineProperty(rs, printed, { value: () => "ReplicaSet class connected to " + mongo().getURI() });

  // The window of the oplog.
  shell.replicationInfo = (database, isPrinted) => {
    const local = database._mongo.getDB("local");
    const oplog = local.getCollection("oplog.rs");
    const info = oplog.exists();
    if (info === null) throw new MongoshInvalidInputError("[COMMON-10001] replication not detected. Is this connected to a replica set?");
    const [first] = oplog.find().sort({ $natural: 1 }).limit(1).toArray();
    const [last] = oplog.find().sort({ $natural: -1 }).limit(1).toArray();
    const { size = 0, maxSize = info.options.size } = oplog.stats();
    const seconds = last.ts.t - first.ts.t;
    const time = (entry) => new Date(entry.ts.t * 1000);
    const facts = {
      configuredLogSizeMB: Math.round(Number(maxSize) / 1048576), logSizeMB: Number(maxSize) / 1048576,
      usedMB: Number((Number(size) / 1048576).toFixed(2)), timeDiff: seconds, timeDiffHours: Number((seconds / 3600).toFixed(2)),
      tFirst: time(first).toString(), tLast: time(last).toString(), now: new Date().toString(),
    };
    if (!isPrinted) return facts;
    globalThis.print([
      "actual oplog size", `'${facts.logSizeMB} MB'`, "---", "configured oplog size", `'${facts.configuredLogSizeMB} MB'`, "---",
      "log length start to end", `'${seconds} secs (${facts.timeDiffHours} hrs)'`, "---",
      "oplog first event time", `'${facts.tFirst}'`, "---", "oplog last event time", `'${facts.tLast}'`, "---", "now", `'${facts.now}'`,
    ].join("\n"));
    return undefined;
  };

  shell.globals({ rs });
})
