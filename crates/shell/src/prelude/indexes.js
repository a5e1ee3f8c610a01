// Indexes of a collection, and its search indexes.
((shell) => {
  const { demand, demandString } = shell;
  const { MongoshInvalidInputError } = shell.errors;

  const nameOf = (keys) => (keys instanceof Map ? Array.from(keys) : Object.entries(keys)).map(([field, kind]) => `${field}_${kind}`).join("_");
  const specified = (keys, options) => {
    const listed = typeof keys === "string" ? { [keys]: 1 } : keys;
    const key = Array.isArray(listed) ? new Map(listed) : listed;
    // In the order of the driver, which errors of the server show.
    return { ...options, name: options.name ?? nameOf(key), key };
  };
  const create = (collection, list, options, commitQuorum) => {
    if (options !== undefined && (typeof options !== "object" || options === null)) {
      throw new MongoshInvalidInputError("[COMMON-10001] The \"options\" argument must be an object.");
    }
    const { maxTimeMS, comment, writeConcern, ...ofIndex } = options ?? {};
    const indexes = list.map((keys) => specified(keys, ofIndex));
    collection._run({
      createIndexes: collection._name, indexes, ...(commitQuorum !== undefined && { commitQuorum }),
      ...(maxTimeMS !== undefined && { maxTimeMS }), ...(comment !== undefined && { comment }), ...(writeConcern && { writeConcern }),
    });
    return indexes.map((index) => index.name);
  };

  shell.hide(shell.Collection.prototype, {
    createIndex(keys, options, commitQuorum) {
      return create(this, [demand(keys, 0, "Collection.createIndex")], options, commitQuorum)[0];
    },
    createIndexes(list, options, commitQuorum) {
      if (!Array.isArray(demand(list, 0, "Collection.createIndexes"))) {
        shell.refuseInput("The \"keyPatterns\" argument must be an array of key patterns.");
      }
      return create(this, list, options, commitQuorum);
    },
    ensureIndex(keys, options, commitQuorum) { return create(this, [demand(keys, 0, "Collection.ensureIndex")], options, commitQuorum); },
    getIndexes() {
      return new shell.RunCommandCursor(this._database, { listIndexes: this._name, cursor: {} }).toArray();
    },
    getIndices() { return this.getIndexes(); },
    getIndexKeys() { return this.getIndexes().map((index) => index.key); },
    getIndexSpecs() { return this.getIndexes(); },
    dropIndex(index) {
      demand(index, 0, "Collection.dropIndex");
      if (index === "*") shell.refuseInput("To drop indexes in the collection using '*', use db.collection.dropIndexes().");
      if (Array.isArray(index)) shell.refuseInput("The index to drop must be either the index name or the index specification document.");
      return this._run({ dropIndexes: this._name, index });
    },
    dropIndexes(indexes = "*") { return this._run({ dropIndexes: this._name, index: indexes }); },
    reIndex() { return this._run({ reIndex: this._name }); },
    _hideIndex(index, hidden) {
      const which = typeof index === "string" ? { name: index } : { keyPattern: index };
      return this._run({ collMod: this._name, index: { ...which, hidden } });
    },
    hideIndex(index) { return this._hideIndex(demand(index, 0, "Collection.hideIndex"), true); },
    unhideIndex(index) { return this._hideIndex(demand(index, 0, "Collection.unhideIndex"), false); },

    getSearchIndexes(name, options = {}) {
      const which = typeof name === "string" ? { name } : {};
      return this.aggregate([{ $listSearchIndexes: which }], typeof name === "object" ? name : options).toArray();
    },
    createSearchIndex(name, type, definition) {
      const given = [name, type, definition];
      const texts = given.filter((one) => typeof one === "string");
      const one = typeof name === "object" && (name.definition !== undefined || name.name !== undefined)
        ? name : { name: texts[0] ?? "default", ...(texts[1] && { type: texts[1] }), definition: given.find((part) => typeof part === "object") };
      return this.createSearchIndexes([one])[0];
    },
    createSearchIndexes(indexes) {
      demand(indexes, 0, "Collection.createSearchIndexes");
      const reply = this._run({ createSearchIndexes: this._name, indexes });
      return reply.indexesCreated.map((index) => index.name);
    },
    updateSearchIndex(name, definition) {
      demandString(name, 0, "Collection.updateSearchIndex");
      this._run({ updateSearchIndex: this._name, name, definition });
    },
    dropSearchIndex(name) {
      demandString(name, 0, "Collection.dropSearchIndex");
      this._run({ dropSearchIndex: this._name, name });
    },
  });
})
