// What remains of mongosh's names: small functions, methods that MongoDB has removed, and those that this shell refuses by
// name.
((shell) => {
  const { MongoshDeprecatedError } = shell.errors;
  const { Database, Collection, Mongo, FindCursor } = shell;

  // The documents and values inside a value, copied; functions are refused, as in every engine that has this function.
  const cloned = (value) => {
    if (typeof value === "function") throw new TypeError(`${value.name || "a function"} could not be cloned`);
    if (typeof value !== "object" || value === null || value[shell.encoded] !== undefined) return value;
    if (Array.isArray(value)) return value.map(cloned);
    if (value instanceof Date) return new Date(value);
    if (value instanceof RegExp) return new RegExp(value);
    if (value instanceof Map) return new Map(Array.from(value, ([key, inner]) => [cloned(key), cloned(inner)]));
    if (value instanceof Set) return new Set(Array.from(value, cloned));
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cloned(inner)]));
  };

  shell.hide(Mongo.prototype, {
    convertShardKeyToHashed(value) {
      const stages = [{ $documents: [{}] }, { $replaceWith: { hashed: { $toHashedIndexKey: { $literal: value } } } }];
      return this.getDB("admin").aggregate(stages).next().hashed;
    },
    getCollection(name) {
      const at = shell.demandString(name, 0, "Mongo.getCollection").indexOf(".");
      if (at < 1) throw new shell.errors.MongoshInvalidInputError("[COMMON-10001] Collection must be of the format <db>.<collection>");
      return this.getDB(name.slice(0, at)).getCollection(name.slice(at + 1));
    },
    show: (what, argument) => globalThis.show(what, argument),
    use: (name) => globalThis.use(name),
    connect() {},
    isCausalConsistency: () => shell.unsupported("Mongo.isCausalConsistency()", "sessions have the option causalConsistency"),
  });
  shell.hide(Database.prototype, {
    serverBits() { return this.serverBuildInfo().bits; },
    setSecondaryOk() { this._mongo.setSecondaryOk(); },
  });
  shell.globals({
    bsonsize: (document) => shell.host.bsonSize(shell.demand(document, 0, "bsonsize")),
    buildInfo: () => ({ version: shell.host.version, shell: "Bunko" }),
    convertShardKeyToHashed: (value) => shell.database().getMongo().convertShardKeyToHashed(value),
    structuredClone: cloned,
  });

  const OBJECTS = { Cursor: shell.Cursor, Mongo, Session: shell.Session, PlanCache: shell.PlanCache, Explainable: shell.Explainable };
  for (const [kind, Class] of Object.entries(OBJECTS)) {
    shell.hide(Class.prototype, { help() { return shell.helpOf(kind, this); } });
  }
  shell.hide(shell.Cursor.prototype, { disableBlockWarnings() { return this; }, toJSON() {
    return shell.refuseInput("Cannot serialize a cursor to JSON. Did you mean to call .toArray() first?");
  } });

  // Methods of which mongosh, too, only says that no server has them any more.
  const isGone = (message) => () => { throw new MongoshDeprecatedError(`[COMMON-10003] ${message}`); };
  for (const name of ["cloneDatabase", "copyDatabase", "cloneCollection"]) {
    shell.hide(Database.prototype, { [name]: isGone(`\`${name}()\` was removed because it was deprecated in MongoDB 4.0`) });
  }
  shell.hide(Database.prototype, { printSlaveReplicationInfo: isGone("Method deprecated, use db.printSecondaryReplicationInfo instead") });
  shell.hide(Mongo.prototype, { setSlaveOk: isGone("Setting slaveOk is deprecated, use setReadPref instead.") });
  shell.hide(FindCursor.prototype, { maxScan: isGone("`maxScan()` was removed because it was deprecated in MongoDB 4.0") });
  for (const name of ["listQueryShapes", "getPlansByQuery"]) {
    shell.hide(shell.PlanCache.prototype, { [name]: isGone(`PlanCache.${name} was deprecated, please use PlanCache.list instead`) });
  }

  // Methods that this shell refuses, and why.
  const refuse = (Class, kind, names, advice) => {
    for (const name of names) shell.hide(Class.prototype, { [name]() { return shell.unsupported(`${kind}.${name}()`, advice); } });
  };
  const ENCRYPTION = "there is no field level encryption";
  refuse(Database, "Database", ["createEncryptedCollection"], ENCRYPTION);
  refuse(Database, "Database", ["checkMetadataConsistency"], "there is no sharding");
  refuse(Database, "Database", ["sql"], "write the query as a pipeline");
  refuse(Collection, "Collection", ["compactStructuredEncryptionData"], ENCRYPTION);
  refuse(Collection, "Collection", ["getShardLocation"], "there is no sharding");
  refuse(Mongo, "Mongo", ["getClientEncryption", "getKeyVault"], ENCRYPTION);
  refuse(Mongo, "Mongo", ["bulkWrite"], "use db.adminCommand({bulkWrite: 1, ...})");
  refuse(shell.Session, "Session", ["bulkWrite"], "use session.getDatabase('admin').runCommand({bulkWrite: 1, ...})");
  const refusal = (name, advice) => () => shell.unsupported(`${name}()`, advice);
  shell.globals({
    edit: refusal("edit", "write the script into a file, and run it with load(FILE)"),
    snippet: refusal("snippet", "there are no snippets"),
    history: refusal("history", "the lines are in ~/.local/state/bunko/shell_history"),
    fetch: refusal("fetch", "scripts reach servers of MongoDB's protocol alone"),
  });
  for (const [name, advice] of [["sp", "there is no stream processing"], ["log", "db.adminCommand({getLog: 'global'}) has the server's log"]]) {
    Object.defineProperty(globalThis, name, { get: () => shell.unsupported(name, advice), set(value) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
    }, configurable: true, enumerable: false });
  }
})
