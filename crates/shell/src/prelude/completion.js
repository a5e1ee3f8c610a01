// Completion of what is typed: commands, collections, methods, and operators of queries and pipelines.
((shell) => {
  const OPERATORS = ["$abs", "$accumulator", "$add", "$addFields", "$addToSet", "$all", "$allElementsTrue", "$and", "$anyElementTrue",
    "$arrayElemAt", "$arrayToObject", "$avg", "$bit", "$bottom", "$bottomN", "$bucket", "$bucketAuto", "$ceil", "$changeStream",
    "$cmp", "$collStats", "$concat", "$concatArrays", "$cond", "$convert", "$count", "$currentDate", "$currentOp", "$dateAdd",
    "$dateDiff", "$dateFromParts", "$dateFromString", "$dateSubtract", "$dateToParts", "$dateToString", "$dateTrunc", "$densify",
    "$derivative", "$divide", "$documents", "$each", "$elemMatch", "$eq", "$exists", "$expr", "$facet", "$fill", "$filter", "$first",
    "$firstN", "$floor", "$function", "$geoIntersects", "$geoNear", "$geoWithin", "$getField", "$graphLookup", "$group", "$gt", "$gte",
    "$ifNull", "$in", "$inc", "$indexOfArray", "$indexOfCP", "$indexStats", "$integral", "$isArray", "$isNumber", "$jsonSchema", "$last",
    "$lastN", "$let", "$limit", "$literal", "$locf", "$lookup", "$lt", "$lte", "$map", "$match", "$max", "$maxN", "$median", "$merge",
    "$mergeObjects", "$meta", "$min", "$minN", "$mod", "$mul", "$multiply", "$ne", "$near", "$nearSphere", "$nin", "$nor", "$not",
    "$objectToArray", "$or", "$out", "$percentile", "$pop", "$pow", "$project", "$pull", "$pullAll", "$push", "$rand", "$range",
    "$rank", "$redact", "$reduce", "$regex", "$regexFind", "$regexFindAll", "$regexMatch", "$rename", "$replaceAll", "$replaceOne",
    "$replaceRoot", "$replaceWith", "$reverseArray", "$round", "$sample", "$search", "$set", "$setDifference", "$setEquals",
    "$setField", "$setIntersection", "$setIsSubset", "$setOnInsert", "$setUnion", "$setWindowFields", "$shift", "$size", "$skip",
    "$slice", "$sort", "$sortArray", "$sortByCount", "$split", "$sqrt", "$stdDevPop", "$stdDevSamp", "$strLenCP", "$substrCP",
    "$subtract", "$sum", "$switch", "$text", "$toBool", "$toDate", "$toDecimal", "$toDouble", "$toInt", "$toLong", "$toLower",
    "$toObjectId", "$toString", "$toUpper", "$top", "$topN", "$trim", "$trunc", "$type", "$unionWith", "$unset", "$unsetField",
    "$unwind", "$vectorSearch", "$where", "$zip"];
  const WORDS = ["show", "use", "it", "exit", "quit", "help", "cls", "db", "rs", "load", "print", "printjson", "connect", "sleep"];

  const beginning = (names, start, made = (name) => name) => names.filter((name) => name.startsWith(start)).map(made);
  // Names of collections, once for each database that completion has asked.
  const known = new Map();
  const collections = (database) => {
    const name = database.getName();
    const found = known.get(name);
    if (found !== undefined && Date.now() - found.at < 5000) return found.names;
    let names = [];
    try { names = database.getCollectionNames(); } catch { /* a user who may not list them */ }
    known.set(name, { names, at: Date.now() });
    return names;
  };

  // The object that a chain such as `db.a.find()` leads to, without running anything but the way to it.
  const reached = (chain) => {
    const parts = chain.split(".");
    if (parts[0] === "rs" && parts.length === 1) return globalThis.rs;
    if (parts[0] !== "db" || !shell.hasDatabase()) {
      return parts.length === 1 && Object.hasOwn(globalThis, parts[0]) ? globalThis[parts[0]] : undefined;
    }
    if (parts.length === 1) return shell.database();
    const call = /^(\w+)\(.*\)$/.exec(parts.at(-1));
    if (call !== null) {
      if (/^(aggregate|watch)$/.test(call[1])) return shell.AggregationCursor.prototype;
      return call[1] === "find" || shell.FindCursor.prototype[call[1]] !== undefined ? shell.FindCursor.prototype : undefined;
    }
    return parts.every((part) => /^\w+$/.test(part)) ? shell.database().getCollection(parts.slice(1).join(".")) : undefined;
  };

  // Where the completed word begins in the line, and the words that may stand there.
  shell.complete = (line) => {
    const operator = /\$\w*$/.exec(line);
    if (operator !== null) return { from: operator.index, names: beginning(OPERATORS, operator[0]) };
    const shown = /^\s*show\s+(\w*)$/.exec(line);
    if (shown !== null) return { from: line.length - shown[1].length, names: beginning(shell.shownNames, shown[1]) };
    const used = /^\s*use\s+(\S*)$/.exec(line);
    if (used !== null && shell.hasDatabase()) {
      let names = [];
      try { names = shell.database()._mongo.getDBNames(); } catch { /* as above */ }
      return { from: line.length - used[1].length, names: beginning(names, used[1]) };
    }
    const member = /((?:[\w$]+(?:\([^()]*\))?\.)+)([\w$]*)$/.exec(line);
    if (member !== null) {
      const object = reached(member[1].slice(0, -1));
      if (object === undefined || object === null) return { from: line.length, names: [] };
      const names = beginning(shell.methodsOf(object), member[2], (name) => `${name}(`);
      const isDatabase = object instanceof shell.Database;
      const inner = !(object instanceof shell.Collection) ? [] : collections(object.getDB())
        .filter((name) => name.startsWith(`${object.getName()}.`)).map((name) => name.slice(object.getName().length + 1));
      return { from: line.length - member[2].length, names: [...beginning(isDatabase ? collections(object) : inner, member[2]), ...names] };
    }
    const word = /[\w]*$/.exec(line);
    const globals = Object.getOwnPropertyNames(globalThis);
    const names = word[0] === "" ? WORDS : Array.from(new Set([...WORDS, ...globals])).sort();
    return { from: word.index, names: beginning(names, word[0]) };
  };
})
