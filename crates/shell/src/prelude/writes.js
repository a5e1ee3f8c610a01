// Writes of a collection, with the results that the shell shows for them.
((shell) => {
  const { demand } = shell;
  const { MongoInvalidArgumentError, MongoBulkWriteError } = shell.errors;
  // Documents of one `insert`; the server takes 100,000. Larger messages are halved until they fit.
  const INSERTS_MAX = 10000;

  const hasOperators = (update) => Array.isArray(update) || Object.keys(update)[0]?.startsWith("$") === true;
  const demandOperators = (update) => {
    if (!hasOperators(update)) throw new MongoInvalidArgumentError("Update document requires atomic operators");
    return update;
  };
  const demandReplacement = (replacement) => {
    if (hasOperators(replacement)) throw new MongoInvalidArgumentError("Replacement document must not contain atomic operators");
    return replacement;
  };
  // The write concern of `{writeConcern}`, or of the older form `{w, j, wtimeout}`.
  const concernOf = ({ writeConcern, w, j, wtimeout }) => {
    if (w === undefined && j === undefined && wtimeout === undefined) return writeConcern;
    return { ...(w !== undefined && { w }), ...(j !== undefined && { j }), ...(wtimeout !== undefined && { wtimeout }), ...writeConcern };
  };
  const isAcknowledged = (options) => concernOf(options)?.w !== 0;
  // The document with an `_id`.
  shell.identified = (document) => {
    if (document === null || typeof document !== "object") {
      throw new MongoInvalidArgumentError('Argument "docs" must be a document');
    }
    return document._id === undefined ? { ...document, _id: new shell.types.ObjectId() } : document;
  };

  const OF_COMMAND = ["bypassDocumentValidation", "comment", "let", "maxTimeMS", "ordered"];
  const OF_UPDATE = ["upsert", "collation", "hint", "arrayFilters", "sort"];
  const OF_DELETE = ["collation", "hint"];
  const OF_FIND_AND_MODIFY = ["projection", "fields", "returnDocument", "returnOriginal", "returnNewDocument",
    "includeResultMetadata", "explain", "new"];
  const OF_ALL = [...OF_COMMAND, "writeConcern", "w", "j", "wtimeout"];
  const picked = (options, names) => (
    Object.fromEntries(names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]))
  );

  // Options of the whole command; the others belong to one of its statements.
  const ofCommand = (options) => {
    const writeConcern = concernOf(options);
    return { ...picked(options, OF_COMMAND), ...(writeConcern !== undefined && { writeConcern }) };
  };
  const ofUpdate = (options) => picked(options, OF_UPDATE);
  const ofDelete = (options) => picked(options, OF_DELETE);
  const demandInsertOptions = (options, method) => shell.demandKnown(options, OF_ALL, method);
  Object.assign(shell, { ofCommand, ofUpdate, ofDelete, isAcknowledged, demandOperators, demandReplacement });
  // Options of one operation of `bulkWrite`.
  shell.demandOperation = {
    update: (options, method) => ofUpdate(shell.demandKnown(options, OF_UPDATE, method)),
    delete: (options, method) => ofDelete(shell.demandKnown(options, OF_DELETE, method)),
    all: (options) => shell.demandKnown(options, OF_ALL, "Collection.bulkWrite"),
  };

  // Throws the error of a reply to one statement.
  const checked = (reply) => {
    if (reply.writeErrors?.length > 0) {
      const { index, ...error } = reply.writeErrors[0];
      throw shell.labelled(shell.serverError({ index, ...error }), reply);
    }
    if (reply.writeConcernError !== undefined) {
      throw shell.labelled(shell.serverError({ ...reply.writeConcernError, result: reply }), reply);
    }
    return reply;
  };

  // Sends documents in as many commands as they need; returns the last reply.
  shell.insertAll = (collection, documents, options) => {
    const send = (part) => {
      const reply = collection._database._sendSized({ insert: collection._name, documents: part, ...ofCommand(options) });
      if (reply !== undefined) return reply;
      const half = part.length >> 1;
      const first = send(part.slice(0, half));
      if (first.writeErrors !== undefined && options.ordered !== false) return first;
      const second = send(part.slice(half));
      const moved = (second.writeErrors ?? []).map((error) => ({ ...error, index: error.index + half }));
      return { ...second, n: first.n + second.n, writeErrors: [...(first.writeErrors ?? []), ...moved] };
    };
    const whole = { n: 0, writeErrors: [], writeConcernErrors: [] };
    for (let from = 0; from < documents.length; from += INSERTS_MAX) {
      const reply = send(documents.slice(from, from + INSERTS_MAX));
      whole.n += reply.n ?? 0;
      for (const error of reply.writeErrors ?? []) whole.writeErrors.push({ ...error, index: error.index + from });
      if (reply.writeConcernError !== undefined) whole.writeConcernErrors.push(reply.writeConcernError);
      if (whole.writeErrors.length > 0 && options.ordered !== false) break;
    }
    return whole;
  };

  shell.hide(shell.Collection.prototype, {
    insertOne(document, options = {}) {
      const inserted = shell.identified(demand(document, 0, "Collection.insertOne"));
      demandInsertOptions(options, "Collection.insertOne");
      checked(this._run({ insert: this._name, documents: [inserted], ...ofCommand(options) }));
      return { acknowledged: isAcknowledged(options), insertedId: inserted._id };
    },
    insertMany(given, options = {}) {
      if (!Array.isArray(demand(given, 0, "Collection.insertMany"))) {
        throw new MongoInvalidArgumentError('Argument "docs" must be an array of documents');
      }
      if (given.length === 0) throw new MongoInvalidArgumentError("Invalid BulkOperation, Batch cannot be empty");
      demandInsertOptions(options, "Collection.insertMany");
      const documents = given.map(shell.identified);
      const insertedIds = Object.fromEntries(documents.map((document, index) => [index, document._id]));
      const whole = shell.insertAll(this, documents, options);
      if (whole.writeErrors.length > 0 || whole.writeConcernErrors.length > 0) {
        const counts = { ...shell.emptyBulkResult(), insertedCount: whole.n };
        const failed = new Set(whole.writeErrors.map((error) => error.index));
        const first = options.ordered === false ? documents.length : Math.min(documents.length, ...failed);
        for (const index of Object.keys(insertedIds)) {
          if (Number(index) < first && !failed.has(Number(index))) counts.insertedIds[index] = insertedIds[index];
        }
        throw shell.bulkError(counts, whole, documents);
      }
      return { acknowledged: isAcknowledged(options), insertedIds };
    },
    insert(documents, options = {}) {
      shell.deprecated("Collection.insert()", "insertOne, insertMany, or bulkWrite");
      const list = Array.isArray(demand(documents, 0, "Collection.insert")) ? documents : [documents];
      return this.insertMany(list, options);
    },

    _update(filter, update, options, multi) {
      shell.demandKnown(options, [...OF_ALL, ...OF_UPDATE, "multi", "explain"], "update");
      const statement = { q: filter, u: update, ...(multi && { multi }), ...ofUpdate(options) };
      const command = { update: this._name, updates: [statement], ...ofCommand(options) };
      if (options.explain !== undefined) return this._explain(command, shell.verbosity(options.explain));
      const reply = checked(this._run(command));
      const [upserted] = reply.upserted ?? [];
      return {
        acknowledged: isAcknowledged(options), insertedId: upserted === undefined ? null : upserted._id,
        matchedCount: upserted === undefined ? reply.n : 0, modifiedCount: reply.nModified, upsertedCount: upserted === undefined ? 0 : 1,
      };
    },
    updateOne(filter, update, options = {}) {
      demand(filter, 0, "Collection.updateOne");
      return this._update(filter, demandOperators(demand(update, 1, "Collection.updateOne")), options, false);
    },
    updateMany(filter, update, options = {}) {
      demand(filter, 0, "Collection.updateMany");
      return this._update(filter, demandOperators(demand(update, 1, "Collection.updateMany")), options, true);
    },
    replaceOne(filter, replacement, options = {}) {
      demand(filter, 0, "Collection.replaceOne");
      return this._update(filter, demandReplacement(demand(replacement, 1, "Collection.replaceOne")), options, false);
    },
    update(filter, update, options = {}) {
      shell.deprecated("Collection.update()", "updateOne, updateMany, or bulkWrite");
      demand(update, 1, "Collection.update");
      return options.multi ? this.updateMany(filter, update, options) : this.updateOne(filter, update, options);
    },

    _delete(filter, options, limit) {
      shell.demandKnown(options, [...OF_ALL, ...OF_DELETE, "justOne", "explain"], "delete");
      const statement = { q: filter, limit, ...ofDelete(options) };
      const command = { delete: this._name, deletes: [statement], ...ofCommand(options) };
      if (options.explain !== undefined) return this._explain(command, shell.verbosity(options.explain));
      return { acknowledged: isAcknowledged(options), deletedCount: checked(this._run(command)).n };
    },
    deleteOne(filter, options = {}) { return this._delete(demand(filter, 0, "Collection.deleteOne"), options, 1); },
    deleteMany(filter, options = {}) { return this._delete(demand(filter, 0, "Collection.deleteMany"), options, 0); },
    remove(filter, options = {}) {
      shell.deprecated("Collection.remove()", "deleteOne, deleteMany, findOneAndDelete, or bulkWrite");
      demand(filter, 0, "Collection.remove");
      const isOne = options === true || options.justOne === true;
      return this._delete(filter, typeof options === "boolean" ? {} : options, isOne ? 1 : 0);
    },
    save() { shell.unsupported("Collection.save()", "use insertOne, updateOne or replaceOne"); },

    // `findAndModify` with the options of the methods below.
    _findAndModify(filter, change, options) {
      shell.demandKnown(options, [...OF_ALL, ...OF_UPDATE, ...OF_FIND_AND_MODIFY], "findAndModify");
      const { projection, fields, sort, upsert, returnDocument, returnOriginal, returnNewDocument, arrayFilters, collation,
        hint, includeResultMetadata, explain, new: isNew, ...rest } = options;
      const wantsNew = returnDocument === "after" || returnOriginal === false || returnNewDocument === true || isNew === true;
      const chosen = { fields: projection ?? fields, sort, upsert, arrayFilters, collation, hint };
      const command = { findAndModify: this._name, query: filter, ...change };
      if (change.remove === undefined && wantsNew) command.new = true;
      for (const [name, value] of Object.entries(chosen)) if (value !== undefined) command[name] = value;
      Object.assign(command, ofCommand(rest));
      if (explain !== undefined) return this._explain(command, shell.verbosity(explain));
      const reply = this._run(command);
      if (reply.writeConcernError !== undefined) checked(reply);
      return includeResultMetadata === true ? reply : reply.value;
    },
    findOneAndUpdate(filter, update, options = {}) {
      demand(filter, 0, "Collection.findOneAndUpdate");
      demandOperators(demand(update, 1, "Collection.findOneAndUpdate"));
      return this._findAndModify(filter, { update }, options);
    },
    findOneAndReplace(filter, replacement, options = {}) {
      demand(filter, 0, "Collection.findOneAndReplace");
      demandReplacement(demand(replacement, 1, "Collection.findOneAndReplace"));
      return this._findAndModify(filter, { update: replacement }, options);
    },
    findOneAndDelete(filter, options = {}) {
      return this._findAndModify(demand(filter, 0, "Collection.findOneAndDelete"), { remove: true }, options);
    },
    findAndModify(options) {
      demand(options, 0, "Collection.findAndModify");
      const { query = {}, remove, update, ...rest } = options;
      return this._findAndModify(query, remove ? { remove: true } : { update }, rest);
    },
  });

  class WriteError {
    constructor(err) { this.err = err; }
    get index() { return this.err.index; }
    get code() { return this.err.code; }
    get errmsg() { return this.err.errmsg; }
    get errInfo() { return this.err.errInfo; }
    toJSON() { return this.err; }
  }
  class BulkWriteResult {
    constructor({ acknowledged, insertedIds, ...counts }) { Object.assign(this, counts, { insertedIds }); }
  }
  shell.bulkError = (counts, whole, operations) => {
    const [first] = whole.writeErrors;
    const { errmsg, code } = first ?? whole.writeConcernErrors[0];
    const error = new MongoBulkWriteError(errmsg, { code });
    error.writeErrors = whole.writeErrors.map(({ index, code: ofOne, errmsg: text, errInfo }) => (
      new WriteError({ index, code: ofOne, errmsg: text, errInfo, op: operations[index] })
    ));
    error.result = new BulkWriteResult(counts);
    return error;
  };
  shell.emptyBulkResult = () => ({
    acknowledged: true, insertedCount: 0, insertedIds: {}, matchedCount: 0, modifiedCount: 0, deletedCount: 0,
    upsertedCount: 0, upsertedIds: {},
  });
})
