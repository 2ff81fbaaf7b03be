// What noised sums of gains say: whether the candidates of some judgings were better than the base for people in
// general, at a stated chance of being wrong; and how likely it is that a difference of some size would be found.
//
// Claim of kBetter: the judged candidates' mean gains, weighted as below, are above 0 for the population from which the
// records that judge were drawn. Let w_t = decay^(nights ago), W their sum, S_t and M_t the noised sums of gains and of
// their squares, nu the noise on S_t, z the quantile of the normal distribution for `error` / (2 num_judgings):
//     evidence  = sum w_t S_t
//     spread    = W sum w_t M_t + z W sqrt(sum w_t^2) nu / kSquareWeight, at least 0
//     threshold = z sqrt(nu^2 sum w_t^2 + spread)
// The same records judge each night, so their errors do not average out over nights: with G_i = sum_t w_t g_it,
// sum_i G_i^2 <= W sum_t w_t sum_i g_it^2 (Cauchy and Schwarz). Without a gain, sum_i G_i exceeds z sqrt(sum_i G_i^2)
// with a chance of about that of z (a self-normalised sum), and the spread is below its bound with the same chance. All
// of it over num_judgings looks: `error` is that of ever being wrong. kWorse is the same of -evidence.
#ifndef WISP_RUNTIME_PERSONALISE_JUDGE_RULE_H_
#define WISP_RUNTIME_PERSONALISE_JUDGE_RULE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/core/status.h"

namespace wisp {

// What a judging releases of squares of gains, beside the gains: so small that both together are hardly longer than
// the gain alone.
inline constexpr double kSquareWeight = 0.25;

// What one record adds is no longer than this, with a gain of 1.
double RecordNorm();

struct Judgement {
  double gains = 0, squares = 0;  // noised sums over the records that judge; a gain is from -1 to 1
  double noise_multiplier = 0;
  uint64_t base = 0, candidate = 0;  // ModelFile::content_hash() of what was compared; 0 where nobody said
  uint64_t line = 0;                 // of training, of which the candidate is (line.h); 0 where nobody said

  double gain_noise() const;    // nu: standard deviation of the noise on `gains`
  double square_noise() const;  // and on `squares`
  bool operator==(const Judgement&) const = default;
};

// "gains=1.5 squares=3 noise_multiplier=4 base=1 candidate=2 line=3", and back; kInvalidData for anything else.
std::string ToText(const Judgement& judgement);
Result<Judgement> JudgementFromText(const std::string& text);

struct JudgeRule {
  double error = 0.05;        // the chance of ever taking what is not better for better; above 0, below 1
  uint32_t num_judgings = 1;  // looks over the whole life, planned beforehand
  double decay = 1;           // weight of a judging against that of the next one; above 0, up to 1
};
Status Validate(const JudgeRule& rule);

struct Verdict {
  enum class Kind { kUndecided, kBetter, kWorse } kind = Kind::kUndecided;
  double evidence = 0, threshold = 0;
};
// "better", "worse", "undecided".
const char* NameOf(Verdict::Kind kind);

// Of judgings from the oldest to the newest, all against one base. The rule must be valid.
Verdict Decide(const JudgeRule& rule, std::span<const Judgement> judgements);

// What people are to be served after some judgings, by their numbers: the newest candidate with which they were found
// better, unless its own gain is clearly below that of the one that was served before. Where they are found worse, the
// base is served, and what was judged until then counts no more: training may go through worse models to better ones
// (docs/personalise.md).
struct Served {
  std::optional<size_t> judging;  // none: the base
  bool newest_is_worse = false;   // and nothing was judged since
  Verdict verdict;                // after the newest judging
};
Served Serve(const JudgeRule& rule, std::span<const Judgement> judgements);

// What a judging meets: a public guess.
struct JudgedGain {
  uint32_t num_records = 0;  // that judge
  double mean = 0;           // gain of a record, of the scale that counts as 1
  double deviation = 0;      // of one record's gain
};
// The chance that `Decide` says kBetter after so many such judgings.
double Power(const JudgeRule& rule, const JudgedGain& gain, double noise_multiplier, uint32_t judgings);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_JUDGE_RULE_H_
