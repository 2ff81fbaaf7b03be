// Calls the C interface from JavaScript: structs by the names of their fields, errors as exceptions. The layout,
// which the build generates from the headers for each module, has the place of each field.
const KINDS = {
  1: "Internal",
  2: "InvalidArgument",
  3: "InvalidData",
  4: "PrivacyRefused",
  5: "Io",
  6: "Unsupported",
  7: "Cancelled",
  8: "TooEarly"
};

// A refusal of the library: `kind` is one of InvalidArgument, InvalidData, PrivacyRefused, Io, Unsupported, Cancelled,
// TooEarly and Internal; the message is its sentence.
export class WispError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "WispError";
    this.kind = kind;
  }
}

// A value in the form of messages: the string "5" differs from the number 5.
export const shown = (value) => typeof value === "string" ? JSON.stringify(value) : String(value);
// The type of a value, for messages.
export const kindOf = (value) =>
    value === null || value === undefined ? String(value) : `${typeof value === "object" ? "an" : "a"} ${typeof value}`;

export const refuse = (sentence) => {
  throw new WispError("InvalidArgument", sentence);
};

export function checkObject(what, options) {
  if (typeof options !== "object" || options === null) refuse(`${what} takes an object of options, not ${options}`);
}

// Returns `options` if it is an object that has only these keys.
export function checkKeys(what, options, keys) {
  checkObject(what, options);
  const unknown = Object.keys(options).find((key) => !keys.includes(key));
  if (unknown !== undefined) refuse(`${what} has no option '${unknown}'; it has ${keys.join(", ")}`);
}

export function checkWhole(what, value, least, most) {
  if (!Number.isInteger(value) || value < least || value > most)
    refuse(`${what} is ${shown(value)}; it must be a whole number from ${least} to ${most}`);
  return value;
}

export function asBytes(source) {
  try {
    if (source instanceof ArrayBuffer) return new Uint8Array(source);
    if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  } catch (error) {
    throw new WispError("InvalidArgument", `the model's bytes are not here any more: ${error.message}`);
  }
  throw new WispError("InvalidArgument", "the model's bytes must be an ArrayBuffer or a view of one");
}

// The option of a module's maker that says where its WebAssembly lies.
export const at = (wasm) => ({locateFile: () => String(wasm)});

const RANGES = {
  i32: [-(2 ** 31), 2 ** 31 - 1],
  u32: [0, 2 ** 32 - 1],
  u64: [0, Number.MAX_SAFE_INTEGER],
  i64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
};

export class Library {
  constructor(module, layout) {
    this.module = module;
    this.layout = layout;
    this.failed = false;
  }

  // Calls action(scope), and frees everything that was allocated in the scope, whatever happens.
  within(action) {
    const scope = new Scope(this.module);
    try {
      return action(scope);
    } finally {
      scope.end();
    }
  }

  // Calls a function that cannot fail.
  ask(name, ...args) {
    if (this.failed) throw new WispError("Internal", "the library failed before; load it again");
    try {
      return this.module[`_${name}`](...args);
    } catch (error) {
      this.failed = true;
      throw new WispError("Internal", `the library failed in ${name}: ${error.message ?? error}; load it again`);
    }
  }

  // Calls a function that returns a code and takes an error last.
  call(scope, name, ...args) {
    const {size, fields} = this.layout.structs.wisp_error;
    const error = scope.allocate(size);
    const code = this.ask(name, ...args, error);
    if (code !== 0) throw new WispError(KINDS[code] ?? "Internal", this.text(error + fields.message.at));
  }

  text(address) { return address === 0 ? "" : this.module.UTF8ToString(address); }

  view() { return new DataView(this.module.HEAPU8.buffer); }

  // Allocates a zeroed struct and sets `values`, an object with the fields' names in camel case, which may come from a
  // page. Addresses, which C dereferences, are accepted in `addresses` alone.
  struct(scope, name, values = {}, addresses = {}) {
    const {size, fields} = this.layout.structs[name];
    const address = scope.allocate(size);
    if (fields.size) this.view().setUint32(address + fields.size.at, size, true);
    for (const [key, value] of Object.entries(addresses)) this.view().setUint32(address + fields[key].at, value, true);
    for (const [key, value] of Object.entries(values)) {
      if (value === undefined || value === null) continue;
      const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
      if (!field || key === "size" || field.type === "address") {
        const allowed = Object.keys(fields).filter((known) => known !== "size" && fields[known].type !== "address");
        refuse(`there is no option '${key}'; ${name} has ${allowed.join(", ")}`);
      }
      this.write(scope, address + field.at, field.type, value, key);
    }
    return address;
  }

