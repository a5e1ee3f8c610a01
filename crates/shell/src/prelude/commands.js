// Words that are typed without parentheses: `show`, `use`, `it`, `exit`; and the database that they speak of.
((shell) => {
  const { host, printed } = shell;
  const { MongoshInvalidInputError } = shell.errors;

  let current;
  // The database that `db` names.
  shell.database = () => {
    if (current === undefined) throw new MongoshInvalidInputError("[SHAPI-10004] No connected database");
    return current;
  };
  shell.hasDatabase = () => current !== undefined;
  Object.defineProperty(globalThis, "db", {
    get: () => shell.database(),
    set(value) {
      if (!(value instanceof shell.Database)) throw new MongoshInvalidInputError("[COMMON-10002] Cannot reassign 'db' to non-Database type");
      current = value;
    },
    configurable: false, enumerable: true,
  });
  // The database to begin with, of the connection that the command line names.
  shell.connect = (uri) => {
    // `Mongo()` without an address is another connection to the same server.
    shell.ownUri = uri;
    const mongo = new shell.Mongo(uri);
    current = mongo.getDB(mongo._defaultDatabase);
  };

  class Text {
    constructor(text) { this.text = text; }
    [printed]() { return this.text; }
  }
  // The first column is aligned left, the others right.
  const table = (rows) => {
    const widths = rows.reduce((widest, row) => row.map((cell, at) => Math.max(widest[at] ?? 0, cell.length)), []);
    return rows.map((row) => row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join("  ")).join("\n");
  };
  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let [amount, unit] = [Number(bytes), 0];
    for (; amount >= 1024 && unit < units.length - 1; unit++) amount /= 1024;
    return `${unit === 0 ? amount : amount.toFixed(2)} ${units[unit]}`;
  };

  const collections = () => {
    const infos = shell.database()._list({}, { nameOnly: true, authorizedCollections: true });
    const badge = { view: "[view]", timeseries: "[time-series]" };
    infos.sort((a, b) => Number(a.name.startsWith("system.")) - Number(b.name.startsWith("system.")) || (a.name < b.name ? -1 : 1));
    const rows = infos.map((info) => (badge[info.type] === undefined ? [info.name] : [info.name, badge[info.type]]));
    const widest = Math.max(0, ...rows.map(([name]) => name.length));
    return new Text(rows.map(([name, mark]) => (mark === undefined ? name : `${name.padEnd(widest)}  ${mark}`)).join("\n"));
  };
  const databases = () => {
    const { databases: list } = shell.database()._mongo.getDBs();
    return new Text(table(list.map((one) => [one.name, size(one.sizeOnDisk)])));
  };
  const profile = () => {
    const entries = shell.database().getCollection("system.profile").find({ millis: { $gt: 0 } }).sort({ $natural: -1 }).limit(5).toArray();
    if (entries.length === 0) {
      return new Text("db.system.profile is empty.\nUse db.setProfilingLevel(2) will enable profiling.\nUse db.getCollection('system.profile').find() to show raw profile entries.");
    }
    return new Text(entries.map((entry) => `${entry.op}\t${entry.ns} ${entry.millis}ms ${entry.ts}\n${shell.inspect(entry)}`).join("\n\n"));
  };
  const log = (name = "global") => {
    const { log: lines } = shell.database()._mongo._admin({ getLog: name });
    return new Text(lines.join("\n"));
  };

  const SHOWN = {
    dbs: databases, databases, collections, tables: collections, profile,
    users: () => shell.database().getUsers().users,
    roles: () => shell.database().getRoles({ showBuiltinRoles: true }).roles,
    log,
    logs: () => new Text(shell.database()._mongo._admin({ getLog: "*" }).names.join("\n")),
    startupWarnings: () => log("startupWarnings"),
  };
  const show = (what, argument) => {
    if (what === undefined) throw new MongoshInvalidInputError("[COMMON-10001] The command \"show\" needs one of: " + Object.keys(SHOWN).join(", "));
    if (!Object.hasOwn(SHOWN, what)) {
      throw new MongoshInvalidInputError(`[COMMON-10001] '${what}' is not a valid argument for "show": use one of ${Object.keys(SHOWN).join(", ")}`);
    }
    return SHOWN[what](argument);
  };
  const use = (name) => {
    if (name === undefined) throw new MongoshInvalidInputError("[COMMON-10001] The command \"use\" needs the name of a database");
    const before = shell.database().getName();
    current = shell.database().getSiblingDB(name);
    return new Text(name === before ? `already on db ${name}` : `switched to db ${name}`);
  };
  const it = () => {
    if (shell.current === undefined) return new Text("no cursor");
    const documents = shell.current._page();
    return documents.length === 0 && shell.current.isExhausted() ? new Text("no cursor") : new shell.Page(documents, !shell.current.isExhausted());
  };
  const exit = (code) => {
    shell.endSessions();
    host.exit(Number(code ?? host.exitCode()) & 255);
  };
  shell.exit = exit;

  // The words, and whether each takes what follows it in the line.
  shell.commands = { show, use, it, exit, quit: exit, help: () => shell.help(), cls: () => new Text("\x1b[H\x1b[2J\x1b[3J") };
  shell.globals({ show, use, it, exit, quit: exit, cls: shell.commands.cls });
  shell.shownNames = Object.keys(SHOWN);
  shell.Text = Text;
})
