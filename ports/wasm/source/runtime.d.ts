// Types of "wisp/runtime.js", which only recommends.
import type { Items, ModelInfo, Recommendation, RecommendOptions } from "./types.js";
export { WispError } from "./types.js";
export type { Item, Items, ModelInfo, Recommendation, RecommendOptions } from "./types.js";

/** An open model. It belongs to the thread that opened it. */
export class Model {
  readonly numItems: number;
  readonly info: ModelInfo;
  findItem(key: string): number;
  itemKey(item: number): string;
  itemName(item: number): string;
  /** Best first. `history`: items' indices or keys, oldest first; empty (cold start): popular items. */
  recommend(history: Items, options?: RecommendOptions): Recommendation[];
  /** The same for many histories in one call: a list for each. */
  recommendBatch(histories: Iterable<Items>, options?: RecommendOptions): Recommendation[][];
  close(): void;
}

export interface OpenOptions { name?: string; maxBytes?: number }

export class Runtime {
  readonly version: string;
  openModel(bytes: ArrayBuffer | ArrayBufferView, options?: OpenOptions): Model;
}

/** `vectors`: "auto", vectors of 128 bits if the browser has them; "off", the module for browsers before 2023. `wasm`:
 * the address of the WebAssembly where it does not lie beside this file. */
export function loadRuntime(options?: { vectors?: "auto" | "off"; wasm?: string | URL }): Promise<Runtime>;
