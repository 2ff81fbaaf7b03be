#include "runtime/core/arena.h"

namespace wisp {

void ReleaseMemory::operator()(std::byte* p) const { memory.release(p, bytes); }

Arena::Arena(const ArenaPlan& plan, const kernels::Memory& memory) : size_bytes_(plan.size_bytes()) {
  if (const size_t bytes = plan.allocated_bytes(); bytes > 0)
    bytes_ = {static_cast<std::byte*>(memory.allocate(bytes)), ReleaseMemory{memory, bytes}};
}

}  // namespace wisp
