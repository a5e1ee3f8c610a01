// The types of BSON that JavaScript lacks, but for binary data.
((shell) => {
  const { host, printed, encoded, callable, globals } = shell;
  const { BSONError } = shell.errors;
  const refuse = (message) => { throw new BSONError(message); };

  let counter = Math.floor(Math.random() * 0x1000000);
  const hexadecimal = (number, digits) => number.toString(16).padStart(digits, "0");
  const newId = (seconds) => {
    counter = (counter + 1) & 0xffffff;
    return hexadecimal(Math.floor(seconds) >>> 0, 8) + host.processId + hexadecimal(counter, 6);
  };
  const ObjectId = callable(class ObjectId {
    constructor(id) {
      let text = id;
      if (id === undefined || id === null) text = newId(Date.now() / 1000);
      else if (typeof id === "number") text = newId(id);
      else if (id instanceof Uint8Array) text = Array.from(id, (byte) => hexadecimal(byte, 2)).join("");
      else if (typeof id === "object") text = id.hex ?? id.toHexString?.();
      if (typeof text !== "string" || !/^[0-9a-fA-F]{24}$/.test(text)) {
        refuse("input must be a 24 character hex string, 12 byte Uint8Array, or an integer");
      }
      shell.hide(this, { hex: text.toLowerCase() });
    }
    get _bsontype() { return "ObjectId"; }
    get str() { return this.hex; }
    toHexString() { return this.hex; }
    toString() { return this.hex; }
    toJSON() { return this.hex; }
    equals(other) { return other !== null && other !== undefined && String(other) === this.hex; }
    getTimestamp() { return new Date(parseInt(this.hex.slice(0, 8), 16) * 1000); }
    [printed]() { return `ObjectId('${this.hex}')`; }
    [encoded]() { return ["objectId", this.hex]; }
    get id() { return Uint8Array.from(this.hex.match(/../g), (pair) => parseInt(pair, 16)); }
    static createFromHexString(text) { return new ObjectId(text); }
    static createFromBase64(text) {
      const bytes = host.fromBase64(String(text)) ?? [];
      if (bytes.length !== 12) refuse("input must be a base64 string of length 16");
      return new ObjectId(Array.from(bytes, (byte) => hexadecimal(byte, 2)).join(""));
    }
    static createFromTime(seconds) { return new ObjectId(hexadecimal(Math.floor(seconds) >>> 0, 8) + "0".repeat(16)); }
    static isValid(value) {
      try { new ObjectId(value); } catch { return false; }
      return true;
    }
  });

  const toBigInt = (value, name) => {
    if (typeof value === "bigint") return value;
    if (value instanceof Long) return value.integer;
    if (typeof value === "number" && Number.isFinite(value)) return BigInt(Math.trunc(value));
    if (typeof value === "string" && /^\s*[+-]?\d+\s*$/.test(value)) return BigInt(value);
    if (value instanceof Int32) return BigInt(value.value);
    return refuse(`${name}: not an integer: ${String(value)}`);
  };
  const Long = callable(class Long {
    constructor(low = 0, high) {
      const integer = typeof high === "number"
        ? (BigInt(high) << 32n) | BigInt(low >>> 0) : toBigInt(low, "Long");
      shell.hide(this, { integer: BigInt.asIntN(64, integer) });
    }
    get _bsontype() { return "Long"; }
    get low() { return Number(BigInt.asIntN(32, this.integer)); }
    get high() { return Number(this.integer >> 32n); }
    get floatApprox() { return Number(this.integer); }
    get top() { return this.high; }
    get bottom() { return this.low >>> 0; }
    toNumber() { return Number(this.integer); }
    toInt() { return this.low; }
    toBigInt() { return this.integer; }
    toString(radix) { return this.integer.toString(radix); }
    toJSON() { return { high: this.high, low: this.low, unsigned: false }; }
    exactValueString() { return this.toString(); }
    compare(other) {
      const others = toBigInt(other, "Long");
      return this.integer < others ? -1 : this.integer > others ? 1 : 0;
    }
    equals(other) { return this.compare(other) === 0; }
    isZero() { return this.integer === 0n; }
    isNegative() { return this.integer < 0n; }
    negate() { return new Long(-this.integer); }
    [printed]() { return `Long('${this.integer}')`; }
    [encoded]() { return ["long", this.integer]; }
    static fromNumber(number) { return new Long(number); }
    static fromInt(number) { return new Long(number | 0); }
    static fromString(text) { return new Long(String(text)); }
    static fromBigInt(integer) { return new Long(integer); }
  });
  const arithmetic = {
    add: (a, b) => a + b, subtract: (a, b) => a - b, multiply: (a, b) => a * b, divide: (a, b) => a / b,
    modulo: (a, b) => a % b, and: (a, b) => a & b, or: (a, b) => a | b, xor: (a, b) => a ^ b,
    shiftLeft: (a, b) => a << b, shiftRight: (a, b) => a >> b,
  };
  for (const [name, operation] of Object.entries(arithmetic)) {
    shell.hide(Long.prototype, { [name](other) { return new Long(operation(this.integer, toBigInt(other, name))); } });
  }
  const COMPARISONS = { lessThan: [-1], lessThanOrEqual: [-1, 0], greaterThan: [1], greaterThanOrEqual: [1, 0], notEquals: [-1, 1] };
  const SHORT_COMPARISONS = { lt: "lessThan", lte: "lessThanOrEqual", le: "lessThanOrEqual", gt: "greaterThan", gte: "greaterThanOrEqual",
    ge: "greaterThanOrEqual", ne: "notEquals", neq: "notEquals", eq: "equals", comp: "compare" };
  const alias = (Class, names) => {
    for (const [short, name] of Object.entries(names)) shell.hide(Class.prototype, { [short]: Class.prototype[name] });
  };
  // Comparisons by `compare`, under all names that the driver has for them.
  const compareBy = (Class) => {
    for (const [name, accepted] of Object.entries(COMPARISONS)) {
      shell.hide(Class.prototype, { [name](other) { return accepted.includes(Math.sign(this.compare(other))); } });
    }
    alias(Class, SHORT_COMPARISONS);
  };
  compareBy(Long);
  shell.hide(Long.prototype, {
    toBytesLE() { return Array.from({ length: 8 }, (_, at) => Number((this.integer >> BigInt(8 * at)) & 0xffn)); },
    toBytesBE() { return this.toBytesLE().reverse(); },
    toBytes(isLittle = false) { return isLittle ? this.toBytesLE() : this.toBytesBE(); },
    not() { return new Long(~this.integer); },
    shiftRightUnsigned(bits) { return new Long(BigInt.asUintN(64, this.integer) >> toBigInt(bits, "shiftRightUnsigned")); },
    isEven() { return (this.integer & 1n) === 0n; },
    isOdd() { return (this.integer & 1n) === 1n; },
    isPositive() { return this.integer >= 0n; },
    getHighBits() { return this.high; },
    getLowBits() { return this.low; },
    getHighBitsUnsigned() { return this.high >>> 0; },
    getLowBitsUnsigned() { return this.low >>> 0; },
  });
  alias(Long, { sub: "subtract", mul: "multiply", div: "divide", mod: "modulo", rem: "modulo", neg: "negate", shl: "shiftLeft",
    shr: "shiftRight", shru: "shiftRightUnsigned", shr_u: "shiftRightUnsigned", eqz: "isZero" });
  const LONG_MAX = 2n ** 63n - 1n;
  Object.assign(Long, { MAX_VALUE: new Long(LONG_MAX), MIN_VALUE: new Long(-LONG_MAX - 1n), ZERO: new Long(0), ONE: new Long(1) });

  // A number that is written with one type, whatever its value.
  const typedNumber = (name, tag, convert) => ({ [name]: class {
    constructor(value = 0) { shell.hide(this, { value: convert(Number(String(value))) }); }
    get _bsontype() { return name; }
    valueOf() { return this.value; }
    toString(radix) { return this.value.toString(radix); }
    toJSON() { return this.value; }
    [printed]() { return `${name}(${Object.is(this.value, -0) ? "-0" : this.value})`; }
    [encoded]() { return [tag, this.value]; }
  } })[name];
  const Int32 = callable(typedNumber("Int32", "int", (number) => number | 0));
  const Double = callable(typedNumber("Double", "double", (number) => number));

  const Decimal128 = callable(class Decimal128 {
    constructor(value = "0") {
      const digits = host.decimal(String(value));
      if (digits === undefined) refuse(`${String(value)} not a valid Decimal128 string`);
      shell.hide(this, { digits });
    }
    get _bsontype() { return "Decimal128"; }
    toString() { return this.digits; }
    toJSON() { return { $numberDecimal: this.digits }; }
    [printed]() { return `Decimal128('${this.digits}')`; }
    [encoded]() { return ["decimal", this.digits]; }
    static fromString(text) { return new Decimal128(text); }
  });

  const unsigned = (value, name) => {
    const number = Number(value);
    if (!(Number.isInteger(number) && number >= 0 && number <= 0xffffffff)) {
      refuse(`Timestamp: ${name} must be an integer between 0 and 4294967295, not ${String(value)}`);
    }
    return number;
  };
  const Timestamp = callable(class Timestamp {
    constructor(first = { t: 0, i: 0 }, increment) {
      let [t, i] = [first.t, first.i];
      if (first instanceof Long || typeof first === "bigint") {
        const integer = BigInt.asUintN(64, toBigInt(first));
        [t, i] = [Number(integer >> 32n), Number(integer & 0xffffffffn)];
      } else if (typeof first === "number") {
        [t, i] = [first, increment ?? 0];
      }
      shell.hide(this, { t: unsigned(t, "t"), i: unsigned(i, "i") });
    }
    get _bsontype() { return "Timestamp"; }
    getTime() { return this.t; }
    getInc() { return this.i; }
    getHighBits() { return this.t | 0; }
    getLowBits() { return this.i | 0; }
    compare(other) { return this.t - other.t || this.i - other.i; }
    equals(other) { return this.compare(other) === 0; }
    toBigInt() { return (BigInt(this.t) << 32n) | BigInt(this.i); }
    toNumber() { return Number(this.toBigInt()); }
    toString() { return this.toBigInt().toString(); }
    toJSON() { return { $timestamp: this.toString() }; }
    [printed]() { return `Timestamp({ t: ${this.t}, i: ${this.i} })`; }
    [encoded]() { return ["timestamp", this.t, this.i]; }
  });
  compareBy(Timestamp);

  const limit = (name, tag, json) => callable({ [name]: class {
    get _bsontype() { return name; }
    toJSON() { return json; }
    [printed]() { return `${name}()`; }
    [encoded]() { return [tag]; }
  } }[name]);
  const MinKey = limit("MinKey", "minKey", { $minKey: 1 });
  const MaxKey = limit("MaxKey", "maxKey", { $maxKey: 1 });

  const Code = callable(class Code {
    constructor(code, scope) {
      this.code = String(code);
      if (scope !== undefined && scope !== null) this.scope = scope;
    }
    get _bsontype() { return "Code"; }
    toJSON() { return { code: this.code, scope: this.scope }; }
    [printed](print) { return `Code(${print(this.code)}${this.scope === undefined ? "" : ", " + print(this.scope)})`; }
    [encoded]() { return ["code", this.code, this.scope]; }
  });
  const BSONSymbol = callable(class BSONSymbol {
    constructor(value) { this.value = String(value); }
    get _bsontype() { return "BSONSymbol"; }
    valueOf() { return this.value; }
    toString() { return this.value; }
    toJSON() { return this.value; }
    [printed](print) { return `BSONSymbol(${print(this.value)})`; }
    [encoded]() { return ["symbol", this.value]; }
  });
  const BSONRegExp = callable(class BSONRegExp {
    constructor(pattern, options = "") {
      this.pattern = String(pattern);
      this.options = Array.from(options).sort().join("");
    }
    get _bsontype() { return "BSONRegExp"; }
    [printed](print) { return `BSONRegExp(${print(this.pattern)}, ${print(this.options)})`; }
    [encoded]() { return ["regex", this.pattern, this.options]; }
  });
  const DBRef = callable(class DBRef {
    constructor(collection, id, database, fields) {
      this.collection = collection;
      this.oid = id;
      this.db = database || undefined;
      this.fields = fields ?? {};
    }
    get _bsontype() { return "DBRef"; }
    get $ref() { return this.collection; }
    get $id() { return this.oid; }
    get $db() { return this.db; }
    toJSON() { return { $ref: this.collection, $id: this.oid, ...(this.db && { $db: this.db }), ...this.fields }; }
    [printed](print) {
      const parts = [this.collection, this.oid];
      if (this.db !== undefined) parts.push(this.db);
      return `DBRef(${parts.map((part) => print(part)).join(", ")})`;
    }
    [encoded]() { return ["value", this.toJSON()]; }
  });

  const ISO = /^(\d{4})-?(\d{2})-?(\d{2})([T ](\d{2})(:?(\d{2})(:?(\d{2})(\.\d+)?)?)?(Z|([+-])(\d{2}):?(\d{2})?)?)?$/;
  const ISODate = shell.maker((text) => {
    if (text === undefined) return new Date();
    const part = ISO.exec(text);
    if (part === null) {
      const date = new Date(text);
      if (Number.isNaN(date.getTime())) shell.refuseInput(`${JSON.stringify(text)} is not a valid ISODate`);
      return date;
    }
    const date = new Date(0);
    date.setUTCFullYear(Number(part[1]), Number(part[2]) - 1, Number(part[3]));
    date.setUTCHours(Number(part[5] ?? 0), Number(part[7] ?? 0), Number(part[9] ?? 0), Number(part[10] ?? 0) * 1000);
    // A month, day or hour that does not exist would become a later one.
    const numbers = [date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
    const given = [part[2], part[3], part[5] ?? 0, part[7] ?? 0, part[9] ?? 0];
    if (numbers.some((number, at) => number !== Number(given[at]))) shell.refuseInput(`${JSON.stringify(text)} is not a valid ISODate`);
    const offset = (Number(part[13] ?? 0) * 60 + Number(part[14] ?? 0)) * 60000;
    return new Date(date.getTime() + (part[12] === "+" ? -offset : offset));
  });

  Object.defineProperty(Date.prototype, printed, {
    value() { return Number.isNaN(this.getTime()) ? "Invalid Date" : `ISODate('${this.toISOString()}')`; },
  });

  const warnOfNumber = (name, value) => {
    if (typeof value !== "number") return;
    shell.warn(`Warning: ${name}: specifying a number as argument is deprecated and may lead to loss of precision, pass a string instead`);
  };
  const NumberLong = shell.maker((value = "0") => {
    warnOfNumber("NumberLong", value);
    return new Long(toBigInt(value, "NumberLong"));
  });
  const NumberInt = shell.maker((value = 0) => new Int32(value));
  const NumberDecimal = shell.maker((value = "0") => {
    warnOfNumber("NumberDecimal", value);
    return new Decimal128(value);
  });
  shell.types = {
    ObjectId, Long, Int32, Double, Decimal128, Timestamp, MinKey, MaxKey, Code, BSONSymbol, BSONRegExp, DBRef,
  };
  globals({
    ...shell.types, ObjectID: ObjectId, ISODate, NumberLong, NumberInt, NumberDecimal,
  });
})
