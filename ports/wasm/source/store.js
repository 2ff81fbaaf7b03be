// Files that outlive the page: a folder of the origin private file system as a file system of Emscripten.
//
// SQLite and wisp write files as on any other system: write, fsync, rename. In a worker a browser gives handles whose
// reads, writes and flushes are synchronous (FileSystemSyncAccessHandle); only opening is not. So the store opens a
// number of files in advance, the slots, and a block in each slot says which file it holds. Writing such a block
// creates, renames or removes a file:
//
//   slot   copy 0 of the block | copy 1, at 4096 | the file's bytes, from 8192 on
//
// A block is written to the copy that is not current, and flushed. After a crash the newer of the valid copies is
// current, so a name is either the old or the new one. If two slots have one name, the newer counts: a rename first
// names the new file and then frees the old one. A slot's previous content is truncated and flushed before it gets a
// name, so a journal never returns with the bytes of an earlier one.
//
// One worker at a time has a folder, because a browser gives a file's handle only once.

const MAGIC = 0x77697370;  // "wisp"
const BLOCK_BYTES = 2048, COPY_STRIDE = 4096, DATA_OFFSET = 2 * COPY_STRIDE, NAME_OFFSET = 32;
const MAX_NAME_BYTES = BLOCK_BYTES - NAME_OFFSET;
// A terminated worker may hold its handles for some seconds, while it is inside WebAssembly.
const WAIT_MS = 50, MOST_WAITS = 400;

// The reason why a store cannot be opened or used, as a sentence.
export class StoreError extends Error {
  name = "StoreError";
}

