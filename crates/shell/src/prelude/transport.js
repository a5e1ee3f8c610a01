// The passage of values to and from the host, which writes and reads BSON.
((shell) => {
  const { encoded, types } = shell;

  const flagsOf = (regex) => Array.from(regex.flags).filter((flag) => "imsux".includes(flag)).sort().join("");
  // How the host writes an object: a tag with its parts, or `undefined` for a plain document.
  shell.encode = (object) => {
    if (typeof object === "function") return ["code", String(object)];
    if (object instanceof Date) return ["date", object.getTime()];
    if (object instanceof RegExp) return ["regex", object.source.replace(/\\\//g, "/"), flagsOf(object)];
    if (object[encoded] !== undefined) return object[encoded]();
    if (typeof object.toBSON === "function") return ["value", object.toBSON()];
    if (object instanceof Uint8Array) return ["binary", 0, object];
    if (object instanceof Map) return ["entries", Array.from(object, ([name, value]) => [String(name), value])];
    if (object instanceof Number || object instanceof String || object instanceof Boolean) return ["value", object.valueOf()];
    return undefined;
  };

  const regex = (pattern, options) => {
    // JavaScript knows no `x`, and not every pattern of PCRE.
    try {
      if (/^[imsu]*$/.test(options)) return new RegExp(pattern, options);
    } catch { /* shown as it is */ }
    return new types.BSONRegExp(pattern, options);
  };
  const decoders = {
    objectId: (hex) => new types.ObjectId(hex),
    long: (integer) => new types.Long(integer),
    decimal: (digits) => new types.Decimal128(digits),
    date: (milliseconds) => new Date(milliseconds),
    binary: (subtype, bytes) => shell.binary(subtype, bytes),
    timestamp: (t, i) => new types.Timestamp(t, i),
    regex,
    code: (code, scope) => new types.Code(code, scope),
    symbol: (text) => new types.BSONSymbol(text),
    reference: ({ $ref, $id, $db, ...fields }) => new types.DBRef($ref, $id, $db, fields),
    pointer: (namespace, id) => new types.DBRef(namespace, id),
    minKey: () => new types.MinKey(),
    maxKey: () => new types.MaxKey(),
  };
  shell.decode = (tag, ...parts) => decoders[tag](...parts);
})
