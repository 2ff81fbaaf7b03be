// The inference table's linear layers through XNNPACK's packed fully connected operators.
//
// This is the fastest SIMD table with packed_size, pack_weights and linear_forward replaced. Packing makes an XNNPACK
// operator, which keeps its own copy of the weights. The packed buffer holds the operator's address and then the
// weights as the SIMD table packs them, for calls that XNNPACK does not offer (adding to y, rows with gaps). Not for
// training, because making an operator takes 280 us for 64 x 3416 weights. Not shared between threads, because a call
// sets the operator up for its own input. release_packed must be called for every packed buffer.
//
// XNNPACK reads up to 16 bytes past the end of x; arenas end with that much extra space.
//
// It is not the default, because our own kernels are faster here; `wisp-lab bench` shows both.
#include "kernels/kernels.h"

#ifdef WISP_HAS_XNNPACK
#include <xnnpack.h>

#include <cstring>
#include <limits>

namespace wisp::kernels {
namespace {

constexpr size_t kHeaderFloats = 16;  // the operator's address; 64 bytes keep what follows aligned

xnn_operator_t GetOperator(const float* packed) {
  xnn_operator_t op;
  std::memcpy(&op, packed, sizeof(op));
  return op;
}

size_t PackedSize(size_t n, size_t k) { return kHeaderFloats + BestOps().packed_size(n, k); }

// If an operator cannot be made (no memory), the address is null and the SIMD kernel is used.
void PackWeights(const PackWeightsArgs<>& a) {
  xnn_operator_t op = nullptr;
  // XNNPACK wants the weights without gaps.
  if (a.ldw == a.k && a.n > 0 && a.k > 0 &&
      xnn_create_fully_connected_nc_f32(a.k, a.n, a.k, a.n, a.w_NK, nullptr, -std::numeric_limits<float>::infinity(),
                                        std::numeric_limits<float>::infinity(), 0, &op) != xnn_status_success) {
    op = nullptr;
  }
  std::memcpy(a.packed, &op, sizeof(op));
  PackWeightsArgs<> simd = a;
  simd.packed += kHeaderFloats;
  BestOps().pack_weights(simd);
}

void LinearForward(const LinearForwardArgs<>& a) {
  xnn_operator_t op = GetOperator(a.packed);
  const bool dense = a.ldx == a.k && a.ldy == a.n && a.store == Store::kAssign && a.rows > 0;
  // No thread pool: for these sizes handing out the work would cost more than doing it.
  if (op == nullptr || !dense ||
      xnn_setup_fully_connected_nc_f32(op, a.rows, a.x_RK, a.y_RN, nullptr) != xnn_status_success ||
      xnn_run_operator(op, nullptr) != xnn_status_success) {
    LinearForwardArgs<> simd = a;
    simd.packed += kHeaderFloats;
    BestOps().linear_forward(simd);
    return;
  }
  for (size_t r = 0; a.bias_N != nullptr && r < a.rows; ++r) {
    BestOps().scale({.x = a.bias_N, .y = a.y_RN + r * a.ldy, .n = a.n, .a = 1.0f, .store = Store::kAdd});
  }
}

void ReleasePacked(float* packed) {
  xnn_delete_operator(GetOperator(packed));
  std::memset(packed, 0, sizeof(xnn_operator_t));
}

struct Table {
  OpTable ops = BestOps();
  bool usable = xnn_initialize(nullptr) == xnn_status_success;
  Table() {
    ops.name = "xnnpack";
    ops.packed_size = PackedSize;
    ops.pack_weights = PackWeights;
    ops.linear_forward = LinearForward;
    ops.release_packed = ReleasePacked;
  }
};

}  // namespace

const OpTable* XnnpackOps() {
  static const Table table;
  return table.usable ? &table.ops : nullptr;
}

}  // namespace wisp::kernels

#else

namespace wisp::kernels {
const OpTable* XnnpackOps() { return nullptr; }
}  // namespace wisp::kernels

#endif
