// The process and its files: what scripts of containers need of Node, and `load`.
((shell) => {
  const { host, demandString } = shell;

  const env = new Proxy({}, {
    get: (_, name) => (typeof name === "string" ? host.environment(name) : undefined),
    has: (_, name) => host.environment(String(name)) !== undefined,
    ownKeys: () => host.environmentNames(),
    getOwnPropertyDescriptor(_, name) {
      const value = host.environment(String(name));
      return value === undefined ? undefined : { value, configurable: true, enumerable: true };
    },
    set() { throw new shell.errors.MongoshUnimplementedError("process.env cannot be changed here"); },
  });
  const process = {
    env,
    get argv() { return host.arguments(); },
    get exitCode() { return host.exitCode(); },
    set exitCode(code) { host.setExitCode(Number(code) & 255); },
    exit: (code) => shell.exit(code),
    cwd: () => host.directory(),
    platform: "linux",
    pid: host.pid,
    version: host.version,
    versions: { bunko: host.version },
    stdout: { write: (text) => { host.write(String(text)); return true; }, isTTY: host.isInteractive() },
    stderr: { write: (text) => { host.writeError(String(text)); return true; } },
    hrtime: Object.assign(() => [Math.floor(Date.now() / 1000), (Date.now() % 1000) * 1e6], { bigint: () => BigInt(Date.now()) * 1000000n }),
    nextTick: (work, ...args) => void Promise.resolve().then(() => work(...args)),
    on: (event) => shell.unsupported(`process.on('${String(event)}')`),
  };

  // The encoding that the options of a file name, if they do; others than UTF-8 are refused, and so are flags and modes.
  const encodingOf = (options, method) => {
    const { encoding, ...more } = typeof options === "object" && options !== null ? options : { encoding: options };
    shell.demandKnown(more, [], method);
    if (encoding === undefined || encoding === null) return undefined;
    if (!/^utf-?8$/i.test(encoding)) shell.unsupported(`${method}: the encoding '${String(encoding)}'`);
    return "utf8";
  };
  const write = (appends, method) => (path, data, options) => {
    encodingOf(options, method);
    shell.ask(() => host.writeFile(String(path), data instanceof Uint8Array ? data : host.utf8(String(data)), appends));
  };
  const fs = {
    readFileSync(path, options) {
      const encoding = encodingOf(options, "fs.readFileSync");
      const bytes = shell.ask(() => host.readFile(String(path)));
      return encoding === undefined ? shell.hide(bytes, { toString: () => host.text(bytes) }) : host.text(bytes);
    },
    writeFileSync: write(false, "fs.writeFileSync"),
    appendFileSync: write(true, "fs.appendFileSync"),
    existsSync: (path) => host.exists(String(path)),
    readdirSync: (path = ".") => shell.ask(() => ({ names: host.list(String(path)) })).names,
  };
  // As Node's, whose options have other names, and `null` for no limit.
  const inspect = (value, options = {}) => {
    const { depth = 2, colors = false, compact = 3, maxArrayLength = 100 } = shell.demandKnown(
      options, ["depth", "colors", "compact", "maxArrayLength"], "util.inspect");
    const levels = typeof compact === "number" ? compact : compact ? 3 : 0;
    return shell.inspect(value, { depth: depth ?? Infinity, colours: colors, compact: levels, length: maxArrayLength ?? Infinity });
  };
  const RANDOM_BYTES_MAX = 1048576;
  const randomBytes = (count) => {
    if (!(count <= RANDOM_BYTES_MAX)) shell.unsupported(`crypto.randomBytes(${String(count)})`, `at most ${RANDOM_BYTES_MAX}`);
    return new shell.types.Binary(host.randomBytes(count));
  };
  // The parts of Node that scripts of databases ask for; `require` refuses all others by name.
  const MODULES = {
    fs, process,
    assert: Object.assign((condition, message) => globalThis.assert(condition, message), {
      equal(a, b) { globalThis.assert(a == b, `${shell.inspect(a)} == ${shell.inspect(b)}`); },
      strictEqual(a, b) { globalThis.assert(Object.is(a, b), `${shell.inspect(a)} === ${shell.inspect(b)}`); },
      deepStrictEqual(a, b) { globalThis.assert(shell.inspect(a) === shell.inspect(b), `${shell.inspect(a)} is not ${shell.inspect(b)}`); },
    }),
    util: { inspect },
    path: {
      join: (...parts) => parts.join("/").replace(/\/+/g, "/"), basename: (path) => path.replace(/\/+$/, "").split("/").at(-1),
      dirname: (path) => path.replace(/\/?[^/]+\/*$/, "") || (path.startsWith("/") ? "/" : "."),
    },
    crypto: { randomBytes, randomUUID: () => new shell.types.UUID().toString() },
  };
  const require = (name) => {
    const found = MODULES[String(name).replace(/^node:/, "")];
    if (found === undefined) {
      throw new shell.errors.MongoshUnimplementedError(`require('${name}'): there is no Node here; of its modules there are ${Object.keys(MODULES).join(", ")}`);
    }
    return found;
  };

  // Functions that wait for their time, earliest first.
  const waiting = [];
  let timers = 0;
  const later = (every) => (work, milliseconds = 0, ...args) => {
    timers += 1;
    waiting.push({ number: timers, at: Date.now() + Number(milliseconds), work: () => work(...args), every: every ? Number(milliseconds) : undefined });
    return timers;
  };
  const forget = (number) => {
    const at = waiting.findIndex((timer) => timer.number === number);
    if (at >= 0) waiting.splice(at, 1);
  };
  // Runs the timer that is due next; says whether there was one.
  shell.runTimer = () => {
    if (waiting.length === 0) return false;
    const next = waiting.reduce((first, timer) => (timer.at < first.at ? timer : first));
    host.sleep(Math.max(0, next.at - Date.now()));
    if (next.every === undefined) forget(next.number);
    else next.at = Date.now() + Math.max(1, next.every);
    next.work();
    return true;
  };

  shell.globals({
    process, require, fs,
    _getEnv: (name) => host.environment(String(name)) ?? "",
    pwd: () => host.directory(),
    cat: (path) => fs.readFileSync(demandString(path, 0, "cat"), "utf8"),
    fileExists: (path) => host.exists(String(path)),
    ls: (path = ".") => fs.readdirSync(path),
    load(path) {
      const whole = demandString(path, 0, "load").startsWith("/") ? path : `${host.directory()}/${path}`;
      const before = [globalThis.__filename, globalThis.__dirname];
      shell.globals({ __filename: whole, __dirname: MODULES.path.dirname(whole) });
      try {
        host.load(path);
      } finally {
        shell.globals({ __filename: before[0], __dirname: before[1] });
      }
      return true;
    },
    setTimeout: later(false), setInterval: later(true), setImmediate: (work, ...args) => later(false)(work, 0, ...args),
    clearTimeout: forget, clearInterval: forget, clearImmediate: forget,
    global: globalThis,
    crypto: {
      randomUUID: MODULES.crypto.randomUUID,
      getRandomValues(array) {
        new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(randomBytes(array.byteLength).buffer);
        return array;
      },
    },
  });
})
