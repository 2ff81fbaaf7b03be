// The worker of device.js: the whole library over a store. Calls run one at a time, in the order of their arrival.
import {Draws} from "./draws.js";
import {checkPolicy, Fleet, post, Signer} from "./fleet.js";
import layout from "./layout.js";
import {at, checkKeys, checkWhole, kindOf, Library, refuse, WispError} from "./library.js";
import {Model} from "./model.js";
import {
  CHECKPOINT, checkOptions, constant, copied, LEDGER, ledgerOf, LOG, number, OPTIONS, pathOf, pathOfApp, pathOfOutput,
  required, ROOT, textOf
} from "./names.js";
import {Store} from "./store.js";
import createModule from "./wisp.mjs";

// Files that one call may create: a log's and a ledger's journal, a run's files beside its output, temporary files.
const SPARE_FILES = 16;
// Error codes of files in WASI's numbering.
const ENOSPC = 51;
const FILE_ERRORS = {
  29: "the browser's storage failed, or was taken away",
  41: "too many files are open at once",
  44: "there is no such file in the browser's storage",
  [ENOSPC]: "the browser has no room for it",
};
const fileError = (error) => FILE_ERRORS[error.errno] ?? `the browser's storage refused (error ${error.errno})`;
// The names of errors of the browser's storage.
const STORAGE_ERRORS = {
  QuotaExceededError: FILE_ERRORS[ENOSPC],
  NotFoundError: "what this site had stored was deleted; open it again"
};
const storageError = (error) => STORAGE_ERRORS[error.name] ?? `the browser's storage refused (${error.message})`;

// Opens the model in a file of the store, with the adapter in another one if `adapterPath` is given.
function openStored(library, path, adapterPath) {
  return library.within((scope) => {
    const out = scope.allocate(4), how = library.struct(scope, "wisp_open_options", {adapterPath});
    library.call(scope, "wisp_model_open_with", scope.text(path), how, out);
    return new Model(library, library.view().getUint32(out, true));
  });
}

// The implementations of Device's methods.
class Host {
  constructor(module, store) {
    this.module = module;
    this.store = store;
    this.library = new Library(module, layout);
    this.models = new Map();  // name, or name and adapter -> Model
    this.draws = null;
    this.log = 0;
    this.fleet = null;
    this.signer = null;
  }

  close() {
    this.closeFleet();
    this.forgetModels();
    if (this.log !== 0) this.library.ask("wisp_log_close", this.log);
    this.log = 0;
    this.store.close();
  }

  forgetModels() {
    this.draws?.close();
    this.draws = null;
    for (const model of this.models.values()) model.close();
    this.models.clear();
  }

  version() { return this.library.text(this.library.ask("wisp_version")); }

