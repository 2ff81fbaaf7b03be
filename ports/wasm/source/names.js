// The names of the store's files and of enums, and the options of the worker's methods.
import layout from "./layout.js";
import {checkKeys, checkObject, kindOf, refuse, shown} from "./library.js";

export const ROOT = "/store", LOG = "events.db", LEDGER = "privacy.ledger", CHECKPOINT = ".checkpoint";
const FLEET_LEDGER = "fleet.ledger";

export const required = (options, name) => options[name] ?? refuse(`${name} is missing`);

export const textOf = (value, what) =>
    typeof value === "string" ? value : refuse(`${what} is ${kindOf(value)}; it must be a string`);

// Checks arguments that go to the library unchanged, where a BigInt is not accepted as a number.
export const number = (value, name) =>
    typeof value === "number" ? value : refuse(`${name} is ${kindOf(value)}; it must be a number`);

// The options of methods that are unpacked here.
export const OPTIONS = {
  history: ["model", "user", "limit"],
  recommend: ["model", "adapter", "user", "history", "count", "excluded", "candidates", "allowSeen"],
  recommendBatch: ["model", "adapter", "users", "histories", "count", "excluded", "candidates", "allowSeen"],
  budget: ["delta", "fleet"],
  statement: ["delta", "format", "fleet"],
  rebase: ["from", "to", "output", "startOver"],
  rebaseAdapter: ["from", "adapter", "to", "output"],
  addItems: ["model", "items", "output"],
  retireItems: ["model", "keys", "restore", "output"]
};

// Fields of the C interface that a page must not set: files are given by names like `model` and `output`.
const NOT_OF_PAGES = /Path$|^num(Threads|PublicDatasets)$|^size$|^notRead/;

// Fields that hold paths, and the options that name those files.
const FILES = {
  modelPath: "model",
  outputPath: "output",
  adapterPath: "adapter"
};

// Checks the `options` of a method that fills this struct of the C interface, and has `more` of its own.
export function checkOptions(method, struct, options, more = []) {
  checkObject(method, options);
  const other = Object.keys(options).find((key) => NOT_OF_PAGES.test(key));
  if (other !== undefined)
    refuse(
        `there is no option '${other}' here: files go by the names 'model', 'output' and 'adapter', and a run has ` +
        "one thread");
  const fields = Object.entries(layout.structs[struct].fields).filter(([, {type}]) => type !== "address");
  const names = fields.map(([key]) => key).filter((key) => !NOT_OF_PAGES.test(key));
  const files = Object.entries(FILES).filter(([path]) => path in layout.structs[struct].fields).map(([, name]) => name);
  if (!files.includes("model")) files.push("model");
  checkKeys(method, options, [...files, ...more, ...names]);
}

// The path of a file in the store.
export function pathOf(name) {
  if (typeof name !== "string" || !/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/.test(name))
    refuse(
        `'${name}' is no name of a file here; allowed are 1 to 100 letters, digits, '.', '_' and '-', ` +
        "a letter, digit or '_' first");
  return `${ROOT}/${name}`;
}

// pathOf for a file that the page may write and remove. The log, the ledgers and the files beside them belong to the
// library.
export function pathOfApp(name) {
  const path = pathOf(name);
  if ([LOG, LEDGER, FLEET_LEDGER].some((kept) => name === kept || name.startsWith(`${kept}-`)) ||
      name.startsWith(`${FLEET_LEDGER}.`))
    refuse(`${name} is kept by the library; eraseUser and pruneLog forget events, Device.delete() all there is`);
  return path;
}

// The ledger of the fleet, or that of learning alone.
export function ledgerOf(fleet) {
  if (fleet !== undefined && typeof fleet !== "boolean") refuse(`fleet is ${kindOf(fleet)}; it must be true or false`);
  return `${ROOT}/${fleet ? FLEET_LEDGER : LEDGER}`;
}

// pathOfApp for the output of learning, beside which a run keeps its checkpoint.
export function pathOfOutput(name) {
  const path = pathOfApp(name);
  if (name.endsWith(CHECKPOINT)) refuse(`${name} is the name of a checkpoint; an output must not end in ${CHECKPOINT}`);
  return path;
}

// Returns the text that a function of the form f(..., text, capacity, &needed, error) copies out.
export function copied(library, scope, name, ...args) {
  const needed = scope.allocate(4);
  library.call(scope, name, ...args, 0, 0, needed);
  const capacity = library.view().getUint32(needed, true), text = scope.allocate(capacity);
  library.call(scope, name, ...args, text, capacity, needed);
  return library.text(text);
}

// The value of an enum by its name without `prefix`: constant("WISP_UNIT_", "user", "unit") is WISP_UNIT_USER.
export function constant(prefix, name, what) {
  const names = Object.keys(layout.constants).filter((known) => known.startsWith(prefix));
  const found = typeof name === "string" && layout.constants[prefix + name.toUpperCase()];
  if (typeof found !== "number") {
    const allowed = names.map((known) => `'${known.slice(prefix.length).toLowerCase()}'`).join(", ");
    refuse(`${what} is ${shown(name)}; allowed are the names ${allowed}`);
  }
  return found;
}
