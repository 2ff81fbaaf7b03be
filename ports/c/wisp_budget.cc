// The budget of a ledger, at present and after earlier charges (wisp_deployment.h).
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ports/c/anchor_c.h"
#include "ports/c/status_c.h"
#include "ports/c/wisp_deployment.h"
#include "runtime/personalise/deployment.h"
#include "runtime/privacy/ledger/ledger.h"

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::Guarded;
namespace privacy = wisp::privacy;

struct OpenedLedger {
  privacy::Ledger ledger;
  std::optional<privacy::EpsilonDelta> limit;
  privacy::Delta delta;  // the limit's, or the one asked for
};

Result<OpenedLedger> Open(const char* path, const wisp_anchor* given, double delta) {
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::OpenAnchor(given));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::OpenExisting(path, std::move(anchor.kept), anchor.begins));
  WISP_ASSIGN_OR_RETURN(const auto limit, ledger.Limit());
  WISP_ASSIGN_OR_RETURN(const privacy::Delta at, privacy::Delta::Create(limit ? limit->delta() : delta));
  return OpenedLedger{std::move(ledger), limit, at};
}

double Charged(const privacy::LedgerFigures& figures) { return figures.used ? figures.used->epsilon : std::nan(""); }

Status ReadBudget(const char* path, const wisp_anchor* given, double delta, wisp_budget* out) {
  if (path == nullptr || out == nullptr)
    return InvalidArgument("wisp_budget_read: ledger_path and budget must not be NULL");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_budget"));
  WISP_ASSIGN_OR_RETURN(const OpenedLedger opened, Open(path, given, delta));
  wisp_budget budget{};
  budget.size = sizeof(wisp_budget);
  budget.delta = opened.delta.value();
  budget.epsilon_limit = opened.limit ? opened.limit->epsilon() : std::nan("");
  WISP_ASSIGN_OR_RETURN(const privacy::LedgerFigures figures, opened.ledger.Figures(opened.delta));
  budget.epsilon_stated = figures.stated.epsilon;
  budget.epsilon_charged = Charged(figures);
  WISP_ASSIGN_OR_RETURN(const auto settings, wisp::ReadSettings(opened.ledger));
  if (settings) {
    WISP_ASSIGN_OR_RETURN(const wisp::DeploymentLeft left, wisp::ComputeLeft(opened.ledger, *settings));
    budget.has_plan = 1;
    budget.runs_left = left.runs;
    budget.steps_left = left.steps;
    budget.evaluations_left = left.evaluations, budget.succession_releases_left = left.succession_releases;
    budget.bias_weight_releases_left = left.bias_weight_releases;
  }
  return wisp::ports::FillResult(budget, out, "wisp_budget");
}

Status TellHistory(const char* path, const wisp_anchor* given, double delta, uint32_t most, wisp_on_spent on_spent,
                   void* user_data) {
  if (path == nullptr || on_spent == nullptr)
    return InvalidArgument("wisp_budget_history: ledger_path and on_spent must not be NULL");
  WISP_ASSIGN_OR_RETURN(const OpenedLedger opened, Open(path, given, delta));
  WISP_ASSIGN_OR_RETURN(const auto entries, opened.ledger.Entries());
  constexpr uint32_t kUsual = 50;
  const uint64_t points = std::min<uint64_t>(most == 0 ? kUsual : most, entries.size());
  for (uint64_t point = 1; point <= points; ++point) {
    const uint64_t charges = point * entries.size() / points;
    WISP_ASSIGN_OR_RETURN(const auto states, opened.ledger.StatesWith(charges, opened.delta));
    if (states.empty()) break;
    const privacy::LedgerState& at = states.front();
    const wisp_spent spent{.size = sizeof(wisp_spent),
                           .time_utc = at.entries.back().time_utc.c_str(),
                           .charges = charges,
                           .epsilon_stated = at.figures.stated.epsilon,
                           .epsilon_charged = Charged(at.figures)};
    if (on_spent(user_data, &spent) == 0) break;
  }
  return OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_budget_read(const char* ledger_path, const wisp_anchor* anchor, double delta, wisp_budget* budget,
                           wisp_error* error) {
  return Guarded(error, [&] { return ReadBudget(ledger_path, anchor, delta, budget); });
}

wisp_code wisp_budget_history(const char* ledger_path, const wisp_anchor* anchor, double delta, uint32_t most_points,
                              wisp_on_spent on_spent, void* user_data, wisp_error* error) {
  return Guarded(error, [&] { return TellHistory(ledger_path, anchor, delta, most_points, on_spent, user_data); });
}

}  // extern "C"
