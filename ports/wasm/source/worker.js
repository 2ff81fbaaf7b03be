// The worker of device.js: the whole library over a store. One call at a time, in the order in which they came.
import createModule from "./wisp.mjs";
import { Library, WispError } from "./library.js";
import { Model } from "./model.js";
import { Store } from "./store.js";

const ROOT = "/store", LOG = "events.db", LEDGER = "privacy.ledger";
// Files that one call may make: a log's and a ledger's journal, a night's files beside its output, temporary files.
const SPARE_FILES = 16;

const refuse = (sentence) => { throw new WispError("InvalidArgument", sentence); };
const required = (options, name) => options[name] ?? refuse(`${name} is missing`);

// The path of a file in the store.
function pathOf(name) {
  if (typeof name !== "string" || !/^[^/\0]{1,200}$/.test(name) || name === "." || name === "..")
    refuse(`'${name}' is no name of a file here; allowed are 1 to 200 characters without '/'`);
  return `${ROOT}/${name}`;
}

class Desk {
  constructor(module, store) {
    this.module = module;
    this.store = store;
    this.library = new Library(module);
    this.models = new Map(); // path -> Model
    this.log = 0;
  }

  close() {
    this.forgetModels();
    if (this.log !== 0) this.library.ask("wisp_log_close", this.log);
    this.log = 0;
    this.store.close();
  }

  forgetModels() {
    for (const model of this.models.values()) model.close();
    this.models.clear();
  }

  version() {
    return this.library.text(this.library.ask("wisp_version"));
  }

