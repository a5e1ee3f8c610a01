// What the host calls: the words of a line, and the text of a result.
((shell) => {
  // Runs a line that is no JavaScript, such as `show dbs`. Returns an array with its result, or `undefined`.
  shell.command = (line) => {
    const words = line.trim().replace(/;\s*$/, "").trim().split(/\s+/);
    const [word, ...args] = words;
    if (!Object.hasOwn(shell.commands, word)) return undefined;
    const takesWords = word === "show" || word === "use";
    // `use(...)`, `it = 1` and the like are JavaScript.
    if (takesWords ? args.some((arg) => !/^[^()=;{}]+$/.test(arg)) : args.length > 0 && word !== "exit" && word !== "quit") return undefined;
    return [shell.commands[word](...args)];
  };

  // The text to show for the result of a script: `text`, `canonical` or `relaxed`; `undefined` to show nothing.
  shell.resultText = (value, format) => {
    // As mongosh: the result of `--eval` is shown whole, however deep it is.
    const options = shell.isAtPrompt ? {} : { depth: Infinity, length: Infinity };
    if (format === "text") return value === undefined ? undefined : shell.shown(value, options);
    const plain = value instanceof shell.Cursor ? value.toArray() : value?.[shell.result]?.() ?? value;
    const shown = plain instanceof shell.Page ? plain.documents : plain instanceof shell.Text ? plain.text : plain;
    if (shown instanceof shell.Database || shown instanceof shell.Collection || shown instanceof shell.Mongo) return JSON.stringify(String(shell.shown(shown)));
    return shell.extendedJson(shown, format === "relaxed");
  };
  // The text to show for what a script threw.
  shell.thrownText = (thrown, format) => {
    if (format === "text") return shell.describe(thrown, shell.isAtPrompt);
    const { name, message, ...facts } = thrown instanceof Error ? { ...thrown, name: thrown.name, message: thrown.message } : { message: String(thrown) };
    return shell.extendedJson({ message, ...(name !== undefined && { name }), ...facts }, format === "relaxed");
  };
  // Rejected promises that no script has handled.
  const rejected = new Map();
  shell.trackRejection = (promise, reason, isHandled) => {
    if (isHandled) rejected.delete(promise);
    else rejected.set(promise, reason);
  };
  shell.forgetRejections = () => rejected.clear();
  // Throws the reason of one of them: an asynchronous function that nothing awaits must not fail in silence.
  shell.throwRejection = () => {
    for (const reason of rejected.values()) throw reason;
  };
  shell.setPrinting = (options) => Object.assign(shell.printing, options);
  // Whether a user types the scripts, or standard input gives them as if one did.
  shell.isAtPrompt = shell.host.isInteractive();
  shell.promptText = () => {
    shell.isAtPrompt = true;
    return shell.hasDatabase() ? shell.prompt() : "> ";
  };
  // The function or class that a script without a value declares, if it is nothing but one declaration.
  shell.declared = (text) => {
    const found = /^\s*(?:(?:async\s+)?function\s*\*?|class)\s*([\w$]+)[^]*\}\s*$/.exec(text);
    return found === null ? undefined : (0, eval)(`typeof ${found[1]} === "function" ? ${found[1]} : undefined`);
  };
  // As mongosh's: the set and the member's state before the database's name.
  shell.prompt = () => {
    if (typeof globalThis.prompt === "function") return String(globalThis.prompt());
    const database = shell.database();
    const { setName, isWritablePrimary, ismaster, secondary, arbiterOnly } = database._mongo._hello;
    const state = isWritablePrimary || ismaster ? "primary" : secondary ? "secondary" : arbiterOnly ? "arbiter" : "other";
    return `${setName === undefined ? "" : `${setName} [direct: ${state}] `}${database.getName()}> `;
  };

  // The words that may stand at the end of a line, and last how many bytes of it they replace: words are of ASCII.
  shell.completions = (line) => {
    const { from, names } = shell.complete(line);
    return [...names, String(line.length - from)];
  };
  shell.useTerminal = () => shell.setPrinting({ colours: shell.host.environment("NO_COLOR") === undefined });
  shell.greeting = () => {
    if (!shell.hasDatabase()) return `Bunko shell ${shell.host.version}, not connected.\nType "help" for help.\n\n`;
    const mongo = shell.database()._mongo;
    const lines = [`Connected to: ${mongo.getURI()}`];
    try { lines.push(`Server:       ${shell.database().version()}`); } catch { /* a user without rights */ }
    lines.push(`Shell:        Bunko ${shell.host.version}`, "", 'Type "help" for help.');
    try {
      const { log } = mongo._admin({ getLog: "startupWarnings" });
      if (log.length > 0) lines.push("", "The server warned when it started:", ...log.map(warning));
    } catch { /* as above */ }
    return `${lines.join("\n")}\n\n`;
  };
  const warning = (line) => {
    try {
      const { t, msg } = JSON.parse(line);
      return `${t.$date}: ${msg}`;
    } catch { return line; }
  };
})
