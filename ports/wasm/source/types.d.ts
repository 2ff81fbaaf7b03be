// Types shared by "wisp/runtime.js" and "wisp/device.js".

/** A refusal of the library, with its sentence. */
export class WispError extends Error {
  readonly kind:
    "Internal" | "InvalidArgument" | "InvalidData" | "PrivacyRefused" | "Io" | "Unsupported" | "Cancelled" | "TooEarly";
}

export interface Recommendation { item: number; score: number; key: string; name: string }

/** An item's index, or its key. */
export type Item = number | string;
export type Items = readonly Item[] | Int32Array | Iterable<Item>;

export interface RecommendOptions {
  /** Number of items; default 10. */
  count?: number;
  /** Items that are never recommended. */
  excluded?: Items;
  /** If given, only these are considered. */
  candidates?: Items;
  /** May items of the history be recommended again? If not given, as the model says. */
  allowSeen?: boolean;
}

/** Can be made JSON. */
export interface ModelInfo {
  numItems: number; maxLength: number; width: number; numBlocks: number; numRetired: number; numProvenance: number;
  format: number;
  hasKeys: number; fileBytes: number;
  /** 16 hexadecimal digits; equal files have equal ones. */
  contentHash: string;
  /** 1: lists may hold items of the history, as the model's maker chose. */
  allowSeen: number;
}
