// Recommending alone, on any thread:
//
//   import { loadRuntime } from "wisp/runtime.js";
//   const wisp = await loadRuntime();
//   const model = wisp.openModel(await (await fetch("cafe.wisp")).arrayBuffer());
//   for (const { name } of model.recommend([model.findItem("tea-mint")])) console.log(name);
import {checkKeys, Library, WispError} from "./library.js";
import {Model} from "./model.js";
import createModule from "./wisp-runtime.mjs";

export {Model, WispError};

export class Runtime {
  constructor(module) { this.library = new Library(module); }

  get version() { return this.library.text(this.library.ask("wisp_version")); }

  // Copies `bytes` (an ArrayBuffer or a view of one) and opens the model in them. To be closed with close().
  openModel(bytes, options = {}) {
    checkKeys("openModel", options, ["name", "maxBytes"]);
    const {name = "model", ...limits} = options;
    return new Model(this.library, {bytes, name}, limits);
  }
}

export async function loadRuntime() { return new Runtime(await createModule()); }
