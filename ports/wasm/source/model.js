// An open model.
import layout from "./layout.js";
import {checkKeys, checkWhole, kindOf, WispError} from "./library.js";

const MODEL_ALIGNMENT = 64;

export class Model {
  // `handle` is an open wisp_model, which this object owns. `memory` is the address of its bytes if the page gave them,
  // or 0.
  constructor(library, handle, memory = 0) {
    this.library = library;
    this.handle = handle;
    this.memory = memory;
  }

  // Frees the model. Every later call is refused.
  close() {
    if (this.handle === 0) return;
    this.library.ask("wisp_model_close", this.handle);
    if (this.memory !== 0) this.library.ask("free", this.memory);
    this.handle = this.memory = 0;
  }

  opened() {
    if (this.handle === 0) throw new WispError("InvalidArgument", "the model was closed; open it again");
    return this.handle;
  }

  get numItems() { return this.library.ask("wisp_model_num_items", this.opened()); }

  // The index of the item with this key, or -1.
  findItem(key) {
    return this.library.within(
        (scope) => this.library.ask("wisp_model_find_item", this.opened(), scope.text(key, "key")));
  }

  itemKey(item) {
    checkWhole("item", item, 0, this.numItems - 1);
    return this.library.text(this.library.ask("wisp_model_item_key", this.opened(), item));
  }

  itemName(item) {
    checkWhole("item", item, 0, this.numItems - 1);
    return this.library.text(this.library.ask("wisp_model_item_name", this.opened(), item));
  }

  get info() {
    return this.library.within((scope) => {
      const info = this.library.struct(scope, "wisp_model_info");
      this.library.call(scope, "wisp_model_info_read", this.opened(), info);
      return this.library.read("wisp_model_info", info);
    });
  }

  // The best `count` items after `history` (items' indices, oldest first), best first: [{ item, score, key, name }]. An
  // empty history (cold start) gets popular items.
  recommend(history, options = {}) {
    checkKeys("recommend", options, ["count", "excluded", "candidates", "allowSeen"]);
    const {count = 10, excluded = [], candidates, allowSeen} = options;
    const model = this.opened(), library = this.library;
    checkWhole("count", count, 0, 1e6);
    if (allowSeen !== undefined && typeof allowSeen !== "boolean")
      throw new WispError("InvalidArgument", `allowSeen is ${kindOf(allowSeen)}; it must be true or false`);
    const seen = allowSeen === undefined ? 0 : allowSeen ? 1 : 2;  // 0: as the model says
    return library.within((scope) => {
      const {size, fields} = layout.structs.wisp_recommendation;
      const [historyAt, numHistory] = scope.items(history, "history");
      const [excludedAt, numExcluded] = scope.items(excluded, "excluded");
      const [candidatesAt, numCandidates] = candidates === undefined ? [0, 0] : scope.items(candidates, "candidates");
      const how = library.struct(
          scope, "wisp_recommend_options", {numExcluded, numCandidates, allowSeen: seen},
          {excluded: excludedAt, candidates: candidatesAt});
      const out = scope.allocate(size * count), found = scope.allocate(4);
      library.view().setUint32(found, count, true);
      library.call(scope, "wisp_recommend", model, historyAt, numHistory, how, out, found);
      const view = library.view();
      return Array.from({length: view.getUint32(found, true)}, (_, i) => {
        const item = view.getInt32(out + i * size + fields.item.at, true);
        return {
          item,
          score: view.getFloat32(out + i * size + fields.score.at, true),
          key: this.itemKey(item),
          name: this.itemName(item)
        };
      });
    });
  }
}

function asBytes(source) {
  try {
    if (source instanceof ArrayBuffer) return new Uint8Array(source);
    if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  } catch (error) {
    throw new WispError("InvalidArgument", `the model's bytes are not here any more: ${error.message}`);
  }
  throw new WispError("InvalidArgument", "the model's bytes must be an ArrayBuffer or a view of one");
}

// Copies `bytes`, an ArrayBuffer or a view of one, and opens the model in them.
export function openBytes(library, name, bytes, options) {
  const given = asBytes(bytes), memory = library.ask("memalign", MODEL_ALIGNMENT, Math.max(1, given.length));
  if (memory === 0) throw new WispError("Internal", `${name}: out of memory: the model has ${given.length} bytes`);
  library.module.HEAPU8.set(given, memory);
  try {
    return library.within((scope) => {
      const out = scope.allocate(4), open = library.struct(scope, "wisp_open_options", options);
      library.call(scope, "wisp_model_open_memory", scope.text(name, "name"), memory, given.length, open, out);
      return new Model(library, library.view().getUint32(out, true), memory);
    });
  } catch (error) {
    library.ask("free", memory);
    throw error;
  }
}
