// Extended JSON, as `EJSON` and `--json` write it.
((shell) => {
  const { types, encoded } = shell;
  // An object with these properties, whatever their names: assigning to `__proto__` would set no property.
  const mapped = (object, change) => Object.fromEntries(Object.entries(object).map(([name, item]) => [name, change(item)]));
  const isSafe = (date) => date.getTime() >= 0 && date.getUTCFullYear() <= 9999;
  const double = (number) => {
    if (Object.is(number, -0)) return { $numberDouble: "-0.0" };
    const text = Number.isNaN(number) ? "NaN" : String(number);
    return { $numberDouble: Number.isInteger(number) && !/[eI]/.test(text) ? `${text}.0` : text };
  };
  const isInt32 = (number) => Number.isInteger(number) && (number | 0) === number && !Object.is(number, -0);

  const numberJson = (number, relaxed) => {
    if (relaxed && Number.isFinite(number)) return number;
    if (isInt32(number)) return { $numberInt: String(number) };
    if (Object.is(number, -0)) return double(number);
    // As the driver, which writes whole numbers of 64 bits so, although documents have them as doubles.
    return { [Number.isInteger(number) && Math.abs(number) <= 2 ** 63 ? "$numberLong" : "$numberDouble"]: String(number) };
  };
  const writers = {
    ObjectId: (value) => ({ $oid: value.hex }),
    Long: (value, relaxed) => (relaxed ? Number(value.integer) : { $numberLong: String(value.integer) }),
    Int32: (value, relaxed) => (relaxed ? value.value : { $numberInt: String(value.value) }),
    Double: (value, relaxed) => (relaxed && Number.isFinite(value.value) ? value.value : double(value.value)),
    Decimal128: (value) => ({ $numberDecimal: value.digits }),
    Binary: (value) => ({ $binary: { base64: value.base64(), subType: value.sub_type.toString(16).padStart(2, "0") } }),
    Timestamp: (value) => ({ $timestamp: { t: value.t, i: value.i } }),
    MinKey: () => ({ $minKey: 1 }),
    MaxKey: () => ({ $maxKey: 1 }),
    Code: (value, relaxed) => (value.scope === undefined ? { $code: value.code } : { $code: value.code, $scope: json(value.scope, relaxed) }),
    BSONSymbol: (value) => ({ $symbol: value.value }),
    BSONRegExp: (value) => ({ $regularExpression: { pattern: value.pattern, options: value.options } }),
    DBRef: (value, relaxed) => json(value.toJSON(), relaxed),
  };
  const json = (value, relaxed) => {
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number") return numberJson(value, relaxed);
    if (typeof value === "bigint") return writers.Long(new types.Long(value), relaxed);
    if (typeof value !== "object") return undefined;
    if (value instanceof Date) {
      if (relaxed && isSafe(value)) return { $date: value.toISOString().replace(".000Z", "Z") };
      return { $date: relaxed && Number.isNaN(value.getTime()) ? null : { $numberLong: String(value.getTime()) } };
    }
    if (value instanceof RegExp) {
      const [, pattern, options] = shell.encode(value);
      return { $regularExpression: { pattern, options } };
    }
    // A document may have a field of that name.
    const writer = value[encoded] === undefined ? undefined : writers[value._bsontype];
    if (writer !== undefined) return writer(value, relaxed);
    if (value instanceof Error) return { message: value.message, name: value.name, stack: value.stack, ...json({ ...value }, relaxed) };
    if (Array.isArray(value)) return value.map((item) => json(item, relaxed) ?? null);
    if (value instanceof Map) return json(Object.fromEntries(value), relaxed);
    return mapped(value, (item) => (item === undefined ? null : json(item, relaxed)));
  };

  // The value of an object of Extended JSON, or `undefined` if it is a plain document.
  const typed = (object, relaxed) => {
    const number = (Type, text) => (relaxed ? Number(text) : new Type(text));
    if ("$oid" in object) return new types.ObjectId(object.$oid);
    if ("$numberInt" in object) return number(types.Int32, object.$numberInt);
    if ("$numberDouble" in object) return number(types.Double, object.$numberDouble);
    if ("$numberLong" in object) {
      const long = new types.Long(object.$numberLong);
      return relaxed && Number.isSafeInteger(long.toNumber()) ? long.toNumber() : long;
    }
    if ("$numberDecimal" in object) return new types.Decimal128(object.$numberDecimal);
    if ("$date" in object) {
      const date = object.$date;
      return new Date(typeof date === "object" && date !== null ? Number(String(date.$numberLong ?? date)) : date);
    }
    if ("$binary" in object) {
      const { base64, subType } = typeof object.$binary === "string"
        ? { base64: object.$binary, subType: object.$type } : object.$binary;
      return globalThis.BinData(parseInt(subType, 16), base64);
    }
    if ("$uuid" in object) return new types.UUID(object.$uuid);
    if ("$timestamp" in object) return new types.Timestamp({ t: Number(object.$timestamp.t), i: Number(object.$timestamp.i) });
    if ("$regularExpression" in object) {
      return new types.BSONRegExp(object.$regularExpression.pattern, object.$regularExpression.options);
    }
    if ("$minKey" in object) return new types.MinKey();
    if ("$maxKey" in object) return new types.MaxKey();
    if ("$symbol" in object) return object.$symbol;
    if ("$code" in object) return new types.Code(object.$code, object.$scope);
    if ("$undefined" in object) return null;
    if ("$ref" in object && "$id" in object) return shell.decode("reference", object);
    return undefined;
  };
  // A number of plain JSON, as the type that it would be stored as.
  const exact = (number) => {
    if (isInt32(number)) return new types.Int32(number);
    const isLong = Number.isInteger(number) && !Object.is(number, -0) && Math.abs(number) < 2 ** 63;
    return isLong ? new types.Long(BigInt(number)) : new types.Double(number);
  };
  const value = (item, relaxed) => {
    if (typeof item === "number" && !relaxed) return exact(item);
    if (item === null || typeof item !== "object") return item;
    if (Array.isArray(item)) return item.map((inner) => value(inner, relaxed));
    // The parts of a typed value are read by it, so that `$date` sees the text of its `$numberLong`.
    const known = typed(item, relaxed);
    if (known !== undefined) return known;
    return mapped(item, (inner) => value(inner, relaxed));
  };

  const EJSON = {
    stringify(item, replacer, space, options) {
      // As with the driver's: `stringify(value, options)` and `stringify(value, replacer, options)`.
      const given = [replacer, space, options];
      const settings = given.find((one) => one !== null && typeof one === "object" && !Array.isArray(one)) ?? {};
      const [first, second] = given.map((one) => (one === settings ? undefined : one));
      return JSON.stringify(json(item, settings.relaxed ?? true), first, second);
    },
    parse(text, reviver, options) {
      const settings = typeof reviver === "object" && reviver !== null ? reviver : options ?? {};
      const parsed = JSON.parse(text, typeof reviver === "function" ? reviver : undefined);
      return value(parsed, settings.relaxed ?? true);
    },
    serialize: (item, { relaxed = true } = {}) => json(item, relaxed),
    deserialize: (item, { relaxed = true } = {}) => value(item, relaxed),
  };
  shell.globals({ EJSON });
  // The output of `--json`.
  shell.extendedJson = (item, relaxed) => EJSON.stringify(item, undefined, 2, { relaxed });
})
