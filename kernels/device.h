// Where memory lies and in what order work runs: a table of ops, and the memory that these ops read and write.
//
//   const Device device = BestOps();                       // the host's processor and its memory
//   void* bytes = device.memory.allocate(size);
//
// Chosen where a run or a session is set up, and handed down from there. Ops of a stream run one after the other;
// those of the host have run when the call returns.
#ifndef WISP_KERNELS_DEVICE_H_
#define WISP_KERNELS_DEVICE_H_

#include <cstddef>

#include "kernels/kernels.h"

namespace wisp::kernels {

// Whether launches of a device go out one by one, or are put together as far as that goes.
enum class Launches { kEach, kTogether };

// What matrix products of a device multiply; they sum in 32 bits, all else is in floats of 32 bits. How far results are
// off: docs/cuda.md, "arithmetic". Those but the first two are for inference.
enum class Arithmetic { kFloat32, kTf32, kFloat16, kBfloat16, kInt8 };

// What a backend does with its memory, in the order of a stream.
struct MemoryTable {
  // Zeroed, 64-byte aligned. Where there is none left: std::bad_alloc, as of operator new; the doors catch it.
  void* (*allocate)(void* stream, size_t bytes);
  void (*release)(void* stream, void* memory, size_t bytes);
  // From host memory, whose bytes have been read when the call returns, and to it, where they are then. Bytes that
  // could not be copied out are 0; whether some could not, wait says.
  void (*copy_in)(void* stream, void* to, const void* from, size_t bytes);
  void (*copy_out)(void* stream, void* to, const void* from, size_t bytes);
  // Until all that was asked for has run. False where some of it failed, now or ever before: nothing in this memory can
  // be trusted again in this process.
  bool (*wait)(void* stream);
  // What failed first, for people; empty while nothing has.
  const char* (*failure)(void* stream);
  // How what this thread asks for goes out from now on; kEach sends what was put off. Results are the same, to the bit.
  // Null on the host.
  void (*gather)(void* stream, Launches launches);
  // Bytes of the host that ops read where they lie, until unshare is called with the same ones: their address for ops,
  // or null, and then they have to be copied. Nothing may change them meanwhile. Both null where memory is not shared.
  const void* (*share)(void* stream, const void* host, size_t bytes);
  void (*unshare)(void* stream, const void* host, size_t bytes);
  // All of this memory will be used, not its first parts alone: large pages pay. A hint, given before the first use.
  // Null where there is nothing to do.
  void (*use_whole)(void* stream, void* memory, size_t bytes);
};

// A device's memory; by default this process's own, of which pages are taken as they are touched. The memory of another
// device is read and written by the host through copy_in and copy_out alone.
struct Memory {
  Memory();
  Memory(const MemoryTable& memory_table, void* memory_stream) : table(&memory_table), stream(memory_stream) {}

  void* allocate(size_t bytes) const { return table->allocate(stream, bytes); }
  void release(void* memory, size_t bytes) const { table->release(stream, memory, bytes); }
  void copy_in(void* to, const void* from, size_t bytes) const { table->copy_in(stream, to, from, bytes); }
  void copy_out(void* to, const void* from, size_t bytes) const { table->copy_out(stream, to, from, bytes); }
  bool wait() const { return table->wait(stream); }
  const char* failure() const { return table->failure(stream); }
  void gather(Launches launches) const {
    if (table->gather != nullptr) table->gather(stream, launches);
  }
  void use_whole(void* memory, size_t bytes) const {
    if (table->use_whole != nullptr) table->use_whole(stream, memory, bytes);
  }
  bool can_share() const { return table->share != nullptr; }
  const void* share(const void* host, size_t bytes) const {
    return can_share() ? table->share(stream, host, bytes) : nullptr;
  }
  void unshare(const void* host, size_t bytes) const { table->unshare(stream, host, bytes); }
  // This process's own, an app's allocator behind it or not.
  bool is_host() const { return table == Memory().table; }

  const MemoryTable* table;
  void* stream = nullptr;  // the backend's own; on the host a HostAllocator, or null
};

// Where an app wants the host's memory to come from.
struct HostAllocator {
  void* (*allocate)(void* data, size_t bytes, size_t alignment);  // null: there is none left
  void (*release)(void* data, void* memory, size_t bytes);
  void* data;
};
// The host's memory from there. `allocator` must outlive all that is made in it.
Memory HostMemory(const HostAllocator& allocator);

// Both must outlive whatever is made on the device.
struct Device {
  // The host's processor with these ops. Not explicit: ops of the host say all there is to say.
  Device(const OpTable& host_ops) : ops(&host_ops) {}
  Device(const OpTable&&) = delete;
  Device(const OpTable& device_ops, const Memory& device_memory) : ops(&device_ops), memory(device_memory) {}

  const OpTable* ops;
  Memory memory;
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_DEVICE_H_
