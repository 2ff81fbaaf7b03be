"""The memory of a GPU: regions that the host gave, and shared memory of all blocks. Every access is checked."""
import numpy as np

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
ALL = {size: dtype(int("01" * size, 16)) for size, dtype in UNSIGNED.items()}  # every byte is defined


class Fault(Exception):
    """What a kernel must not do."""


def dtype_of(kind):
    """NumPy's type for one of PTX: bits are unsigned numbers."""
    if kind == "pred":
        return np.dtype(bool)
    return np.dtype({"b": "u", "s": "i"}.get(kind[0], kind[0]) + str(int(kind[1:]) // 8))


class Memory:
    """Bytes with a mark for each that says if it is defined."""

    def __init__(self, size):
        self.bytes = np.zeros((size + 15) // 8 * 8, np.uint8)
        self.defined = np.zeros_like(self.bytes)

    def load(self, at, size, what):
        index = at // size
        if (self.defined.view(UNSIGNED[size])[index] != ALL[size]).any():
            raise Fault(f"{what} is read that nothing has written")
        return self.bytes.view(UNSIGNED[size])[index]

    def store(self, at, size, values):
        index = at // size
        self.bytes.view(UNSIGNED[size])[index] = values
        self.defined.view(UNSIGNED[size])[index] = ALL[size]


def check_aligned(addresses, size):
    if (addresses & np.uint64(size - 1)).any():
        raise Fault(f"an address that is not a multiple of {size}")


class GlobalMemory:
    """Regions by address. One begins in `memory` at a place with the same remainder by 256 as its address."""

    def __init__(self, regions):
        """regions: (address, contents, defined) of each."""
        regions = sorted(regions, key=lambda r: r[0])
        self.begins = np.array([address for address, _, _ in regions], np.uint64)
        self.sizes = np.array([len(contents) for _, contents, _ in regions], np.uint64)
        places, end = [], 0
        for address, contents, _ in regions:
            places.append((end + 255) // 256 * 256 + address % 256)
            end = places[-1] + len(contents)
        self.places = np.array(places, np.uint64)
        self.memory = Memory(end)
        for place, (_, contents, defined) in zip(places, regions):
            self.memory.bytes[place:place + len(contents)] = contents
            self.memory.defined[place:place + len(contents)] = defined

    def contents(self, region):
        place = int(self.places[region])
        part = slice(place, place + int(self.sizes[region]))
        return self.memory.bytes[part], self.memory.defined[part]

    def find(self, addresses, size):
        check_aligned(addresses, size)
        region = np.searchsorted(self.begins, addresses, side="right") - 1
        offset = addresses - self.begins[region]
        if (region < 0).any() or (offset + np.uint64(size) > self.sizes[region]).any():
            raise Fault("an address that is in no memory which the host gave")
        return offset + self.places[region]

    def load(self, addresses, size, parts, lanes):
        at = self.find(addresses, size * parts)
        return [self.memory.load(at + np.uint64(i * size), size, "global memory") for i in range(parts)]

    def store(self, addresses, size, values, lanes):
        at = self.find(addresses, size * len(values))
        for i, value in enumerate(values):
            self.memory.store(at + np.uint64(i * size), size, value)

    def add(self, addresses, size, values, dtype):
        """Atomic additions, one after another. Returns what stood there before each."""
        at = self.find(addresses, size)
        self.memory.load(at, size, "global memory")
        view = self.memory.bytes.view(dtype)
        before = np.zeros(len(at), dtype)
        for i, (place, value) in enumerate(zip(at // np.uint64(size), np.broadcast_to(values, at.shape))):
            before[i] = view[place]
            view[place] += value
        return before


class SharedMemory:
    """Shared memory of all blocks, in words of 32 bits. It knows who wrote and read a word since which barrier.

    Two accesses by different threads, one of them a write, need a barrier of the block between them, or one of the warp
    if it is one warp's."""

    NOBODY, SEVERAL = -1, -2

    def __init__(self, blocks, size, threads):
        self.size, self.threads = (size + 15) // 16 * 16, threads
        self.memory = Memory(blocks * self.size)
        words = len(self.memory.bytes) // 4
        self.block_barriers = np.zeros(blocks * threads, np.int32)  # of each lane
        self.warp_barriers = np.zeros(blocks * threads, np.int32)
        self.writer = np.full(words, self.NOBODY)
        self.reader = np.full(words, self.NOBODY)  # a lane, or SEVERAL of the warp
        self.reader_warp = np.full(words, self.NOBODY)  # its warp, or SEVERAL
        self.write_barriers = np.zeros((2, words), np.int32)  # of the block and of the warp
        self.read_barriers = np.zeros((2, words), np.int32)

    def find(self, addresses, size, lanes):
        if size < 4:
            raise NotImplementedError("shared memory by less than 32 bits")
        check_aligned(addresses, size)
        if (addresses + np.uint64(size) > self.size).any():
            raise Fault("an address outside of shared memory")
        return addresses + (lanes // self.threads * self.size).astype(np.uint64)

    def unordered(self, words, lanes, who, warps, barriers):
        """Which of these words another thread has touched without a barrier since."""
        warp = lanes // 32
        same_time = barriers[0][words] == self.block_barriers[lanes]
        ordered_by_warp = (warps == warp) & (barriers[1][words] < self.warp_barriers[lanes])
        return (who != self.NOBODY) & (who != lanes) & same_time & ~ordered_by_warp

    def check_read(self, words, lanes):
        writer = self.writer[words]
        if self.unordered(words, lanes, writer, writer // 32, self.write_barriers).any():
            raise Fault("shared memory is read while another thread writes it")
        new = (self.read_barriers[0][words] != self.block_barriers[lanes]) | (self.reader[words] == self.NOBODY)
        new |= (self.reader_warp[words] == lanes // 32) & (self.read_barriers[1][words] < self.warp_barriers[lanes])
        self.reader_warp[words[new]] = lanes[new] // 32
        self.reader[words[new]] = lanes[new]
        self.read_barriers[0][words] = self.block_barriers[lanes]
        self.read_barriers[1][words] = self.warp_barriers[lanes]
        self.reader[words[self.reader[words] != lanes]] = self.SEVERAL
        self.reader_warp[words[self.reader_warp[words] != lanes // 32]] = self.SEVERAL

    def check_write(self, words, lanes):
        writer = self.writer[words]
        if self.unordered(words, lanes, writer, writer // 32, self.write_barriers).any():
            raise Fault("two threads write the same place of shared memory")
        if self.unordered(words, lanes, self.reader[words], self.reader_warp[words], self.read_barriers).any():
            raise Fault("shared memory is written while another thread reads it")
        self.writer[words] = lanes
        if (self.writer[words] != lanes).any():
            raise Fault("two threads write the same place of shared memory")
        self.write_barriers[0][words] = self.block_barriers[lanes]
        self.write_barriers[1][words] = self.warp_barriers[lanes]

    def load(self, addresses, size, parts, lanes):
        at = self.find(addresses, size * parts, lanes)
        for word in range(0, size * parts, 4):
            self.check_read(((at + np.uint64(word)) // np.uint64(4)).astype(np.int64), lanes)
        return [self.memory.load(at + np.uint64(i * size), size, "shared memory") for i in range(parts)]

    def store(self, addresses, size, values, lanes):
        at = self.find(addresses, size * len(values), lanes)
        for word in range(0, size * len(values), 4):
            self.check_write(((at + np.uint64(word)) // np.uint64(4)).astype(np.int64), lanes)
        for i, value in enumerate(values):
            self.memory.store(at + np.uint64(i * size), size, value)
