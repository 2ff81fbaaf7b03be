#include "runtime/personalise/judge_rule.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/personalise/named_numbers.h"
#include "runtime/privacy/json.h"

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

double Z(const JudgeRule& rule) { return Quantile(rule.error / (2.0 * rule.num_judgings)); }

struct Sums {
  double weights = 0, squared_weights = 0;
};

Sums WeightsOf(const JudgeRule& rule, size_t judgings) {
  Sums sums;
  for (size_t ago = 0; ago < judgings; ++ago) {
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

double RecordNorm() { return std::sqrt(1 + kSquareWeight * kSquareWeight); }

double Judgement::gain_noise() const { return noise_multiplier * RecordNorm(); }
double Judgement::square_noise() const { return gain_noise() / kSquareWeight; }

std::string ToText(const Judgement& judgement) {
  std::string text;
  ForEachField(judgement, [&](const char* name, auto value) { PutNumber(text, name, value); });
  return text;
}

Result<Judgement> JudgementFromText(const std::string& text) {
  Judgement j;
  std::string_view rest = text;
  bool read = true;
  ForEachField(j, [&](const char* name, auto& value) { read = read && TakeNumber(rest, name, value); });
  if (read && rest.empty() && j.noise_multiplier > 0) return j;
  return InvalidData("a judging's result is '", OneLine(text), "', which cannot be read");
}

Status Validate(const JudgeRule& rule) {
  if (!(rule.error > 0 && rule.error < 1))
    return InvalidArgument("the error of judging is ", privacy::DoubleText(rule.error),
                           ", allowed is above 0 and below 1");
  if (!(rule.decay > 0 && rule.decay <= 1))
    return InvalidArgument("the decay of judging is ", privacy::DoubleText(rule.decay),
                           ", allowed is above 0, up to 1");
  return rule.num_judgings > 0 ? OkStatus() : InvalidArgument("there are 0 judgings, allowed are 1 and more");
}

Verdict Decide(const JudgeRule& rule, std::span<const Judgement> judgements) {
  const double z = Z(rule);
  double weights = 0, noise = 0, squares = 0, square_noise = 0;
  Verdict verdict;
  for (size_t t = 0; t < judgements.size(); ++t) {
    const Judgement& j = judgements[t];
    const double w = std::pow(rule.decay, static_cast<double>(judgements.size() - 1 - t));
    weights += w;
    verdict.evidence += w * j.gains;
    squares += w * j.squares;
    noise += w * w * j.gain_noise() * j.gain_noise();
    square_noise += w * w * j.square_noise() * j.square_noise();
  }
  const double spread = std::max(0.0, weights * (squares + z * std::sqrt(square_noise)));
  verdict.threshold = z * std::sqrt(noise + spread);
  if (judgements.empty()) return verdict;
  if (verdict.evidence > verdict.threshold) verdict.kind = Verdict::Kind::kBetter;
  if (verdict.evidence < -verdict.threshold) verdict.kind = Verdict::Kind::kWorse;
  return verdict;
}

Served Serve(const JudgeRule& rule, std::span<const Judgement> judgements) {
  constexpr double kClearly = 2;  // standard deviations
  Served served;
  size_t line = 0;  // the first evaluation since the base was last served again
  for (size_t t = 0; t < judgements.size(); ++t) {
    const Judgement& j = judgements[t];
    served.verdict = Decide(rule, judgements.subspan(line, t + 1 - line));
    served.newest_is_worse = served.verdict.kind == Verdict::Kind::kWorse;
    if (served.newest_is_worse) {
      served.judging.reset();
      line = t + 1;
    }
    if (served.verdict.kind != Verdict::Kind::kBetter) continue;
    const Judgement& before = served.judging ? judgements[*served.judging] : j;
    if (j.gains < before.gains - kClearly * std::hypot(j.gain_noise(), before.gain_noise())) continue;
    served.judging = t;
  }
  return served;
}

double Power(const JudgeRule& rule, const JudgedGain& gain, double noise_multiplier, uint32_t judgings) {
  const double n = gain.num_records, variance = gain.deviation * gain.deviation;
  const Judgement expected{
      .gains = n * gain.mean, .squares = n * (gain.mean * gain.mean + variance), .noise_multiplier = noise_multiplier};
  const Verdict verdict = Decide(rule, std::vector<Judgement>(judgings, expected));
  const Sums w = WeightsOf(rule, judgings);
  const double of_noise = expected.gain_noise() * expected.gain_noise() * w.squared_weights;
  const double deviation = std::sqrt(of_noise + w.weights * w.weights * n * variance);
  return Above((verdict.threshold - verdict.evidence) / deviation);
}

const char* NameOf(Verdict::Kind kind) {
  return kind == Verdict::Kind::kBetter ? "better" : kind == Verdict::Kind::kWorse ? "worse" : "undecided";
}

}  // namespace wisp
