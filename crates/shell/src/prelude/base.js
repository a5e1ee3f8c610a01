// Errors, and the tools with which the other parts define what scripts see.
((shell) => {
  const { host } = shell;

  // A method under this symbol prints its object; it gets the printer of inner values.
  shell.printed = Symbol("printed");
  // A method under this symbol returns the value to print instead of its object.
  shell.result = Symbol("result");
  // A method under this symbol returns what the host needs to write its object as BSON.
  shell.encoded = Symbol("encoded");

  // The documents and arrays that a server has sent have this property.
  shell.received = Symbol("received");

  // Defines properties that a listing of the object does not show.
  shell.hide = (object, properties) => {
    for (const [name, value] of Object.entries(properties)) {
      Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
    }
    return object;
  };
  shell.globals = (values) => shell.hide(globalThis, values);

  // A class that may be called without `new`.
  shell.callable = (Class) => new Proxy(Class, { apply: (target, _, args) => Reflect.construct(target, args) });

  class MongoError extends Error {
    constructor(message, fields) {
      super(message);
      shell.hide(this, { name: new.target.name });
      Object.assign(this, fields);
    }
  }
  class MongoServerError extends MongoError {}
  class MongoBulkWriteError extends MongoServerError {}
  class MongoNetworkError extends MongoError {}
  class MongoServerSelectionError extends MongoError {}
  class MongoAPIError extends MongoError {}
  class MongoInvalidArgumentError extends MongoAPIError {}
  class MongoTransactionError extends MongoAPIError {}
  class MongoExpiredSessionError extends MongoAPIError {}
  class MongoBatchReExecutionError extends MongoAPIError {}
  class MongoCursorExhaustedError extends MongoAPIError {}
  class MongoshInvalidInputError extends MongoError {}
  class MongoshUnimplementedError extends MongoError {}
  class MongoshDeprecatedError extends MongoError {}
  class MongoshRuntimeError extends MongoError {}
  class BSONError extends MongoError {}
  shell.errors = {
    MongoError, MongoServerError, MongoBulkWriteError, MongoNetworkError, MongoServerSelectionError, MongoAPIError,
    MongoInvalidArgumentError, MongoTransactionError, MongoExpiredSessionError, MongoBatchReExecutionError, MongoCursorExhaustedError, MongoshInvalidInputError,
    MongoshUnimplementedError, MongoshDeprecatedError, MongoshRuntimeError, BSONError,
  };

  // The error of a reply with `ok: 0`, or of one write.
  shell.serverError = (reply, Class = MongoServerError) => {
    const { errmsg, ...facts } = reply;
    return new Class(errmsg ?? "the server gave no reason", { errorResponse: reply, ...facts });
  };

  // The error that the host reports for a connection.
  shell.connectionError = ([kind, message, facts]) => new shell.errors[kind](message, facts);

  shell.refuseInput = (message) => {
    throw new MongoshInvalidInputError("[COMMON-10001] " + message);
  };
  // Refuses a call that lacks an argument, as `insertOne()`.
  shell.demand = (value, position, name) => {
    if (value === undefined) shell.refuseInput(`Missing required argument at position ${position} (${name})`);
    return value;
  };
  shell.demandString = (value, position, name) => {
    shell.demand(value, position, name);
    if (typeof value !== "string") {
      shell.refuseInput(`Argument at position ${position} must be of type string, got ${typeof value} instead (${name})`);
    }
    return value;
  };
  // Refuses options that a method does not have: a user would believe that they act.
  shell.demandKnown = (options, names, method) => {
    if (typeof options !== "object" || options === null) {
      throw new MongoInvalidArgumentError(`${method}: options must be an object, not ${String(options)}`);
    }
    const unknown = Object.keys(options).find((name) => options[name] !== undefined && !names.includes(name));
    if (unknown === undefined) return options;
    const advice = unknown === "session" ? ": use session.getDatabase(NAME)" : "";
    throw new MongoInvalidArgumentError(`${method}: the option '${unknown}' is not supported${advice}`);
  };

  // A function that may be called with `new`, too.
  shell.maker = (make) => function (...args) { return make(...args); };

  // The line that tells an error to its reader. The reader at a prompt is told of each write (`isWhole`).
  shell.describe = (thrown, isWhole = false) => {
    if (!(thrown instanceof Error)) return `Error: ${typeof thrown === "string" ? thrown : shell.inspect(thrown)}`;
    const name = thrown instanceof MongoServerError && thrown.codeName ? `${thrown.name}[${thrown.codeName}]` : thrown.name;
    const message = shell.messageOf(thrown);
    let text = message === "" ? name : `${name}: ${message}`;
    if (isWhole && thrown.result !== undefined) text += "\nResult: " + shell.inspect(thrown.result);
    if (isWhole && thrown.writeErrors?.length > 0) text += "\nWrite Errors: " + shell.inspect(thrown.writeErrors);
    if (thrown.errInfo !== undefined) text += "\nAdditional information: " + shell.inspect(thrown.errInfo);
    if (thrown.cause !== undefined) text += "\nCaused by: " + shell.describe(thrown.cause);
    return text;
  };

  const told = new Set();
  // Prints a warning where results are printed, as mongosh does; each once.
  shell.warn = (text) => {
    if (told.has(text)) return;
    told.add(text);
    host.write(text + "\n");
  };
  shell.deprecated = (what, instead) => shell.warn(`DeprecationWarning: ${what} is deprecated. Use ${instead}.`);
})
