// Types of "wisp/text.js": vectors, classes and continuations of texts.
export { WispError } from "./types.js";

export interface TextInfo {
  /** Length of a vector; 0 for a decoder. */
  width: number;
  /** 0: no classifier. */
  numClasses: number;
  /** Tokens of a text. */
  maxLength: number;
  numTokens: number; isDecoder: boolean; bytes: number;
}

export interface GenerateOptions {
  /** Default 128. */
  maxNewTokens?: number;
  topK?: number; temperature?: number; topP?: number; minP?: number; repetitionPenalty?: number; seed?: number;
  /** The text ends before the first of these. */
  stop?: readonly string[];
  greedy?: boolean;
  /** Gets each new piece as it is made; `false` ends the text. */
  onText?(piece: string): boolean | void;
}

export interface Generated {
  text: string; numTokens: number; promptTokens: number;
  ended: "length" | "token" | "stop" | "context" | "caller";
}

/** An open encoder, classifier or decoder. It belongs to the thread that opened it. */
export class TextModel {
  readonly info: TextInfo;
  readonly classes: readonly string[];
  tokenize(text: string): Int32Array;
  embed(text: string): Float32Array;
  classify(text: string): { name: string; probability: number }[];
  /** Not private: for weights that learned with a guarantee, or from public texts. */
  generate(prompt: string, options?: GenerateOptions): Generated;
  close(): void;
}

export interface OpenTextOptions {
  name?: string;
  /** The bytes of an adapter that was trained for this model. */
  adapter?: ArrayBuffer | ArrayBufferView;
  /** A smaller cache of keys and values, slightly less exact. */
  float16Cache?: boolean;
}

export class Texts {
  readonly version: string;
  openModel(bytes: ArrayBuffer | ArrayBufferView, options?: OpenTextOptions): TextModel;
}

/** `wasm`: the address of the WebAssembly where it does not lie beside this file. */
export function loadTexts(options?: { wasm?: string | URL }): Promise<Texts>;