  write(scope, address, type, value, key) {
    if (type === "text") {
      if (typeof value !== "string") refuse(`${key} is ${kindOf(value)}; it must be a string`);
      const text = scope.text(value, key);  // may move the memory, so the view is made after it
      return this.view().setUint32(address, text, true);
    }
    if (typeof value === "boolean" && type === "i32") value = value ? 1 : 0;
    if (typeof value !== "number") refuse(`${key} is ${kindOf(value)}; it must be a number`);
    const range = RANGES[type];
    if (range && !(Number.isInteger(value) && value >= range[0] && value <= range[1]))
      refuse(`${key} is ${value}; it must be a whole number from ${range[0]} to ${range[1]}`);
    const view = this.view();
    if (type === "f64")
      view.setFloat64(address, value, true);
    else if (type === "f32")
      view.setFloat32(address, value, true);
    else if (type === "u64" || type === "i64")
      view.setBigInt64(address, BigInt(value), true);
    else
      view.setUint32(address, value >>> 0, true);
  }

  // Returns the struct as an object.
  read(name, address) {
    const out = {}, view = this.view();
    for (const [key, {at, type}] of Object.entries(this.layout.structs[name].fields)) {
      if (key === "size" || key.startsWith("notRead")) continue;
      if (type === "text")
        out[key] = this.text(view.getUint32(address + at, true));
      else if (type === "f64")
        out[key] = view.getFloat64(address + at, true);
      else if (type === "f32")
        out[key] = view.getFloat32(address + at, true);
      else if (type === "u64" && key.endsWith("Hash"))
        // 16 hexadecimal digits, as the program prints it: JSON has no number for it
        out[key] = view.getBigUint64(address + at, true).toString(16).padStart(16, "0");
      else if (type === "u64")
        out[key] = Number(view.getBigUint64(address + at, true));
      else if (type === "i64")
        out[key] = Number(view.getBigInt64(address + at, true));
      else if (type === "i32")
        out[key] = view.getInt32(address + at, true);
      else if (type === "u32")
        out[key] = view.getUint32(address + at, true);
    }
    return out;
  }
}

// The allocations of one call.
class Scope {
  constructor(module) {
    this.module = module;
    this.blocks = [];
  }

  allocate(bytes) {
    if (!(bytes >= 0 && bytes < 2 ** 31))
      throw new WispError("Internal", `out of memory: ${bytes} bytes were asked for`);
    const address = this.module._calloc(1, Math.max(1, bytes));
    if (address === 0) throw new WispError("Internal", `out of memory: ${bytes} bytes were asked for`);
    this.blocks.push(address);
    return address;
  }

  // `what` is the argument's name, for messages.
  text(string, what) {
    if (typeof string !== "string") refuse(`${what} is ${kindOf(string)}; it must be a string`);
    if (string.includes("\0")) refuse(`${what} holds a zero character, which C cannot read`);
    if (/[\ud800-\udfff]/u.test(string)) refuse(`${what} holds half of a pair of UTF-16, which is no text`);
    const bytes = new TextEncoder().encode(string), address = this.allocate(bytes.length + 1);
    this.module.HEAPU8.set(bytes, address);
    return address;
  }

  // Returns address and length of items' indices, copied from an array or any iterable. `indexOf(item, place)` returns
  // the index of an item that is given by its key.
  items(list, what, indexOf) {
    if (typeof list?.[Symbol.iterator] !== "function" || typeof list === "string")
      refuse(`${what} is ${list}; it must be a list of items' numbers or keys`);
    const array = list instanceof Int32Array ? list : Array.from(list, (item, i) => indexOf(item, `${what}[${i}]`));
    const address = this.allocate(4 * array.length);
    array.forEach((item, i) => {
      if (!Number.isInteger(item) || item !== (item | 0))
        refuse(`${what}[${i}] is ${item}; items are numbers from 0 on, or keys`);
    });
    this.module.HEAP32.set(array, address >> 2);
    return [address, array.length];
  }

  // Returns the address of an array of pointers to these strings.
  texts(list, what) {
    if (!Array.isArray(list)) refuse(`${what} is ${kindOf(list)}; it must be a list of strings`);
    const at = list.map((string, i) => this.text(string, `${what}[${i}]`)), address = this.allocate(4 * at.length);
    this.module.HEAP32.set(at, address >> 2);
    return address;
  }

  end() {
    for (const address of this.blocks) this.module._free(address);
  }
}
