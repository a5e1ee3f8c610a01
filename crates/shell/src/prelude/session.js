// Sessions and transactions of clients.
((shell) => {
  const { printed, encoded } = shell;
  const { MongoTransactionError, MongoExpiredSessionError, MongoshRuntimeError } = shell.errors;
  // Milliseconds for which `withTransaction` begins again. Source: MongoDB's convenient API for transactions.
  const TRY_AGAIN_MS = 120000;

  const OF_TRANSACTION = ["readConcern", "writeConcern", "readPreference", "maxCommitTimeMS"];
  const transactionOptions = (options, method) => {
    shell.demandKnown(options, OF_TRANSACTION, method);
    const { readPreference = "primary" } = options;
    const mode = readPreference?.mode ?? readPreference;
    if (mode !== "primary") throw new MongoTransactionError(`Read preference in a transaction must be primary, not: ${String(mode)}`);
    return options;
  };

  class Session {
    constructor(mongo, options) {
      const { causalConsistency, defaultTransactionOptions = {}, ...more } = options;
      const defaults = transactionOptions({ ...defaultTransactionOptions, ...more }, "Mongo.startSession");
      shell.hide(this, {
        _mongo: mongo, _options: options, id: { id: new shell.types.UUID() }, _databases: new Map(), _number: 0n,
        // `none`, `starting`, `running`, `committed` or `aborted`.
        _state: "none", _defaults: defaults, _transactionOptions: {}, _operationTime: undefined, _clusterTime: undefined, _hasEnded: false,
      });
      mongo._sessions.add(this);
    }
    getDatabase(name) {
      shell.demandString(name, 0, "Session.getDatabase");
      if (!this._databases.has(name)) this._databases.set(name, shell.makeDatabase(this._mongo, name, this));
      return this._databases.get(name);
    }
    getClient() { return this._mongo; }
    getSessionId() { return this.id; }
    getOptions() { return this._options; }
    hasEnded() { return this._hasEnded; }
    getOperationTime() { return this._operationTime; }
    getClusterTime() { return this._clusterTime; }
    advanceOperationTime(time) { this._operationTime = time; }
    advanceClusterTime(time) { this._clusterTime = time; }

    startTransaction(options = {}) {
      if (this._state === "starting" || this._state === "running") throw new MongoTransactionError("Transaction already in progress");
      const chosen = transactionOptions({ ...this._defaults, ...options }, "Session.startTransaction");
      this._number += 1n;
      this._state = "starting";
      this._transactionOptions = chosen;
    }
    commitTransaction() { this._finish("commitTransaction", "committed"); }
    abortTransaction() {
      if (this._state === "committed") throw new MongoTransactionError("Cannot call abortTransaction after calling commitTransaction");
      if (this._state === "aborted") throw new MongoTransactionError("Cannot call abortTransaction twice");
      this._finish("abortTransaction", "aborted");
    }
    _finish(command, state) {
      if (this._state === "none") throw new MongoTransactionError("No transaction started");
      if (command === "commitTransaction" && this._state === "aborted") {
        throw new MongoTransactionError("Cannot call commitTransaction after calling abortTransaction");
      }
      const before = this._state;
      this._state = state;
      // The server knows nothing of a transaction without a command.
      if (before === "starting") return;
      const { writeConcern, maxCommitTimeMS } = this._transactionOptions;
      const limit = command === "commitTransaction" && maxCommitTimeMS !== undefined ? { maxTimeMS: maxCommitTimeMS } : {};
      this._mongo._run("admin", { [command]: 1, ...this._fields(), ...limit, ...(writeConcern && { writeConcern }) }, this);
    }
    withTransaction(work, options = {}) {
      const end = Date.now() + TRY_AGAIN_MS;
      for (;;) {
        this.startTransaction(options);
        try {
          const result = work(this);
          if (typeof result?.then === "function") return this._awaited(result, work, { options, end });
          this._commitUntil(end);
          return result;
        } catch (error) {
          this._giveUp(error, end);
        }
      }
    }
    // As `withTransaction`, for asynchronous work whose first attempt has begun.
    async _awaited(first, work, { options, end }) {
      for (let attempt = first; ;) {
        try {
          const value = await attempt;
          this._commitUntil(end);
          return value;
        } catch (error) {
          this._giveUp(error, end);
        }
        this.startTransaction(options);
        attempt = (async () => work(this))();
      }
    }
    // Aborts the transaction, and throws the error unless a repetition may succeed.
    _giveUp(error, end) {
      this._abandon();
      if (!error?.hasErrorLabel?.("TransientTransactionError") || Date.now() > end) throw error;
    }
    _commitUntil(end) {
      for (;;) {
        if (this._state !== "starting" && this._state !== "running" && this._state !== "committed") return;
        try { return void this.commitTransaction(); } catch (error) {
          if (!error.hasErrorLabel?.("UnknownTransactionCommitResult") || Date.now() > end) throw error;
        }
      }
    }
    _abandon() {
      if (this._state !== "starting" && this._state !== "running") return;
      try { this.abortTransaction(); } catch { /* the server aborts it by itself */ }
    }
    endSession() {
      if (this._hasEnded) return;
      this._abandon();
      this._hasEnded = true;
      this._mongo._sessions.delete(this);
      this._mongo._send("admin", { endSessions: [this.id] });
    }

    _fields() {
      return { lsid: this.id, txnNumber: new shell.types.Long(this._number), autocommit: false };
    }
    // Adds the session's fields to a command.
    _enter(command, name) {
      if (this._hasEnded) throw new MongoExpiredSessionError("Use of expired sessions is not permitted");
      command.lsid = this.id;
      const isEnd = name === "commitTransaction" || name === "abortTransaction";
      if (isEnd || this._state === "starting" || this._state === "running") {
        Object.assign(command, this._fields());
        delete command.writeConcern;
        if (isEnd && this._transactionOptions.writeConcern) command.writeConcern = this._transactionOptions.writeConcern;
        if (this._state === "starting") {
          command.startTransaction = true;
          if (this._transactionOptions.readConcern) command.readConcern = this._transactionOptions.readConcern;
          this._state = "running";
        }
        return;
      }
      this._state = "none";
      if (this._options.causalConsistency !== false && this._operationTime !== undefined && shell.isCausalRead(name)) {
        command.readConcern = { ...command.readConcern, afterClusterTime: this._operationTime };
      }
      if (this._mongo._retriesWrites && this._mongo._hello.setName !== undefined && shell.isRetryable(name, command)) {
        this._number += 1n;
        command.txnNumber = new shell.types.Long(this._number);
      }
    }
    _leave(reply) {
      if (reply.operationTime !== undefined) this._operationTime = reply.operationTime;
      if (reply.$clusterTime !== undefined) this._clusterTime = reply.$clusterTime;
    }
    [printed](print) { return `{ id: ${print(this.id.id)} }`; }
    [encoded]() { throw new MongoshRuntimeError("a session is no value of a document"); }
  }
  shell.Session = Session;

  // At the end of the shell: the server need not wait for the sessions' timeout.
  shell.endSessions = () => {
    for (const mongo of shell.connections) {
      // A lost connection is not opened again for this, and a server that hangs is not waited for.
      if (!shell.host.leave(mongo._link)) continue;
      try {
        for (const session of mongo._sessions) if (shell.host.leave(mongo._link)) session._abandon();
        const ids = [{ id: mongo._session }, ...Array.from(mongo._sessions, (session) => session.id)];
        if (mongo._hello.logicalSessionTimeoutMinutes === undefined || !shell.host.leave(mongo._link)) continue;
        mongo._send("admin", { endSessions: ids });
      } catch { /* the connection is lost already */ }
    }
  };
})
