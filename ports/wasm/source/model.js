// An open model.
import {asBytes, checkKeys, checkWhole, kindOf, refuse, shown, WispError} from "./library.js";

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

  // The item's index for a key; a number passes through.
  indexOf(item, what) {
    if (typeof item !== "string") return item;
    const index = this.findItem(item);
    if (index < 0) refuse(`${what} is ${shown(item)}, which is the key of no item of this model`);
    return index;
  }

  // Checks the options of recommend and recommendBatch. Returns the count, the address of the options' struct, and
  // places for a list and its length.
  prepared(scope, method, options) {
    checkKeys(method, options, ["count", "excluded", "candidates", "allowSeen"]);
    const {count = 10, excluded = [], candidates, allowSeen} = options;
    checkWhole("count", count, 0, 1e6);
    if (allowSeen !== undefined && typeof allowSeen !== "boolean")
      refuse(`allowSeen is ${kindOf(allowSeen)}; it must be true or false`);
    const [excludedAt, numExcluded] = this.items(scope, excluded, "excluded");
    const [candidatesAt, numCandidates] =
        candidates === undefined ? [0, 0] : this.items(scope, candidates, "candidates");
    const seen = allowSeen === undefined ? 0 : allowSeen ? 1 : 2;  // 0: as the model says
    const how = this.library.struct(
        scope, "wisp_recommend_options", {numExcluded, numCandidates, allowSeen: seen},
        {excluded: excludedAt, candidates: candidatesAt});
    const most = Math.min(count, this.numItems);
    const out = scope.allocate(this.library.layout.structs.wisp_recommendation.size * most), found = scope.allocate(4);
    return {count: most, how, out, found};
  }

  // Address and length of items, which are given by index or by key.
  items(scope, list, what) { return scope.items(list, what, (item, place) => this.indexOf(item, place)); }

  named(item) { return {item, key: this.itemKey(item), name: this.itemName(item)}; }

  // The `length` recommendations at `address`.
  read(address, length) {
    const {size, fields} = this.library.layout.structs.wisp_recommendation, view = this.library.view();
    return Array.from({length}, (_, i) => {
      const at = address + i * size;
      const {item, key, name} = this.named(view.getInt32(at + fields.item.at, true));
      return {item, score: view.getFloat32(at + fields.score.at, true), key, name};
    });
  }

  // The best `count` items after `history` (items' indices or keys, oldest first), best first: [{ item, score, key,
  // name }]. An empty history (cold start) gets popular items.
  recommend(history, options = {}) {
    return this.library.within(
        (scope) => this.best(scope, history, "history", this.prepared(scope, "recommend", options)));
  }

  // recommend() for many histories: a list for each.
  recommendBatch(histories, options = {}) {
    if (typeof histories?.[Symbol.iterator] !== "function" || typeof histories === "string")
      refuse(`histories is ${shown(histories)}; it must be a list of histories`);
    return this.library.within((scope) => {
      const prepared = this.prepared(scope, "recommendBatch", options);
      return Array.from(histories, (history, i) => this.best(scope, history, `histories[${i}]`, prepared));
    });
  }

  // The best items after one history, with the options that prepared() has read.
  best(scope, history, what, {count, how, out, found}) {
    const [historyAt, numHistory] = this.items(scope, history, what);
    this.library.view().setUint32(found, count, true);
    this.library.call(scope, "wisp_recommend", this.opened(), historyAt, numHistory, how, out, found);
    return this.read(out, this.library.view().getUint32(found, true));
  }
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
