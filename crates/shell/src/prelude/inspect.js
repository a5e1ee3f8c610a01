// How values are printed: as Node's `util.inspect` lays them out, with the shell's names for BSON.
((shell) => {
  const { printed, received } = shell;
  // Columns of a line.
  const WIDTH = 80;
  // A value stands on one line if no more than this many levels are nested in it.
  const LEVELS_ON_A_LINE = 3;
  // Shorter strings are never broken.
  const BROKEN_MIN = 16;

  const COLOURS = {
    number: 33, bigint: 33, boolean: 33, string: 32, symbol: 32, undefined: 90, null: 1, special: 36, date: 35, regexp: 31,
  };
  const plain = (text) => text.replace(/\x1b\[\d+m/g, "");
  const ESCAPES = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\" };
  const escape = (character) => ESCAPES[character]
    ?? (character.charCodeAt(0) > 0xff
      ? "\\u" + character.charCodeAt(0).toString(16).toUpperCase()
      : "\\x" + character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0"));
  const quoted = (text) => {
    let quote = "'";
    if (text.includes("'")) {
      if (!text.includes('"')) quote = '"';
      else if (!text.includes("`") && !text.includes("${")) quote = "`";
    }
    const body = text.replace(/[\x00-\x1f\x7f-\x9f\\]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, escape);
    return quote + (quote === "'" ? body.replace(/'/g, "\\'") : body) + quote;
  };
  const isIdentifier = (name) => /^[a-zA-Z_][a-zA-Z_0-9]*$/.test(name);

  class Printer {
    constructor({ depth = Infinity, colours = false, compact = LEVELS_ON_A_LINE, length = Infinity } = {}) {
      this.depthMax = depth;
      this.colours = colours;
      this.compact = compact;
      this.lengthMax = length;
      this.indentation = 0;
      // Depth of the object that was begun last.
      this.depth = 0;
      this.open = [];
      this.circular = new Map();
    }

    paint(text, kind) {
      return this.colours && COLOURS[kind] !== undefined ? `\x1b[${COLOURS[kind]}m${text}\x1b[${kind === "null" ? 22 : 39}m` : text;
    }

    value(value, depth) {
      if (value === null) return this.paint("null", "null");
      if (typeof value !== "object" && typeof value !== "function") return this.primitive(value);
      if (this.open.includes(value)) {
        if (!this.circular.has(value)) this.circular.set(value, this.circular.size + 1);
        return this.paint(`[Circular *${this.circular.get(value)}]`, "special");
      }
      if (shell.isAtPrompt && this.reads !== value && Object.hasOwn(value, received)) return this.receivedValue(value);
      const own = value[printed];
      if (typeof own === "function") {
        const kind = value instanceof Date ? "date" : "special";
        return this.paint(own.call(value, (inner) => this.value(inner, depth + 1)), kind);
      }
      return this.object(value, depth);
    }

    // As mongosh prints a server's document or array at its prompt: whole, and laid out as if it stood alone.
    receivedValue(value) {
      const { colours, compact, open, circular } = this;
      const alone = Object.assign(new Printer({ colours, compact }), { open, circular, reads: value });
      return alone.object(value, 0).replaceAll("\n", `\n${" ".repeat(this.indentation)}`);
    }

    primitive(value) {
      if (typeof value !== "string") {
        const text = typeof value === "bigint" ? `${value}n` : Object.is(value, -0) ? "-0" : String(value);
        return this.paint(text, typeof value);
      }
      if (value.length > BROKEN_MIN && value.length > WIDTH - this.indentation - 4) {
        const lines = value.split(/(?<=\n)/).map((line) => this.paint(quoted(line), "string"));
        return lines.join(` +\n${" ".repeat(this.indentation + 2)}`);
      }
      return this.paint(quoted(value), "string");
    }

    object(value, depth) {
      const shape = this.shape(value);
      if (shape.text !== undefined && shape.names.length === 0) return shape.text;
      if (depth > this.depthMax) return this.paint(`[${Array.isArray(value) ? "Array" : shape.constructor || "Object"}]`, "special");
      if (shape.names.length === 0 && shape.items === undefined) return `${shape.prefix}${shape.braces[0]}${shape.braces[1]}`;
      this.open.push(value);
      this.depth = depth;
      const parts = shape.items === undefined ? [] : shape.items(depth);
      const isList = Array.isArray(value) || ArrayBuffer.isView(value);
      for (const name of shape.names) parts.push(this.property(value, name, depth));
      this.open.pop();
      let start = shape.prefix + shape.braces[0];
      if (this.circular.has(value)) start = `<ref *${this.circular.get(value)}> ${start}`;
      if (parts.length === 0) return start + shape.braces[1];
      return this.joined(isList ? this.columns(parts, value) : parts, { start, end: shape.braces[1], text: shape.text }, depth, parts.length);
    }

    // What surrounds an object's properties: its braces, and what is printed in their place or before them.
    shape(value) {
      const names = this.names(value);
      const constructor = constructorOf(value);
      const prefix = constructor === null ? "[Object: null prototype] " : constructor === "Object" ? "" : `${constructor} `;
      if (Array.isArray(value)) {
        const before = constructor === "Array" ? "" : `${constructor}(${value.length}) `;
        return { names, constructor, prefix: before, braces: ["[", "]"], items: (depth) => this.items(value, depth) };
      }
      if (typeof value === "function") return { names, constructor, prefix: "", braces: ["{", "}"], text: this.paint(functionText(value), "special") };
      if (value instanceof RegExp) return { names, prefix: "", braces: ["{", "}"], text: this.paint(String(value), "regexp") };
      if (value instanceof Error) return { names: [], prefix: "", braces: ["{", "}"], text: shell.describe(value) };
      if (value instanceof Map) {
        const entries = (depth) => Array.from(value, ([key, item]) => this.within(() => `${this.value(key, depth + 1)} => ${this.value(item, depth + 1)}`));
        return { names, constructor, prefix: `Map(${value.size}) `, braces: ["{", "}"], items: entries };
      }
      if (value instanceof Set) {
        const items = (depth) => Array.from(value, (item) => this.within(() => this.value(item, depth + 1)));
        return { names, constructor, prefix: `Set(${value.size}) `, braces: ["{", "}"], items };
      }
      if (ArrayBuffer.isView(value)) {
        return { names: [], constructor, prefix: `${constructor}(${value.length}) `, braces: ["[", "]"], items: (depth) => this.items(value, depth) };
      }
      if (value instanceof Promise) return { names, prefix: "", braces: ["{", "}"], text: "Promise { <pending> }" };
      if (value instanceof Number || value instanceof String || value instanceof Boolean) {
        const own = value instanceof String ? names.filter((name) => !/^\d+$/.test(name)) : names;
        return { names: own, prefix: "", braces: ["{", "}"], text: `[${constructor}: ${this.value(value.valueOf(), 0)}]` };
      }
      return { names, constructor, prefix, braces: ["{", "}"] };
    }

    names(value) {
      const names = Object.keys(value).filter((name) => !(Array.isArray(value) && /^\d+$/.test(name)));
      const symbols = Object.getOwnPropertySymbols(value).filter((symbol) => Object.prototype.propertyIsEnumerable.call(value, symbol));
      return names.concat(symbols);
    }

    // Prints with two more columns of indentation.
    within(print) {
      this.indentation += 2;
      try { return print(); } finally { this.indentation -= 2; }
    }

    items(list, depth) {
      const shown = Math.min(list.length, this.lengthMax);
      const parts = [];
      for (let at = 0; at < shown; at++) {
        if (!(at in list)) {
          const from = at;
          while (at + 1 < list.length && !(at + 1 in list)) at++;
          const count = at + 1 - from;
          parts.push(this.paint(`<${count} empty item${count > 1 ? "s" : ""}>`, "undefined"));
        } else {
          parts.push(this.within(() => this.value(list[at], depth + 1)));
        }
      }
      if (shown < list.length) parts.push(`... ${list.length - shown} more item${list.length - shown > 1 ? "s" : ""}`);
      return parts;
    }

    property(object, name, depth) {
      const property = Object.getOwnPropertyDescriptor(object, name) ?? { value: object[name] };
      let text;
      if (property.get !== undefined) text = this.paint(property.set === undefined ? "[Getter]" : "[Getter/Setter]", "special");
      else if (property.set !== undefined) text = this.paint("[Setter]", "special");
      else text = this.within(() => this.value(property.value, depth + 1));
      if (typeof name === "symbol") return `[${this.paint(String(name), "symbol")}]: ${text}`;
      if (name === "__proto__") return `['__proto__']: ${text}`;
      return `${isIdentifier(name) ? name : this.paint(quoted(name), "string")}: ${text}`;
    }

    // Many short items of a list are set in columns, as a table.
    columns(parts, list) {
      const hasMore = list.length > this.lengthMax;
      const count = hasMore ? parts.length - 1 : parts.length;
      if (parts.length <= 6 || this.compact < 1) return parts;
      const SEPARATOR = 2;
      const lengths = parts.slice(0, count).map((part) => (this.colours ? plain(part) : part).length);
      const total = lengths.reduce((sum, length) => sum + length + SEPARATOR, 0);
      const widest = Math.max(...lengths) + SEPARATOR;
      if (widest * 3 + this.indentation >= WIDTH || !(total / widest > 5 || widest - SEPARATOR <= 6)) return parts;
      const biased = Math.max(widest - 3 - Math.sqrt(widest - total / parts.length), 1);
      const wanted = Math.round(Math.sqrt(2.5 * biased * count) / biased);
      const columns = Math.min(wanted, Math.floor((WIDTH - this.indentation) / widest), this.compact * 4, 15);
      if (columns <= 1) return parts;
      const widths = [];
      for (let column = 0; column < columns; column++) {
        let width = 0;
        for (let at = column; at < count; at += columns) width = Math.max(width, lengths[at]);
        widths.push(width + SEPARATOR);
      }
      const alignsRight = Array.from(list).every((item) => typeof item === "number" || typeof item === "bigint");
      const rows = [];
      for (let from = 0; from < count; from += columns) {
        const to = Math.min(from + columns, count);
        let row = "";
        for (let at = from; at < to - 1; at++) {
          const cell = `${parts[at]}, `;
          const gap = " ".repeat(widths[at - from] - lengths[at] - SEPARATOR);
          row += alignsRight ? gap + cell : cell + gap;
        }
        const last = to - 1;
        const gap = " ".repeat(widths[last - from] - SEPARATOR - lengths[last]);
        rows.push(row + (alignsRight ? gap + parts[last] : parts[last]));
      }
      if (hasMore) rows.push(parts[count]);
      return rows;
    }

    joined(parts, { start, end, text }, depth, count) {
      const base = text === undefined ? "" : `${text} `;
      const before = this.indentation + start.length + (text ?? "").length + 10;
      // Rows of a table are not joined any further.
      if (this.depth - depth < this.compact && parts.length === count) {
        const length = parts.reduce((sum, part) => sum + (this.colours ? plain(part) : part).length, 0);
        if (length + 2 * parts.length + before <= WIDTH && !parts.some((part) => part.includes("\n"))) {
          return `${base}${start} ${parts.join(", ")} ${end}`;
        }
      }
      const line = `\n${" ".repeat(this.indentation)}`;
      return `${base}${start}${line}  ${parts.join(`,${line}  `)}${line}${end}`;
    }
  }

  const constructorOf = (value) => {
    for (let at = value; at !== null; at = Object.getPrototypeOf(at)) {
      const found = Object.getOwnPropertyDescriptor(at, "constructor");
      if (typeof found?.value === "function" && found.value.name !== "") return found.value.name;
    }
    return null;
  };
  const functionText = (value) => {
    if (/^class\b/.test(Function.prototype.toString.call(value))) {
      const base = Object.getPrototypeOf(value).name;
      return `[class ${value.name || "(anonymous)"}${base ? ` extends ${base}` : ""}]`;
    }
    const kind = constructorOf(value) ?? "Function";
    return value.name === "" ? `[${kind} (anonymous)]` : `[${kind}: ${value.name}]`;
  };

  shell.inspect = (value, options) => new Printer(options).value(value, 0);
})
