// Files that outlive the page: a folder of the origin private file system as a file system of Emscripten.
//
// SQLite and the files of wisp are written as on any other system: write, fsync, rename. In a worker a browser gives handles whose
// reads, writes and flushes are synchronous (FileSystemSyncAccessHandle); only to open one is not. So the store opens a number of files
// ahead, the slots, and a slot says in its first block which file it holds. A file is made, renamed and removed by writing such a block:
//
//   slot   copy 0 of the block | copy 1, at 2048 | the file's bytes, from 4096 on
//
// A block is written to the copy that does not count, and flushed. After a crash the newer of the copies that are whole counts, so a
// name is either the old or the new one. Of two slots with one name the newer counts: a rename names the new file first and
// frees the old one then.
//
// One page at a time has a folder: a browser gives the handle of a file once.

const MAGIC = 0x77697370; // "wisp"
const COPY_BYTES = 2048, DATA_OFFSET = 4096, NAME_OFFSET = 32;
const MAX_NAME_BYTES = COPY_BYTES - NAME_OFFSET;

// Why a store could not be opened, in a sentence.
export class StoreError extends Error {
  name = "StoreError";
}

function hashOf(bytes) { // FNV-1a
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

// { name, mode, sequence, copy } of the copy that counts, or null where no copy names a file.
function readBlock(handle) {
  let newest = null;
  for (const copy of [0, 1]) {
    const bytes = new Uint8Array(COPY_BYTES);
    if (handle.read(bytes, { at: copy * COPY_BYTES }) !== COPY_BYTES) continue;
    const view = new DataView(bytes.buffer);
    if (view.getUint32(0) !== MAGIC || view.getUint32(4) !== hashOf(bytes.subarray(8))) continue;
    const sequence = view.getFloat64(8), length = view.getUint32(20);
    if (length > MAX_NAME_BYTES || (newest && newest.sequence >= sequence)) continue;
    const name = new TextDecoder().decode(bytes.subarray(NAME_OFFSET, NAME_OFFSET + length));
    newest = { name, mode: view.getUint32(16), sequence, copy };
  }
  return newest;
}

export class Store {
  constructor(folder, name) {
    this.folder = folder;
    this.name = name;
    this.files = new Map(); // name -> slot
    this.free = [];
    this.sequence = 0;
    this.numSlots = 0;
  }

  // The folder `name` of this origin, made if absent, with room for `spare` more files.
  static async open(name, spare = 16) {
    let folder;
    try {
      folder = await (await navigator.storage.getDirectory()).getDirectoryHandle(name, { create: true });
    } catch (error) {
      throw new StoreError(`${name}: the browser gives this page no storage (${error.message}); allowed are pages of https: or of localhost, ` +
                           "outside of private windows");
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

  // A page that has just been closed may hold its handles for a moment.
  async openHandle(entry) {
    for (let attempt = 0;; ++attempt) {
      try {
        return await entry.createSyncAccessHandle();
      } catch (error) {
        if (attempt === 20) {
          throw new StoreError(`${this.name}: another page of this site uses it (${error.message}); close that page, or wait for it`);
        }
        await new Promise((wake) => setTimeout(wake, 50));
      }
    }
  }

  async load() {
    const stale = [];
    for await (const [slotName, entry] of this.folder.entries()) {
      if (entry.kind !== "file" || !/^slot-\d+$/.test(slotName)) continue;
      this.numSlots = Math.max(this.numSlots, Number(slotName.slice(5)) + 1);
      const handle = await this.openHandle(entry);
      const slot = { handle, copy: 0, name: "", mode: 0, sequence: 0, users: 0, ...readBlock(handle) };
      this.sequence = Math.max(this.sequence, slot.sequence);
      const other = this.files.get(slot.name);
      if (slot.name === "") {
        this.free.push(slot);
      } else if (!other || other.sequence < slot.sequence) {
        this.files.set(slot.name, slot);
        if (other) stale.push(other);
      } else {
        stale.push(slot);
      }
    }
    for (const slot of stale) this.release(slot);
  }

  // Room for `spare` more files. To be awaited between calls of the library, which cannot wait itself.
  async reserve(spare = 16) {
    while (this.free.length < spare) {
      const entry = await this.folder.getFileHandle(`slot-${this.numSlots}`, { create: true });
      const handle = await this.openHandle(entry);
      ++this.numSlots;
      this.free.push({ handle, copy: 0, name: "", mode: 0, sequence: 0, users: 0 });
    }
  }

  writeBlock(slot, name, mode) {
    const bytes = new Uint8Array(COPY_BYTES), view = new DataView(bytes.buffer), text = new TextEncoder().encode(name);
    const copy = 1 - slot.copy, sequence = this.sequence + 1;
    view.setUint32(0, MAGIC);
    view.setFloat64(8, sequence);
    view.setUint32(16, mode);
    view.setUint32(20, text.length);
    bytes.set(text, NAME_OFFSET);
    view.setUint32(4, hashOf(bytes.subarray(8)));
    if (slot.handle.write(bytes, { at: copy * COPY_BYTES }) !== COPY_BYTES) throw new DOMException("", "QuotaExceededError");
    slot.handle.flush();
    this.sequence = sequence;
    Object.assign(slot, { name, mode, sequence, copy });
  }

  // A new, empty file; null where no slot is left.
  create(name, mode) {
    const slot = this.free.pop();
    if (!slot) return null;
    try {
      slot.handle.truncate(DATA_OFFSET);
      this.writeBlock(slot, name, mode);
    } catch (error) {
      this.free.push(slot);
      throw error;
    }
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

  // The file has no name any more; its bytes go once nobody has it open.
  release(slot) {
    this.writeBlock(slot, "", 0);
    this.reuse(slot);
  }

  reuse(slot) {
    if (slot.users > 0 || slot.name !== "" || this.free.includes(slot)) return;
    slot.handle.truncate(DATA_OFFSET);
    this.free.push(slot);
  }

  sizeOf(slot) {
    return Math.max(0, slot.handle.getSize() - DATA_OFFSET);
  }

  read(slot, into, position) {
    return slot.handle.read(into, { at: DATA_OFFSET + position });
  }

  write(slot, from, position) {
    return slot.handle.write(from, { at: DATA_OFFSET + position });
  }

  truncate(slot, size) {
    slot.handle.truncate(DATA_OFFSET + size);
  }

  close() {
    for (const slot of [...this.files.values(), ...this.free]) slot.handle.close();
    this.files.clear();
    this.free = [];
  }

  // Deletes the folder `name` with all that is in it: models, log and ledger. What was spent is then forgotten.
  static async delete(name) {
    await (await navigator.storage.getDirectory()).removeEntry(name, { recursive: true });
  }
}
