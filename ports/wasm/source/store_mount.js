// Wraps Store (store.js) as a file system of Emscripten: StoreMount.type(store) is the type for FS.mount. Emscripten
// 3.1.6 copies members of a library one by one and accepts only `name: value`.
mergeInto(LibraryManager.library, {
  $StoreMount__deps: ["$FS", "$ERRNO_CODES", "$mmapAlloc"],
  $StoreMount: {
    FOLDER_MODE: 0o40777,
    MAP_SHARED: 1,

    type: (store) => {
      return {mount: (mount) => StoreMount.mount(mount, store)};
    },

    // Converts a browser's exception to the return value of a system call.
    run: (action) => {
      try {
        return action();
      } catch (error) {
        if (error instanceof FS.ErrnoError) throw error;
        throw new FS.ErrnoError(error.name === "QuotaExceededError" ? ERRNO_CODES.ENOSPC : ERRNO_CODES.EIO);
      }
    },

    mount: (mount, store) => {
      const root = FS.createNode(null, "/", StoreMount.FOLDER_MODE, 0);
      root.node_ops = StoreMount.folderOperations(store);
      // A listing of the folder uses offsets of its own.
      root.stream_ops = {llseek: (stream, offset, whence) => offset + (whence === 1 ? stream.position : 0)};
      for (const slot of store.files.values()) StoreMount.node(root, store, slot);
      return root;
    },

    node: (parent, store, slot) => {
      const node = FS.createNode(parent, slot.name, slot.mode, 0);
      node.slot = slot;
      node.node_ops = StoreMount.fileOperations(store);
      node.stream_ops = StoreMount.streamOperations(store);
      node.timestamp = Date.now();
      return node;
    },

    attributes: (node, size) => {
      const time = new Date(node.timestamp || 0);
      return {
        dev: 1,
        ino: node.id,
        mode: node.mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        atime: time,
        mtime: time,
        ctime: time,
        blksize: 4096,
        blocks: Math.ceil(size / 512)
      };
    },

    folderOperations: (store) => {
      return {
        getattr: (node) => StoreMount.attributes(node, 4096),
        setattr() {},
        lookup() { throw new FS.ErrnoError(ERRNO_CODES.ENOENT); },  // every file already has its node
        readdir: () => [".", "..", ...store.files.keys()],
        symlink() { throw new FS.ErrnoError(ERRNO_CODES.EPERM); },
        rmdir() { throw new FS.ErrnoError(ERRNO_CODES.EPERM); },
        mknod(parent, name, mode) {
          if (!FS.isFile(mode)) throw new FS.ErrnoError(ERRNO_CODES.EPERM);
          return StoreMount.run(() => {
            const slot = store.create(name, mode);
            if (!slot) throw new FS.ErrnoError(ERRNO_CODES.ENFILE);
            return StoreMount.node(parent, store, slot);
          });
        },
        rename: (node, folder, name) => StoreMount.rename(store, node, folder, name),
        unlink(parent, name) { StoreMount.run(() => store.remove(FS.lookupNode(parent, name).slot)); },
      };
    },

    // Emscripten 3.1.6 keeps the node of the replaced file, which would reappear once the new one is removed.
    rename: (store, node, folder, name) => {
      const replaced = store.files.has(name) ? FS.lookupNode(folder, name) : null;
      StoreMount.run(() => store.rename(node.slot, name));
      if (replaced) FS.hashRemoveNode(replaced);
      node.name = name;
      node.parent = folder;
    },

    fileOperations: (store) => {
      return {
        getattr: (node) => StoreMount.attributes(node, store.sizeOf(node.slot)),
        setattr(node, changed) {
          if (changed.timestamp !== undefined) node.timestamp = changed.timestamp;
          if (changed.mode !== undefined) node.mode = changed.mode;  // of this page alone: nobody else reads the file
          if (changed.size !== undefined) StoreMount.run(() => store.truncate(node.slot, changed.size));
        },
      };
    },

    streamOperations: (store) => {
      return {
        open(stream) { ++stream.node.slot.users; },
        close(stream) {
          --stream.node.slot.users;
          StoreMount.run(() => store.reuse(stream.node.slot));
        },
        fsync(stream) {
          StoreMount.run(() => stream.node.slot.handle.flush());
          return 0;
        },
        read: (stream, buffer, offset, length, position) =>
            StoreMount.run(() => store.read(stream.node.slot, buffer.subarray(offset, offset + length), position)),
        write(stream, buffer, offset, length, position) {
          stream.node.timestamp = Date.now();
          return StoreMount.run(
              () => store.write(stream.node.slot, buffer.subarray(offset, offset + length), position));
        },
        allocate(stream, offset, length) {
          StoreMount.run(() => {
            if (store.sizeOf(stream.node.slot) < offset + length) store.truncate(stream.node.slot, offset + length);
          });
        },
        llseek(stream, offset, whence) {
          if (whence === 1) offset += stream.position;
          if (whence === 2) offset += store.sizeOf(stream.node.slot);
          if (offset < 0) throw new FS.ErrnoError(ERRNO_CODES.EINVAL);
          return offset;
        },
        // Returns a copy: a file is mapped for reading, never for writing.
        mmap(stream, address, length, position, protection, flags) {
          if (flags & StoreMount.MAP_SHARED) throw new FS.ErrnoError(ERRNO_CODES.EACCES);
          const copy = mmapAlloc(length);
          if (!copy) throw new FS.ErrnoError(ERRNO_CODES.ENOMEM);
          const into = HEAPU8.subarray(copy, copy + length);
          const size = StoreMount.run(() => store.read(stream.node.slot, into, position));
          into.fill(0, size);
          return {ptr: copy, allocated: true};
        },
        msync: () => 0,
      };
    },
  },
});
