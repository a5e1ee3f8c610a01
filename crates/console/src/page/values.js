// Values as the shell writes them.

import { parse } from "./shell_text.js";

const NAME = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

const quoted = (string) => JSON.stringify(string);
const fieldName = (name) => (NAME.test(name) ? name : quoted(name));

/// How the shell writes a value that Extended JSON wraps, by the wrapper's first field.
const WRAPPED = {
  $oid: ({ $oid }) => `ObjectId(${quoted($oid)})`,
  $numberInt: ({ $numberInt }) => String($numberInt),
  $numberDouble: ({ $numberDouble }) => String($numberDouble),
  $numberLong: ({ $numberLong }) => `Long(${quoted(String($numberLong))})`,
  $numberDecimal: ({ $numberDecimal }) => `Decimal128(${quoted(String($numberDecimal))})`,
  $date: ({ $date }) => dateText($date),
  $binary: ({ $binary }) => ($binary?.base64 === undefined ? null : binaryText($binary)),
  $timestamp: ({ $timestamp }) => ($timestamp?.t === undefined ? null : `Timestamp({t: ${$timestamp.t}, i: ${$timestamp.i}})`),
  $regularExpression: ({ $regularExpression: it }) => (typeof it?.pattern === "string" ? `/${it.pattern.replace(/\//g, "\\/")}/${it.options}` : null),
  $minKey: () => "MinKey()",
  $maxKey: () => "MaxKey()",
  $undefined: () => "undefined",
  $symbol: ({ $symbol }) => quoted(String($symbol)),
  $code: ({ $code }) => `Code(${quoted(String($code))})`,
};

const dateText = (date) => {
  const ms = typeof date === "string" ? Date.parse(date) : Number(date?.$numberLong);
  const read = new Date(ms);
  return Number.isNaN(read.getTime()) ? `new Date(${ms})` : `ISODate(${quoted(read.toISOString())})`;
};

const binaryText = ({ base64, subType }) => {
  if (subType === "04" && base64.length === 24) {
    const hex = Array.from(atob(base64), (byte) => byte.charCodeAt(0).toString(16).padStart(2, "0")).join("");
    return `UUID("${hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}")`;
  }
  return `BinData(${parseInt(subType, 16)}, ${quoted(base64)})`;
};

const wrapped = (fields) => {
  const [[name] = []] = fields;
  if (!Object.hasOwn(WRAPPED, name ?? "")) return null;
  return WRAPPED[name](Object.fromEntries(fields.map(([field, value]) => [field, plain(value)])));
};

/// A tree (see `shell_text.js`) as an object of JavaScript; its fields are few and known.
const plain = (tree) => {
  if (Array.isArray(tree.fields)) return Object.fromEntries(tree.fields.map(([name, value]) => [name, plain(value)]));
  if (Array.isArray(tree.items)) return tree.items.map(plain);
  return tree.value;
};

const ofObject = (value) => {
  if (Array.isArray(value)) return { items: value.map(ofObject) };
  if (value !== null && typeof value === "object") return { fields: Object.entries(value).map(([name, inner]) => [name, ofObject(inner)]) };
  return { value };
};

const print = (tree, indent, step) => {
  const [open, between, close] = step === "" ? ["", ", ", ""] : [`\n${indent}${step}`, `,\n${indent}${step}`, `\n${indent}`];
  if (Array.isArray(tree.items)) {
    if (tree.items.length === 0) return "[]";
    return `[${open}${tree.items.map((item) => print(item, indent + step, step)).join(between)}${close}]`;
  }
  if (Array.isArray(tree.fields)) {
    const value = wrapped(tree.fields);
    if (value !== null) return value;
    if (tree.fields.length === 0) return "{}";
    const fields = tree.fields.map(([name, inner]) => `${fieldName(name)}: ${print(inner, indent + step, step)}`);
    return `{${open}${fields.join(between)}${close}}`;
  }
  return typeof tree.value === "string" ? quoted(tree.value) : String(tree.value);
};

/// An object of relaxed Extended JSON as the shell writes it, on one line.
export const shellText = (object) => print(ofObject(object), "", "");

/// A tree as the shell writes it, on as many lines as it needs.
export const shellLines = (tree) => {
  const short = print(tree, "", "");
  return short.length <= 100 ? short : print(tree, "", "  ");
};

/// Reads Extended JSON that the server wrote into a tree, which keeps the order of all fields.
export const readReply = (json) => parse(json);
