// `collection.explain()`: the plan of an operation instead of its result.
((shell) => {
  const { printed } = shell;

  // A find that is explained when it is shown.
  class ExplainedFind {
    constructor(cursor, verbosity) { shell.hide(this, { _cursor: cursor, _verbosity: verbosity }); }
    finish() { return this._cursor.explain(this._verbosity); }
    next() { return this.finish(); }
    hasNext() { return true; }
    [shell.result]() { return this.finish(); }
    [printed](print) { return print(this.finish()); }
  }
  const CHAINED = ["sort", "skip", "limit", "hint", "comment", "maxTimeMS", "max", "min", "collation", "batchSize", "projection",
    "returnKey", "showRecordId", "allowDiskUse", "readPref", "readConcern", "noCursorTimeout", "pretty", "tailable"];
  for (const name of CHAINED) {
    shell.hide(ExplainedFind.prototype, { [name](...args) {
      this._cursor[name](...args);
      return this;
    } });
  }
  shell.hide(ExplainedFind.prototype, {
    count() { return this._cursor.count({ explain: this._verbosity }); },
    explain(verbosity) { return this._cursor.explain(verbosity ?? this._verbosity); },
  });

  shell.Explainable = class Explainable {
    constructor(collection, verbosity) { shell.hide(this, { _collection: collection, _verbosity: verbosity }); }
    getCollection() { return this._collection; }
    getVerbosity() { return this._verbosity; }
    setVerbosity(verbosity) { this._verbosity = shell.verbosity(verbosity); }
    find(filter, projection, options) { return new ExplainedFind(this._collection.find(filter, projection, options), this._verbosity); }
    findOne(filter, projection, options) { return this._collection.findOne(filter, projection, this._with(options)); }
    aggregate(...given) {
      const { pipeline, options } = shell.pipelineOf(given);
      return this._collection.aggregate(pipeline, this._with(options));
    }
    _with(options) { return { ...options, explain: this._verbosity }; }
    count(query, options = {}) { return this._collection._count(query, this._with(options)); }
    distinct(key, query, options = {}) { return this._collection.distinct(key, query, this._with(options)); }
    update(filter, update, options = {}) {
      shell.deprecated("Collection.update()", "updateOne, updateMany, or bulkWrite");
      return this._collection._update(filter, update, this._with(options), options.multi);
    }
    remove(filter, options = {}) {
      shell.deprecated("Collection.remove()", "deleteOne, deleteMany, findOneAndDelete, or bulkWrite");
      return this._collection._delete(filter, this._with(options), options.justOne ? 1 : 0);
    }
    mapReduce(map, reduce, options) {
      const code = (script) => new shell.types.Code(String(script));
      const command = { mapReduce: this._collection._name, map: code(map), reduce: code(reduce), ...options };
      return this._collection._explain(command, this._verbosity);
    }
    findAndModify(options) { return this._collection.findAndModify(this._with(options)); }
    [printed]() { return `Explainable(${this._collection.getFullName()})`; }
  };
  const explained = ["updateOne", "updateMany", "replaceOne", "findOneAndUpdate", "findOneAndReplace"];
  for (const name of explained) {
    shell.hide(shell.Explainable.prototype, { [name](filter, change, options = {}) {
      return this._collection[name](filter, change, this._with(options));
    } });
  }
  for (const name of ["deleteOne", "deleteMany", "findOneAndDelete"]) {
    shell.hide(shell.Explainable.prototype, { [name](filter, options = {}) { return this._collection[name](filter, this._with(options)); } });
  }
})
