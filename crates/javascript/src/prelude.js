// What scripts find beside the language: BSON's types, and the functions that MongoDB's manual names under "Server-side
// JavaScript". Evaluated once for each engine; answers what the Rust side keeps: how values are made, and whose they are.
(function (host) {
  "use strict";
  const define = Object.defineProperty;
  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const unhex = (text) => Array.from({ length: text.length / 2 }, (_, at) => parseInt(text.substr(2 * at, 2), 16));
  const random = (digits) => Array.from({ length: digits }, () => Math.floor(Math.random() * 16).toString(16)).join("");
  const refuse = (message) => { throw new Error(message); };
  // Types may be called with and without `new`.
  const type = (name, make, methods) => {
    const callable = { [name]: function (...args) {
      const made = Object.create(callable.prototype);
      make(made, ...args);
      return made;
    } }[name];
    for (const [key, method] of Object.entries(Object.getOwnPropertyDescriptors(methods))) {
      define(callable.prototype, key, { ...method, enumerable: false });
    }
    define(globalThis, name, { value: callable, writable: true, configurable: true });
    return callable;
  };
  const field = (object, name, value) => define(object, name, { value, writable: true, configurable: true });

  const ObjectId = type("ObjectId", (made, text) => {
    if (text === undefined) text = Math.floor(Date.now() / 1000).toString(16).padStart(8, "0") + random(16);
    if (text instanceof ObjectId) text = text.str;
    if (typeof text !== "string" || !/^[0-9a-fA-F]{24}$/.test(text)) refuse("invalid object id: length");
    made.str = text.toLowerCase();
  }, {
    toString() { return 'ObjectId("' + this.str + '")'; },
    toJSON() { return this.str; },
    tojson() { return this.toString(); },
    valueOf() { return this; },
    equals(other) { return other instanceof ObjectId && other.str === this.str; },
    getTimestamp() { return new Date(parseInt(this.str.slice(0, 8), 16) * 1000); },
    isObjectId: true,
  });
  ObjectId.fromDate = (date) => ObjectId(Math.floor(date.getTime() / 1000).toString(16).padStart(8, "0") + "0".repeat(16));
  globalThis.ObjectID = ObjectId;

  // A 64-bit integer, kept as its digits: a number would lose some.
  const NumberLong = type("NumberLong", (made, value = 0, ...rest) => {
    if (rest.length === 1) value = (BigInt(rest[0] >>> 0) << 32n) | BigInt(value >>> 0);
    if (rest.length === 2) value = (BigInt(rest[0] >>> 0) << 32n) | BigInt(rest[1] >>> 0);
    let integer;
    if (value instanceof NumberLong) integer = BigInt(value.digits);
    else if (typeof value === "string" && /^\s*[+-]?\d+$/.test(value)) integer = BigInt(value);
    else if (typeof value === "bigint") integer = value;
    else {
      const number = Number(value);
      if (Number.isNaN(number)) refuse("could not convert \"" + value + "\" to NumberLong");
      integer = number >= 2 ** 63 ? 2n ** 63n - 1n : number <= -(2 ** 63) ? -(2n ** 63n) : BigInt(Math.trunc(number));
    }
    if (integer !== BigInt.asIntN(64, integer)) refuse("could not convert \"" + value + "\" to NumberLong");
    field(made, "digits", integer.toString());
  }, {
    get floatApprox() { return Number(this.digits); },
    get top() { return Number(BigInt.asUintN(64, BigInt(this.digits)) >> 32n); },
    get bottom() { return Number(BigInt.asUintN(32, BigInt(this.digits))); },
    toNumber() { return Number(this.digits); },
    valueOf() { return Number(this.digits); },
    toString() {
      const number = Number(this.digits);
      return Math.abs(number) < 2147483648 ? "NumberLong(" + this.digits + ")" : 'NumberLong("' + this.digits + '")';
    },
    toJSON() { return this.toString(); },
    tojson() { return this.toString(); },
    exactValueString() { return this.digits; },
    compare(other) {
      const [mine, others] = [BigInt(this.digits), BigInt(NumberLong(other).digits)];
      return mine < others ? -1 : mine > others ? 1 : 0;
    },
    equals(other) { return this.compare(other) === 0; },
  });
  const NumberInt = type("NumberInt", (made, value = 0) => {
    const number = Number(value);
    if (Number.isNaN(number)) refuse("could not convert \"" + value + "\" to NumberInt");
    field(made, "number", number | 0);
  }, {
    toNumber() { return this.number; },
    valueOf() { return this.number; },
    toString() { return "NumberInt(" + this.number + ")"; },
    toJSON() { return this.number; },
    tojson() { return this.toString(); },
  });
  const NumberDecimal = type("NumberDecimal", (made, value = "0") => {
    const text = host.decimal(String(value instanceof NumberDecimal ? value.digits : Object(value).digits ?? value));
    if (text === undefined) refuse("could not convert \"" + value + "\" to NumberDecimal");
    field(made, "digits", text);
  }, {
    toString() { return 'NumberDecimal("' + this.digits + '")'; },
    toJSON() { return this.toString(); },
    tojson() { return this.toString(); },
  });

  const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const toBase64 = (text) => {
    const bytes = unhex(text);
    let out = "";
    for (let at = 0; at < bytes.length; at += 3) {
      const group = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      for (let part = 0; part < 4; part++) {
        out += at + part > bytes.length ? "=" : BASE64[(group >> (18 - 6 * part)) & 63];
      }
    }
    return out;
  };
  const fromBase64 = (text) => {
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4) refuse("BinData data must be a base64 string");
    const bytes = [];
    let [bits, count] = [0, 0];
    for (const letter of text.replace(/=/g, "")) {
      bits = ((bits << 6) | BASE64.indexOf(letter)) & 0xffffff;
      count += 6;
      if (count >= 8) bytes.push((bits >> (count -= 8)) & 255);
    }
    return hex(bytes);
  };
  const checkSubtype = (subtype) => {
    if (!(Number.isInteger(subtype) && subtype >= 0 && subtype <= 255)) refuse("BinData subtype must be between 0 and 255");
    return subtype;
  };
  const BinData = type("BinData", (made, subtype, text) => {
    made.type = checkSubtype(subtype);
    field(made, "bytes", fromBase64(String(text)));
    made.len = made.bytes.length / 2;
  }, {
    hex() { return this.bytes; },
    base64() { return toBase64(this.bytes); },
    length() { return this.len; },
    subtype() { return this.type; },
    toString() {
      return this.type === 4 && this.len === 16 ? 'UUID("' + dashed(this.bytes) + '")'
        : "BinData(" + this.type + ',"' + this.base64() + '")';
    },
    toJSON() { return this.toString(); },
    tojson() { return this.toString(); },
    equals(other) { return other instanceof BinData && other.type === this.type && other.bytes === this.bytes; },
  });
  const binary = (subtype, bytes) => {
    const made = Object.create(BinData.prototype);
    made.type = subtype;
    field(made, "bytes", bytes);
    made.len = bytes.length / 2;
    return made;
  };
  const dashed = (text) => text.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  const global = (name, value) => define(globalThis, name, { value, writable: true, configurable: true });
  global("HexData", (subtype, text) => {
    if (!/^([0-9a-fA-F]{2})*$/.test(text)) refuse("HexData string must be an even number of hexadecimal digits");
    return binary(checkSubtype(subtype), String(text).toLowerCase());
  });
  global("UUID", (text) => {
    if (text === undefined) return binary(4, random(12) + "4" + random(3) + "a" + random(15));
    const digits = String(text).replace(/-/g, "");
    if (!/^[0-9a-fA-F]{32}$/.test(digits)) refuse("Invalid UUID string: " + text);
    return binary(4, digits.toLowerCase());
  });
  global("MD5", (text) => HexData(5, text));

  const Timestamp = type("Timestamp", (made, seconds = 0, increment = 0) => {
    for (const part of [seconds, increment]) {
      if (!(part >= 0 && part <= 4294967295)) refuse("Timestamp time and increment must be 32-bit unsigned integers");
    }
    made.t = Number(seconds);
    made.i = Number(increment);
  }, {
    getTime() { return this.t; },
    getInc() { return this.i; },
    toString() { return "Timestamp(" + this.t + ", " + this.i + ")"; },
    toJSON() { return this.toString(); },
    tojson() { return this.toString(); },
  });
  const single = (name, text) => {
    const Type = type(name, () => {}, {
      toString() { return text; }, toJSON() { return text; }, tojson() { return text; },
    });
    const only = Object.create(Type.prototype);
    global(name, new Proxy(Type, { apply: () => only, construct: () => only }));
    return { Type, only };
  };
  const minKey = single("MinKey", '{ "$minKey" : 1 }');
  const maxKey = single("MaxKey", '{ "$maxKey" : 1 }');
  const DBRef = type("DBRef", (made, collection, id, database) => {
    made.$ref = collection;
    made.$id = id;
    if (database !== undefined) made.$db = database;
  }, {
    getCollection() { return this.$ref; },
    getId() { return this.$id; },
    getRef() { return this.$ref; },
    getDb() { return this.$db; },
    toString() { return "DBRef(" + [this.$ref, this.$id].map(tojson).join(", ") + ")"; },
    tojson() { return this.toString(); },
  });
  const DBPointer = type("DBPointer", (made, namespace, id) => {
    made.ns = String(namespace);
    made.id = id;
  }, { getCollection() { return this.ns; }, getId() { return this.id; },
    toString() { return 'DBPointer("' + this.ns + '", ' + this.id + ")"; } });
  const Code = type("Code", (made, code, scope) => {
    made.code = String(code);
    if (scope !== undefined) made.scope = scope;
  }, { toString() { return 'Code("' + this.code + '")'; } });

  global("ISODate", (text) => {
    if (text === undefined) return new Date();
    const parts = /^(\d{4})-?(\d{2})-?(\d{2})([T ](\d{2})(:?(\d{2})(:?(\d{2})(\.\d+)?)?)?(Z|([+-])(\d{2}):?(\d{2})?)?)?$/
      .exec(text) ?? refuse("invalid ISO date: " + text);
    const date = new Date(0);
    date.setUTCFullYear(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]));
    date.setUTCHours(Number(parts[5] ?? 0), Number(parts[7] ?? 0), Number(parts[9] ?? 0), Number(parts[10] ?? 0) * 1000);
    const offset = (Number(parts[13] ?? 0) * 60 + Number(parts[14] ?? 0)) * 60000;
    return new Date(date.getTime() + (parts[12] === "+" ? -offset : offset));
  });

  // The mongo shell's notation.
  const written = (value, indent, depth) => {
    if (depth > 150) refuse("too deep to be written: is there a cycle?");
    if (value === null) return "null";
    if (value === undefined) return "undefined";
    if (typeof value === "string") return JSON.stringify(value);
    if (typeof value !== "object") return String(value);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "new Date(NaN)" : 'ISODate("' + value.toISOString().replace(".000Z", "Z") + '")';
    if (value instanceof RegExp) return value.toString();
    if (typeof value.tojson === "function") return value.tojson();
    const line = indent === undefined ? " " : "\n" + indent + "\t";
    const end = indent === undefined ? " " : "\n" + indent;
    const inner = indent === undefined ? undefined : indent + "\t";
    if (Array.isArray(value)) {
      if (value.length === 0) return "[ ]";
      return "[" + line + value.map((item) => written(item, inner, depth + 1)).join("," + line) + end + "]";
    }
    const entries = Object.entries(value).map(([name, item]) => JSON.stringify(name) + " : " + written(item, inner, depth + 1));
    return entries.length === 0 ? "{ }" : "{" + line + entries.join("," + line) + end + "}";
  };
  global("tojson", (value, indent = "", oneLine = false) => {
    const short = written(value, undefined, 0);
    return oneLine || short.length < 80 ? short : written(value, indent, 0);
  });
  global("tojsononeline", (value) => written(value, undefined, 0));
  global("tojsonObject", (value, indent = "", oneLine = false) => tojson(value, indent, oneLine));
  for (const name of ["print", "printjson", "printjsononeline", "gc"]) global(name, () => {});
  global("sleep", (milliseconds) => { host.sleep(Number(milliseconds) || 0); return null; });
  global("hex_md5", (text) => host.md5(String(text)));
  global("isNumber", (value) => typeof value === "number");
  global("isString", (value) => typeof value === "string");
  global("isObject", (value) => typeof value === "object");
  global("doassert", (message) => refuse(String(message)));
  global("assert", (condition, message) => { if (!condition) refuse("assert failed" + (message === undefined ? "" : " : " + message)); });
  const addTo = (object, functions) => {
    for (const [name, value] of Object.entries(functions)) define(object, name, { value, writable: true, configurable: true });
  };
  addTo(Array, {
    contains: (array, value) => array.some((item) => item == value),
    unique: (array) => array.filter((item, at) => array.indexOf(item) === at),
    tojson: (array, indent, oneLine) => tojson(array, indent, oneLine),
    fetchRefs: undefined,
    sum(array) {
      if (array.length === 0) return null;
      let sum = array[0];
      for (let at = 1; at < array.length; at++) sum += array[at];
      return sum;
    },
    avg: (array) => (array.length === 0 ? null : Array.sum(array) / array.length),
    stdDev(array) {
      const mean = Array.avg(array);
      return Math.sqrt(array.reduce((sum, item) => sum + (item - mean) ** 2, 0) / array.length);
    },
  });
  addTo(Object, {
    extend: (target, source) => Object.assign(target, source),
    merge: (target, source) => Object.assign({}, target, source),
    keySet: (object) => Object.keys(object),
  });

  // No thread and no event loop serves these here.
  for (const name of ["Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry", "performance", "queueMicrotask"]) {
    delete globalThis[name];
  }

  // The emits of a call of `map`.
  let emitted = [];
  global("emit", (...args) => {
    if (args.length !== 2) refuse("emit takes 2 args");
    emitted.push({ k: args[0], v: args[1] });
  });
  return {
    takeEmitted: () => { const taken = emitted; emitted = []; return taken; },
    wellFormed: (text) => text.toWellFormed(),
    time: (date) => Date.prototype.getTime.call(date),
    date: (milliseconds) => new Date(milliseconds),
    regex: (pattern, flags) => {
      // What this engine cannot compile is at least shown.
      try { return new RegExp(pattern, flags); } catch { return "/" + pattern + "/" + flags; }
    },
    objectId: (text) => { const made = Object.create(ObjectId.prototype); made.str = text; return made; },
    long: (digits) => { const made = Object.create(NumberLong.prototype); field(made, "digits", digits); return made; },
    decimal: (digits) => { const made = Object.create(NumberDecimal.prototype); field(made, "digits", digits); return made; },
    binary,
    timestamp: (seconds, increment) => Timestamp(seconds, increment),
    pointer: (namespace, id) => DBPointer(namespace, id),
    code: (code, scope) => Code(code, scope),
    minKey: minKey.only,
    maxKey: maxKey.only,
    written: (thrown) => (thrown instanceof Error ? thrown.name + ": " + thrown.message
      : "uncaught exception: " + (typeof thrown === "object" ? written(thrown, undefined, 0) : String(thrown))),
    pattern: (regex) => regex.source.replace(/\\(.)/gs, (pair, escaped) => (escaped === "/" ? "/" : pair)),
    source: (made) => Function.prototype.toString.call(made),
    // By prototype, in the order of `Kind`.
    prototypes: [Object.prototype, Date.prototype, RegExp.prototype, ObjectId.prototype, NumberLong.prototype,
      NumberInt.prototype, NumberDecimal.prototype, BinData.prototype, Timestamp.prototype, minKey.Type.prototype,
      maxKey.Type.prototype, DBPointer.prototype, Code.prototype, Number.prototype, String.prototype, Boolean.prototype],
  };
})
