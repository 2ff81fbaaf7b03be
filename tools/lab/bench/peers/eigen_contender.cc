// Eigen, compiled for the processor at hand (see CMakeLists.txt): it chooses its instructions at compile time.
//
// Nothing but Eigen belongs here: this unit alone runs only on processors like the one it was compiled on.
#include <Eigen/Core>

#include "tools/lab/bench/peers/contender.h"

namespace wisp::bench {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using In = Eigen::Map<const Matrix, Eigen::Aligned64>;
using Out = Eigen::Map<Matrix, Eigen::Aligned64>;
using InVector = Eigen::Map<const Eigen::VectorXf, Eigen::Aligned64>;
using OutVector = Eigen::Map<Eigen::VectorXf, Eigen::Aligned64>;

}  // namespace

std::string DescribeEigen() {
  Eigen::setNbThreads(1);
  return std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
         std::to_string(EIGEN_MINOR_VERSION) + ", compiled for " + Eigen::SimdInstructionSetsInUse();
}

void AddEigen(const Product& p, Contenders& contenders) {
  const auto rows = static_cast<Eigen::Index>(p.rows), n = static_cast<Eigen::Index>(p.n),
             k = static_cast<Eigen::Index>(p.k);
  if (p.orientation == Orientation::kForward) {
    contenders.push_back(
        {"eigen", "", [=] { Out(p.out, rows, n).noalias() = In(p.x, rows, k) * In(p.w, n, k).transpose(); }, {}});
    if (p.rows == 1) {
      contenders.push_back(
          {"eigen gemv", "", [=] { OutVector(p.out, n).noalias() = In(p.w, n, k) * InVector(p.x, k); }, {}});
    }
  } else if (p.orientation == Orientation::kBackwardInput) {
    contenders.push_back({"eigen", "", [=] { Out(p.out, rows, k).noalias() = In(p.dy, rows, n) * In(p.w, n, k); }, {}});
  } else {
    contenders.push_back(
        {"eigen", "", [=] { Out(p.out, n, k).noalias() = In(p.dy, rows, n).transpose() * In(p.x, rows, k); }, {}});
  }
}

}  // namespace wisp::bench
