#include "runtime/personalise/evaluation_rule.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/named_numbers.h"

namespace wisp {
namespace {

double Above(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }  // tail of a standard normal

// The point above which a standard normal has this probability; by bisection.
double Quantile(double above) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (Above(middle) > above ? low : high) = middle;
  }
  return high;
}

double Z(const EvaluationRule& rule) { return Quantile(rule.error / (2.0 * rule.num_evaluations)); }

struct Sums {
  double weights = 0, squared_weights = 0;
};

Sums ComputeWeights(const EvaluationRule& rule, size_t evaluations) {
  Sums sums;
  for (size_t ago = 0; ago < evaluations; ++ago) {
    const double w = std::pow(rule.decay, static_cast<double>(ago));
    sums.weights += w;
    sums.squared_weights += w * w;
  }
  return sums;
}

// Calls `field` with the name and the value of each field, in the order of the text.
template <class J, class Use>
void ForEachField(J& j, const Use& field) {
  field("gains", j.gains);
  field("squares", j.squares);
  field("noise_multiplier", j.noise_multiplier);
  field("base", j.base);
  field("candidate", j.candidate);
  field("line", j.line);
}

}  // namespace

double Evaluation::gain_noise() const { return noise_multiplier * RecordNorm(); }
double Evaluation::square_noise() const { return gain_noise() / kSquareWeight; }

std::string ToText(const Evaluation& evaluation) {
  std::string text;
  ForEachField(evaluation, [&](const char* name, auto value) { privacy::PutNumber(text, name, value); });
  return text;
}

Result<Evaluation> ParseEvaluation(const std::string& text) {
  Evaluation j;
  std::string_view rest = text;
  bool read = true;
  ForEachField(j, [&](const char* name, auto& value) { read = read && privacy::TakeNumber(rest, name, value); });
  if (read && rest.empty() && j.noise_multiplier > 0) return j;
  return InvalidData("an evaluation's result is '", OneLine(text), "', which cannot be read");
}

Status Validate(const EvaluationRule& rule) {
  if (!(rule.error > 0 && rule.error < 1))
    return InvalidArgument("the error of the evaluation rule is ", privacy::DoubleText(rule.error),
                           ", allowed is above 0 and below 1");
  if (!(rule.decay > 0 && rule.decay <= 1))
    return InvalidArgument("the decay of the evaluation rule is ", privacy::DoubleText(rule.decay),
                           ", allowed is above 0, up to 1");
  return rule.num_evaluations > 0 ? OkStatus() : InvalidArgument("there are 0 evaluations, allowed are 1 and more");
}

Verdict Decide(const EvaluationRule& rule, std::span<const Evaluation> evaluations) {
  const double z = Z(rule);
  double weights = 0, noise = 0, squares = 0, square_noise = 0;
  Verdict verdict;
  for (size_t t = 0; t < evaluations.size(); ++t) {
    const Evaluation& j = evaluations[t];
    const double w = std::pow(rule.decay, static_cast<double>(evaluations.size() - 1 - t));
    weights += w;
    verdict.evidence += w * j.gains;
    squares += w * j.squares;
    noise += w * w * j.gain_noise() * j.gain_noise();
    square_noise += w * w * j.square_noise() * j.square_noise();
  }
  const double spread = std::max(0.0, weights * (squares + z * std::sqrt(square_noise)));
  verdict.threshold = z * std::sqrt(noise + spread);
  if (evaluations.empty()) return verdict;
  if (verdict.evidence > verdict.threshold) verdict.kind = Verdict::Kind::kBetter;
  if (verdict.evidence < -verdict.threshold) verdict.kind = Verdict::Kind::kWorse;
  return verdict;
}

Served Serve(const EvaluationRule& rule, std::span<const Evaluation> evaluations) {
  constexpr double kClearly = 2;  // standard deviations
  Served served;
  size_t line = 0;  // the first evaluation since the base was last served again
  for (size_t t = 0; t < evaluations.size(); ++t) {
    const Evaluation& j = evaluations[t];
    served.verdict = Decide(rule, evaluations.subspan(line, t + 1 - line));
    served.newest_is_worse = served.verdict.kind == Verdict::Kind::kWorse;
    if (served.newest_is_worse) {
      served.evaluation.reset();
      line = t + 1;
    }
    if (served.verdict.kind != Verdict::Kind::kBetter) continue;
    const Evaluation& before = served.evaluation ? evaluations[*served.evaluation] : j;
    if (j.gains < before.gains - kClearly * std::hypot(j.gain_noise(), before.gain_noise())) continue;
    served.evaluation = t;
  }
  return served;
}

double Power(const EvaluationRule& rule, const ExpectedGain& gain, double noise_multiplier, uint32_t evaluations) {
  const double n = gain.num_records, variance = gain.deviation * gain.deviation;
  const Evaluation expected{
      .gains = n * gain.mean, .squares = n * (gain.mean * gain.mean + variance), .noise_multiplier = noise_multiplier};
  const Verdict verdict = Decide(rule, std::vector<Evaluation>(evaluations, expected));
  const Sums w = ComputeWeights(rule, evaluations);
  const double of_noise = expected.gain_noise() * expected.gain_noise() * w.squared_weights;
  const double deviation = std::sqrt(of_noise + w.weights * w.weights * n * variance);
  return Above((verdict.threshold - verdict.evidence) / deviation);
}

const char* GetName(Verdict::Kind kind) {
  return kind == Verdict::Kind::kBetter ? "better" : kind == Verdict::Kind::kWorse ? "worse" : "undecided";
}

}  // namespace wisp
