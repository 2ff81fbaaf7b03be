// Texts: vectors, classes and continuations, on any thread. Long texts belong into a worker.
//
//   import { loadTexts } from "wisp/text.js";
//   const texts = await loadTexts();
//   const model = texts.openModel(await (await fetch("minilm.wisp")).arrayBuffer());
//   const vector = model.embed("a good film");
import layout from "./layout-text.js";
import {asBytes, at, checkKeys, checkWhole, kindOf, Library, refuse, WispError} from "./library.js";
import createModule from "./wisp-text.mjs";

export {WispError};

const GENERATE =
    ["maxNewTokens", "topK", "temperature", "topP", "minP", "repetitionPenalty", "seed", "stop", "greedy", "onText"];

// The reason why a text ended, by its number in the C interface.
function endedBy(value) {
  const prefix = "WISP_ENDED_";
  const [name] = Object.entries(layout.constants).find(([name, known]) => name.startsWith(prefix) && known === value);
  return name.slice(prefix.length).toLowerCase();
}

export class TextModel {
  // `handle` is an open wisp_text_model, which this object owns.
  constructor(library, handle) {
    this.library = library;
    this.handle = handle;
    this.info = library.within((scope) => {
      const out = library.struct(scope, "wisp_text_info");
      library.call(scope, "wisp_text_info_read", handle, out);
      const {isDecoder, ...info} = library.read("wisp_text_info", out);
      return {...info, isDecoder: isDecoder === 1};
    });
    this.classes = Array.from(
        {length: this.info.numClasses}, (_, i) => library.text(library.ask("wisp_text_class_name", handle, i)));
  }

  // Frees the model. Every later call is refused.
  close() {
    if (this.handle !== 0) this.library.ask("wisp_text_close", this.handle);
    this.handle = 0;
  }

  opened() {
    if (this.handle === 0) throw new WispError("InvalidArgument", "the model was closed; open it again");
    return this.handle;
  }

  // The text's tokens as the model reads them.
  tokenize(text) {
    const model = this.opened(), library = this.library;
    return library.within((scope) => {
      const room = this.info.maxLength, tokens = scope.allocate(4 * room), count = scope.allocate(4);
      library.view().setUint32(count, room, true);
      library.call(scope, "wisp_text_tokenize", model, scope.text(text, "text"), tokens, count);
      return library.module.HEAP32.slice(tokens >> 2, (tokens >> 2) + library.view().getUint32(count, true));
    });
  }

  // The text's vector, of info.width numbers.
  embed(text) { return this.numbers("wisp_text_embed", text, this.info.width); }

  // The probability of each class: [{ name, probability }], in the order of the model's classes.
  classify(text) {
    const found = this.numbers("wisp_text_classify", text, this.info.numClasses);
    return this.classes.map((name, i) => ({name, probability: found[i]}));
  }

  numbers(name, text, length) {
    const model = this.opened(), library = this.library;
    return library.within((scope) => {
      const out = scope.allocate(4 * length);
      library.call(scope, name, model, scope.text(text, "text"), out, length);
      return library.module.HEAPF32.slice(out >> 2, (out >> 2) + length);
    });
  }

  // Continues the prompt: { text, numTokens, promptTokens, ended }. `onText` gets each new piece, whole characters, and
  // ends the text by returning false. Sampling is not private.
  generate(prompt, options = {}) {
    checkKeys("generate", options, GENERATE);
    const {onText, stop = [], seed, ...how} = options, model = this.opened(), library = this.library;
    if (onText !== undefined && typeof onText !== "function")
      refuse(`onText is ${kindOf(onText)}; it must be a function`);
    if (seed !== undefined) checkWhole("seed", seed, 0, Number.MAX_SAFE_INTEGER);
    let thrown = null;
    library.module.onText = (piece) => {
      try {
        return onText?.(piece) !== false;
      } catch (error) {
        thrown = {error};
        return false;
      }
    };
    const generated = library.within((scope) => {
      const out = library.struct(scope, "wisp_generated");
      const given = library.struct(
          scope, "wisp_generate_options", {...how, seed, numStop: stop.length}, {stop: scope.texts(stop, "stop")});
      const onTextAt = onText === undefined ? 0 : library.ask("wisp_wasm_on_text");
      library.call(scope, "wisp_text_generate", model, scope.text(prompt, "prompt"), given, onTextAt, 0, out);
      const {text, numTokens, promptTokens, ended} = library.read("wisp_generated", out);
      return {text, numTokens, promptTokens, ended: endedBy(ended)};
    });
    if (thrown) throw thrown.error;
    return generated;
  }
}

export class Texts {
  constructor(module) {
    this.library = new Library(module, layout);
    this.opened = 0;
  }

  get version() { return this.library.text(this.library.ask("wisp_version")); }

  // Opens the model in `bytes` (an ArrayBuffer or a view of one), with the adapter in other bytes if given. Free it with
  // close().
  openModel(bytes, options = {}) {
    checkKeys("openModel", options, ["name", "adapter", "float16Cache"]);
    const {name = "model", adapter, float16Cache} = options, {FS} = this.library.module;
    if (typeof name !== "string" || !/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/.test(name))
      refuse(`name is ${kindOf(name)} that names no file; allowed are 1 to 100 letters, digits, '.', '_' and '-'`);
    // The library copies what it maps, so the files go as soon as the model is open.
    const folder = `/${++this.opened}`, files = [];
    const write = (file, given) => {
      files.push(`${folder}/${file}`);
      FS.writeFile(files.at(-1), asBytes(given), {canOwn: true});
      return files.at(-1);
    };
    FS.mkdir(folder);
    try {
      return this.library.within((scope) => {
        const path = scope.text(write(name, bytes)), out = scope.allocate(4);
        const adapterPath = adapter === undefined ? undefined : write(`${name}.adapter`, adapter);
        const how = this.library.struct(scope, "wisp_open_options", {adapterPath, float16Cache});
        this.library.call(scope, "wisp_text_open", path, how, out);
        return new TextModel(this.library, this.library.view().getUint32(out, true));
      });
    } finally {
      for (const file of files) FS.unlink(file);
      FS.rmdir(folder);
    }
  }
}

// `wasm` is the address of the WebAssembly where it does not lie beside this file.
export async function loadTexts(options = {}) {
  checkKeys("loadTexts", options, ["wasm"]);
  try {
    return new Texts(await createModule(at(options.wasm ?? new URL("./wisp-text.wasm", import.meta.url))));
  } catch (error) {
    throw new WispError("Io", `the library cannot be loaded: ${error.message ?? error}`);
  }
}
