// OpenBLAS: sgemm, and sgemv where there is one row. It packs in every call; there is no public way to pack ahead.
#include <cblas.h>

#include "tools/lab/bench/peers/contender.h"

namespace wisp::bench {

std::string DescribeOpenBlas() {
  openblas_set_num_threads(1);
  return std::string(openblas_get_config()) + ", kernels for " + openblas_get_corename();
}

void AddOpenBlas(const Product& p, Contenders& contenders) {
  const auto rows = static_cast<blasint>(p.rows), n = static_cast<blasint>(p.n), k = static_cast<blasint>(p.k);
  if (p.orientation == Orientation::kForward) {
    contenders.push_back(
        {"openblas",
         "sgemm",
         [=] { cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, n, k, 1, p.x, k, p.w, k, 0, p.out, n); },
         {}});
    if (p.rows == 1) {
      contenders.push_back({"openblas gemv",
                            "sgemv",
                            [=] { cblas_sgemv(CblasRowMajor, CblasNoTrans, n, k, 1, p.w, k, p.x, 1, 0, p.out, 1); },
                            {}});
    }
  } else if (p.orientation == Orientation::kBackwardInput) {
    contenders.push_back(
        {"openblas",
         "sgemm",
         [=] { cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, k, n, 1, p.dy, n, p.w, k, 0, p.out, k); },
         {}});
  } else {
    contenders.push_back(
        {"openblas",
         "sgemm",
         [=] { cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, k, rows, 1, p.dy, n, p.x, k, 0, p.out, k); },
         {}});
  }
}

}  // namespace wisp::bench
