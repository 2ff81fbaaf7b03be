// What DpFpTrainer refuses, and why.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/train/dp_fp.h"
#include "runtime/train/check_records.h"
#include "runtime/train/dp_fp_report.h"

namespace wisp {
namespace {

Status CheckPrivate(const Architecture& a, const DpFpOptions& o) {
  if (o.ledger == nullptr) {
    return PrivacyRefused("private training needs a ledger: without one the budget spent would be forgotten");
  }
  if (o.num_records_public == 0) {
    return PrivacyRefused(
        "private training needs the number of records declared as public (num_records_public): the sampling "
        "probability is a public constant and must not be derived from the data");
  }
  if (o.steps_per_charge == 0) return InvalidArgument("steps_per_charge is 0, allowed are 1 and above");
  WISP_RETURN_IF_ERROR(DpFpMechanisms(o, 1).status());
  if (!(o.release_decay > 0 && o.release_decay <= 1)) {
    return InvalidArgument("release_decay is ", o.release_decay, ", allowed is 0 < decay <= 1");
  }
  if (!(o.effective_dimensions >= 1 && o.effective_dimensions <= a.width)) {
    return InvalidArgument("effective_dimensions is ", o.effective_dimensions, ", allowed are 1 to the width ",
                           a.width);
  }
  if (!o.class_prior.empty()) {
    bool good = o.class_prior.size() == a.head.num_classes;
    for (double p : o.class_prior) good = good && p > 0;
    if (!good || !(std::abs(std::accumulate(o.class_prior.begin(), o.class_prior.end(), -1.0)) < 1e-6)) {
      return InvalidArgument("class_prior must name a positive probability for each class, together 1");
    }
  }
  if (o.mode != DpFpMode::kClipped) return OkStatus();
  if (o.encoder.clipping == ClipKind::kNone)
    return PrivacyRefused("private training without clipping has no bounded sensitivity");
  uint64_t coordinates = 0;
  for (const ParameterSpec& p : ParametersOf(a)) coordinates += p.name.starts_with("head.") ? 0 : p.size();
  return privacy::ExactGrid::Validate({.clipping_norm = o.encoder.clipping_norm,
                                       .num_coordinates = coordinates,
                                       .noise_multiplier = o.encoder.noise_multiplier});
}

}  // namespace

Status DpFpTrainer::Check(const Architecture& a, std::span<const float> weights, std::span<const Record> records,
                          const DpFpOptions& o) {
  WISP_RETURN_IF_ERROR(Validate(a));
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  if (o.mode != DpFpMode::kAggregate) WISP_RETURN_IF_ERROR(Validate(o.optimizer));
  if (weights.size() != FlatSize(ParametersOf(a))) {
    return InvalidArgument("weights have ", weights.size(), " numbers, the architecture ", FlatSize(ParametersOf(a)));
  }
  if (o.micro_batches == 0 || o.expected_batch == 0)
    return InvalidArgument("expected_batch and micro_batches must be 1 or above");
  WISP_RETURN_IF_ERROR(privacy::ExactGrid::Validate({.clipping_norm = o.clipping_norm,
                                                     .num_coordinates = uint64_t{a.head.num_classes} * a.width,
                                                     .noise_multiplier = o.noise_multiplier}));
  if (o.mode != DpFpMode::kPaper) {
    WISP_RETURN_IF_ERROR(CheckPrivate(a, o));
  } else if (o.ledger != nullptr) {
    return PrivacyRefused("mode paper on a data set with a ledger: no charge could cover it. ",
                          WhyPaperHasNoGuarantee());
  } else if (records.empty()) {
    return InvalidData("there is no record to train on");
  }
  const uint64_t n = o.num_records_public != 0 ? o.num_records_public : records.size();
  if (o.expected_batch > n) {
    return InvalidArgument("expected_batch is ", o.expected_batch, ", more than the ", n, " records");
  }
  return o.mode == DpFpMode::kPaper ? CheckRecords(a, records) : OkStatus();
}

}  // namespace wisp