  // Replaces the file, all or nothing, through a new file whose name pathOf does not allow.
  writeFile(name, bytes) {
    const path = pathOfApp(name), FS = this.module.FS, fresh = `.new-${name}`;
    if (!(bytes instanceof ArrayBuffer) && !ArrayBuffer.isView(bytes))
      refuse(`${name}: the bytes must be an ArrayBuffer or a view of one`);
    const view = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) :
                                             new Uint8Array(bytes);
    this.closeFleet();
    this.forgetModels();
    try {
      FS.writeFile(`${ROOT}/${fresh}`, view);
      const {handle} = this.store.files.get(fresh);
      handle.flush();
      // FS.writeFile reports no error if the disk took only a part.
      if (FS.stat(`${ROOT}/${fresh}`).size !== view.byteLength) throw new FS.ErrnoError(ENOSPC);
      FS.rename(`${ROOT}/${fresh}`, path);
    } catch (error) {
      this.removeHidden();
      throw new WispError(
          "Io", `${name}: cannot be written: ${error.errno === undefined ? error.message : fileError(error)}`);
    }
  }

  // Removes what an interrupted call left behind.
  removeHidden() {
    for (const name of [...this.store.files.keys()])
      if (name.startsWith(".new-")) this.module.FS.unlink(`${ROOT}/${name}`);
  }

  readFile(name) {
    const path = pathOf(name);
    this.needFile(name);
    return this.module.FS.readFile(path);
  }

  removeFile(name) {
    const path = pathOfApp(name);
    this.needFile(name);
    this.closeFleet();
    this.forgetModels();
    this.module.FS.unlink(path);
  }

  needFile(name) {
    if (!this.store.files.has(name))
      throw new WispError("Io", `${name}: is not there; here are ${this.listFiles().join(", ") || "no files"}`);
  }

  listFiles() { return [...this.store.files.keys()].filter((name) => !name.startsWith(".")).sort(); }

  opened(name, adapter) {
    const path = pathOf(name), adapterPath = adapter === undefined ? undefined : pathOf(adapter);
    const key = `${path} ${adapterPath}`;
    if (!this.models.has(key)) this.models.set(key, openStored(this.library, path, adapterPath));
    return this.models.get(key);
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

  // Takes [{ user, item, time }] and appends all or none; on disk when the promise resolves. `time` is in milliseconds
  // since 1970, like Date.now().
  appendEvents(events) {
    if (!Array.isArray(events)) refuse("appendEvents takes a list of { user, item, time }");
    return this.library.within((scope) => {
      const {size} = layout.structs.wisp_event, array = scope.allocate(size * events.length);
      events.forEach((event, i) => {
        checkKeys(`event ${i}`, event, ["user", "item", "time"]);
        checkWhole(`event ${i}: time`, event.time, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
        const user = textOf(event.user, `event ${i}: user`), itemKey = textOf(event.item, `event ${i}: item`);
        const from = this.library.struct(scope, "wisp_event", {user, itemKey, time: event.time});
        this.module.HEAPU8.copyWithin(array + i * size, from, from + size);
      });
      this.library.call(scope, "wisp_log_append_all", this.openedLog(), array, events.length);
    });
  }

  countEvents() { return this.counted("wisp_log_counts", "wisp_log_count", this.openedLog()); }

  // Calls f(args..., struct, error) and returns the struct.
  counted(struct, name, ...args) {
    return this.library.within((scope) => {
      const out = this.library.struct(scope, struct);
      this.library.call(scope, name, ...args, out);
      return this.library.read(struct, out);
    });
  }

  // The user's newest `limit` items that the model knows, as indices, oldest first.
  history({model, user, limit = 200}) {
    const open = this.opened(required({model}, "model"));
    checkWhole("limit", limit, 1, 1e6);
    return this.library.within((scope) => {
      const items = scope.allocate(4 * limit), count = scope.allocate(4);
      this.library.view().setUint32(count, limit, true);
      this.library.call(
          scope, "wisp_log_history", this.openedLog(), open.opened(), scope.text(user, "user"), items, count);
      const length = this.library.view().getUint32(count, true);
      return Array.from(this.module.HEAP32.subarray(items >> 2, (items >> 2) + length));
    });
  }

  eraseUser(user) {
    return this.library.within((scope) => {
      const erased = scope.allocate(8);
      this.library.call(scope, "wisp_log_erase", this.openedLog(), scope.text(user, "user"), erased);
      return Number(this.library.view().getBigUint64(erased, true));
    });
  }

  pruneLog(options) {
    return this.library.within((scope) => {
      const how = this.library.struct(
          scope, "wisp_prune_options",
          {timesPerSecond: 1000, ...this.named(options), hasBefore: options.before !== undefined});
      const pruned = scope.allocate(8);
      this.library.call(scope, "wisp_log_prune", this.openedLog(), how, pruned);
      return Number(this.library.view().getBigUint64(pruned, true));
    });
  }

  // Recommends after a history of item indices, or after the user's history in the log.
  recommend({model, adapter, user, history, ...options}) {
    const open = this.opened(required({model}, "model"), adapter);
    return open.recommend(this.historyOf("recommend", model, user, history), options);
  }

  recommendBatch({model, adapter, users, histories, ...options}) {
    const open = this.opened(required({model}, "model"), adapter);
    if ((users == null) === (histories == null)) refuse("recommendBatch takes either users or histories");
    return open.recommendBatch(histories ?? Array.from(users, (user) => this.history({model, user})), options);
  }

  historyOf(method, model, user, history) {
    if ((user == null) === (history == null)) refuse(`${method} takes either user or history`);
    return history ?? this.history({model, user});
  }

  // Samples items and charges the ledger before each, for models that learned without a guarantee.
  recommendPrivately(options) {
    checkOptions(
        "recommendPrivately", "wisp_private_options", options,
        ["base", "user", "history", "count", "excluded", "candidates", "allowSeen", "publicDatasets"]);
    const {model, base, user, history, count, excluded, candidates, allowSeen, ...how} = options;
    const items = this.historyOf("recommendPrivately", required({model}, "model"), user, history);
    const text = JSON.stringify([model, base, how]);
    if (this.draws?.text !== text) {
      this.draws?.close();
      this.draws = null;
      const open = this.opened(model), public_ = base === undefined ? null : this.opened(base);
      this.draws = new Draws(this.library, text, open, public_, {...this.named(how), ledgerPath: `${ROOT}/${LEDGER}`});
    }
    return this.draws.recommend(items, {count, excluded, candidates, allowSeen});
  }

  describeModel(name) {
    const model = this.opened(name),
          items = Array.from(
              {length: model.numItems}, (_, i) => ({item: i, key: model.itemKey(i), name: model.itemName(i)}));
    return {...model.info, items};
  }

  // Replaces names of enums by their numbers.
  named({unit, evaluation, decoding, ...options}) {
    return {
      ...options,
      ...(decoding !== undefined && {decoding: constant("WISP_DECODING_", decoding, "decoding")}),
      ...(unit !== undefined && {unit: constant("WISP_UNIT_", unit, "unit")}),
      ...(evaluation !== undefined &&
          {evaluation: constant("WISP_EVALUATION_", evaluation, "evaluation")}),
    };
  }

  // Options shared by all learning methods: files by name, the store's log and ledger, one thread, times in
  // milliseconds.
  learning({model, output, adapter, ...options}) {
    return {
      ...this.named(options),
      modelPath: pathOf(required({model}, "model")),
      ledgerPath: `${ROOT}/${LEDGER}`,
      ...(output !== undefined && {outputPath: pathOfOutput(output)}),
      ...(adapter !== undefined && {adapterPath: pathOf(adapter)}),
      numThreads: 1,
    };
  }

  plan(options) {
    checkOptions("plan", "wisp_plan_options", options);
    for (const name of ["epsilon", "delta", "numRecordsPublic", "runs", "unit"]) required(options, name);
    return this.library.within((scope) => {
      const out = this.library.struct(scope, "wisp_plan");
      const plan = {timesPerSecond: 1000, dataset: "events", ...this.learning(options)};
      this.library.call(scope, "wisp_plan_make", this.library.struct(scope, "wisp_plan_options", plan), out);
      return this.library.read("wisp_plan", out);
    });
  }

  planChange(options) {
    checkKeys(
        "planChange", options,
        ["model", "runs", "stepsPerRun", "expectedBatch", "numRecordsPublic", "learningRate", "dryRun"]);
    return this.library.within((scope) => {
      const out = this.library.struct(scope, "wisp_plan"), factor = scope.allocate(8);
      this.library.call(
          scope, "wisp_plan_change", this.library.struct(scope, "wisp_plan_options", this.learning(options)), out,
          factor);
      return {...this.library.read("wisp_plan", out), noiseFactor: this.library.view().getFloat64(factor, true)};
    });
  }

  personalise(options) {
    checkOptions("personalise", "wisp_personalise_options", options);
    for (const name of ["epsilon", "delta", "numRecordsPublic", "unit"]) required(options, name);
    return this.library.within((scope) => {
      const output = required(options, "output"), out = this.library.struct(scope, "wisp_personalise_result");
      const run = {
        timesPerSecond: 1000,
        dataset: "events",
        checkpointPath: `${pathOfOutput(output)}${CHECKPOINT}`,
        ...this.learning(options),
        logPath: `${ROOT}/${LOG}`
      };
      const how = this.library.struct(
          scope, "wisp_personalise_options", run, {progress: this.library.ask("wisp_wasm_progress")});
      this.openedLog();
      this.forgetModels();
      this.library.call(scope, "wisp_personalise", how, out);
      return this.library.read("wisp_personalise_result", out);
    });
  }

  runPlanned(options) {
    checkOptions("run", "wisp_run_options", options);
    return this.library.within((scope) => {
      required(options, "output");
      const out = this.library.struct(scope, "wisp_run_result");
      const how = this.library.struct(
          scope, "wisp_run_options", {...this.learning(options), logPath: `${ROOT}/${LOG}`},
          {progress: this.library.ask("wisp_wasm_progress"), logger: this.library.ask("wisp_wasm_logger")});
      this.openedLog();
      this.forgetModels();
      this.library.call(scope, "wisp_run_planned", how, out);
      return this.library.read("wisp_run_result", out);
    });
  }

  // Local only: not private.
  evaluate(model) {
    this.openedLog();
    return this.library.within(
        (scope) =>
            this.counted("wisp_quality", "wisp_evaluate", scope.text(pathOf(model)), scope.text(`${ROOT}/${LOG}`), 1));
  }

  budget({delta, fleet}) {
    return this.library.within(
        (scope) => this.counted(
            "wisp_budget", "wisp_budget_read", scope.text(ledgerOf(fleet)), 0, number(delta, "delta")));
  }

  statement({delta, format = "text", fleet}) {
    return this.library.within(
        (scope) => copied(
            this.library, scope, "wisp_privacy_statement", scope.text(ledgerOf(fleet)), number(delta, "delta"),
            constant("WISP_STATEMENT_", format, "format")));
  }

  rebase({from, to, output, startOver}) {
    return this.library.within((scope) => {
      const out = this.library.struct(scope, "wisp_rebase_result");
      this.forgetModels();
      const files = {
        fromPath: pathOf(from),
        toPath: pathOf(to),
        outputPath: pathOfOutput(output),
        ledgerPath: `${ROOT}/${LEDGER}`
      };
      this.library.call(
          scope, "wisp_rebase", this.library.struct(scope, "wisp_rebase_options", {...files, startOver}), out);
      return this.library.read("wisp_rebase_result", out);
    });
  }

  rebaseAdapter({from, adapter, to, output}) {
    this.forgetModels();
    this.library.within(
        (scope) => this.library.call(
            scope, "wisp_rebase_adapter", ...[from, adapter, to].map((name) => scope.text(pathOf(name))),
            scope.text(pathOfOutput(output))));
  }

  // Writes a base with more items: [{ key, name, like }].
  addItems({model, items, output}) {
    if (!Array.isArray(items)) refuse("addItems takes a list of { key, name, like }");
    this.forgetModels();
    this.library.within((scope) => {
      const {size} = layout.structs.wisp_new_item, array = scope.allocate(size * items.length);
      items.forEach((item, i) => {
        checkKeys(`item ${i}`, item, ["key", "name", "like"]);
        textOf(item.key, `item ${i}: key`);
        const from = this.library.struct(scope, "wisp_new_item", item);
        this.module.HEAPU8.copyWithin(array + i * size, from, from + size);
      });
      this.library.call(
          scope, "wisp_catalogue_add", scope.text(pathOf(model)), array, items.length, scope.text(pathOfApp(output)));
    });
  }

  // Writes a base that never recommends these items, or does again.
  retireItems({model, keys, restore = false, output}) {
    if (typeof restore !== "boolean") refuse(`restore is ${kindOf(restore)}; it must be true or false`);
    this.forgetModels();
    this.library.within(
        (scope) => this.library.call(
            scope, "wisp_catalogue_retire", scope.text(pathOf(model)), scope.texts(keys, "keys"), keys.length,
            restore ? 1 : 0, scope.text(pathOfApp(output))));
  }

  // Each time that a fleet is opened costs a call of its server, so it stays open while the options are the same.
  async workInFleet(options) {
    checkOptions("workInFleet", "wisp_fleet_options", options, ["policy", "seconds"]);
    const {seconds = 0, policy, ...others} = options, text = JSON.stringify([policy, others]);
    number(seconds, "seconds");
    if (this.fleet?.text !== text) {
      this.closeFleet();
      const policyPath = pathOf(required({policy}, "policy")), {numThreads, ...learning} = this.learning(others);
      const protectsRecords = checkPolicy(policy, this.readFile(policy));
      this.signer ??= await Signer.open(this.store.name);
      this.fleet = new Fleet(this.library, this.signer, text, {
        timesPerSecond: 1000,
        dataset: "events",
        ...learning,
        policyPath,
        logPath: `${ROOT}/${LOG}`,
        ledgerPath: ledgerOf(true),
        ...(protectsRecords && {recordsLedgerPath: ledgerOf(false)})
      });
    }
    this.forgetModels();
    return this.fleet.work(seconds);
  }

  closeFleet() {
    this.fleet?.close();
    this.fleet = null;
  }
}

const LEARNS = new Set(["personalise", "runPlanned"]);

let host = null;

async function open(name) {
  const store = await Store.open(name, SPARE_FILES);
  try {
    const module = await createModule({
      ...at(new URL("./wisp.wasm", import.meta.url)),
      onProgress: (progress) => {
        self.postMessage({progress});
      },
      onSentence: (level, text) => {
        self.postMessage({sentence: {level, text}});
      },
      onPost: post,
      onSign: (message) => host.signer.sign(message),
    });
    module.FS.mkdir(ROOT);
    module.FS.mount(module.StoreMount.type(store), {}, ROOT);
    host = new Host(module, store);
    host.removeHidden();
  } catch (error) {
    store.close();
    throw new WispError("Io", `${name}: the library cannot be loaded: ${error.message ?? error}`);
  }
}

// Converts other exceptions of a method: errors of the storage, or JavaScript's for arguments that could not be
// unpacked.
function errorOf(method, error) {
  if (error instanceof WispError) return {kind: error.kind, message: error.message};
  if (error.name === "StoreError") return {kind: "Io", message: error.message};
  if (error.errno !== undefined) return {kind: "Io", message: `${method}: ${fileError(error)}`};
  if (error instanceof DOMException) return {kind: "Io", message: `${method}: ${storageError(error)}`};
  if (error instanceof TypeError)
    return {
      kind: "InvalidArgument",
      message: `${method}: an argument is missing or of a wrong type (${error.message})`
    };
  return {kind: "Internal", message: `${method}: ${error.message}`};
}

async function answer({method, args}) {
  try {
    if (method === "open") return self.postMessage({result: await open(...args)});
    if (method in OPTIONS) checkKeys(method, args[0], OPTIONS[method]);
    if (method !== "close") await host.store.reserve(SPARE_FILES);
    // The library tells of steps alone, and chooses the noise first, which takes seconds.
    if (LEARNS.has(method)) self.postMessage({progress: {step: 0, numSteps: 0, loss: NaN, epsilon: NaN}});
    self.postMessage({result: await host[method](...args)});
  } catch (error) {
    const fatal = Boolean(host?.library.failed || host?.store.failed);
    if (fatal) host.store.close();
    self.postMessage({error: errorOf(method, error), fatal});
  }
}

let last = Promise.resolve();
self.onmessage = ({data}) => {
  last = last.then(() => answer(data));
};
