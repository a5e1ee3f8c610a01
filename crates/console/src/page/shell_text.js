// Reads documents as people type them in the shell, and Extended JSON, into trees:
//
//   {fields: [[name, tree], ...]}   a document, its fields in their order
//   {items: [tree, ...]}            an array
//   {value}                         a string, number, boolean or null
//
// Values with constructors, such as ObjectId("..."), become the documents with which Extended JSON writes them. Nothing is
// evaluated.

import { text } from "./texts.js";

/// The greatest nesting that is read, as the server has it.
const DEPTH_MAX = 180;
const BLANK = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
const NAME = /[A-Za-z_$][A-Za-z0-9_$.]*/y;
const NUMBER = /[+-]?(?:Infinity|NaN|0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)/y;
const REGEX = /\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/y;
const ESCAPES = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", v: "\v", 0: "\0" };

export class TextError extends Error {
  constructor(source, at, reason) {
    const before = source.slice(0, at).split("\n");
    super(text("notText", before.length, before.at(-1).length + 1, reason));
  }
}

const string = (value) => ({ value });
const document = (...fields) => ({ fields });
const wrapper = (name, value) => document([name, typeof value === "object" ? value : string(value)]);
const long = (value) => wrapper("$numberLong", String(value));

const argument = (args, check, expected) => {
  if (args.length !== 1 || !check(args[0].value)) throw new Error(text("expected", expected));
  return args[0].value;
};
const isText = (value) => typeof value === "string";
const isNumberText = (value) => /^[+-]?\d+$/.test(String(value));
const date = (args) => {
  if (args.length === 0) return wrapper("$date", long(Date.now()));
  const given = argument(args, (value) => isText(value) || typeof value === "number", "ISODate(\"2026-01-01T00:00:00Z\")");
  const ms = typeof given === "number" ? given : Date.parse(given);
  if (!Number.isFinite(ms)) throw new Error(text("expected", "ISODate(\"2026-01-01T00:00:00Z\")"));
  return wrapper("$date", long(ms));
};
const whole = (name) => (args) => wrapper(name, String(argument(args, isNumberText, `${name}("1")`)));
const objectId = (args) => wrapper("$oid", argument(args, (value) => /^[0-9a-fA-F]{24}$/.test(value), "ObjectId(\"…\")"));
const uuid = (args) => {
  const hex = argument(args, (value) => /^[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}$/.test(value), "UUID(\"…\")").replaceAll("-", "");
  const base64 = btoa(String.fromCharCode(...hex.match(/../g).map((pair) => parseInt(pair, 16))));
  return wrapper("$binary", document(["base64", string(base64)], ["subType", string("04")]));
};
const decimal = (args) =>
  wrapper("$numberDecimal", String(argument(args, (value) => isText(value) || typeof value === "number", "Decimal128(\"1.5\")")));
const timestamp = (args) => {
  const [t, i] = args.length === 1 ? ["t", "i"].map((name) => args[0].fields?.find(([field]) => field === name)?.[1].value) : args.map(({ value }) => value);
  if (!Number.isInteger(t) || !Number.isInteger(i)) throw new Error(text("expected", "Timestamp({t: 1, i: 1})"));
  return wrapper("$timestamp", document(["t", string(t)], ["i", string(i)]));
};
const binary = (args) => {
  const [subtype, base64] = args.map(({ value }) => value);
  if (!Number.isInteger(subtype) || subtype < 0 || subtype > 255 || !isText(base64)) throw new Error(text("expected", "BinData(0, \"…\")"));
  return wrapper("$binary", document(["base64", string(base64)], ["subType", string(subtype.toString(16).padStart(2, "0"))]));
};

const CONSTRUCTORS = {
  ObjectId: objectId,
  ISODate: date,
  Date: date,
  UUID: uuid,
  NumberLong: whole("$numberLong"),
  Long: whole("$numberLong"),
  NumberInt: whole("$numberInt"),
  Int32: whole("$numberInt"),
  NumberDecimal: decimal,
  Decimal128: decimal,
  Timestamp: timestamp,
  BinData: binary,
  MinKey: () => wrapper("$minKey", 1),
  MaxKey: () => wrapper("$maxKey", 1),
};
const WORDS = { true: true, false: false, null: null };

