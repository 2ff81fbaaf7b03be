// XNNPACK's fully connected operator: forward only. It is set up once for its buffers, which favours it: the runtime
// would set it up in every call.
#include <xnnpack.h>

#include <limits>
#include <memory>

#include "tools/lab/bench/peers/contender.h"

namespace wisp::bench {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Returns null if the operator cannot be made.
std::shared_ptr<xnn_operator> Make(const Product& p) {
  xnn_operator_t op = nullptr;
  if (xnn_create_fully_connected_nc_f32(p.k, p.n, p.k, p.n, p.w, nullptr, -kInfinity, kInfinity, 0, &op) !=
      xnn_status_success)
    return nullptr;
  return {op, xnn_delete_operator};
}

}  // namespace

std::string DescribeXnnpack() {
  return xnn_initialize(nullptr) == xnn_status_success ? "no thread pool" : "does not run on this processor";
}

void AddXnnpack(const Product& p, Contenders& contenders) {
  if (p.orientation != Orientation::kForward) return;
  const auto op = Make(p);
  if (op == nullptr || xnn_setup_fully_connected_nc_f32(op.get(), p.rows, p.x, p.out, nullptr) != xnn_status_success)
    return;
  contenders.push_back({"xnnpack", "", [op] { xnn_run_operator(op.get(), nullptr); }, [p] { Make(p); }});
}

}  // namespace wisp::bench
