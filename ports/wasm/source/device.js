// Learning privately in the browser: a worker that keeps models, log and ledger in the site's own storage, and does the work.
//
//   import { Device } from "wisp/device.js";
//   const device = await Device.open("my-shop");
//   await device.writeFile("base.wisp", await (await fetch("cafe.wisp")).arrayBuffer());
//   await device.appendEvents([{ user: "me", item: "tea-mint", time: Date.now() }]);
//   const best = await device.recommend({ model: "base.wisp", user: "me", count: 5 });
//
// Every method gives a promise. What the library refuses is a WispError with its sentence.
import { WispError } from "./library.js";

export { WispError };

const METHODS = ["writeFile", "readFile", "removeFile", "listFiles", "appendEvents", "countEvents", "history", "eraseUser", "pruneLog", "recommend",
                 "describeModel", "plan", "planChange", "personalise", "night", "evaluate", "budget", "statement", "rebase", "version"];

export class Device {
  // The folder `name` of this site's storage, made if absent. One page at a time has it.
  static async open(name = "wisp", { onSentence } = {}) {
    const device = new Device(name, onSentence);
    await device.start();
    return device;
  }

  constructor(name, onSentence) {
    this.name = name;
    this.onSentence = onSentence;
    this.waiting = new Map();
    this.lastId = 0;
    this.worker = null;
  }

  async start() {
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => this.fail(`the worker of '${this.name}' ended: ${event.message ?? "it could not be loaded"}`);
    await this.send("open", [this.name]);
  }

  receive({ id, progress, sentence, result, error }) {
    if (sentence) return this.onSentence?.(sentence);
    const call = this.waiting.get(id);
    if (!call) return;
    if (progress) return call.onProgress?.(progress);
    this.waiting.delete(id);
    error ? call.reject(new WispError(error.kind, error.message)) : call.resolve(result);
  }

  fail(sentence, kind = "Internal") {
    for (const { reject } of this.waiting.values()) reject(new WispError(kind, sentence));
    this.waiting.clear();
  }

  send(method, args, onProgress, transfer = []) {
    if (!this.worker) return Promise.reject(new WispError("InvalidArgument", `'${this.name}' was closed; open it again`));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, onProgress });
      try {
        this.worker.postMessage({ id, method, args }, transfer);
      } catch (error) {
        this.waiting.delete(id);
        reject(new WispError("InvalidArgument", `${method}: an argument cannot be sent to the worker: ${error.message}`));
      }
    });
  }

  // Ends whatever runs, as if the page had been closed: what was charged stays charged, and a run with a checkpoint goes on from there.
  async cancel() {
    this.worker?.terminate();
    this.fail("cancelled: what was charged so far stays charged", "Cancelled");
    await this.start();
  }

  async close() {
    if (!this.worker) return;
    await this.send("close", []);
    this.worker.terminate();
    this.worker = null;
  }

  // Deletes everything that a closed device has kept, its ledger too: what was learned from the same people before is not counted any more.
  static async delete(name = "wisp") {
    await (await navigator.storage.getDirectory()).removeEntry(name, { recursive: true });
  }
}

// Methods of the worker that take one argument, or a name and bytes. `onProgress` and `signal` stay here.
for (const method of METHODS) {
  Device.prototype[method] = function (...args) {
    const last = args[args.length - 1];
    let onProgress;
    if (last && typeof last === "object" && (last.onProgress || last.signal)) {
      const { signal, ...rest } = last;
      onProgress = rest.onProgress;
      delete rest.onProgress;
      args[args.length - 1] = rest;
      if (signal?.aborted) return Promise.reject(new WispError("Cancelled", "cancelled before it began"));
      const stop = () => this.cancel();
      signal?.addEventListener("abort", stop, { once: true });
      return this.send(method, args, onProgress).finally(() => signal?.removeEventListener("abort", stop));
    }
    return this.send(method, args, onProgress);
  };
}
