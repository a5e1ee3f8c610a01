// Writes of several kinds in one call: `bulkWrite`, and the builders of the old shell.
((shell) => {
  const { printed, demand } = shell;
  const { MongoInvalidArgumentError, MongoBatchReExecutionError } = shell.errors;

  // A document without operators would replace the whole document that it was to change.
  const update = (method, many) => ({ filter, update: change, ...options }) => ({
    kind: "update",
    statement: {
      q: filter, u: shell.demandOperators(demand(change, 0, method)), ...(many && { multi: true }),
      ...shell.demandOperation.update(options, method),
    },
  });
  const replace = ({ filter, replacement, ...options }) => ({
    kind: "update",
    statement: {
      q: filter, u: shell.demandReplacement(demand(replacement, 0, "replaceOne")), ...shell.demandOperation.update(options, "replaceOne"),
    },
  });
  const remove = (method, limit) => ({ filter, ...options }) => ({
    kind: "delete", statement: { q: filter, limit, ...shell.demandOperation.delete(options, method) },
  });
  // Each operation of `bulkWrite`: the command that it belongs to, and its statement there.
  const OPERATIONS = {
    insertOne: (given) => ({ kind: "insert", statement: shell.identified(given.document ?? given) }),
    updateOne: update("updateOne", false), updateMany: update("updateMany", true), replaceOne: replace,
    deleteOne: remove("deleteOne", 1), deleteMany: remove("deleteMany", 0),
  };
  const LISTS = { insert: "documents", update: "updates", delete: "deletes" };
  const BATCH_TYPES = { insert: 1, update: 2, delete: 3 };
  // Statements of one command. Source: MongoDB's `maxWriteBatchSize`.
  const STATEMENTS_MAX = 10000;

  const read = (operation) => {
    const [name] = Object.keys(operation ?? {});
    if (OPERATIONS[name] === undefined) {
      throw new MongoInvalidArgumentError(`bulkWrite only supports ${Object.keys(OPERATIONS).join(", ")}: not '${String(name)}'`);
    }
    return { operation, ...OPERATIONS[name](operation[name]) };
  };
  // Consecutive operations of one kind share a command; without an order all of one kind do.
  const grouped = (operations, isOrdered) => {
    const groups = [];
    operations.forEach((operation, index) => {
      const fits = (group) => group.kind === operation.kind && group.items.length < STATEMENTS_MAX;
      let group = isOrdered ? groups.at(-1) : groups.findLast(fits);
      if (group === undefined || !fits(group)) groups.push(group = { kind: operation.kind, items: [] });
      group.items.push({ index, ...operation });
    });
    return groups;
  };

  const count = (result, { kind, items }, reply) => {
    const failed = new Set((reply.writeErrors ?? []).map((error) => error.index));
    if (kind === "insert") {
      result.insertedCount += reply.n;
      items.forEach(({ index, statement }, at) => { if (!failed.has(at)) result.insertedIds[index] = statement._id; });
    } else if (kind === "delete") {
      result.deletedCount += reply.n;
    } else {
      const upserted = reply.upserted ?? [];
      result.matchedCount += reply.n - upserted.length;
      result.modifiedCount += reply.nModified;
      result.upsertedCount += upserted.length;
      for (const { index, _id } of upserted) result.upsertedIds[items[index].index] = _id;
    }
  };

  const bulkWrite = (collection, operations, options) => {
    if (!Array.isArray(operations)) throw new MongoInvalidArgumentError('Argument "operations" must be an array of documents');
    if (operations.length === 0) throw new MongoInvalidArgumentError("Invalid BulkOperation, Batch cannot be empty");
    shell.demandOperation.all(options);
    const isOrdered = options.ordered !== false;
    const result = shell.emptyBulkResult();
    const whole = { writeErrors: [], writeConcernErrors: [] };
    const parsed = operations.map(read);
    const statements = parsed.map((operation) => operation.statement);
    for (const group of grouped(parsed, isOrdered)) {
      const list = LISTS[group.kind];
      const command = { [group.kind]: collection._name, [list]: group.items.map((item) => item.statement), ...shell.ofCommand(options) };
      const reply = group.kind === "insert" ? shell.insertAll(collection, command.documents, options) : collection._run(command);
      count(result, group, reply);
      for (const error of reply.writeErrors ?? []) whole.writeErrors.push({ ...error, index: group.items[error.index].index });
      if (reply.writeConcernError !== undefined) whole.writeConcernErrors.push(reply.writeConcernError);
      if (isOrdered && whole.writeErrors.length > 0) break;
    }
    result.acknowledged = shell.isAcknowledged(options);
    if (whole.writeErrors.length > 0 || whole.writeConcernErrors.length > 0) throw shell.bulkError(result, whole, statements);
    return result;
  };

  // `find(...).upsert().updateOne(...)` of a builder.
  class BulkFind {
    constructor(bulk, filter) { shell.hide(this, { _bulk: bulk, _filter: filter, _options: {} }); }
    _set(name, value) {
      this._options[name] = value;
      return this;
    }
    upsert() { return this._set("upsert", true); }
    collation(value) { return this._set("collation", value); }
    hint(value) { return this._set("hint", value); }
    arrayFilters(value) { return this._set("arrayFilters", value); }
    _add(name, fields) { return this._bulk._add({ [name]: { filter: this._filter, ...fields, ...this._options } }); }
    updateOne(change) { return this._add("updateOne", { update: change }); }
    update(change) { return this._add("updateMany", { update: change }); }
    replaceOne(replacement) { return this._add("replaceOne", { replacement }); }
    deleteOne() { return this._add("deleteOne", {}); }
    delete() { return this._add("deleteMany", {}); }
    removeOne() { return this.deleteOne(); }
    remove() { return this.delete(); }
  }
  class Bulk {
    constructor(collection, ordered) { shell.hide(this, { _collection: collection, _ordered: ordered, _operations: [], _isDone: false }); }
    _add(operation) {
      this._operations.push(operation);
      return this;
    }
    find(filter) { return new BulkFind(this, demand(filter, 0, "Bulk.find")); }
    insert(document) { return this._add({ insertOne: { document: demand(document, 0, "Bulk.insert") } }); }
    execute(writeConcern) {
      if (this._isDone) throw new MongoBatchReExecutionError("This batch has already been executed, create new batch to execute");
      this._isDone = true;
      return bulkWrite(this._collection, this._operations, { ordered: this._ordered, ...(writeConcern && { writeConcern }) });
    }
    // The commands that were sent, with the place of the first operation of each.
    getOperations() {
      if (!this._isDone) {
        throw new shell.errors.MongoshInvalidInputError("[COMMON-10002] Cannot call getOperations on an unexecuted Bulk operation");
      }
      return grouped(this._operations.map(read), this._ordered).map(({ kind, items }) => ({
        originalZeroIndex: items[0].index, batchType: BATCH_TYPES[kind], operations: items.map((item) => item.statement),
      }));
    }
    toJSON() {
      const counted = (kind) => this._operations.filter((operation) => Object.keys(operation)[0].startsWith(kind)).length;
      return {
        nInsertOps: counted("insert"), nUpdateOps: counted("update") + counted("replace"), nRemoveOps: counted("delete"),
        nBatches: grouped(this._operations.map(read), this._ordered).length,
      };
    }
    toString() { return JSON.stringify(this.toJSON()); }
    [printed](print) { return print(this.toJSON()); }
  }

  shell.hide(shell.Collection.prototype, {
    bulkWrite(operations, options = {}) { return bulkWrite(this, demand(operations, 0, "Collection.bulkWrite"), options); },
    initializeOrderedBulkOp() { return new Bulk(this, true); },
    initializeUnorderedBulkOp() { return new Bulk(this, false); },
  });
})
