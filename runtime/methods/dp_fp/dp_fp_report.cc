#include "runtime/methods/dp_fp/dp_fp_report.h"

#include <cmath>

#include "runtime/train/privacy_plan.h"

namespace wisp {

using privacy::Mechanism;

const char* ToText(DpFpMode mode) {
  return mode == DpFpMode::kAggregate ? "aggregate" : mode == DpFpMode::kClipped ? "clipped" : "paper";
}

std::optional<DpFpMode> DpFpModeFromText(std::string_view text) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper}) {
    if (text == ToText(mode)) return mode;
  }
  return std::nullopt;
}

const std::string& ExplainPaperMode() {
  static const std::string sentence =
      "DP-FP as its paper prints it has no differential privacy guarantee, and none is stated: noise in the forward "
      "pass covers what "
      "is computed above it, but the encoder below is trained with gradients that read the raw records (in an "
      "embedding table the rows "
      "that change name the tokens of the batch); labels are not protected at all; and noise added to each record, "
      "with every record's "
      "row visible, has no amplification by subsampling to claim, so the limit theorem by which the paper calibrates "
      "is about another "
      "mechanism.";
  return sentence;
}

std::string DescribeDpFp(const Architecture& a, const TrainingOptions& o, uint64_t steps) {
  if (IsPaper(o)) return "mode paper, for comparison only. " + ExplainPaperMode();
  const auto plan = PrivacyPlan::Create(a, o);
  const auto mechanisms = plan.ok() ? plan->Mechanisms(steps) : plan.status();
  if (!mechanisms.ok()) return "no guarantee: " + mechanisms.status().message();
  const bool clipped = o.dp_fp.mode == DpFpMode::kClipped;
  std::string text =
      clipped ? "mode clipped: the head is made of noised class sums of representations, the encoder is trained with "
                "clipped "
                "and noised record gradients"
              : "mode aggregate: the encoder is frozen, the head is made of noised class sums of representations";
  text +=
      ". Released: the noised sums of every step and all that is computed from them. Protected: whether a record took "
      "part, and "
      "everything in it, its label included. Not protected: the number of steps, the architecture, the "
      "hyper-parameters, the class "
      "prior. ";
  if (o.privacy.reproducible_seed) text += "Noise: reproducible, no guarantee. ";
  text += "Mechanisms:";
  for (const Mechanism& m : *mechanisms) text += " " + m.Describe() + ";";
  text.back() = '.';
  return text;
}

double PaperMuTotNoGuarantee(const PaperRun& run, double noise_multiplier) {
  const double rounds = static_cast<double>(run.steps) * static_cast<double>(run.micro_batches);
  return run.sampling_probability * std::sqrt(rounds * std::expm1(1 / (noise_multiplier * noise_multiplier)));
}

double PaperNoiseMultiplier(const PaperRun& run, double mu_tot) {
  const double rounds = static_cast<double>(run.steps) * static_cast<double>(run.micro_batches);
  const double mu = mu_tot / run.sampling_probability;
  return 1 / std::sqrt(std::log1p(mu * mu / rounds));
}

}  // namespace wisp
