// What "wisp/runtime.js" and "wisp/device.js" share.

/** What the library refused, with its sentence. */
export class WispError extends Error {
  readonly kind: "Internal" | "InvalidArgument" | "InvalidData" | "PrivacyRefused" | "Io" | "Unsupported" | "Cancelled";
}

export interface Recommendation { item: number; score: number; key: string; name: string }

export interface RecommendOptions {
  /** How many; default 10. */
  count?: number;
  /** Items that never come. */
  excluded?: readonly number[] | Int32Array;
  /** If given, only these are considered. */
  candidates?: readonly number[] | Int32Array;
  /** May items of the history come back? If not given, as the model says. */
  allowSeen?: boolean;
}

export interface ModelInfo {
  numItems: number; maxLength: number; width: number; numBlocks: number; numRetired: number; numProvenance: number;
  format: number;
  hasKeys: number; contentHash: bigint; fileBytes: number;
  /** 1: its lists may hold items of the history, as whoever made it chose. */
  allowSeen: number;
}
