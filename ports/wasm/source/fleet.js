// A device of a fleet in a page: its HTTP client, and a key that the page's code can use but not read.
//
// The library calls both from synchronous code. A worker has a synchronous XMLHttpRequest, but WebCrypto only answers
// later. So a signature that is not there yet ends the library's call; it is then made, and the next call resumes where
// that one stopped. The library signs whole minutes, so this is rare.
import {WispError} from "./library.js";

// The name of the database that has the key of the device in this folder.
export const keyDatabase = (folder) => `wisp-fleet-${folder}`;
const KEYS = "keys", DEVICE = "device";
const CURVE = {name: "ECDSA", namedCurve: "P-256"}, SCHEME = {name: "ECDSA", hash: "SHA-256"};
const PEM_COLUMNS = 64, MINUTE_MS = 60000, MOST_KEPT = 4;
// The library's numbers for a call that may succeed later, and for one that never will.
const LATER = 1, NEVER = 2;
const TIMEOUT_MS = 300000;
// The most calls of the library in one of a page, of which each but the last lacked a signature, and the least time of
// one.
const MOST_CALLS = 20, LEAST_SECONDS = 0.001;

// Resolves with the result of a request of IndexedDB.
export const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

// Posts as wisp_fleet_transport says. Returns { status, time, bytes }, or LATER or NEVER.
export function post(url, headers, body) {
  const request = new XMLHttpRequest();
  try {
    request.open("POST", url, false);
    request.responseType = "arraybuffer";
    request.timeout = TIMEOUT_MS;
    for (const line of headers.split("\n").filter(Boolean)) {
      const colon = line.indexOf(": ");
      request.setRequestHeader(line.slice(0, colon), line.slice(colon + 2));
    }
    request.send(body);
  } catch (error) {
    return error.name === "NetworkError" || error.name === "TimeoutError" ? LATER : NEVER;
  }
  // A browser follows redirections by itself: the answer comes from another address then, and is not read.
  if (request.responseURL !== new URL(url).href) return NEVER;
  const time = Date.parse(request.getResponseHeader("Date") ?? "") / 1000 || 0;
  return {status: request.status, time, bytes: new Uint8Array(request.response)};
}

const pemOf = (bytes) => {
  const text = btoa(String.fromCharCode(...bytes)), lines = [];
  for (let at = 0; at < text.length; at += PEM_COLUMNS) lines.push(text.slice(at, at + PEM_COLUMNS));
  return ["-----BEGIN PUBLIC KEY-----", ...lines, "-----END PUBLIC KEY-----", ""].join("\n");
};

// The two numbers of a signature, 32 bytes each, in DER: whole numbers without leading zeros, and with one where the
// first bit is set.
function derOf(numbers) {
  const fields = [numbers.subarray(0, 32), numbers.subarray(32)].flatMap((number) => {
    const bytes = number.subarray(number.findIndex((byte) => byte !== 0));
    const all = bytes[0] > 127 ? [0, ...bytes] : [...bytes];
    return [2, all.length, ...all];
  });
  return new Uint8Array([0x30, fields.length, ...fields]);
}

// Returns the key pair of the device in this folder, and makes it on first use.
async function openKey(folder) {
  const opening = indexedDB.open(keyDatabase(folder), 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(KEYS);
  const database = await settled(opening);
  try {
    const found = await settled(database.transaction(KEYS).objectStore(KEYS).get(DEVICE));
    if (found) return found;
    const pair = await crypto.subtle.generateKey(CURVE, false, ["sign", "verify"]);
    const writing = database.transaction(KEYS, "readwrite", {durability: "strict"});
    writing.objectStore(KEYS).add(pair, DEVICE);
    await new Promise((resolve, reject) => {
      writing.oncomplete = resolve;
      writing.onabort = () => reject(writing.error);
    });
    return pair;
  } finally {
    database.close();
  }
}

export class Signer {
  static async open(folder) {
    const {privateKey, publicKey} = await openKey(folder);
    return new Signer(privateKey, pemOf(new Uint8Array(await crypto.subtle.exportKey("spki", publicKey))));
  }

  constructor(key, publicPem) {
    this.key = key;
    this.publicPem = publicPem;
    this.signatures = new Map();  // message -> signature
    this.missing = null;          // the message that sign had no signature of
  }

  // Returns the signature of the message if there is one.
  sign(message) {
    const signature = this.signatures.get(message);
    if (!signature) this.missing = message;
    return signature;
  }

  // Makes the signature that was missing, and that of the next minute. False if none was missing.
  async prepare() {
    if (this.missing === null) return false;
    const next = new Date(Date.parse(this.missing) + MINUTE_MS).toISOString().replace(/\.000Z$/, "+00:00");
    for (const message of [this.missing, next]) {
      const bytes = await crypto.subtle.sign(SCHEME, this.key, new TextEncoder().encode(message));
      this.signatures.set(message, derOf(new Uint8Array(bytes)));
    }
    for (const old of [...this.signatures.keys()].slice(0, -MOST_KEPT)) this.signatures.delete(old);
    this.missing = null;
    return true;
  }
}

// Refuses a policy that a page cannot keep. Returns true if it protects records. A text that is no policy is left to the
// library, which says why.
export function checkPolicy(name, bytes) {
  let rules = null;
  try {
    rules = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
  }
  if (rules?.operator_key !== undefined)
    throw new WispError(
        "Unsupported",
        `${name}: names an operator's key, whose signatures a page cannot check in time; leave it out for pages`);
  return rules?.records_epsilon > 0;
}

// An open fleet. `text` tells its user by which options it was opened.
export class Fleet {
  constructor(library, signer, text, options) {
    this.library = library;
    this.signer = signer;
    this.text = text;
    this.address = library.within((scope) => {
      const out = scope.allocate(4);
      const transport = library.ask("wisp_wasm_fleet_transport", scope.text(signer.publicPem));
      const how = library.struct(
          scope, "wisp_fleet_options", options, {transport, logger: library.ask("wisp_wasm_logger")});
      library.call(scope, "wisp_fleet_open", how, out);
      return library.view().getUint32(out, true);
    });
  }

  async work(seconds) {
    const end = Date.now() + 1000 * seconds;
    for (let calls = 1;; ++calls) {
      const left = seconds > 0 ? Math.max(LEAST_SECONDS, (end - Date.now()) / 1000) : seconds;
      try {
        return this.library.within((scope) => {
          const out = this.library.struct(scope, "wisp_fleet_result");
          this.library.call(scope, "wisp_fleet_work", this.address, left, out);
          return this.library.read("wisp_fleet_result", out);
        });
      } catch (error) {
        if (calls === MOST_CALLS || !await this.signer.prepare()) throw error;
      }
    }
  }

  close() { this.library.ask("wisp_fleet_close", this.address); }
}