  // Whole or not at all: a new file takes the place of the old one.
  writeFile(name, bytes) {
    const path = pathOf(name), FS = this.module.FS, fresh = `${path}.new`;
    if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes)) refuse(`${name}: the bytes must be an ArrayBuffer or a view of one`);
    if (name === LOG || name === LEDGER) refuse(`${name} is kept by the library; another name is needed`);
    this.forgetModels();
    FS.writeFile(fresh, ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes));
    this.store.files.get(`${name}.new`).handle.flush();
    FS.rename(fresh, path);
  }

  readFile(name) {
    const path = pathOf(name);
    this.needFile(name);
    return this.module.FS.readFile(path);
  }

  removeFile(name) {
    const path = pathOf(name);
    if (name === LEDGER) refuse("the ledger stays as long as the data does; Device.delete() deletes both");
    this.needFile(name);
    this.forgetModels();
    this.module.FS.unlink(path);
  }

  needFile(name) {
    if (!this.store.files.has(name)) throw new WispError("Io", `${name}: is not there; here are ${this.listFiles().join(", ") || "no files"}`);
  }

  listFiles() {
    return [...this.store.files.keys()].sort();
  }

  opened(name) {
    const path = pathOf(name);
    if (!this.models.has(path)) this.models.set(path, new Model(this.library, { path }));
    return this.models.get(path);
  }

  openedLog() {
    if (this.log === 0) {
      this.log = this.library.within((scope) => {
        const out = scope.allocate(4);
        this.library.call(scope, "wisp_log_open", scope.text(`${ROOT}/${LOG}`), out);
        return this.library.view().getUint32(out, true);
      });
    }
    return this.log;
  }

  // [{ user, item, time }]: all of them or none; on disk when the promise is kept. `time` in milliseconds since 1970, as Date.now() has it.
  appendEvents(events) {
    if (!Array.isArray(events)) refuse("appendEvents takes a list of { user, item, time }");
    return this.library.within((scope) => {
      const sizes = events.map(({ user, item, time }) => this.library.struct(scope, "wisp_event", { user, itemKey: item, time }));
      const size = 16, array = scope.allocate(size * events.length);
      sizes.forEach((from, i) => this.module.HEAPU8.copyWithin(array + i * size, from, from + size));
      this.library.call(scope, "wisp_log_append_all", this.openedLog(), array, events.length);
    });
  }

  countEvents() {
    return this.counted("wisp_log_counts", "wisp_log_count", this.openedLog());
  }

  // Calls f(args..., struct, error) and gives the struct.
  counted(struct, name, ...args) {
    return this.library.within((scope) => {
      const out = this.library.struct(scope, struct);
      this.library.call(scope, name, ...args, out);
      return this.library.read(struct, out);
    });
  }

  // The newest `limit` items of a user that the model knows, as numbers, oldest first.
  history({ model, user, limit = 200 }) {
    const open = this.opened(model);
    return this.library.within((scope) => {
      const items = scope.allocate(4 * limit), count = scope.allocate(4);
      this.library.view().setUint32(count, limit, true);
      this.library.call(scope, "wisp_log_history", this.openedLog(), open.opened(), scope.text(user), items, count);
      const length = this.library.view().getUint32(count, true);
      return Array.from(this.module.HEAP32.subarray(items >> 2, (items >> 2) + length));
    });
  }

  eraseUser(user) {
    return this.library.within((scope) => {
      const erased = scope.allocate(8);
      this.library.call(scope, "wisp_log_erase", this.openedLog(), scope.text(user), erased);
      return Number(this.library.view().getBigUint64(erased, true));
    });
  }

  pruneLog(options) {
    return this.library.within((scope) => {
      const pruned = scope.allocate(8), how = this.library.struct(scope, "wisp_prune_options", this.named(options));
      this.library.call(scope, "wisp_log_prune", this.openedLog(), how, pruned);
      return Number(this.library.view().getBigUint64(pruned, true));
    });
  }

  // Of a history of items' numbers, or of what the log has of a user.
  recommend({ model, user, history, ...options }) {
    const open = this.opened(required({ model }, "model"));
    return open.recommend(history ?? this.history({ model, user: required({ user }, "user") }), options);
  }

  describeModel(name) {
    const model = this.opened(name), items = Array.from({ length: model.numItems }, (_, i) => ({ item: i, key: model.itemKey(i), name: model.itemName(i) }));
    return { ...model.info, items };
  }

  // Enums by their names.
  named({ unit, judge, ...options }) {
    return {
      ...options,
      ...(unit !== undefined && { unit: this.library.constant("WISP_UNIT_", unit) }),
      ...(judge !== undefined && { judge: this.library.constant("WISP_JUDGE_", judge) }),
    };
  }

  // What all that learns shares: files by name, the store's log and ledger, one thread, times in milliseconds.
  learning({ model, output, ...options }) {
    return {
      ...this.named(options), modelPath: pathOf(required({ model }, "model")), ledgerPath: `${ROOT}/${LEDGER}`,
      ...(output !== undefined && { outputPath: pathOf(output) }), numThreads: 1,
    };
  }

  plan(options) {
    return this.library.within((scope) => {
      const out = this.library.struct(scope, "wisp_plan");
      const plan = { timesPerSecond: 1000, dataset: "events", ...this.learning(options) };
      this.library.call(scope, "wisp_plan_life", this.library.struct(scope, "wisp_plan_options", plan), out);
      return this.library.read("wisp_plan", out);
    });
  }

  planChange(options) {
    return this.library.within((scope) => {
      const out = this.library.struct(scope, "wisp_plan"), factor = scope.allocate(8);
      this.library.call(scope, "wisp_plan_change", this.library.struct(scope, "wisp_plan_options", this.learning(options)), out, factor);
      return { ...this.library.read("wisp_plan", out), noiseFactor: this.library.view().getFloat64(factor, true) };
    });
  }

  personalise(options) {
    return this.library.within((scope) => {
      const output = required(options, "output"), out = this.library.struct(scope, "wisp_personalise_result");
      const run = { timesPerSecond: 1000, dataset: "events", checkpointPath: `${pathOf(output)}.checkpoint`, ...this.learning(options),
                    logPath: `${ROOT}/${LOG}`, progress: this.library.ask("wisp_wasm_progress") };
      this.openedLog();
      this.forgetModels();
      this.library.call(scope, "wisp_personalise", this.library.struct(scope, "wisp_personalise_options", run), out);
      return this.library.read("wisp_personalise_result", out);
    });
  }

  night(options) {
    return this.library.within((scope) => {
      required(options, "output");
      const out = this.library.struct(scope, "wisp_night_result");
      const night = { ...this.learning(options), logPath: `${ROOT}/${LOG}`, progress: this.library.ask("wisp_wasm_progress"),
                      logger: this.library.ask("wisp_wasm_logger") };
      this.openedLog();
      this.forgetModels();
      this.library.call(scope, "wisp_personalise_night", this.library.struct(scope, "wisp_night_options", night), out);
      return this.library.read("wisp_night_result", out);
    });
  }

  // Local only: not private.
  evaluate(model) {
    this.openedLog();
    return this.library.within((scope) => this.counted("wisp_quality", "wisp_evaluate", scope.text(pathOf(model)), scope.text(`${ROOT}/${LOG}`), 1));
  }

  budget({ delta }) {
    return this.library.within((scope) => this.counted("wisp_budget", "wisp_budget_read", scope.text(`${ROOT}/${LEDGER}`), 0, delta));
  }

  statement({ delta, format = "text" }) {
    return this.library.within((scope) => this.library.copied(scope, "wisp_privacy_statement", scope.text(`${ROOT}/${LEDGER}`), delta,
                                                              this.library.constant("WISP_STATEMENT_", format)));
  }

  rebase({ from, to, output }) {
    return this.library.within((scope) => {
      const out = this.library.struct(scope, "wisp_rebase_result");
      this.forgetModels();
      this.library.call(scope, "wisp_rebase", scope.text(pathOf(from)), scope.text(pathOf(to)), scope.text(pathOf(output)), out);
      return this.library.read("wisp_rebase_result", out);
    });
  }
}

let desk = null, current = 0;

async function open(name) {
  const store = await Store.open(name, SPARE_FILES);
  const module = await createModule({
    onProgress: (progress) => { self.postMessage({ id: current, progress }); },
    onSentence: (level, text) => { self.postMessage({ sentence: { level, text } }); },
  });
  module.FS.mkdir(ROOT);
  module.FS.mount(module.StoreMount.type(store), {}, ROOT);
  desk = new Desk(module, store);
}

async function answer({ id, method, args }) {
  try {
    current = id;
    if (method === "open") return self.postMessage({ id, result: await open(...args) });
    if (!desk) throw new WispError("InvalidArgument", "the device is closed; open it first");
    if (method !== "close") await desk.store.reserve(SPARE_FILES);
    const result = desk[method](...args);
    self.postMessage({ id, result });
    if (method === "close") desk = null;
  } catch (error) {
    const kind = error instanceof WispError ? error.kind : error.name === "StoreError" ? "Io" : "Internal";
    self.postMessage({ id, error: { kind, message: error.message } });
  }
}

let last = Promise.resolve();
self.onmessage = ({ data }) => { last = last.then(() => answer(data)); };
