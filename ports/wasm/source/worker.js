// The worker of device.js: the whole library over a store. Calls run one at a time, in the order of their arrival.
import {checkPolicy, Fleet, post, Signer} from "./fleet.js";
import layout from "./layout.js";
import {checkKeys, checkObject, checkWhole, kindOf, Library, refuse, WispError} from "./library.js";
import {Model} from "./model.js";
import {Store} from "./store.js";
import createModule from "./wisp.mjs";

const ROOT = "/store", LOG = "events.db", LEDGER = "privacy.ledger", FLEET_LEDGER = "fleet.ledger",
      CHECKPOINT = ".checkpoint";
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

const required = (options, name) => options[name] ?? refuse(`${name} is missing`);

const textOf = (value, what) =>
    typeof value === "string" ? value : refuse(`${what} is ${kindOf(value)}; it must be a string`);

// Checks arguments that go to the library unchanged, where a BigInt is not accepted as a number.
const number = (value, name) =>
    typeof value === "number" ? value : refuse(`${name} is ${kindOf(value)}; it must be a number`);

// The options of methods that are unpacked here.
const OPTIONS = {
  history: ["model", "user", "limit"],
  recommend: ["model", "user", "history", "count", "excluded", "candidates", "allowSeen"],
  budget: ["delta", "fleet"],
  statement: ["delta", "format", "fleet"],
  rebase: ["from", "to", "output", "startOver"]
};

// Fields of the C interface that a page must not set: files are given by the names `model` and `output`.
const NOT_OF_PAGES = /Path$|^adapterRank$|^numThreads$|^size$|^notRead/;

// Checks the `options` of a method that fills this struct of the C interface, and has `more` of its own.
function checkOptions(method, struct, options, more = []) {
  checkObject(method, options);
  const other = Object.keys(options).find((key) => NOT_OF_PAGES.test(key));
  if (other !== undefined)
    refuse(
        `there is no option '${other}' here: files go by the names 'model' and 'output', a run has one thread, ` +
        "and adapters do not train in a browser");
  const fields = Object.entries(layout.structs[struct].fields).filter(([, {type}]) => type !== "address");
  const names = fields.map(([key]) => key).filter((key) => !NOT_OF_PAGES.test(key));
  const files = ["model", ...("outputPath" in layout.structs[struct].fields ? ["output"] : [])];
  checkKeys(method, options, [...files, ...more, ...names]);
}

// The path of a file in the store.
function pathOf(name) {
  if (typeof name !== "string" || !/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/.test(name))
    refuse(
        `'${name}' is no name of a file here; allowed are 1 to 100 letters, digits, '.', '_' and '-', ` +
        "a letter, digit or '_' first");
  return `${ROOT}/${name}`;
}

// pathOf for a file that the page may write and remove. The log, the ledgers and the files beside them belong to the
// library.
function pathOfApp(name) {
  const path = pathOf(name);
  if ([LOG, LEDGER, FLEET_LEDGER].some((kept) => name === kept || name.startsWith(`${kept}-`)) ||
      name.startsWith(`${FLEET_LEDGER}.`))
    refuse(`${name} is kept by the library; eraseUser and pruneLog forget events, Device.delete() all there is`);
  return path;
}

// The ledger of the fleet, or that of learning alone.
function ledgerOf(fleet) {
  if (fleet !== undefined && typeof fleet !== "boolean") refuse(`fleet is ${kindOf(fleet)}; it must be true or false`);
  return `${ROOT}/${fleet ? FLEET_LEDGER : LEDGER}`;
}

// Opens the model in a file of the store.
function openStored(library, path) {
  return library.within((scope) => {
    const out = scope.allocate(4);
    library.call(scope, "wisp_model_open_with", scope.text(path), library.struct(scope, "wisp_open_options"), out);
    return new Model(library, library.view().getUint32(out, true));
  });
}

// pathOfApp for the output of learning, beside which a run keeps its checkpoint.
function pathOfOutput(name) {
  const path = pathOfApp(name);
  if (name.endsWith(CHECKPOINT)) refuse(`${name} is the name of a checkpoint; an output must not end in ${CHECKPOINT}`);
  return path;
}

// The implementations of Device's methods.
class Host {
  constructor(module, store) {
    this.module = module;
    this.store = store;
    this.library = new Library(module);
    this.models = new Map();  // path -> Model
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

  opened(name) {
    const path = pathOf(name);
    if (!this.models.has(path)) this.models.set(path, openStored(this.library, path));
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
  recommend({model, user, history, ...options}) {
    const open = this.opened(required({model}, "model"));
    if ((user == null) === (history == null)) refuse("recommend takes either user or history");
    return open.recommend(history ?? this.history({model, user}), options);
  }

  describeModel(name) {
    const model = this.opened(name),
          items = Array.from(
              {length: model.numItems}, (_, i) => ({item: i, key: model.itemKey(i), name: model.itemName(i)}));
    return {...model.info, items};
  }

  // Replaces names of enums by their numbers.
  named({unit, evaluation, ...options}) {
    return {
      ...options,
      ...(unit !== undefined && {unit: this.library.constant("WISP_UNIT_", unit, "unit")}),
      ...(evaluation !== undefined && {evaluation: this.library.constant("WISP_EVALUATION_", evaluation, "evaluation")}),
    };
  }

  // Options shared by all learning methods: files by name, the store's log and ledger, one thread, times in
  // milliseconds.
  learning({model, output, ...options}) {
    return {
      ...this.named(options),
      modelPath: pathOf(required({model}, "model")),
      ledgerPath: `${ROOT}/${LEDGER}`,
      ...(output !== undefined && {outputPath: pathOfOutput(output)}),
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
        (scope) => this.library.copied(
            scope, "wisp_privacy_statement", scope.text(ledgerOf(fleet)), number(delta, "delta"),
            this.library.constant("WISP_STATEMENT_", format, "format")));
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

let host = null;

async function open(name) {
  const store = await Store.open(name, SPARE_FILES);
  try {
    const module = await createModule({
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
