// Recommends, on any thread:
//
//   import { loadRuntime } from "wisp/runtime.js";
//   const wisp = await loadRuntime();
//   const model = wisp.openModel(await (await fetch("cafe.wisp")).arrayBuffer());
//   for (const { name } of model.recommend([model.findItem("tea-mint")])) console.log(name);
import layout from "./layout-runtime.js";
import {at, checkKeys, Library, refuse, WispError} from "./library.js";
import {Model, openBytes} from "./model.js";
import createModule from "./wisp-runtime.mjs";

export {Model, WispError};

export class Runtime {
  constructor(module) { this.library = new Library(module, layout); }

  get version() { return this.library.text(this.library.ask("wisp_version")); }

  // Copies `bytes` (an ArrayBuffer or a view of one) and opens the model in them. Free it with close().
  openModel(bytes, options = {}) {
    checkKeys("openModel", options, ["name", "maxBytes"]);
    const {name = "model", ...limits} = options;
    return openBytes(this.library, name, bytes, limits);
  }
}

// A module with one function that takes a 128-bit vector apart: it is valid if the browser has vectors.
const WITH_VECTORS = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11
]);

// `vectors` is "auto" (used if the browser has them) or "off" (the module for browsers from before 2023). `wasm` is the
// address of the WebAssembly where it does not lie beside this file, as in a bundle that has no import.meta.url.
export async function loadRuntime(options = {}) {
  checkKeys("loadRuntime", options, ["vectors", "wasm"]);
  const {vectors = "auto", wasm} = options;
  if (vectors !== "auto" && vectors !== "off") refuse(`vectors is '${vectors}'; it must be 'auto' or 'off'`);
  try {
    if (vectors === "auto" && WebAssembly.validate(WITH_VECTORS))
      return new Runtime(await createModule(at(wasm ?? new URL("./wisp-runtime.wasm", import.meta.url))));
    // Service workers refuse import(). Browsers whose service workers have modules have vectors.
    const {default: createPlain} = await import("./wisp-runtime-plain.mjs");
    return new Runtime(await createPlain(at(wasm ?? new URL("./wisp-runtime-plain.wasm", import.meta.url))));
  } catch (error) {
    throw new WispError("Io", `the library cannot be loaded: ${error.message ?? error}`);
  }
}
