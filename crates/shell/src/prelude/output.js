// Printing.
((shell) => {
  const { host, result } = shell;

  // The text of a value as the shell shows a result; strings without their quotes.
  shell.shown = (value, options) => {
    if (value === undefined) return "";
    const shown = value?.[result] === undefined ? value : value[result]();
    if (typeof shown === "string") return shown;
    return shell.inspect(shown, { ...shell.printing, ...options });
  };
  // How values are printed, as `inspect` takes it.
  shell.printing = { depth: 6, length: 100 };
  const joined = (values, options) => values.map((value) => shell.shown(value, options)).join(" ");
  const print = (...values) => host.write(`${joined(values)}\n`);
  // Each property on a line of its own.
  const printjson = (...values) => host.write(`${joined(values, { compact: 0, depth: Infinity, length: Infinity })}\n`);

  let indentation = "";
  const indented = (text) => text.split("\n").map((line) => indentation + line).join("\n");
  const log = (...values) => host.write(`${indented(joined(values))}\n`);
  const complain = (...values) => host.writeError(`${indented(joined(values))}\n`);
  // A table of objects or arrays with lines around its cells, as Node draws it; other values are printed.
  const table = (rows) => {
    if (typeof rows !== "object" || rows === null) return log(rows);
    const names = [];
    const lines = Object.entries(rows).map(([index, row]) => {
      const cells = new Map([["(index)", index]]);
      const fields = typeof row === "object" && row !== null && row[shell.encoded] === undefined && !(row instanceof Date) ? Object.entries(row) : [["Values", row]];
      for (const [name, value] of fields) {
        if (name !== "Values" && !names.includes(name)) names.push(name);
        cells.set(name, shell.inspect(value, { depth: 0 }));
      }
      return cells;
    });
    const columns = ["(index)", ...names, ...(lines.some((line) => line.has("Values")) ? ["Values"] : [])];
    const widths = columns.map((name) => Math.max(name.length, ...lines.map((line) => (line.get(name) ?? "").length)) + 2);
    const drawn = ([left, between, right]) => left + widths.map((width) => "─".repeat(width)).join(between) + right;
    const line = (text) => `│${columns.map((name, at) => ` ${text(name)}`.padEnd(widths[at])).join("│")}│`;
    log([drawn("┌┬┐"), line((name) => name), drawn("├┼┤"), ...lines.map((cells) => line((name) => cells.get(name) ?? "")), drawn("└┴┘")].join("\n"));
  };
  const timers = new Map();
  const console = {
    log, info: log, debug: log, dir: log, error: complain, warn: complain, trace: complain, table,
    group(...values) {
      if (values.length > 0) log(...values);
      indentation += "  ";
    },
    groupEnd() { indentation = indentation.slice(2); },
    assert(condition, ...values) { if (!condition) complain("Assertion failed", ...values); },
    time(label = "default") { timers.set(label, Date.now()); },
    timeEnd(label = "default") { log(`${label}: ${Date.now() - timers.get(label)}ms`); },
    count(label = "default") {
      timers.set(`count ${label}`, (timers.get(`count ${label}`) ?? 0) + 1);
      log(`${label}: ${timers.get(`count ${label}`)}`);
    },
    clear() { host.write("\x1b[H\x1b[2J\x1b[3J"); },
  };

  const tojson = (value, indent, isOneLine) => {
    const text = shell.inspect(value, { depth: Infinity });
    return isOneLine ? text.replace(/\s*\n\s*/g, " ") : text;
  };
  // The settings of mongosh that this shell has, until it ends.
  const isPositive = (value) => Number.isInteger(value) && value > 0;
  const SETTINGS = {
    displayBatchSize: { initial: 20, accepts: isPositive, values: "a positive integer", get: () => shell.batchSize, set(value) { shell.batchSize = value; } },
    inspectDepth: { initial: 6, accepts: (value) => isPositive(value) || value === Infinity || value === 0, values: "a positive integer",
      get: () => shell.printing.depth, set(value) { shell.printing.depth = value; } },
    inspectCompact: { initial: 3, accepts: (value) => typeof value === "boolean" || isPositive(value) || value === 0, values: "a boolean or a positive integer",
      get: () => shell.printing.compact ?? 3, set(value) { shell.printing.compact = value === true ? 3 : Number(value); } },
  };
  const setting = (name, call) => {
    if (Object.hasOwn(SETTINGS, name)) return SETTINGS[name];
    throw new shell.errors.MongoshUnimplementedError(`${call}: this shell keeps no settings but ${Object.keys(SETTINGS).join(", ")}`);
  };
  const config = {
    set(name, value) {
      const found = setting(name, `config.set('${String(name)}', ${shell.inspect(value)})`);
      if (!found.accepts(value)) return new shell.Text(`Cannot set option "${name}": ${name} must be ${found.values}`);
      found.set(value);
      return new shell.Text(`Setting "${name}" has been changed`);
    },
    get: (name) => (Object.hasOwn(SETTINGS, name) ? SETTINGS[name].get() : undefined),
    reset(name) {
      const found = setting(name, `config.reset('${String(name)}')`);
      found.set(found.initial);
      return new shell.Text(`Setting "${name}" has been reset to its default value`);
    },
  };
  shell.globals({
    print, printjson, printjsononeline: (value) => host.write(`${tojson(value, "", true)}\n`), console, tojson,
    tojsononeline: (value) => tojson(value, "", true),
    sleep(milliseconds) { host.sleep(Number(milliseconds) || 0); },
    assert(condition, message) { if (!condition) throw new Error(message === undefined ? "assert failed" : `assert failed: ${message}`); },
    isInteractive: () => host.isInteractive(),
    version: () => host.version,
    config,
    DBQuery: { get shellBatchSize() { return shell.batchSize; }, set shellBatchSize(size) {
      shell.warn('DeprecationWarning: DBQuery.shellBatchSize is deprecated, please use config.set("displayBatchSize") instead');
      shell.batchSize = size;
    } },
    enableTelemetry: () => new shell.Text("There is no telemetry."),
    disableTelemetry: () => new shell.Text("There is no telemetry."),
  });
})
