// Connections to deployments: `Mongo`, and the way of every command to the server.
((shell) => {
  const { host, printed, encoded } = shell;
  const { MongoshRuntimeError } = shell.errors;

  // Commands that a secondary serves, and that may be sent again after a lost connection.
  const READS = new Set(["aggregate", "collStats", "count", "dbStats", "distinct", "explain", "find", "listCollections",
    "listDatabases", "listIndexes", "hello", "ping", "buildInfo", "serverStatus", "connectionStatus"]);
  // Commands that take the write concern of the connection string.
  const WRITES = new Set(["aggregate", "insert", "update", "delete", "findAndModify", "create", "createIndexes", "drop",
    "dropDatabase", "dropIndexes", "collMod", "renameCollection", "createUser", "updateUser", "dropUser", "createRole",
    "updateRole", "dropRole", "mapReduce", "bulkWrite"]);
  // Commands that take a read concern.
  const READ_CONCERNS = new Set(["aggregate", "count", "distinct", "find"]);
  // Commands whose repetition the server recognises by their number.
  const RETRYABLE = new Set(["insert", "update", "delete", "findAndModify"]);

  shell.isCausalRead = (name) => READ_CONCERNS.has(name);
  const isRetryable = (name, command) => RETRYABLE.has(name)
    && !(command.updates ?? []).some((update) => update.multi) && !(command.deletes ?? []).some((one) => one.limit === 0);
  shell.isWriting = (pipeline) => Array.isArray(pipeline) && pipeline.some((stage) => stage?.$out !== undefined || stage?.$merge !== undefined);

  // All connections of the shell.
  shell.connections = new Set();

  const READ_MODES = ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"];
  shell.demandReadMode = (mode) => {
    if (READ_MODES.includes(mode)) return mode;
    throw new shell.errors.MongoInvalidArgumentError(`Invalid read preference mode ${JSON.stringify(mode)}`);
  };

  // A write concern as the driver shows it, with the older names beside the newer ones.
  class WriteConcern {
    constructor({ w, wtimeout, j }) {
      if (w !== undefined) this.w = w;
      if (wtimeout !== undefined) Object.assign(this, { wtimeout, wtimeoutMS: wtimeout });
      if (j !== undefined) Object.assign(this, { j, journal: j });
    }
  }

  class Mongo {
    // `link` is the host's number of the connection.
    constructor(uri = shell.ownUri ?? "mongodb://localhost:27017", ...unsupported) {
      if (unsupported.some((option) => option !== undefined)) {
        throw new shell.errors.MongoshUnimplementedError("Mongo(): options and field level encryption are not supported; the connection string has the options");
      }
      const text = uri instanceof Mongo ? uri._uri : String(uri);
      shell.hide(this, { _uri: /^mongodb(\+srv)?:\/\//.test(text) ? text : `mongodb://${text}` });
      shell.hide(this, { _link: shell.ask(() => host.connect(this._uri)), _databases: new Map(), _transactionNumber: 0n });
      shell.hide(this, { _session: new shell.types.UUID(), _sessions: new Set() });
      const facts = this._facts;
      shell.hide(this, { _readPreference: facts.readPreference, _writeConcern: facts.writeConcern,
        _readConcern: facts.readConcern, _retriesWrites: facts.retriesWrites, _retriesReads: facts.retriesReads });
      shell.hide(this, { _defaultDatabase: facts.database ?? "test" });
      shell.connections.add(this);
    }

    // What the host knows of the connection, which may have been opened anew.
    get _facts() {
      const generation = host.generation(this._link);
      if (this._known?.generation !== generation) shell.hide(this, { _known: { generation, ...host.facts(this._link) } });
      return this._known;
    }
    get _hello() { return this._facts.hello; }

    getDB(name) {
      shell.demandString(name, 0, "Mongo.getDB");
      if (!this._databases.has(name)) this._databases.set(name, shell.makeDatabase(this, name));
      return this._databases.get(name);
    }
    getURI() { return this._facts.uri; }
    getDBs(options) { return this._admin({ listDatabases: 1, ...options }); }
    getDBNames() { return this.getDBs({ nameOnly: true }).databases.map((database) => database.name); }
    getReadPrefMode() { return this._readPreference?.mode ?? "primary"; }
    getReadPref() { return this._readPreference ?? { mode: "primary" }; }
    setReadPref(mode, tags, hedge) {
      const preference = typeof mode === "string" ? { mode } : mode;
      shell.demandReadMode(preference?.mode);
      this._readPreference = { ...preference, ...(tags && { tags }), ...(hedge && { hedge }) };
    }
    getReadConcern() { return this._readConcern?.level; }
    setSecondaryOk() {
      shell.warn('DeprecationWarning: .setSecondaryOk() is deprecated. Use .setReadPref("primaryPreferred") instead');
      host.write(`Setting read preference from "${this.getReadPrefMode()}" to "primaryPreferred"\n`);
      this.setReadPref("primaryPreferred");
    }
    setReadConcern(level) { this._readConcern = { level }; }
    getReadPrefTagSet() { return this._readPreference?.tags; }
    getWriteConcern() { return this._writeConcern && new WriteConcern(this._writeConcern); }
    setWriteConcern(concern, wtimeout, j) {
      this._writeConcern = typeof concern === "object" ? concern
        : { w: concern, ...(wtimeout !== undefined && { wtimeout }), ...(j !== undefined && { j }) };
    }
    startSession(options) { return new shell.Session(this, options ?? {}); }
    watch(pipeline = [], options = {}) { return shell.watch(this.getDB("admin"), 1, pipeline, options, { allChangesForCluster: true }); }
    setCausalConsistency() { shell.unsupported("Mongo.setCausalConsistency()", "sessions have the option causalConsistency"); }
    close() { host.disconnect(this._link); }
    [printed]() { return this.getURI(); }
    [encoded]() { throw new MongoshRuntimeError("a connection is no value of a document"); }

    _admin(command) { return this._run("admin", command); }

    // Runs a command; throws the server's error.
    _run(database, command, session) {
      const reply = this._send(database, command, session);
      if (reply.ok !== 1 && reply.ok !== true) throw labelled(shell.serverError(reply), reply);
      return reply;
    }

    // Runs a command and returns the reply, whatever it says.
    _send(database, command, session) {
      const name = Object.keys(command)[0];
      const sent = { ...command };
      if (session !== undefined) session._enter(sent, name);
      else this._enter(sent, name);
      const inTransaction = sent.autocommit === false;
      const isRead = READS.has(name) && !shell.isWriting(command.pipeline);
      if (this._readPreference !== undefined && this._readPreference.mode !== "primary" && isRead && !inTransaction) {
        sent.$readPreference ??= this._readPreference;
      }
      if (this._writeConcern !== undefined && WRITES.has(name) && !isRead && !inTransaction) sent.writeConcern ??= this._writeConcern;
      if (this._readConcern !== undefined && READ_CONCERNS.has(name) && !inTransaction) sent.readConcern ??= this._readConcern;
      const mayRepeat = !inTransaction && (isRead ? this._retriesReads : sent.txnNumber !== undefined);
      const reply = shell.ask(() => host.command(this._link, database, sent, mayRepeat));
      session?._leave(reply);
      return reply;
    }

    // The fields with which the server knows what this shell runs, and kills it at Ctrl-C.
    _enter(command, name) {
      if (this._hello.logicalSessionTimeoutMinutes === undefined || command.lsid !== undefined) return;
      command.lsid = { id: this._session };
      if (this._retriesWrites && this._hello.setName !== undefined && isRetryable(name, command)
        && command.writeConcern?.w !== 0) {
        this._transactionNumber += 1n;
        command.txnNumber = new shell.types.Long(this._transactionNumber);
      }
    }
  }
  shell.Mongo = Mongo;
  shell.isRetryable = isRetryable;

  const labelled = (error, reply) => {
    const labels = reply.errorLabels ?? [];
    return shell.hide(error, { hasErrorLabel: (label) => labels.includes(label) });
  };
  shell.labelled = labelled;

  // Calls the host; a failed connection becomes an error of the driver's kind.
  shell.ask = (call) => {
    const answer = call();
    if (Array.isArray(answer)) throw shell.connectionError(answer);
    return answer;
  };
  shell.unsupported = (what, advice) => {
    throw new shell.errors.MongoshUnimplementedError(`${what} is not supported${advice ? `: ${advice}` : ""}`);
  };

  shell.globals({
    Mongo: shell.callable(Mongo),
    connect(uri, user, password) {
      shell.demandString(uri, 0, "connect");
      const mongo = new Mongo(uri);
      const database = mongo.getDB(mongo._defaultDatabase);
      if (user !== undefined) database.auth(user, password);
      return database;
    },
  });
})