class Reader {
  constructor(source) {
    this.source = source;
    this.at = 0;
  }

  fail(reason, at = this.at) {
    throw new TextError(this.source, at, reason);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source);
    if (found !== null) this.at += found[0].length;
    return found;
  }

  /// The next character that is neither blank nor in a comment; it is not read.
  peek() {
    this.match(BLANK);
    return this.source[this.at];
  }

  take(character) {
    if (this.peek() !== character) return false;
    this.at += 1;
    return true;
  }

  demand(character) {
    if (!this.take(character)) this.fail(text("expected", `'${character}'`));
  }

  /// Items up to `close`, with commas between them; one may stand at the end.
  list(close, item) {
    const items = [];
    while (!this.take(close)) {
      items.push(item());
      if (this.take(close)) break;
      this.demand(",");
    }
    return items;
  }

  quoted(quote) {
    const from = this.at;
    this.at += 1;
    let read = "";
    for (;;) {
      const character = this.source[this.at];
      if (character === undefined || character === "\n") this.fail(text("expected", quote), from);
      this.at += 1;
      if (character === quote) return read;
      read += character === "\\" ? this.escape() : character;
    }
  }

  escape() {
    const character = this.source[this.at];
    this.at += 1;
    if (character !== "u" && character !== "x") return ESCAPES[character] ?? character ?? "";
    const digits = this.source.slice(this.at, this.at + (character === "u" ? 4 : 2));
    if (!/^(?:[0-9a-fA-F]{2}){1,2}$/.test(digits) || digits.length !== (character === "u" ? 4 : 2)) this.fail(text("expected", "\\u0000"));
    this.at += digits.length;
    return String.fromCharCode(parseInt(digits, 16));
  }

  field(depth) {
    const next = this.peek();
    const name = next === '"' || next === "'" ? this.quoted(next) : (this.match(NAME) ?? this.match(/\d+/y))?.[0];
    if (name === undefined) this.fail(text("expected", "name"));
    this.demand(":");
    return [name, this.value(depth)];
  }

  value(depth) {
    if (depth > DEPTH_MAX) this.fail(text("expected", `≤ ${DEPTH_MAX}`));
    const next = this.peek();
    if (next === '"' || next === "'") return string(this.quoted(next));
    if (this.take("{")) return { fields: this.list("}", () => this.field(depth + 1)) };
    if (this.take("[")) return { items: this.list("]", () => this.value(depth + 1)) };
    const regex = next === "/" && this.match(REGEX);
    if (regex) return wrapper("$regularExpression", document(["pattern", string(regex[1])], ["options", string([...regex[2]].sort().join(""))]));
    const number = this.match(NUMBER);
    if (number !== null) return this.number(number[0]);
    return this.word(depth);
  }

  number(digits) {
    const value = Number(digits);
    if (!Number.isFinite(value)) return wrapper("$numberDouble", digits.replace("+", ""));
    // A whole number that a double cannot hold keeps its digits.
    if (/^[+-]?\d+$/.test(digits) && !Number.isSafeInteger(value)) return long(digits.replace("+", ""));
    return string(value);
  }

  word(depth) {
    const from = this.at;
    let name = this.match(NAME)?.[0];
    if (name === "new" && this.peek() !== undefined) name = this.match(NAME)?.[0];
    if (Object.hasOwn(WORDS, name ?? "")) return string(WORDS[name]);
    if (!Object.hasOwn(CONSTRUCTORS, name ?? "")) this.fail(text("expected", "value"), from);
    const args = this.take("(") ? this.list(")", () => this.value(depth + 1)) : [];
    try {
      return CONSTRUCTORS[name](args);
    } catch (error) {
      return this.fail(error.message, from);
    }
  }
}

/// Reads one value; nothing may follow it.
export const parse = (source) => {
  const reader = new Reader(source);
  const tree = reader.value(0);
  if (reader.peek() !== undefined) reader.fail(text("expected", "end"));
  return tree;
};

/// A tree as Extended JSON.
export const toJson = (tree) => {
  if (Array.isArray(tree.items)) return `[${tree.items.map(toJson).join(",")}]`;
  if (Array.isArray(tree.fields)) return `{${tree.fields.map(([name, value]) => `${JSON.stringify(name)}:${toJson(value)}`).join(",")}}`;
  return JSON.stringify(tree.value);
};
