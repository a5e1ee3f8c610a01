// Binary data and UUIDs.
((shell) => {
  const { host, printed, encoded, callable } = shell;
  const { BSONError } = shell.errors;
  const refuse = (message) => { throw new BSONError(message); };
  const SUBTYPE_UUID = 4;

  const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const fromHexadecimal = (text, name) => {
    if (!/^([0-9a-fA-F]{2})*$/.test(text)) refuse(`${name}: not an even number of hexadecimal digits: ${text}`);
    return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  };
  const fromBase64 = (text) => host.fromBase64(String(text)) ?? refuse(`not base64: ${String(text)}`);
  const bytesOf = (value) => {
    if (value === undefined || value === null) return new Uint8Array();
    if (value instanceof Uint8Array) return value;
    if (value instanceof ArrayBuffer || Array.isArray(value)) return new Uint8Array(value);
    if (typeof value === "string") return host.utf8(value);
    return refuse("Binary: can only be made of bytes or a string");
  };

  class BinaryClass {
    constructor(bytes, subtype = 0) {
      if (!(Number.isInteger(subtype) && subtype >= 0 && subtype <= 255)) {
        refuse(`Binary: the subtype must be an integer between 0 and 255, not ${String(subtype)}`);
      }
      shell.hide(this, { buffer: bytesOf(bytes), sub_type: subtype });
    }
    get _bsontype() { return "Binary"; }
    get position() { return this.buffer.length; }
    subtype() { return this.sub_type; }
    length() { return this.buffer.length; }
    value() { return this.buffer; }
    read(position, length) { return this.buffer.slice(position, position + (length > 0 ? length : this.position)); }
    hex() { return hexadecimal(this.buffer); }
    base64() { return host.toBase64(this.buffer); }
    toUUID() { return uuidOf(this.buffer); }
    equals(other) { return other instanceof BinaryClass && other.sub_type === this.sub_type && other.hex() === this.hex(); }
    toString(encoding = "utf8") {
      if (encoding === "hex") return this.hex();
      return encoding === "base64" ? this.base64() : host.text(this.buffer);
    }
    toJSON() { return this.base64(); }
    [printed]() {
      if (this.sub_type === SUBTYPE_UUID && this.buffer.length === 16) return `UUID('${dashed(this.buffer)}')`;
      if (this.sub_type === Binary.SUBTYPE_MD5) return `MD5('${this.hex()}')`;
      return `Binary.createFromBase64('${this.base64()}', ${this.sub_type})`;
    }
    [encoded]() { return ["binary", this.sub_type, this.buffer]; }
    static createFromBase64(text, subtype = 0) { return new Binary(fromBase64(text), subtype); }
    static createFromHexString(text, subtype = 0) { return new Binary(fromHexadecimal(text, "Binary"), subtype); }
  }
  Object.defineProperty(BinaryClass, "name", { value: "Binary" });
  const Binary = callable(BinaryClass);
  Object.assign(Binary, {
    SUBTYPE_DEFAULT: 0, SUBTYPE_FUNCTION: 1, SUBTYPE_BYTE_ARRAY: 2, SUBTYPE_UUID_OLD: 3, SUBTYPE_UUID, SUBTYPE_MD5: 5,
    SUBTYPE_ENCRYPTED: 6, SUBTYPE_COLUMN: 7, SUBTYPE_SENSITIVE: 8, SUBTYPE_VECTOR: 9, SUBTYPE_USER_DEFINED: 128,
  });

  const dashed = (bytes) => hexadecimal(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  class UUIDClass extends BinaryClass {
    constructor(value) {
      let bytes = value;
      if (value === undefined || value === null) {
        bytes = host.randomBytes(16);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
      } else if (typeof value === "string") {
        const digits = value.replace(/-/g, "");
        if (!/^[0-9a-fA-F]{32}$/.test(digits)) refuse(`UUID: not 32 hexadecimal digits: ${value}`);
        bytes = fromHexadecimal(digits, "UUID");
      } else if (value instanceof BinaryClass) {
        bytes = value.buffer;
      }
      super(bytes, SUBTYPE_UUID);
      if (this.buffer.length !== 16) refuse("UUID: 16 bytes are needed");
    }
    toHexString(withDashes = true) { return withDashes ? dashed(this.buffer) : this.hex(); }
    toString(encoding) { return encoding === undefined ? dashed(this.buffer) : super.toString(encoding); }
    toJSON() { return dashed(this.buffer); }
    toBinary() { return new Binary(this.buffer, SUBTYPE_UUID); }
    [printed]() { return `UUID('${dashed(this.buffer)}')`; }
    static generate() { return new UUID().buffer; }
    static isValid(value) {
      try { new UUID(value); } catch { return false; }
      return true;
    }
  }
  Object.defineProperty(UUIDClass, "name", { value: "UUID" });
  const UUID = callable(UUIDClass);
  const uuidOf = (bytes) => new UUID(bytes);

  // UUIDs as drivers wrote them before subtype 4: each had an order of the bytes of its own.
  const legacy = (order) => shell.maker((text) => {
    const { buffer } = new UUID(text);
    return new Binary(Uint8Array.from(order, (at) => buffer[at]), Binary.SUBTYPE_UUID_OLD);
  });
  const IN_ORDER = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
  const LegacyPythonUUID = legacy(IN_ORDER);
  const LegacyJavaUUID = legacy([7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8]);
  const LegacyCSharpUUID = legacy([3, 2, 1, 0, 5, 4, 7, 6, ...IN_ORDER.slice(8)]);

  // The binary value of a document. A UUID keeps its methods.
  shell.binary = (subtype, bytes) => (subtype === SUBTYPE_UUID && bytes.length === 16 ? new UUID(bytes) : new Binary(bytes, subtype));
  Object.assign(shell.types, { Binary, UUID });
  shell.globals({
    Binary, UUID, LegacyCSharpUUID, LegacyJavaUUID, LegacyPythonUUID,
    BinData: shell.maker((subtype, text) => shell.binary(subtype, fromBase64(text))),
    HexData: shell.maker((subtype, text) => shell.binary(subtype, fromHexadecimal(String(text), "HexData"))),
    MD5: shell.maker((text) => new Binary(fromHexadecimal(String(text), "MD5"), Binary.SUBTYPE_MD5)),
    btoa: (text) => host.toBase64(Uint8Array.from(String(text), (letter) => letter.charCodeAt(0))),
    atob: (text) => String.fromCharCode(...fromBase64(text)),
  });
})
