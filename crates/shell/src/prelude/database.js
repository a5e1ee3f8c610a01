// A database: commands, collections, statistics, and the profiler.
((shell) => {
  const { printed, encoded, demand, demandString } = shell;
  const { MongoshRuntimeError, MongoshInvalidInputError } = shell.errors;

  class Database {
    constructor(mongo, name, session) {
      shell.hide(this, { _mongo: mongo, _name: name, _session: session, _collections: new Map() });
    }
    _run(command) { return this._mongo._run(this._name, command, this._session); }
    // As `_run`; returns `undefined` if the command is too long for one message and may be split.
    _sendSized(command) {
      try {
        return this._run(command);
      } catch (error) {
        if (error.isTooLong && command.documents.length > 1) return undefined;
        throw error;
      }
    }
    _explain(command, verbosity) { return this._run({ explain: command, verbosity }); }

    getName() { return this._name; }
    getMongo() { return this._mongo; }
    getSession() { return this._session; }
    toString() { return this._name; }
    toJSON() { return undefined; }
    [printed]() { return this._name; }
    [encoded]() { throw new MongoshRuntimeError("a database is no value of a document: use its name"); }

    getSiblingDB(name) {
      demandString(name, 0, "Database.getSiblingDB");
      if (name === "" || /[/\\. "$\0]/.test(name)) throw new MongoshInvalidInputError(`[COMMON-10001] Invalid database name: ${name}`);
      return this._session === undefined ? this._mongo.getDB(name) : this._session.getDatabase(name);
    }
    getCollection(name) {
      demandString(name, 0, "Database.getCollection");
      if (name === "" || /[$\0]/.test(name)) throw new MongoshInvalidInputError(`[COMMON-10001] Invalid collection name: ${name}`);
      if (!this._collections.has(name)) this._collections.set(name, shell.makeCollection(this.self, name));
      return this._collections.get(name);
    }
    runCommand(command, options = {}) {
      demand(command, 0, "Database.runCommand");
      if (typeof command === "string") return this._run({ [command]: 1, ...options });
      // A document has its options itself.
      shell.demandKnown(options, [], "Database.runCommand");
      return this._run(command);
    }
    adminCommand(command) {
      demand(command, 0, "Database.adminCommand");
      return this._mongo._run("admin", typeof command === "string" ? { [command]: 1 } : command, this._session);
    }
    runCursorCommand(command) { return new shell.RunCommandCursor(this, demand(command, 0, "Database.runCursorCommand")); }
    aggregate(...given) {
      const { pipeline, options } = shell.pipelineOf(given);
      const { explain, ...fields } = options;
      if (explain !== undefined && explain !== false) {
        return this._explain({ aggregate: 1, pipeline, cursor: {}, ...fields }, shell.verbosity(explain));
      }
      return shell.begun(new shell.AggregationCursor(this, 1, pipeline, fields));
    }
    watch(pipeline = [], options = {}) { return shell.watch(this, 1, pipeline, options); }

    _list(filter, options) {
      return new shell.RunCommandCursor(this, { listCollections: 1, filter, ...options }).toArray();
    }
    getCollectionInfos(filter = {}, options = {}) { return this._list(typeof filter === "string" ? { name: filter } : filter, options); }
    getCollectionNames() { return this._list({}, { nameOnly: true, authorizedCollections: true }).map((one) => one.name); }
    createCollection(name, options = {}) {
      demandString(name, 0, "Database.createCollection");
      this._run({ create: name, ...options });
      return { ok: 1 };
    }
    createView(name, source, pipeline, options = {}) {
      demandString(name, 0, "Database.createView");
      demandString(source, 1, "Database.createView");
      demand(pipeline, 2, "Database.createView");
      this._run({ create: name, viewOn: source, pipeline, ...options });
      return { ok: 1 };
    }
    dropDatabase(writeConcern) {
      const { ok } = this._run({ dropDatabase: 1, ...(writeConcern && { writeConcern }) });
      return { ok, dropped: this._name };
    }

    stats(options = {}) { return this._run({ dbStats: 1, ...(typeof options === "number" ? { scale: options } : { scale: 1, ...options }) }); }
    hello() { return this._run({ hello: 1 }); }
    isMaster() { return this._run({ isMaster: 1 }); }
    version() { return this._mongo._admin({ buildInfo: 1 }).version; }
    serverBuildInfo() { return this._mongo._admin({ buildInfo: 1 }); }
    serverStatus(options = {}) { return this._mongo._admin({ serverStatus: 1, ...options }); }
    hostInfo() { return this._mongo._admin({ hostInfo: 1 }); }
    serverCmdLineOpts() { return this._mongo._admin({ getCmdLineOpts: 1 }); }
    listCommands() { return this._run({ listCommands: 1 }).commands; }
    getLastError() { return this.getLastErrorObj().err; }
    getLastErrorObj() { return this._run({ getlasterror: 1 }); }
    rotateCertificates(message) { return this._mongo._admin({ rotateCertificates: 1, ...(message && { message }) }); }
    shutdownServer(options = {}) {
      try {
        return this._mongo._admin({ shutdown: 1, ...options });
      } catch (error) {
        if (error instanceof shell.errors.MongoNetworkError) return undefined;
        throw error;
      }
    }
    fsyncLock() { return this._mongo._admin({ fsync: 1, lock: true }); }
    fsyncUnlock() { return this._mongo._admin({ fsyncUnlock: 1 }); }
    currentOp(options = {}) {
      const { $all, $ownOps, ...filter } = typeof options === "boolean" ? { $all: options } : options;
      const pipeline = [{ $currentOp: { allUsers: !$ownOps, idleConnections: $all === true } }, { $match: filter }];
      return { inprog: this.getSiblingDB("admin").aggregate(pipeline).toArray(), ok: 1 };
    }
    killOp(operation) { return this._mongo._admin({ killOp: 1, op: demand(operation, 0, "Database.killOp") }); }
    getFreeMonitoringStatus() { return shell.unsupported("Database.getFreeMonitoringStatus()"); }
    getLogComponents() { return this._mongo._admin({ getParameter: 1, logComponentVerbosity: 1 }).logComponentVerbosity; }
    setLogLevel(level, component) {
      const verbosity = (component ?? "").split(".").filter((part) => part !== "").reduceRight((inner, part) => ({ [part]: inner }), { verbosity: level });
      return this._mongo._admin({ setParameter: 1, logComponentVerbosity: verbosity });
    }
    commandHelp(name) { return this._run({ [demandString(name, 0, "Database.commandHelp")]: 1, help: true }).help; }

    getProfilingStatus() { return this._run({ profile: -1 }); }
    setProfilingLevel(level, options = {}) {
      const fields = typeof options === "number" ? { slowms: options } : options;
      return this._run({ profile: demand(level, 0, "Database.setProfilingLevel"), ...fields });
    }
    printCollectionStats(scale = 1) {
      for (const name of this.getCollectionNames()) {
        globalThis.print(name);
        globalThis.printjson(this.getCollection(name).stats(scale));
        globalThis.print("---");
      }
    }
    printReplicationInfo() { return shell.replicationInfo(this, true); }
    getReplicationInfo() { return shell.replicationInfo(this, false); }
    printSecondaryReplicationInfo() { return globalThis.rs.printSecondaryReplicationInfo(); }
    printShardingStatus() { return shell.refuseSharding("Database.printShardingStatus()"); }
    help() { return shell.helpOf("Database", this); }
  }

  shell.Database = Database;
  shell.makeDatabase = (mongo, name, session) => {
    const database = new Database(mongo, name, session);
    const reachable = shell.reachable(database, (target, child) => target.getCollection(child));
    return shell.hide(database, { self: reachable }) && reachable;
  };
})
