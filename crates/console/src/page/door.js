// The way to the server. The session's token is in this module's memory only, so a reload asks for the login again, and no
// other page of this host can send it.

let token = "";

/// The server did not take the request.
export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/// The server ran the command, and it failed.
export class CommandFailed extends Error {
  constructor({ code, codeName, errmsg }) {
    super(`${codeName ?? "Error"} (${code ?? "?"}): ${errmsg ?? ""}`);
    this.code = code;
  }
}

const UNAUTHORIZED = 13;
/// Whether the user lacks a privilege.
export const isUnauthorized = (error) => error instanceof CommandFailed && error.code === UNAUTHORIZED;

/// Sends a request of this page, and returns the text of the reply.
export const send = async (path, body) => {
  let reply;
  try {
    reply = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Bunko-Console": "1", Authorization: `Bearer ${token}` },
      body,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    throw new Refused(0, error.message);
  }
  const text = await reply.text();
  if (reply.ok) return text;
  let reason = reply.statusText;
  try {
    reason = JSON.parse(text).refused ?? reason;
  } catch {
    // Not a reply of this server.
  }
  if (reply.status === 401 && path !== "/api/login") {
    token = "";
    dispatchEvent(new Event("session-ended"));
  }
  throw new Refused(reply.status, reason);
};

/// Whether a login is required (`login`), and whether there is a directory of reports (`reports`).
export const site = async () => (await fetch("/api/site", { cache: "no-store" })).json();

export const logIn = async (user, password, database) => {
  ({ token } = JSON.parse(await send("/api/login", JSON.stringify({ user, password, database }))));
};

export const logOut = async () => {
  await send("/api/logout", "{}").catch(() => {});
  token = "";
};

export const isLoggedIn = () => token !== "";

/// Runs a command and returns its reply as an object. For replies whose numbers matter to the last digit, see `runText`.
export const run = async (database, command) => checked(JSON.parse(await send("/api/run", JSON.stringify({ database, command }))));

/// As `run`, for a command that is Extended JSON already. Returns the reply as text of canonical Extended JSON.
export const runText = async (database, command) => {
  const text = await send("/api/run", `{"database":${JSON.stringify(database)},"command":${command},"canonical":true}`);
  const { ok, code, codeName, errmsg } = JSON.parse(text);
  const plain = (value) => value?.$numberInt ?? value?.$numberDouble ?? value;
  checked({ ok: Number(plain(ok)), code: Number(plain(code)), codeName, errmsg });
  return text;
};

const checked = (reply) => {
  if (reply.ok !== 1) throw new CommandFailed(reply);
  return reply;
};
