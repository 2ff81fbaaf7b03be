#include "runtime/personalise/make_plan.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "runtime/core/text.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/privacy/json.h"

namespace wisp {
namespace {

// Lists differences, "epsilon is 8, asked for is 4; ...", or is empty.
class Differences {
 public:
  template <class Number>
  void Compare(const char* name, Number there, Number wanted) {
    if (there == wanted) return;
    text_ += std::string(text_.empty() ? "" : "; ") + name + " is " + Shown(there) + ", asked for is " + Shown(wanted);
  }
  // Compares a number that is chosen if it is not requested.
  template <class Number>
  void CompareIf(const char* name, Number there, Number wanted) {
    if (wanted != Number()) Compare(name, there, wanted);
  }
  const std::string& text() const { return text_; }

 private:
  static std::string Shown(double number) { return privacy::DoubleText(number); }
  static std::string Shown(const char* word) { return word; }
  template <class Whole>
  static std::string Shown(Whole number) {
    return std::to_string(number);
  }
  std::string text_;
};

enum class Evaluates { kNone, kLocal, kPrivate };
std::string_view Name(Evaluates evaluates) {
  return evaluates == Evaluates::kNone ? "none" : evaluates == Evaluates::kLocal ? "local" : "private";
}

std::string DescribeDifferences(const PlannedBase& base, const PlanToMake& wanted, const DeploymentSettings& there) {
  const DeploymentRequest& r = wanted.request;
  Differences d;
  d.Compare("epsilon", there.epsilon, r.epsilon);
  d.Compare("delta", there.delta, r.delta);
  d.Compare("the public number of records", there.num_records_public, r.num_records_public);
  d.Compare("the public number of records at the start", there.num_records_at_start, r.num_records_at_start);
  d.Compare("the number of runs", there.runs, r.runs);
  if (there.every > 0)
    d.CompareIf("the hours between runs", static_cast<double>(there.every) / 3600, static_cast<double>(r.every) / 3600);
  d.CompareIf("the number of steps of a run", there.steps_per_run, r.steps_per_run);
  d.CompareIf("the batch", there.expected_batch, r.expected_batch);
  d.CompareIf("the learning rate", there.learning_rate, r.learning_rate);
  const auto evaluates = [](bool any, bool locally) {
    return !any ? Evaluates::kNone : locally ? Evaluates::kLocal : Evaluates::kPrivate;
  };
  const Evaluates is = evaluates(there.evaluations > 0, there.evaluates_locally != 0);
  const Evaluates asked = evaluates(r.evaluations != 0u, r.evaluates_locally);
  if (is != asked) {
    d.Compare("the kind of evaluation", Name(is).data(), Name(asked).data());
  } else if (r.evaluations && is != Evaluates::kNone) {
    d.Compare("the number of evaluations", there.evaluations, std::min(r.runs, *r.evaluations));
  }
  d.Compare("allow_seen of the base", there.allow_seen, base.allow_seen ? 1u : 0u);
  d.Compare("the time until which events train", there.trains_until, r.trains_until);
  return d.text();
}

// The plan in force, and the first of the plans that count: it was made before the first charge.
struct ExistingPlans {
  std::optional<DeploymentSettings> first, now;
  std::string made;  // time of the first, in UTC
};

Result<ExistingPlans> FindPlans(const privacy::Ledger& ledger, uint64_t first_charge) {
  ExistingPlans there;
  WISP_ASSIGN_OR_RETURN(const auto plans, ledger.Plans());
  for (const privacy::LedgerPlan& plan : plans) {
    if (plan.settings.empty()) continue;
    WISP_ASSIGN_OR_RETURN(there.now, ParseDeploymentSettings(plan.settings));
    if (plan.seq < first_charge) there.first = there.now, there.made = plan.time_utc;
  }
  return there;
}

Status Refusal(const std::string& ledger, const std::string& differences, bool is_charged) {
  if (is_charged)
    return PrivacyRefused(
        "ledger '", ledger,
        "' has charges: a plan for a deployment is made before the first of them, or it would promise "
        "nothing. It has another plan than was asked for: ",
        differences, ". What is left of it can be changed (`wisp_plan_change`)");
  return PrivacyRefused("ledger '", ledger, "' has another plan than was asked for: ", differences,
                        ". Nothing was charged under it yet, so it may be replaced, if you say so (`replace`)");
}

// Refuses a new plan beside models of a ledger that is gone, because it would forget what that ledger had spent.
Status CheckNothingTrained(const std::string& ledger, const std::string& output) {
  if (output.empty() || !PlanFiles(output).HasAny()) return OkStatus();
  return PrivacyRefused("ledger '", ledger, "' has no plan, and beside '", output,
                        "' lies what runs trained under one: a new plan would forget what they spent. Put the newest "
                        "copy of the ledger back; or, for another log, name another output");
}

// The existing plan, if it is the requested one; nullopt: a plan may be written.
Result<std::optional<MadePlan>> FindPlan(const privacy::Ledger& ledger, const PlannedBase& base,
                                         const PlanToMake& wanted) {
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
  const bool is_charged = !entries.empty();
  WISP_ASSIGN_OR_RETURN(const ExistingPlans there,
                        FindPlans(ledger, is_charged ? entries.front().seq : std::numeric_limits<uint64_t>::max()));
  if (!there.now) {
    WISP_RETURN_IF_ERROR(CheckNothingTrained(ledger.path(), wanted.output));
    return std::optional<MadePlan>();
  }
  const std::string from_now = DescribeDifferences(base, wanted, *there.now);
  if (from_now.empty() || (there.first && DescribeDifferences(base, wanted, *there.first).empty()))
    return std::optional(MadePlan{.deployment = {.settings = *there.now}, .made_before = there.made});
  if (is_charged || !wanted.replaces) return Refusal(ledger.path(), from_now, is_charged);
  return std::optional<MadePlan>();
}

}  // namespace

Result<MadePlan> MakePlan(privacy::Ledger& ledger, const PlannedBase& base, const PlanToMake& wanted) {
  std::optional<Deployment> deployment;
  for (;;) {
    WISP_ASSIGN_OR_RETURN(const uint64_t newest_row, ledger.NewestRow());
    if (!wanted.dry_run) {
      WISP_ASSIGN_OR_RETURN(const std::optional<MadePlan> there, FindPlan(ledger, base, wanted));
      if (there) return *there;
    }
    if (!deployment) {
      WISP_ASSIGN_OR_RETURN(deployment, PlanDeployment(base.architecture, wanted.request));
      deployment->settings.allow_seen = base.allow_seen ? 1 : 0;
    }
    if (wanted.dry_run) return MadePlan{.deployment = *deployment};
    const Status written = WriteDeployment(ledger, *deployment, wanted.run, newest_row);
    if (written.ok()) return MadePlan{.deployment = *deployment};
    // Finding the noise takes seconds. If another process wrote meanwhile, this call starts again as if it had come
    // after it.
    WISP_ASSIGN_OR_RETURN(const uint64_t now, ledger.NewestRow());
    if (now == newest_row) return written;
  }
}

}  // namespace wisp
