// Cursors: of finds, of pipelines, of commands, and change streams.
((shell) => {
  const { printed, encoded, result } = shell;
  const { MongoshRuntimeError, MongoCursorExhaustedError, MongoInvalidArgumentError } = shell.errors;
  // Documents that `it` shows.
  shell.batchSize = 20;

  // Documents of a server's cursor, batch by batch.
  class Cursor {
    constructor(mongo, database, session) {
      shell.hide(this, {
        _mongo: mongo, _database: database, _session: session, _batch: [], _at: 0, _id: undefined, _name: undefined,
        _transform: undefined, _isClosed: false, _batchSize: undefined, _more: {}, _resumeToken: undefined,
      });
    }
    // The command that opens the cursor; another kind of cursor says which.
    _command() { throw new MongoshRuntimeError("this cursor has no command"); }

    _open() {
      if (this._id !== undefined) return;
      this._adopt(this._mongo._run(this._database, this._command(), this._session));
    }
    _adopt(reply) {
      const { id, ns, firstBatch, nextBatch, postBatchResumeToken } = reply.cursor;
      const at = ns.indexOf(".");
      [this._cursorDatabase, this._name] = [ns.slice(0, at), ns.slice(at + 1)];
      this._id = BigInt(String(id));
      this._batch = firstBatch ?? nextBatch;
      this._at = 0;
      this._resumeToken = postBatchResumeToken ?? this._resumeToken;
    }
    _fetch() {
      const size = this._batchSize > 0 ? { batchSize: this._batchSize } : {};
      const command = { getMore: new shell.types.Long(this._id), collection: this._name, ...size, ...this._more };
      this._adopt(this._mongo._run(this._cursorDatabase, command, this._session));
    }
    // Whether the batch has one more document; asks the server at most `rounds` times.
    _has(rounds = Infinity) {
      if (this._isClosed) return false;
      this._open();
      for (let round = 0; this._at >= this._batch.length; round++) {
        if (this._id === 0n || round >= rounds) return false;
        this._fetch();
      }
      return true;
    }
    _take() {
      const document = this._batch[this._at++];
      return this._transform === undefined ? document : this._transform(document);
    }

    hasNext() { return this._has(); }
    tryNext() { return this._has(1) ? this._take() : null; }
    next() {
      if (this._isClosed) throw new MongoCursorExhaustedError("Cursor is exhausted");
      return this._has() ? this._take() : null;
    }
    toArray() {
      const documents = [];
      while (this._has()) documents.push(this._take());
      this.close();
      return documents;
    }
    forEach(visit) {
      while (this._has()) if (visit(this._take()) === false) break;
    }
    map(transform) {
      const before = this._transform;
      this._transform = before === undefined ? transform : (document) => transform(before(document));
      return this;
    }
    itcount() {
      let count = 0;
      for (; this._has(); count++) this._at++;
      return count;
    }
    close() {
      if (this._isClosed) return;
      this._isClosed = true;
      if (this._id !== undefined && this._id !== 0n) {
        this._mongo._send(this._cursorDatabase, { killCursors: this._name, cursors: [new shell.types.Long(this._id)] }, this._session);
      }
      this._id ??= 0n;
    }
    isClosed() { return this._isClosed || this.isExhausted(); }
    isExhausted() { return (this._isClosed || this._id === 0n) && this._at >= this._batch.length; }
    objsLeftInBatch() { return this._batch.length - this._at; }
    getId() { return this._id === undefined ? undefined : new shell.types.Long(this._id); }
    batchSize(size) { return this._set("_batchSize", size); }
    pretty() { return this; }
    _set(field, value) {
      this[field] = value;
      return this;
    }
    * [Symbol.iterator]() {
      while (this._has()) yield this._take();
    }
    async * [Symbol.asyncIterator]() {
      for (const document of this) yield document;
    }

    // The next documents, as `it` shows them.
    _page() {
      const documents = [];
      while (documents.length < shell.batchSize && this._has(this._isTailable ? 1 : Infinity)) documents.push(this._take());
      return documents;
    }
    [result]() {
      shell.current = this;
      return new shell.Page(this._page(), !this.isExhausted() && !this._isTailable);
    }
    [encoded]() { throw new MongoshRuntimeError("a cursor is no value of a document: use toArray()"); }
  }

  // Documents that are shown together.
  shell.Page = class Page {
    constructor(documents, hasMore) { Object.assign(this, { documents, hasMore }); }
    [printed](print) {
      return (this.documents.length === 0 ? "" : print(this.documents)) + (this.hasMore ? '\nType "it" for more' : "");
    }
  };

  const verbosity = (given) => {
    if (given === true) return "allPlansExecution";
    return given === undefined || given === false ? "queryPlanner" : String(given);
  };
  shell.verbosity = verbosity;

  const demandInteger = (value, name) => {
    if (typeof value === "string" || Number.isNaN(Number(value))) {
      throw new MongoInvalidArgumentError(`Operation "${name}" requires an integer`);
    }
    return value;
  };
  // A sort as the driver takes it: one or more names of fields, pairs of names and directions, or a document; directions
  // are numbers, words, or `{$meta: ...}`.
  const DIRECTIONS = { __proto__: null, 1: 1, "-1": -1, asc: 1, ascending: 1, desc: -1, descending: -1 };
  const direction = (given) => {
    if (typeof given?.$meta === "string") return given;
    const found = DIRECTIONS[String(given).toLowerCase()];
    if (found === undefined) throw new MongoInvalidArgumentError(`Invalid sort direction: ${JSON.stringify(given)}`);
    return found;
  };
  const isPair = (fields) => fields.length === 2 && typeof fields[0] === "string" && String(fields[1]).toLowerCase() in DIRECTIONS;
  const ordered = (fields) => {
    if (fields === undefined || fields === null) return undefined;
    if (typeof fields === "string") return { [fields]: 1 };
    if (typeof fields !== "object") {
      throw new MongoInvalidArgumentError(`Invalid sort format: ${JSON.stringify(fields)} Sort must be a valid object`);
    }
    if (Array.isArray(fields) && isPair(fields)) return { [fields[0]]: direction(fields[1]) };
    const isNames = Array.isArray(fields) && fields.every((field) => typeof field === "string");
    const pairs = isNames ? fields.map((field) => [field, 1]) : Array.isArray(fields) || fields instanceof Map ? [...fields] : Object.entries(fields);
    return new Map(pairs.map(([name, given]) => [name, direction(given)]));
  };

  // Options of `find` under the names of the command's fields.
  const FIND_FIELDS = ["projection", "sort", "skip", "limit", "batchSize", "hint", "comment", "maxTimeMS", "max", "min",
    "returnKey", "showRecordId", "collation", "allowDiskUse", "allowPartialResults", "noCursorTimeout", "tailable",
    "awaitData", "readConcern", "let", "singleBatch"];

  class FindCursor extends Cursor {
    constructor(collection, filter, options) {
      super(collection._mongo, collection._database.getName(), collection._database._session);
      shell.hide(this, { _collection: collection, _filter: filter ?? {}, _options: { ...options, sort: ordered(options?.sort) }, _preference: undefined });
    }
    _command() {
      const { readPreference, maxAwaitTimeMS, ...options } = this._options;
      const command = { find: this._collection._name, filter: this._filter };
      for (const name of FIND_FIELDS) {
        if (options[name] !== undefined) command[name] = options[name];
        delete options[name];
      }
      shell.demandKnown(options, [], "find");
      if (command.limit < 0) Object.assign(command, { limit: -command.limit, singleBatch: true });
      this._batchSize ??= command.batchSize;
      if (this._batchSize !== undefined) command.batchSize = this._batchSize;
      if (maxAwaitTimeMS !== undefined) this._more = { maxTimeMS: maxAwaitTimeMS };
      const preference = this._preference ?? readPreference;
      if (preference !== undefined) command.$readPreference = typeof preference === "string" ? { mode: preference } : preference;
      return command;
    }
    get _isTailable() { return this._options.tailable === true; }
    _option(name, value) {
      if (this._id !== undefined) throw new MongoshRuntimeError("Cursor is already initialized");
      this._options[name] = value;
      return this;
    }
    count(options = {}) { return this._collection._count(this._filter, this._counted(options)); }
    size() { return this.count(); }
    _counted(options) {
      const kept = ["skip", "limit", "hint", "collation", "maxTimeMS"].filter((name) => this._options[name] !== undefined).map((name) => [name, this._options[name]]);
      return { ...Object.fromEntries(kept), ...options };
    }
    explain(given) { return this._collection._explain(this._command(), verbosity(given)); }
    readPref(mode, tags, hedge) { return shell.demandReadMode(mode) && this._set("_preference", { mode, ...(tags && { tags }), ...(hedge && { hedge }) }); }
    readConcern(level) { return this._option("readConcern", { level }); }
    tailable({ awaitData = false } = {}) { return this._option("tailable", true)._option("awaitData", awaitData); }
    maxAwaitTimeMS(time) { return this._option("maxAwaitTimeMS", time); }
    addOption(flag) {
      const options = { 2: "tailable", 16: "noCursorTimeout", 32: "awaitData", 128: "allowPartialResults" };
      if (options[flag] === undefined) shell.refuseInput(`Unknown option flag number: ${flag}.`);
      return this._option(options[flag], true);
    }
    projection(fields) { return this._option("projection", fields); }
    project(fields) { return this._option("projection", fields); }
    sort(fields) { return this._option("sort", ordered(fields)); }
    batchSize(size) { return super.batchSize(demandInteger(size, "batchSize")); }
    showRecordId(value = true) { return this._option("showRecordId", value); }
    allowDiskUse(value = true) {
      if (this._options.sort === undefined) {
        throw new MongoInvalidArgumentError('Option "allowDiskUse" requires a sort specification');
      }
      return this._option("allowDiskUse", value);
    }
    noCursorTimeout() { return this._option("noCursorTimeout", true); }
    allowPartialResults(value = true) { return this._option("allowPartialResults", value); }
    oplogReplay() { return this; }
    isTailable() { return this._isTailable; }
  }
  const setters = { hint: "hint", comment: "comment", maxTimeMS: "maxTimeMS",
    max: "max", min: "min", collation: "collation", returnKey: "returnKey" };
  for (const [name, option] of Object.entries(setters)) {
    shell.hide(FindCursor.prototype, { [name](value) { return this._option(option, value); } });
  }

  for (const name of ["skip", "limit"]) {
    shell.hide(FindCursor.prototype, { [name](value) { return this._option(name, demandInteger(value, name)); } });
  }

  class AggregationCursor extends Cursor {
    // `target` is a collection's name, or 1 for a pipeline of the database.
    constructor(database, target, pipeline, options) {
      super(database._mongo, database.getName(), database._session);
      const { batchSize, maxAwaitTimeMS, readPreference, ...given } = options;
      const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      shell.hide(this, { _db: database, _target: target, _pipeline: pipeline, _fields: fields, _preference: readPreference });
      if (batchSize !== undefined) this._batchSize = batchSize;
      if (maxAwaitTimeMS !== undefined) this._more = { maxTimeMS: maxAwaitTimeMS };
    }
    _command() {
      const cursor = this._batchSize === undefined ? {} : { batchSize: this._batchSize };
      const command = { aggregate: this._target, pipeline: this._pipeline, cursor, ...this._fields };
      if (this._preference !== undefined) {
        command.$readPreference = typeof this._preference === "string" ? { mode: this._preference } : this._preference;
      }
      return command;
    }
    explain(given) {
      const { cursor, ...command } = this._command();
      return this._db._explain({ ...command, cursor: {} }, verbosity(given));
    }
    _field(name, value) {
      this._fields[name] = value;
      return this;
    }
    _stage(name, value) {
      this._pipeline = [...this._pipeline, { [name]: value }];
      return this;
    }
    maxTimeMS(time) { return this._field("maxTimeMS", time); }
    hint(hint) { return this._field("hint", hint); }
    comment(comment) { return this._field("comment", comment); }
    collation(collation) { return this._field("collation", collation); }
    allowDiskUse(value = true) { return this._field("allowDiskUse", value); }
    sort(fields) { return this._stage("$sort", fields); }
    skip(count) { return this._stage("$skip", count); }
    limit(count) { return this._stage("$limit", count); }
    project(fields) { return this._stage("$project", fields); }
    projection(fields) { return this._stage("$project", fields); }
  }

  class ChangeStreamCursor extends AggregationCursor {
    get _isTailable() { return true; }
    // Both wait until there is an event.
    next() {
      this._warn("next");
      return this._has() ? this._take() : null;
    }
    hasNext() {
      this._warn("hasNext");
      return this._has();
    }
    _warn(method) {
      if (this._isWaitMeant) return;
      shell.warn(`Warning: If there are no documents in the batch, ${method} will block. Use tryNext if you want to check if `
        + "there are any documents without waiting, or cursor.disableBlockWarnings() if you want to disable this warning.");
    }
    disableBlockWarnings() { return this._set("_isWaitMeant", true); }
    getResumeToken() { return this._resumeToken; }
  }

  class RunCommandCursor extends Cursor {
    constructor(database, command) {
      super(database._mongo, database.getName(), database._session);
      shell.hide(this, { _given: command });
    }
    _command() { return this._given; }
    getMoreOptions() { return this._more; }
  }

  Object.assign(shell, { Cursor, FindCursor, AggregationCursor, ChangeStreamCursor, RunCommandCursor });
})
