// Private learning in the browser: a worker stores models, log and ledger in the site's own storage, and does the work.
//
//   import { Device } from "wisp/device.js";
//   const device = await Device.open("my-shop");
//   await device.writeFile("base.wisp", await (await fetch("cafe.wisp")).arrayBuffer());
//   await device.appendEvents([{ user: "me", item: "tea-mint", time: Date.now() }]);
//   const best = await device.recommend({ model: "base.wisp", user: "me", count: 5 });
//
// Every method returns a promise. A refusal is a WispError with the library's sentence. Calls run one after the other,
// in the order of their arrival.
import {keyDatabase, settled} from "./fleet.js";
import {checkKeys, kindOf, WispError} from "./library.js";

export {WispError};

const METHODS = [
  "writeFile", "readFile", "removeFile", "listFiles", "appendEvents", "countEvents", "history", "eraseUser",
  "pruneLog", "recommend", "recommendBatch", "recommendPrivately", "describeModel", "plan", "planChange",
  "personalise", "runPlanned", "evaluate", "budget", "statement", "rebase", "rebaseAdapter", "addItems",
  "retireItems", "workInFleet", "version"
];
const CANCELLED = "cancelled: what was charged so far stays charged, and what the call had stored already stays stored";

// A browser starts a worker only from the page's own site. A script of the page's own imports it from elsewhere.
function makeWorker() {
  const here = new URL(import.meta.url);
  if (here.origin === self.location.origin)
    return new Worker(new URL("./worker.js", import.meta.url), {type: "module"});
  const script = `import ${JSON.stringify(here.href.replace(/[^/]*$/, "worker.js"))};`;
  return new Worker(URL.createObjectURL(new Blob([script], {type: "text/javascript"})), {type: "module"});
}

// The time that a worker may take to close its files before it is terminated.
const MOST_OF_CLOSING_MS = 5000;

function wrongType(method, onProgress, signal) {
  if (onProgress !== undefined && onProgress !== null && typeof onProgress !== "function")
    return `${method}: onProgress is ${kindOf(onProgress)}; it must be a function`;
  if (signal !== undefined && signal !== null && typeof signal.addEventListener !== "function")
    return `${method}: signal is ${kindOf(signal)}; it must be an AbortSignal`;
  return null;
}

function checkFolder(name) {
  if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(name)) {
    throw new WispError(
        "InvalidArgument",
        `'${name}' is no name of a folder here; allowed are 1 to 100 letters, digits, '.', '_' and '-'`);
  }
}

export class Device {
  // Opens the folder `name` of this site's storage, creating it if absent. One page at a time can have it.
  static async open(name = "wisp", options = {}) {
    checkFolder(name);
    checkKeys("open", options, ["onSentence", "worker"]);
    for (const key of ["onSentence", "worker"])
      if (options[key] !== undefined && typeof options[key] !== "function")
        throw new WispError("InvalidArgument", `open: ${key} is ${kindOf(options[key])}; it must be a function`);
    const device = new Device(name, options);
    await device.start();
    return device;
  }

  // `worker` returns a new Worker that runs worker.js, where a page has its own way to start one.
  constructor(name, {onSentence, worker = makeWorker}) {
    this.name = name;
    this.onSentence = onSentence;
    this.makeWorker = worker;
    this.queue = [];      // waiting calls
    this.running = null;  // the call that the worker is running
    this.worker = null;
    this.closed = false;
    this.restarting = null;
  }

  async start() {
    const worker = this.makeWorker();
    this.worker = worker;
    try {
      await new Promise((resolve, reject) => {
        worker.onmessage = ({data}) => this.receive(data);
        worker.onerror = (event) => this.end(
            new WispError("Internal", `${this.name}: the worker ended: ${event.message ?? "it could not be loaded"}`));
        this.running = {resolve, reject};
        worker.postMessage({method: "open", args: [this.name]});
      });
    } catch (error) {
      worker.terminate();
      this.worker = null;
      throw error;
    }
  }

  receive({progress, sentence, result, error, fatal}) {
    if (sentence) return this.onSentence?.(sentence);
    const call = this.running;
    if (!call) return;
    if (progress) return this.tell(call, progress);
    this.running = null;
    error ? call.reject(new WispError(error.kind, error.message)) : call.resolve(result);
    if (fatal)
      return this.end(new WispError("Internal", `${this.name}: was closed, as the library failed: open it again`));
    this.next();
  }

