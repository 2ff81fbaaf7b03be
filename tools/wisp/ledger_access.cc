#include "tools/wisp/ledger_access.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/data/texts.h"
#include "runtime/privacy/json.h"
#include "runtime/privacy/ledger/ledger_anchor.h"
#include "runtime/train/run/records.h"

namespace wisp::tools {
void WarnIfRaised(const privacy::Ledger& ledger, const std::optional<privacy::EpsilonDelta>& before) {
  const auto read = ledger.Limit();
  if (!before || !read.ok() || !*read) return;
  const std::optional<privacy::EpsilonDelta>& now = *read;
  // Epsilon and delta both bound what may leak, so a rise in either one is a rise.
  if (now->epsilon() <= before->epsilon() && now->delta() <= before->delta()) return;
  const bool same_delta = now->delta() == before->delta();
  const auto at = [&](const privacy::EpsilonDelta& l) {
    return privacy::DoubleText(l.epsilon()) + (same_delta ? "" : " at delta " + privacy::DoubleText(l.delta()));
  };
  std::fprintf(stderr, "wisp: warning: limit raised from %s to %s\n", at(*before).c_str(), at(*now).c_str());
}

namespace {

struct Spent {
  double epsilon;
  privacy::Delta delta;
  std::optional<privacy::EpsilonDelta> limit;
  bool passes_limit() const { return limit && epsilon > limit->epsilon(); }
};

// Returns the charges at the limit's delta if there is a limit, else at `delta`; nothing without a guarantee.
std::optional<Spent> ComputeSpent(const privacy::Ledger& ledger, double delta) {
  const auto limit = ledger.Limit();
  const bool limited = limit.ok() && *limit;
  const auto at = privacy::Delta::Create(limited ? (*limit)->delta() : delta);
  if (!at.ok()) return std::nullopt;
  const auto spent = ledger.Spent(*at);
  if (!spent.ok() || std::isinf(*spent)) return std::nullopt;
  return Spent{.epsilon = *spent, .delta = *at, .limit = limited ? *limit : std::nullopt};
}

}  // namespace

std::string SpentInWords(const privacy::Ledger& ledger, double delta) {
  const std::optional<Spent> spent = ComputeSpent(ledger, delta);
  if (!spent) return "";
  return "epsilon " + privacy::EpsilonText(spent->epsilon, 6) +
         (spent->limit ? " of " + privacy::DoubleText(spent->limit->epsilon()) : "") + " at delta " +
         privacy::DoubleText(spent->delta.value()) +
         (spent->passes_limit() ? " (the limit was set after a charge: it is enforced, and promises nothing)" : "");
}

nlohmann::ordered_json SpentAsJson(const privacy::Ledger& ledger, double delta) {
  const std::optional<Spent> spent = ComputeSpent(ledger, delta);
  if (!spent) return nullptr;
  nlohmann::ordered_json j = {{"epsilon", spent->epsilon}, {"delta", spent->delta.value()}};
  j["limit"] = spent->limit ? nlohmann::ordered_json(spent->limit->epsilon()) : nlohmann::ordered_json();
  j["limit_is_passed"] = spent->passes_limit();
  return j;
}

void ReportIfUnlimited(const privacy::Ledger& ledger, double delta) {
  const auto limit = ledger.Limit();
  const auto entries = ledger.Entries();
  if (!limit.ok() || *limit || !entries.ok() || entries->empty()) return;
  const bool one = std::all_of(entries->begin(), entries->end(),
                               [&](const privacy::LedgerEntry& e) { return e.run == entries->front().run; });
  const std::string spent = one ? "" : SpentInWords(ledger, delta);
  if (spent.empty()) return;
  std::fprintf(
      stderr,
      "wisp: warning: all runs on this data cost %s together, and its ledger %s has no limit: each run adds to "
      "it, and nothing ends that; --budget sets a limit\n",
      spent.c_str(), ledger.path().c_str());
}

void WarnIfAboveTarget(const JobResult& run, const PrivacyGoal& goal) {
  // Calibration finds an epsilon to within 1e-6 of its target.
  if (run.resumed_from == 0 || !run.epsilon || !goal.epsilon || *run.epsilon <= *goal.epsilon + 1e-6) return;
  std::fprintf(stderr,
               "wisp: warning: the run cost epsilon %s, and its target was %s: it was interrupted and paid for some "
               "steps twice, which the target does not cover; a limit (--budget) does\n",
               privacy::EpsilonText(*run.epsilon).c_str(), privacy::DoubleText(*goal.epsilon).c_str());
}

Result<std::optional<privacy::EpsilonDelta>> NewLimit(const std::optional<double>& budget, double delta) {
  if (!budget) return std::optional<privacy::EpsilonDelta>();
  if (!(*budget > 0))
    return InvalidArgument("--budget is ", privacy::DoubleText(*budget), ", allowed is an epsilon above 0");
  WISP_ASSIGN_OR_RETURN(const auto limit, privacy::EpsilonDelta::Create(*budget, delta));
  return std::optional(limit);
}

Result<std::shared_ptr<privacy::LedgerAnchor>> OpenAnchor(const AnchorArguments& a, const std::string& ledger) {
  if (a.file.empty()) return std::shared_ptr<privacy::LedgerAnchor>();
  WISP_RETURN_IF_ERROR(CheckOutput({"--anchor", a.file}, {{"--ledger", ledger}}));
  return privacy::FileAnchor(a.file);
}

privacy::RecordSpec::Source GetSource(const DataArguments& data) {
  return {.user_column = data.user_column,
          .item_column = data.item_column,
          .time_column = data.time_column,
          .table = data.table};
}

Result<privacy::RecordSpec> MakeRecordSpec(const RunSpec& recipe, const DataArguments& data) {
  if (recipe.text) return privacy::RecordSpec::OfTexts(recipe.unit, data::ToText(recipe.text->unit));
  return MakeEventRecord({.unit = recipe.unit,
                          .session_gap = recipe.session_gap,
                          .times_per_second = recipe.times_per_second,
                          .source = GetSource(data)});
}

Result<LedgerToTrain> OpenRunLedger(const std::string& path, const AnchorArguments& a,
                                    const privacy::RecordSpec& record, bool unit_chosen) {
  LedgerToTrain ledger{
      .path = path, .anchor = nullptr, .begin_anchor = a.begin, .record = record, .unit_chosen = unit_chosen};
  if (path.empty()) return ledger;
  WISP_ASSIGN_OR_RETURN(ledger.anchor, OpenAnchor(a, path));
  return ledger;
}

}  // namespace wisp::tools
