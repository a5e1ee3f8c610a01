// `help`.
((shell) => {
  const { printed } = shell;
  const LINES = [
    ["show dbs", "names and sizes of the databases"],
    ["show collections", "collections of the current database"],
    ["show users, show roles", "users and roles of the current database"],
    ["show profile", "the newest slow operations, if the profiler is on"],
    ["show log [name], show logs", "lines of the server's log; the logs that there are"],
    ["use NAME", "go to another database"],
    ["db", "the current database; db.help() lists its methods"],
    ["db.COLLECTION", "a collection; db.COLLECTION.help() lists its methods"],
    ["db.COLLECTION.find()", "its documents, twenty at a time"],
    ["it", "the next twenty"],
    ["rs, rs.help()", "the replica set"],
    ["load(FILE)", "run a script"],
    ["connect(URI), Mongo(URI)", "another server"],
    ["exit", "leave (Ctrl-D too); Ctrl-C stops what runs"],
  ];

  const listed = (title, lines) => {
    const widest = Math.max(...lines.map(([call]) => call.length));
    return new shell.Text([`${title}:`, "", ...lines.map(([call, what]) => `  ${call.padEnd(widest)}  ${what}`)].join("\n"));
  };
  shell.help = () => listed("Shell", LINES);
  Object.defineProperty(shell.help, printed, { value: () => shell.help().text });
  shell.globals({ help: shell.help });

  // The methods of an object, as completion knows them.
  shell.methodsOf = (object) => {
    const names = new Set();
    for (let at = object; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const name of Object.getOwnPropertyNames(at)) {
        const { value } = Object.getOwnPropertyDescriptor(at, name);
        if (typeof value === "function" && /^[a-z]\w*$/.test(name) && name !== "constructor") names.add(name);
      }
    }
    return Array.from(names).sort();
  };
  shell.helpOf = (kind, object) => {
    const lines = [];
    let line = "";
    for (const name of shell.methodsOf(object)) {
      if (line.length + name.length > 76) {
        lines.push(line);
        line = "";
      }
      line += `${line === "" ? "  " : ", "}${name}`;
    }
    return new shell.Text(`Methods of ${kind}, as in MongoDB's manual:\n\n${[...lines, line].join(",\n")}`);
  };
})