  // An exception of onProgress ends the call, which is rejected with it.
  tell(call, progress) {
    try {
      call.onProgress?.(progress);
    } catch (error) {
      call.thrown = {error};
      this.stop().catch(() => {});  // rejects the call and all that wait
    }
  }

  // The worker cannot be used any more.
  end(reason) {
    this.worker?.terminate();
    this.worker = null;
    this.closed = true;
    for (const call of [this.running, ...this.queue]) call?.reject(reason);
    this.running = null;
    this.queue = [];
  }

  next() {
    if (this.running || this.restarting || !this.worker || this.queue.length === 0) return;
    this.running = this.queue.shift();
    // A browser that has deleted the folder may never answer this call.
    if (this.running.method === "close") setTimeout(this.running.resolve, MOST_OF_CLOSING_MS);
    try {
      this.worker.postMessage({method: this.running.method, args: this.running.args});
    } catch (error) {
      this.running.reject(new WispError(
          "InvalidArgument", `${this.running.method}: an argument cannot be sent to the worker: ${error.message}`));
      this.running = null;
      this.next();
    }
  }

  send(method, args, onProgress, signal) {
    if (this.closed) return Promise.reject(new WispError("InvalidArgument", `${this.name}: was closed; open it again`));
    const wrong = wrongType(method, onProgress, signal);
    if (wrong) return Promise.reject(new WispError("InvalidArgument", wrong));
    if (signal?.aborted) return Promise.reject(new WispError("Cancelled", "cancelled before it began"));
    return new Promise((resolve, reject) => {
      const call = {method, args, onProgress, resolve, reject};
      if (signal) {
        const stop = () => this.abort(call);
        const settle = (action) => (value) => {
          signal.removeEventListener("abort", stop);
          action(value);
        };
        Object.assign(call, {resolve: settle(resolve), reject: settle(reject)});
        signal.addEventListener("abort", stop, {once: true});
      }
      this.queue.push(call);
      this.next();
    });
  }

  abort(call) {
    const waiting = this.queue.indexOf(call);
    if (waiting >= 0) {
      this.queue.splice(waiting, 1);
      return call.reject(new WispError("Cancelled", "cancelled before it began"));
    }
    if (this.running === call) this.stop().catch(() => {});  // rejects the call and all that wait
  }

  // Ends the running call, as if the page had been closed: what was charged stays charged, and a run with a checkpoint
  // resumes there later. Waiting calls run afterwards.
  cancel() {
    if (this.closed) return Promise.reject(new WispError("InvalidArgument", `${this.name}: was closed; open it again`));
    return this.stop();
  }

  // cancel() without the refusal after close(): a running call may be ended behind close() too.
  stop() {
    if (!this.running) return this.restarting ?? Promise.resolve();
    return (this.restarting ??= this.restart());
  }

  async restart() {
    const cancelled = this.running;
    this.running = null;
    this.worker.terminate();
    try {
      await this.start();
    } catch (error) {
      this.end(error);
      throw error;
    } finally {
      this.restarting = null;
      cancelled.reject(cancelled.thrown ? cancelled.thrown.error : new WispError("Cancelled", CANCELLED));
    }
    this.next();
  }

  // Closes after the waiting calls. Later calls are refused.
  async close() {
    if (this.closed) return;
    const last = this.send("close", []);
    this.closed = true;
    try {
      await last;
    } finally {
      this.worker?.terminate();
      this.worker = null;
    }
  }

  // Deletes everything that a closed device has stored, including its ledgers and its key: what was learned from the
  // same people before is then no longer counted.
  static async delete(name = "wisp") {
    checkFolder(name);
    try {
      const root = await navigator.storage.getDirectory();
      await root.removeEntry(name, {recursive: true}).catch((error) => {
        if (error.name !== "NotFoundError") throw error;
      });
      await settled(indexedDB.deleteDatabase(keyDatabase(name)));
    } catch (error) {
      throw new WispError(
          "Io", `${name}: cannot be deleted (${error.message}); close the device first, in every page of this site`);
    }
  }
}

// The worker's methods. `onProgress` and `signal` in their options stay on this side.
for (const method of METHODS) {
  Device.prototype[method] = function(...args) {
    const last = args[args.length - 1];
    if (!last || typeof last !== "object" || !("onProgress" in last || "signal" in last))
      return this.send(method, args);
    const {onProgress, signal, ...rest} = last;
    return this.send(method, [...args.slice(0, -1), rest], onProgress, signal);
  };
}
