#include "runtime/core/arena.h"

namespace wisp {

void ReleaseMemory::operator()(std::byte* p) const { memory.release(p, bytes); }

Arena::Arena(const ArenaPlan& plan, const kernels::Memory& memory, ArenaUse use) : size_bytes_(plan.size_bytes()) {
  const size_t bytes = plan.allocated_bytes();
  if (bytes == 0) return;
  bytes_ = {static_cast<std::byte*>(memory.allocate(bytes)), ReleaseMemory{memory, bytes}};
  if (use == ArenaUse::kWhole) memory.use_whole(bytes_.get(), bytes);
}

}  // namespace wisp
