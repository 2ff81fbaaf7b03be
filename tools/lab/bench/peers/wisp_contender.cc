// Our own kernels, from the table that the runtime would choose. The backward products read w in its original layout,
// as in training.
#include <cstdlib>
#include <memory>

#include "kernels/kernels.h"
#include "tools/lab/bench/peers/contender.h"

namespace wisp::bench {

void AddWisp(const Product& p, Contenders& contenders) {
  const kernels::OpTable& ops = kernels::BestOps();
  if (p.orientation == Orientation::kForward) {
    // Aligned to 64 bytes, as the runtime's arenas are.
    const size_t bytes = (ops.packed_size(p.n, p.k) * sizeof(float) + 63) / 64 * 64;
    const std::shared_ptr<float> packed(static_cast<float*>(std::aligned_alloc(64, bytes)), std::free);
    const auto pack = [p, &ops, packed] {
      ops.pack_weights({.w_NK = p.w, .ldw = p.k, .packed = packed.get(), .n = p.n, .k = p.k});
    };
    pack();
    const auto run = [p, &ops, packed] {
      ops.linear_forward({.x_RK = p.x,
                          .ldx = p.k,
                          .packed = packed.get(),
                          .bias_N = nullptr,
                          .y_RN = p.out,
                          .ldy = p.n,
                          .rows = p.rows,
                          .n = p.n,
                          .k = p.k,
                          .store = kernels::Store::kAssign});
    };
    contenders.push_back({"wisp", ops.name, run, pack});
  } else if (p.orientation == Orientation::kBackwardInput) {
    contenders.push_back({"wisp",
                          ops.name,
                          [p, &ops] {
                            ops.linear_backward_input({.dy_RN = p.dy,
                                                       .lddy = p.n,
                                                       .w_NK = p.w,
                                                       .ldw = p.k,
                                                       .dx_RK = p.out,
                                                       .lddx = p.k,
                                                       .rows = p.rows,
                                                       .n = p.n,
                                                       .k = p.k,
                                                       .store = kernels::Store::kAssign});
                          },
                          {}});
  } else {
    contenders.push_back({"wisp",
                          ops.name,
                          [p, &ops] {
                            ops.linear_backward_weight({.dy_RN = p.dy,
                                                        .lddy = p.n,
                                                        .x_RK = p.x,
                                                        .ldx = p.k,
                                                        .dw_NK = p.out,
                                                        .lddw = p.k,
                                                        .rows = p.rows,
                                                        .n = p.n,
                                                        .k = p.k,
                                                        .scale = 1,
                                                        .store = kernels::Store::kAssign});
                          },
                          {}});
  }
}

}  // namespace wisp::bench
