// Parts that `wisp recommend --private` and `wisp generate --private` share: the ledger that pays, how much samples
// depend on the model, and the report of their cost.
//
//   PrivateSamples samples(arguments.priv, arguments.model);
//   WISP_RETURN_IF_ERROR(samples.Read(session, options));  // base and ledger are open, the options are filled in
//   ... PrivateRecommender or PrivateGenerator ...
//   WISP_ASSIGN_OR_RETURN(const auto cost, samples.CostJson(setup));
#ifndef WISP_TOOLS_WISP_PRIVATE_SAMPLES_H_
#define WISP_TOOLS_WISP_PRIVATE_SAMPLES_H_

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "runtime/private_sampling/sampling_setup.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// Returns the value that an option's word stands for; kInvalidArgument names all words.
template <class T>
Result<T> Choice(const char* option, const std::string& text,
                 std::initializer_list<std::pair<const char*, T>> choices) {
  std::string allowed;
  for (const auto& [name, value] : choices) {
    if (text == name) return value;
    allowed += std::string(allowed.empty() ? "" : ", ") + name;
  }
  return InvalidArgument(option, " is '", text, "', allowed are ", allowed);
}

class PrivateSamples {
 public:
  // `model` is its path, for messages.
  PrivateSamples(const PrivateSampleArguments& arguments, std::string model)
      : p_(arguments), model_(std::move(model)) {}

  // Fills in the options that all private sampling shares; `contexts` must be set before. Opens base and ledger, to
  // which `options` then points.
  Status Read(const Session& session, PrivateSampleOptions& options);
  // Call it after the setup and before the first sample. It warns if samples will depend little on the model, if this
  // text may spend the whole limit, if the limit does not cover the planned number, or if the ledger was begun with
  // another one.
  Status Begin(const SamplingSetup& setup);
  // Call it after a new limit is written.
  void WarnIfRaised() const;
  // Rewrites a refusal of the ledger for people. Any other error stays unchanged.
  Status InWords(const Status& refused, const SamplingSetup& setup, uint64_t samples) const;
  // Rewrites the refusal of a text when the planned number is used up, so that it names that number and not the budget.
  // Any other error stays unchanged.
  Status PlanInWords(const Status& refused, const SamplingSetup& setup, const char* thing) const;
  // Uses public numbers only: parameters, charges, and the ledger's own figures.
  Result<nlohmann::ordered_json> CostJson(const SamplingSetup& setup) const;
  // Prints for people what CostJson says. `thing` is what was sampled: "sample" or "token".
  void PrintCost(const nlohmann::ordered_json& cost, const char* thing, std::FILE* to) const;
  // Warns if nothing limits the number of samples.
  void WarnIfUnlimited(const nlohmann::ordered_json& cost) const;

 private:
  Status CheckStrength(const PrivateSampleOptions& options) const;
  Status CheckMode(DecodingMode mode, bool of_texts) const;
  Status OpenLedger(const DecodingNeed& need, bool of_texts, bool is_decoder);
  Result<SampleGoal> Goal() const;
  // Returns how many more samples the limit that is about to be set allows; at most `most`.
  Result<uint64_t> SamplesLeft(const SamplingSetup& setup, uint64_t most) const;
  // Returns the number of samples that are charged already, each at the cost of a planned one.
  Result<uint64_t> CountCharged(const privacy::Mechanism& planned) const;
  // Returns how many of the `planned` samples are not charged yet and fit under the limit.
  Result<uint64_t> ComputeLeft(const privacy::Mechanism& planned) const;
  static void WarnIfWeak(const SamplingSetup& setup);
  Status WarnOfOneText(const SamplingSetup& setup) const;
  Status WarnOfPlan(const SamplingSetup& setup) const;
  Status WarnOfOtherPlan(const SamplingSetup& setup) const;

  const PrivateSampleArguments& p_;
  std::string model_;
  std::unique_ptr<Session> base_;
  std::optional<privacy::Ledger> ledger_;
  std::optional<privacy::EpsilonDelta> before_;  // the limit
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_PRIVATE_SAMPLES_H_
