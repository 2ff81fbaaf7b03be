// The table of all methods of training: one line each.
#include "runtime/methods/phantom/phantom_method.h"
#include "runtime/methods/rgp/rgp_method.h"
#include "runtime/methods/sparse/sparse_method.h"
#include "runtime/train/method_table.h"

namespace wisp {
namespace {

constexpr MethodEntry kOrdinary{.make = MakeOrdinaryMethod, .plan = PlanOrdinaryMethod};
constexpr MethodEntry kPhantom{.make = MakePhantomMethod, .plan = PlanPhantomMethod};
constexpr MethodEntry kRgp{.trains = TrainsByRgp,
                           .num_released = NumReleasedByRgp,
                           .check = CheckRgp,
                           .make = MakeRgpMethod,
                           .plan = PlanRgpMethod,
                           .row_floats = RgpRowFloats};
constexpr MethodEntry kFest{.num_released = NumReleasedByFest,
                            .check = CheckSparse,
                            .make = MakeSparseMethod,
                            .plan = PlanSparseMethod,
                            .row_floats = SparseRowFloats};
constexpr MethodEntry kAdaFest{
    .check = CheckSparse, .make = MakeSparseMethod, .plan = PlanSparseMethod, .row_floats = SparseRowFloats};
// Ordinary and phantom training with a sampled softmax.
constexpr MethodEntry kSampled{.make = MakeSparseMethod, .plan = PlanSparseMethod, .row_floats = SparseRowFloats};

}  // namespace

const MethodEntry& GetEntry(const TrainingOptions& o) {
  if (o.method == Method::kRgp) return kRgp;
  if (o.method == Method::kFest) return kFest;
  if (IsAdaptive(o.method)) return kAdaFest;
  // On a device a sum that is not private has the layout of all weights, with negatives or without.
  if (o.num_negatives > 0 && (IsPrivate(o) || o.device.memory.is_host())) return kSampled;
  return IsPrivate(o) ? kPhantom : kOrdinary;
}

Status CheckBuilt(const Architecture& a, const TrainingOptions& o) {
  const MethodEntry* entry = &GetEntry(o);
  const char* folder = nullptr;
  if (entry == &kRgp && !kHasRgp) folder = "rgp";
  if ((entry == &kFest || entry == &kAdaFest || entry == &kSampled) && !kHasSparse) folder = "sparse";
  if (o.method == Method::kDpFp && !kHasDpFp) folder = "dp_fp";
  if (a.re_attention == ReAttention::kOn && o.method != Method::kOrdinary && !kHasReAttention) folder = "re_attention";
  if (folder == nullptr) return OkStatus();
  return Unsupported("this training needs ", folder,
                     " of runtime/methods, which is not in this build: WISP_METHODS of ",
                     "its configuration leaves it out");
}

}  // namespace wisp
