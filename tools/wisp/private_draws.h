// What `wisp recommend --private` and `wisp generate --private` share: the ledger that pays, how far draws lean on the
// model, and what is said of their cost.
//
//   PrivateDraws draws(arguments.priv, arguments.model);
//   WISP_RETURN_IF_ERROR(draws.Read(session, options));  // base and ledger are open, the options are filled in
//   ... PrivateRecommender or PrivateGenerator ...
//   WISP_ASSIGN_OR_RETURN(const auto cost, draws.CostJson(setup));
#ifndef WISP_TOOLS_WISP_PRIVATE_DRAWS_H_
#define WISP_TOOLS_WISP_PRIVATE_DRAWS_H_

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "runtime/decoding/draw_setup.h"
#include "tools/wisp/commands.h"

namespace wisp::tools {

// What an option's word stands for; kInvalidArgument names all of them.
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

class PrivateDraws {
 public:
  // `model`: its path, for messages.
  PrivateDraws(const PrivateDrawArguments& arguments, std::string model) : p_(arguments), model_(std::move(model)) {}

  // What all that draws privately has in common, contexts set before. Opens base and ledger, which `options` then name.
  Status Read(const Session& session, PrivateDrawOptions& options);
  // Once draws are set up and before the first: says if they will say little of the model, if this text may spend the
  // whole limit, if that leaves no room for the whole lifetime, or if the ledger was begun with another.
  Status Begin(const DrawSetup& setup);
  // Once a new limit is written.
  void SayIfRaised() const;
  // A refusal of the ledger, for people. Any other error stays as it is.
  Status InWords(const Status& refused, const DrawSetup& setup, uint64_t draws) const;
  // The same of a text whose lifetime is used up: it names that, and not the budget. Any other error stays as it is.
  Status LifetimeInWords(const Status& refused, const DrawSetup& setup, const char* thing) const;
  // Public numbers only: parameters, charges, what the ledger says.
  Result<nlohmann::ordered_json> CostJson(const DrawSetup& setup) const;
  // For people, what CostJson says: what was drawn is a `thing`, "draw" or "token".
  void PrintCost(const nlohmann::ordered_json& cost, const char* thing, std::FILE* to) const;
  // Says if nothing ends the draws.
  void WarnIfUnlimited(const nlohmann::ordered_json& cost) const;

 private:
  Status CheckStrength(const PrivateDrawOptions& options) const;
  Status CheckMode(DecodingMode mode, bool of_texts) const;
  Status OpenLedger(const DecodingNeed& need, bool of_texts, bool is_decoder);
  Result<DrawGoal> Goal() const;
  // How many more draws the ledger has room for, under the limit that is about to be set; at most `most`.
  Result<uint64_t> DrawsLeft(const DrawSetup& setup, uint64_t most) const;
  // Draws that are charged already, each at the cost of one that is planned.
  Result<uint64_t> ChargedOf(const privacy::Mechanism& planned) const;
  // Of `planned` draws, those that are not charged yet and that the limit has room for.
  Result<uint64_t> LeftOf(const privacy::Mechanism& planned) const;
  static void WarnIfWeak(const DrawSetup& setup);
  Status WarnOfOneText(const DrawSetup& setup) const;
  Status WarnOfLifetime(const DrawSetup& setup) const;
  Status WarnOfOtherLifetime(const DrawSetup& setup) const;

  const PrivateDrawArguments& p_;
  std::string model_;
  std::unique_ptr<Session> base_;
  std::optional<privacy::Ledger> ledger_;
  std::optional<privacy::EpsilonDelta> before_;  // the limit
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_PRIVATE_DRAWS_H_
