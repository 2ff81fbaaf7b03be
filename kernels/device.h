// A device: a table of ops, and the memory that these ops read and write.
//
//   const Device device = BestOps();                       // the host's processor and its memory
//   void* bytes = device.memory.allocate(size);
//
// A run or a session chooses its device when it is set up and passes it down. Ops of a stream run one after another;
// ops of the host have run when the call returns.
#ifndef WISP_KERNELS_DEVICE_H_
#define WISP_KERNELS_DEVICE_H_

#include <cstddef>

#include "kernels/kernels.h"

namespace wisp::kernels {

// How launches of a device are submitted: one by one, or together as far as possible.
enum class Launches { kEach, kTogether };

// The number type that a device's matrix products multiply. They sum in 32 bits, and everything else is float32.
// docs/cuda.md, "arithmetic", states the errors. All but the first two are for inference only.
enum class Arithmetic { kFloat32, kTf32, kFloat16, kBfloat16, kInt8 };

// The operations of a backend on its memory. They run in the order of a stream.
struct MemoryTable {
  // Returns zeroed, 64-byte aligned memory. Throws std::bad_alloc if there is not enough, as operator new; the outer
  // interfaces catch it.
  void* (*allocate)(void* stream, size_t bytes);
  void (*release)(void* stream, void* memory, size_t bytes);
  // copy_in reads host memory, which has been read when the call returns. copy_out writes host memory, which is
  // complete when the call returns. Bytes that could not be copied out are 0; `wait` reports the failure.
  void (*copy_in)(void* stream, void* to, const void* from, size_t bytes);
  void (*copy_out)(void* stream, void* to, const void* from, size_t bytes);
  // Waits for all submitted work. False if any of it failed, now or earlier: this process must then trust nothing in
  // this memory any more.
  bool (*wait)(void* stream);
  // The first failure, for people to read; empty if nothing has failed.
  const char* (*failure)(void* stream);
  // Chooses how this thread's launches are submitted from now on. kEach submits those that were held back. Results have
  // the same bits. Null on the host.
  void (*gather)(void* stream, Launches launches);
  // Lets ops read host memory in place until `unshare` is called with the same bytes. Returns the address for ops, or
  // null if the bytes must be copied. Nothing may change them meanwhile. Both are null if memory cannot be shared.
  const void* (*share)(void* stream, const void* host, size_t bytes);
  void (*unshare)(void* stream, const void* host, size_t bytes);
  // A hint, given before the first use, that all of this memory will be used, so that large pages pay. Null if the
  // backend ignores it.
  void (*use_whole)(void* stream, void* memory, size_t bytes);
};

// A device's memory. The default is this process's own, whose pages are allocated when they are touched. The host
// accesses the memory of another device only through copy_in and copy_out.
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
  // True for this process's own memory, with or without an app's allocator.
  bool is_host() const { return table == Memory().table; }

  const MemoryTable* table;
  void* stream = nullptr;  // belongs to the backend; on the host a HostAllocator, or null
};

// An app's allocator for host memory.
struct HostAllocator {
  void* (*allocate)(void* data, size_t bytes, size_t alignment);  // returns null if there is no memory left
  void (*release)(void* data, void* memory, size_t bytes);
  void* data;
};
// Host memory from this allocator. `allocator` must outlive everything that is made in it.
Memory HostMemory(const HostAllocator& allocator);

// Both must outlive everything that is made on the device.
struct Device {
  // The host's processor with these ops. Not explicit, because a table of the host determines the device.
  Device(const OpTable& host_ops) : ops(&host_ops) {}
  Device(const OpTable&&) = delete;
  Device(const OpTable& device_ops, const Memory& device_memory) : ops(&device_ops), memory(device_memory) {}

  const OpTable* ops;
  Memory memory;
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_DEVICE_H_
