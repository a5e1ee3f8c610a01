// A collection: reads, statistics and changes of the collection itself. Writes and indexes are in files of their own.
((shell) => {
  const { host, printed, encoded, demand, demandString } = shell;
  const { MongoshRuntimeError } = shell.errors;

  class Collection {
    constructor(database, name) {
      shell.hide(this, { _database: database, _name: name, _mongo: database._mongo });
    }
    // Runs a command on the collection.
    _run(command) { return this._database._run(command); }
    _explain(command, verbosity) { return this._database._explain(command, verbosity); }

    getName() { return this._name; }
    getFullName() { return `${this._database.getName()}.${this._name}`; }
    getDB() { return this._database; }
    getMongo() { return this._mongo; }
    getCollection(name) {
      demandString(name, 0, "Collection.getCollection");
      return this._database.getCollection(`${this._name}.${name}`);
    }
    toString() { return this.getFullName(); }
    toJSON() { return undefined; }
    [printed]() { return this.getFullName(); }
    [encoded]() { throw new MongoshRuntimeError("a collection is no value of a document: use its name"); }

    find(filter, projection, options = {}) {
      const fields = projection === undefined || projection === null ? {} : { projection };
      return new shell.FindCursor(this, filter, { ...fields, ...options });
    }
    findOne(filter, projection, options = {}) {
      const { explain, ...fields } = options;
      const cursor = this.find(filter, projection, { ...fields, limit: 1, singleBatch: true });
      return explain === undefined ? cursor.next() : cursor.explain(explain);
    }
    aggregate(...given) {
      const { pipeline, options } = shell.pipelineOf(given);
      const { explain, ...fields } = options;
      if (explain !== undefined && explain !== false) {
        return this._explain({ aggregate: this._name, pipeline, cursor: {}, ...fields }, shell.verbosity(explain));
      }
      return shell.begun(new shell.AggregationCursor(this._database, this._name, pipeline, fields));
    }
    count(query = {}, options = {}) {
      shell.deprecated("Collection.count()", "countDocuments or estimatedDocumentCount");
      return this._count(query, options);
    }
    _count(query, options) {
      const { explain, ...fields } = options;
      const command = { count: this._name, query, ...fields };
      return explain === undefined ? this._run(command).n : this._explain(command, shell.verbosity(explain));
    }
    countDocuments(query = {}, options = {}) {
      const { skip, limit, ...fields } = options;
      const pipeline = [{ $match: query }];
      if (skip !== undefined) pipeline.push({ $skip: skip });
      if (limit !== undefined) pipeline.push({ $limit: limit });
      pipeline.push({ $group: { _id: 1, n: { $sum: 1 } } });
      return this._run({ aggregate: this._name, pipeline, cursor: {}, ...fields }).cursor.firstBatch[0]?.n ?? 0;
    }
    estimatedDocumentCount(options = {}) { return this._run({ count: this._name, ...options }).n; }
    distinct(key, query = {}, options = {}) {
      demandString(key, 0, "Collection.distinct");
      const { explain, ...fields } = options;
      const command = { distinct: this._name, key, query, ...fields };
      return explain === undefined ? this._run(command).values : this._explain(command, shell.verbosity(explain));
    }
    mapReduce(map, reduce, options = {}) {
      demand(map, 0, "Collection.mapReduce");
      demand(reduce, 1, "Collection.mapReduce");
      shell.warn("DeprecationWarning: Collection.mapReduce() is deprecated. Use an aggregation instead.\nSee https://mongodb.com/docs/manual/core/map-reduce for details.");
      const { finalize, ...fields } = typeof options === "string" ? { out: options } : options;
      const code = (script) => new shell.types.Code(String(script));
      return this._run({
        mapReduce: this._name, map: code(map), reduce: code(reduce), ...fields, ...(finalize && { finalize: code(finalize) }),
      });
    }
    watch(pipeline = [], options = {}) { return shell.watch(this._database, this._name, pipeline, options); }
    explain(verbosity) { return new shell.Explainable(this, shell.verbosity(verbosity)); }

    drop(options = {}) {
      try {
        return this._run({ drop: this._name, ...options }).ok === 1;
      } catch (error) {
        if (error.codeName === "NamespaceNotFound") return false;
        throw error;
      }
    }
    renameCollection(name, dropTarget = false) {
      demandString(name, 0, "Collection.renameCollection");
      const to = `${this._database.getName()}.${name}`;
      const { ok } = this._mongo._run("admin", { renameCollection: this.getFullName(), to, dropTarget }, this._database._session);
      return { ok };
    }
    convertToCapped(size) { return this._run({ convertToCapped: this._name, size }); }
    runCommand(command, options = {}) {
      if (typeof demand(command, 0, "Collection.runCommand") === "string") {
        return this._database.runCommand({ [command]: this._name, ...options });
      }
      return this._database.runCommand(command, options);
    }
    exists() {
      const found = this._run({ listCollections: 1, filter: { name: this._name } }).cursor.firstBatch;
      return found.length === 0 ? null : found[0];
    }
    validate(options = {}) {
      return this._run({ validate: this._name, ...(typeof options === "boolean" ? { full: options } : options) });
    }
    compact(options = {}) { return this._run({ compact: this._name, ...options }); }
    stats(options = {}) {
      const scale = typeof options === "number" ? options : options.scale ?? 1;
      const [first, ...rest] = this.aggregate([{ $collStats: { storageStats: { scale } } }]).toArray();
      if (rest.length > 0) return { shards: [first, ...rest] };
      const { ns, storageStats } = first;
      const stats = { ok: 1, ...storageStats, ns };
      if (options.indexDetails !== true) delete stats.indexDetails;
      return stats;
    }
    latencyStats(options = {}) { return this.aggregate([{ $collStats: { latencyStats: options } }]).toArray(); }
    dataSize() { return this.stats().size; }
    storageSize() { return this.stats().storageSize; }
    totalIndexSize() { return this.stats().totalIndexSize; }
    totalSize() {
      const { storageSize, totalIndexSize } = this.stats();
      return storageSize + totalIndexSize;
    }
    isCapped() { return this.exists()?.options?.capped === true; }
    getShardVersion() { return this._mongo._run("admin", { getShardVersion: this.getFullName() }); }
    getShardDistribution() { return shell.refuseSharding("Collection.getShardDistribution()"); }
    analyzeShardKey() { return shell.refuseSharding("Collection.analyzeShardKey()"); }
    configureQueryAnalyzer() { return shell.refuseSharding("Collection.configureQueryAnalyzer()"); }
    getPlanCache() { return new PlanCache(this); }
    checkMetadataConsistency() { return shell.refuseSharding("Collection.checkMetadataConsistency()"); }
    help() { return shell.helpOf("Collection", this); }
  }

  class PlanCache {
    constructor(collection) { shell.hide(this, { _collection: collection }); }
    clear() { return this._collection._run({ planCacheClear: this._collection._name }); }
    clearPlansByQuery(query, projection = {}, sort = {}) {
      return this._collection._run({ planCacheClear: this._collection._name, query, projection, sort });
    }
    list(pipeline = []) { return this._collection.aggregate([{ $planCacheStats: {} }, ...pipeline]).toArray(); }
    [printed]() { return `PlanCache for collection ${this._collection._name}.`; }
  }

  shell.pipelineOf = (given) => {
    if (given.length === 0 || Array.isArray(given[0])) return { pipeline: given[0] ?? [], options: given[1] ?? {} };
    return { pipeline: given, options: {} };
  };
  // A pipeline that writes does so at once, even if its cursor is not read.
  shell.begun = (cursor) => {
    if (shell.isWriting(cursor._pipeline)) cursor._open();
    return cursor;
  };
  shell.watch = (database, target, pipeline, options, more = {}) => {
    const stream = {};
    const fields = {};
    const ofStream = ["fullDocument", "fullDocumentBeforeChange", "resumeAfter", "startAfter", "startAtOperationTime",
      "showExpandedEvents"];
    for (const [name, value] of Object.entries(options)) (ofStream.includes(name) ? stream : fields)[name] = value;
    const stages = [{ $changeStream: { ...stream, ...more } }, ...(Array.isArray(pipeline) ? pipeline : [pipeline])];
    const cursor = new shell.ChangeStreamCursor(database, target, stages, fields);
    // Events count from here on.
    cursor._open();
    return cursor;
  };

  // `collection.name` is the collection `collection.name`, unless the collection has such a method.
  shell.reachable = (object, child) => new Proxy(object, {
    get(target, name) {
      if (typeof name !== "string" || name in target || name.startsWith("_") || name === "") return target[name];
      return child(target, name);
    },
  });
  const collections = (database, name) => {
    const known = new Map();
    return shell.reachable(new Collection(database, name), (_, child) => {
      if (!known.has(child)) known.set(child, database.getCollection(`${name}.${child}`));
      return known.get(child);
    });
  };
  Object.assign(shell, { Collection, PlanCache });
  shell.makeCollection = collections;
})