function hashOf(bytes) {  // FNV-1a
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

// Returns { name, mode, sequence, copy } of the current copy; null if neither is valid.
function readBlock(handle) {
  let newest = null;
  for (const copy of [0, 1]) {
    const bytes = new Uint8Array(BLOCK_BYTES);
    if (handle.read(bytes, {at: copy * COPY_STRIDE}) !== BLOCK_BYTES) continue;
    const view = new DataView(bytes.buffer);
    if (view.getUint32(0) !== MAGIC || view.getUint32(4) !== hashOf(bytes.subarray(8))) continue;
    const sequence = view.getFloat64(8), length = view.getUint32(20);
    if (length > MAX_NAME_BYTES || (newest && newest.sequence >= sequence)) continue;
    const name = new TextDecoder().decode(bytes.subarray(NAME_OFFSET, NAME_OFFSET + length));
    newest = {name, mode: view.getUint32(16), sequence, copy};
  }
  return newest;
}

export class Store {
  constructor(folder, name) {
    this.folder = folder;
    this.name = name;
    this.handles = new Map();  // slot's name -> handle
    this.files = new Map();    // file's name -> slot
    this.free = [];
    this.sequence = 0;
    this.failed = false;
  }

  // Opens the folder `name` of this origin, creating it if absent, with room for `spare` more files.
  static async open(name, spare) {
    let folder;
    try {
      folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(name, {create: true});
    } catch (error) {
      throw new StoreError(
          `${name}: the browser gives this page no storage (${error.message}); allowed are pages of ` +
          "https: or of localhost, outside of private windows");
    }
    const store = new Store(folder, name);
    try {
      await store.load();
      await store.reserve(spare);
    } catch (error) {
      store.close();
      throw error;
    }
    return store;
  }

  async openHandle(entry) {
    for (let waits = 0;; ++waits) {
      try {
        return await entry.createSyncAccessHandle();
      } catch (error) {
        // Browsers use different errors for a file that is in use.
        if (error.name === "NotFoundError" || error.name === "QuotaExceededError") throw error;
        if (waits === MOST_WAITS) {
          throw new StoreError(
              `${this.name}: is in use (${error.message}); another page of this site has it: close that page`);
        }
        await new Promise((wake) => setTimeout(wake, WAIT_MS));
      }
    }
  }

  // Opens the slot and adds it to the lists. Of two files with one name the newer stays.
  async addSlot(slotName, entry) {
    const handle = await this.openHandle(entry);
    this.handles.set(slotName, handle);
    const block = readBlock(handle);
    if (!block && handle.getSize() > DATA_OFFSET) {
      throw new StoreError(
          `${this.name}: what says which file ${slotName} holds is damaged. It may be the ledger, so nothing here is ` +
          "opened; Device.delete() deletes all of it, with what was learned");
    }
    const slot = {handle, users: 0, ...(block ?? {copy: 1, name: "", mode: 0, sequence: 0})};
    this.sequence = Math.max(this.sequence, slot.sequence);
    if (slot.name === "") return this.reuse(slot);
    const other = this.files.get(slot.name),
          [newer, older] = !other || other.sequence < slot.sequence ? [slot, other] : [other, slot];
    this.files.set(slot.name, newer);
    if (older) this.release(older);
  }

  // The first slot is acquired before the folder is listed: its previous owner has then ended, and created all its
  // files.
  async load() {
    await this.addSlot("slot-0", await this.folder.getFileHandle("slot-0", {create: true}));
    const found = [];
    for await (const [slotName, entry] of this.folder.entries()) {
      if (entry.kind === "file" && /^slot-\d+$/.test(slotName) && !this.handles.has(slotName))
        found.push([slotName, entry]);
    }
    for (const [slotName, entry] of found) await this.addSlot(slotName, entry);
  }

  // Makes room for `spare` more files, or for as many as the browser allows: calls that create no file, such as erasing
  // and stating the privacy, need none. Await it between calls of the library, which cannot wait itself.
  async reserve(spare) {
    for (let number = 0; this.free.length < spare; ++number) {
      const slotName = `slot-${number}`;
      if (this.handles.has(slotName)) continue;
      try {
        await this.addSlot(slotName, await this.folder.getFileHandle(slotName, {create: true}));
      } catch (error) {
        if (error.name !== "QuotaExceededError") throw error;
        this.handles.get(slotName)?.close();
        this.handles.delete(slotName);
        return;
      }
    }
  }

  // If a block cannot be written, the state on the disk is unknown: nothing is written until the store is opened again.
  writeBlock(slot, name, mode) {
    if (this.failed) throw new DOMException("the store failed before", "InvalidStateError");
    const bytes = new Uint8Array(BLOCK_BYTES), view = new DataView(bytes.buffer), text = new TextEncoder().encode(name);
    const copy = 1 - slot.copy, sequence = ++this.sequence;
    view.setUint32(0, MAGIC);
    view.setFloat64(8, sequence);
    view.setUint32(16, mode);
    view.setUint32(20, text.length);
    bytes.set(text, NAME_OFFSET);
    view.setUint32(4, hashOf(bytes.subarray(8)));
    this.failed = true;
    if (slot.handle.write(bytes, {at: copy * COPY_STRIDE}) !== BLOCK_BYTES)
      throw new DOMException("", "QuotaExceededError");
    slot.handle.flush();
    this.failed = false;
    Object.assign(slot, {name, mode, sequence, copy});
  }

  // Creates an empty file; null if no slot is left. A free slot is empty on the disk as well (reuse).
  create(name, mode) {
    const slot = this.free.pop();
    if (!slot) return null;
    this.writeBlock(slot, name, mode);
    this.files.set(name, slot);
    return slot;
  }

  rename(slot, name) {
    const replaced = this.files.get(name);
    if (replaced === slot) return;
    const before = slot.name;
    this.writeBlock(slot, name, slot.mode);
    this.files.delete(before);
    this.files.set(name, slot);
    if (replaced) this.release(replaced);
  }

  remove(slot) {
    if (this.files.get(slot.name) === slot) this.files.delete(slot.name);
    this.release(slot);
  }

  // The file loses its name; its bytes are freed once nobody has it open.
  release(slot) {
    this.writeBlock(slot, "", 0);
    this.reuse(slot);
  }

  reuse(slot) {
    if (slot.users > 0 || slot.name !== "" || this.free.includes(slot)) return;
    if (slot.handle.getSize() !== DATA_OFFSET) {
      slot.handle.truncate(DATA_OFFSET);
      slot.handle.flush();
    }
    this.free.push(slot);
  }

  sizeOf(slot) { return Math.max(0, slot.handle.getSize() - DATA_OFFSET); }

  read(slot, into, position) { return slot.handle.read(into, {at: DATA_OFFSET + position}); }

  write(slot, from, position) { return slot.handle.write(from, {at: DATA_OFFSET + position}); }

  truncate(slot, size) { slot.handle.truncate(DATA_OFFSET + size); }

  close() {
    for (const handle of this.handles.values()) handle.close();
    this.handles.clear();
    this.files.clear();
    this.free = [];
  }
}
