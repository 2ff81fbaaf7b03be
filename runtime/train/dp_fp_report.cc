#include "runtime/train/dp_fp_report.h"

#include <cmath>

#include "runtime/privacy/exact_sum.h"

namespace wisp {

using privacy::Mechanism;

namespace {

uint64_t EncoderCoordinates(const Architecture& a) {
  uint64_t coordinates = 0;
  for (const ParameterSpec& p : ParametersOf(a)) coordinates += p.name.starts_with("head.") ? 0 : p.size();
  return coordinates;
}

}  // namespace

const char* ToText(DpFpMode mode) {
  return mode == DpFpMode::kAggregate ? "aggregate" : mode == DpFpMode::kClipped ? "clipped" : "paper";
}

std::optional<DpFpMode> DpFpModeFromText(std::string_view text) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped, DpFpMode::kPaper}) {
    if (text == ToText(mode)) return mode;
  }
  return std::nullopt;
}

Result<std::vector<Mechanism>> DpFpMechanisms(const DpFpOptions& o, uint64_t steps) {
  if (o.mode == DpFpMode::kPaper) return PrivacyRefused(WhyPaperHasNoGuarantee());
  if (o.num_records_public == 0 || o.micro_batches == 0)
    return InvalidArgument("num_records_public and micro_batches must be 1 or above");
  std::vector<Mechanism> mechanisms;
  const double q = static_cast<double>(o.expected_batch) / o.num_records_public;
  WISP_ASSIGN_OR_RETURN(Mechanism releases,
                        Mechanism::PoissonSubsampledGaussian({.noise_multiplier = o.noise_multiplier,
                                                              .sampling_probability = q / o.micro_batches,
                                                              .steps = o.micro_batches * steps}));
  mechanisms.push_back(std::move(releases));
  if (o.mode == DpFpMode::kAggregate) return mechanisms;
  WISP_ASSIGN_OR_RETURN(
      Mechanism gradients,
      Mechanism::PoissonSubsampledGaussian(
          {.noise_multiplier = o.encoder.noise_multiplier, .sampling_probability = q, .steps = steps}));
  mechanisms.push_back(std::move(gradients));
  return mechanisms;
}

double DpFpLossSlack(const Architecture& a, const DpFpOptions& o, uint64_t num_steps) {
  const auto loss = [](const privacy::ExactGrid& grid, double noise_multiplier, uint64_t rounds) {
    return privacy::DiscretisationLoss({.sigma_in_steps = grid.sigma_in_steps(noise_multiplier),
                                        .num_coordinates = grid.num_coordinates(),
                                        .num_steps = rounds});
  };
  // A step's m releases are the steps of one mechanism, each with the coordinates of one matrix.
  const double head = loss(privacy::ExactGrid(o.clipping_norm, uint64_t{a.head.num_classes} * a.width),
                           o.noise_multiplier, num_steps * o.micro_batches);
  if (o.mode == DpFpMode::kAggregate) return head;
  return head + loss(privacy::ExactGrid(o.encoder.clipping_norm, EncoderCoordinates(a)), o.encoder.noise_multiplier,
                     num_steps);
}

const std::string& WhyPaperHasNoGuarantee() {
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

std::string DescribeDpFp(const DpFpOptions& o, uint64_t steps) {
  if (o.mode == DpFpMode::kPaper) return "mode paper, for comparison only. " + WhyPaperHasNoGuarantee();
  const auto mechanisms = DpFpMechanisms(o, steps);
  if (!mechanisms.ok()) return "no guarantee: " + mechanisms.status().message();
  const bool clipped = o.mode == DpFpMode::kClipped;
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
  if (o.reproducible_seed) text += "Noise: reproducible, no guarantee. ";
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
