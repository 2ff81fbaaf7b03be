#include "tools/wisp/ledger_access.h"

#include <cstdio>
#include <filesystem>

namespace wisp::tools {
namespace {

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

}  // namespace

Result<std::string> LedgerDataset(const std::string& path, const std::string& given, const std::string& otherwise) {
  std::error_code error;
  const bool is_new = !std::filesystem::exists(path, error) || std::filesystem::is_empty(path, error);
  if (path.empty() || is_new) return given.empty() ? otherwise : given;
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(path));
  const std::string& name = ledger.dataset();
  if (name.empty()) return given.empty() ? otherwise : given;
  if (given.empty() || given == name) return name;
  return PrivacyRefused("ledger '" + path + "' is of the data set '" + name + "', --dataset is '" + given +
                        "': what is spent on one must not be counted for the other; give --dataset '" + name +
                        "' if it is the same data, else a ledger of its own");
}

Status SayIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before) {
  WISP_ASSIGN_OR_RETURN(const auto now, ledger.Limit());
  // Either number bounds what may come out: more of one is more, whatever the other.
  if (!before || !now || (now->epsilon() <= before->epsilon() && now->delta() <= before->delta())) return OkStatus();
  const bool same_delta = now->delta() == before->delta();
  const auto at = [&](const privacy::EpsilonDelta& l) { return Short(l.epsilon()) + (same_delta ? "" : " at delta " + Short(l.delta())); };
  std::fprintf(stderr, "limit raised from %s to %s\n", at(*before).c_str(), at(*now).c_str());
  return OkStatus();
}

Status SetBudget(privacy::Ledger& ledger, const privacy::EpsilonDelta& limit) {
  WISP_RETURN_IF_ERROR(ledger.CheckLimit(limit));
  WISP_ASSIGN_OR_RETURN(const auto before, ledger.Limit());
  WISP_RETURN_IF_ERROR(ledger.SetLimit(limit));
  return SayIfRaised(ledger, before);
}

Result<privacy::Ledger> OpenLedgerToTrain(const LedgerToTrain& l) {
  if (l.path.empty()) return PrivacyRefused("private training needs --ledger: the file that remembers what this data set's privacy was spent on");
  // Before --budget is written down: what is refused changes no limit.
  if (l.budget && l.num_records_public > 0) WISP_RETURN_IF_ERROR(CheckPrivacyGoal(l.goal, l.num_records_public));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(l.path, {.dataset = l.dataset, .unit = l.unit}));
  if (!l.budget) return ledger;
  WISP_ASSIGN_OR_RETURN(const auto limit, privacy::EpsilonDelta::Create(*l.budget, l.goal.delta));
  WISP_RETURN_IF_ERROR(SetBudget(ledger, limit));
  return ledger;
}

}  // namespace wisp::tools
