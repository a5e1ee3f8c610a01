// The names of called values in errors: the engine says "not a function" and a place, and a user wants to read the name.
((shell) => {
  // Longest script whose text is kept, and longest part of it that a message names, in characters.
  const SOURCE_MAX = 1 << 20;
  const PART_MAX = 200;
  // Texts of scripts by their names, as the engine was given them.
  const sources = new Map();
  shell.noteSource = (name, text) => {
    if (text.length <= SOURCE_MAX) sources.set(name, text);
    else sources.delete(name);
  };

  const CLOSED_BY = { ")": "(", "]": "[" };
  // The index of the bracket that the one at `at` closes, or -1.
  const opening = (text, at) => {
    let depth = 0;
    for (let from = at; from >= 0; from--) {
      if (")]}".includes(text[from])) depth += 1;
      else if ("([{".includes(text[from])) depth -= 1;
      if (depth === 0) return from;
    }
    return -1;
  };
  const closing = (text, at) => {
    let depth = 0;
    for (let end = at; end < text.length; end++) {
      if ("([{".includes(text[end])) depth += 1;
      else if (")]}".includes(text[end])) depth -= 1;
      if (depth === 0) return end + 1;
    }
    return -1;
  };
  const isWord = (letter) => letter !== undefined && /[\w$\u0080-\uffff]/.test(letter);

  // Where the chain of names, calls and indexes begins that ends before `at`.
  const beginning = (text, at) => {
    let from = at;
    for (;;) {
      let before = from;
      while (/\s/.test(text[before - 1] ?? "")) before -= 1;
      const last = text[before - 1];
      if (CLOSED_BY[last] !== undefined) {
        before = opening(text, before - 1);
        if (before < 0) return from;
        from = before;
        // A call or an index belongs to what stands before it.
        if (isWord(text[from - 1]) || CLOSED_BY[text[from - 1]] !== undefined) continue;
        return from;
      }
      if (!isWord(last)) return from;
      while (isWord(text[before - 1])) before -= 1;
      from = before;
      while (/\s/.test(text[before - 1] ?? "")) before -= 1;
      if (text[before - 1] !== ".") return from;
      from = before - (text[before - 2] === "?" ? 2 : 1);
    }
  };

  // The expression that was called at a line and column of a script, without the arguments of other calls in it.
  const calleeAt = (text, line, column) => {
    const lines = text.split("\n");
    let at = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    // The engine counts the blank before a name to it, at times.
    while (/\s/.test(text[at] ?? "")) at += 1;
    const isMember = text[at] === "." || text[at] === "[";
    let end = text[at] === "(" ? closing(text, at) : at;
    while (end >= at && (isWord(text[end]) || text[end] === "." || text[end] === "[" || text.startsWith("?.", end))) {
      end = text[end] === "[" ? closing(text, end) : end + 1;
    }
    if (end <= at) return undefined;
    const from = isMember ? beginning(text, text[at - 1] === "?" ? at - 1 : at) : at;
    const part = text.slice(from, end).replace(/(?<=[\w$)\]])\((?:[^()]|\([^()]*\))+\)/g, "(...)").replace(/\s*\n\s*/g, "");
    return part.length > PART_MAX ? undefined : part;
  };

  // The message of an error. Errors of the engine's own are said as Node says them.
  shell.messageOf = (thrown) => {
    const { message, stack } = thrown;
    if (!(thrown instanceof TypeError)) return message;
    const place = /^\s*at [^\n]*?\(?([^\n(]+):(\d+):(\d+)\)?(?:\n|$)/.exec(stack ?? "");
    if (message === "not a function" && place !== null && sources.has(place[1])) {
      const callee = calleeAt(sources.get(place[1]), Number(place[2]), Number(place[3]));
      return callee === undefined ? message : `${callee} is not a function`;
    }
    return String(message).replace(/^cannot read property '(.*)' of (null|undefined)$/s, "Cannot read properties of $2 (reading '$1')");
  };
})
