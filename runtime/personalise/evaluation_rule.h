// Interprets noised sums of gains: whether the candidates of some evaluations were better than the base for people in
// general, with a stated probability of error; and how likely it is that a difference of some size is detected.
//
// The claim of kBetter: the candidates' mean gains, weighted as below, are above 0 for the population of which the
// records are samples. Let w_t = decay^(number of evaluations after t) and W their sum. S_t and M_t are the
// noised sums of gains and of their squares, and nu is the noise on S_t. z is the quantile of the normal distribution
// for `error` / (2 num_evaluations):
//     evidence  = sum w_t S_t
//     spread    = W sum w_t M_t + z W sqrt(sum w_t^2) nu / kSquareWeight, at least 0
//     threshold = z sqrt(nu^2 sum w_t^2 + spread)
// All evaluations use the same records, so their errors do not average out: with G_i = sum_t w_t g_it, sum_i G_i^2 <= W
// sum_t w_t sum_i g_it^2 (Cauchy and Schwarz). Without a gain, sum_i G_i exceeds z sqrt(sum_i G_i^2) with about the
// probability of z (a self-normalised sum), and the spread is below its bound with the same probability. All of this
// holds over num_evaluations looks: `error` is the probability of ever being wrong. kWorse is the same rule for
// -evidence.
#ifndef WISP_RUNTIME_PERSONALISE_EVALUATION_RULE_H_
#define WISP_RUNTIME_PERSONALISE_EVALUATION_RULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/train/gain_sums.h"

namespace wisp {

struct Evaluation {
  double gains = 0, squares = 0;  // noised sums over the records; a gain is from -1 to 1
  double noise_multiplier = 0;
  uint64_t base = 0, candidate = 0;  // ModelFile::content_hash() of the two models; 0: unknown
  uint64_t line = 0;                 // lineage of the candidate (lineage.h); 0: unknown

  double gain_noise() const;    // nu: standard deviation of the noise on `gains`
  double square_noise() const;  // and on `squares`
  bool operator==(const Evaluation&) const = default;
};

// Writes "gains=1.5 squares=3 noise_multiplier=4 base=1 candidate=2 line=3", and reads it back; kInvalidData for
// anything else.
std::string ToText(const Evaluation& evaluation);
Result<Evaluation> ParseEvaluation(const std::string& text);

struct EvaluationRule {
  double error = 0.05;           // probability of ever accepting a model that is not better; above 0, below 1
  uint32_t num_evaluations = 1;  // looks over the whole plan, fixed beforehand
  double decay = 1;              // weight of an evaluation relative to the next one; above 0, up to 1
};
Status Validate(const EvaluationRule& rule);

struct Verdict {
  enum class Kind { kUndecided, kBetter, kWorse } kind = Kind::kUndecided;
  double evidence = 0, threshold = 0;
};
// "better", "worse", "undecided".
const char* GetName(Verdict::Kind kind);

// Decides from evaluations, oldest to newest, all against one base. The rule must be valid.
Verdict Decide(const EvaluationRule& rule, std::span<const Evaluation> evaluations);

// The model to serve, as the index of its evaluation: the newest candidate whose evaluation led to kBetter, unless its
// own gain is clearly below that of the one served before. After kWorse the base is served, and all evaluations until
// then stop counting: training may pass through worse models to better ones (docs/personalise.md).
struct Served {
  std::optional<size_t> evaluation;  // nullopt: the base
  bool newest_is_worse = false;      // and nothing was evaluated since
  Verdict verdict;                   // after the newest evaluation
};
Served Serve(const EvaluationRule& rule, std::span<const Evaluation> evaluations);

// A public guess of what an evaluation will find.
struct ExpectedGain {
  uint32_t num_records = 0;  // number of records that have events to test
  double mean = 0;           // mean gain of a record, in units of gain_scale
  double deviation = 0;      // deviation of one record's gain
};
// The probability that `Decide` returns kBetter after so many such evaluations.
double Power(const EvaluationRule& rule, const ExpectedGain& gain, double noise_multiplier, uint32_t evaluations);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_EVALUATION_RULE_H_
