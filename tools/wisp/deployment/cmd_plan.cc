// Implements `wisp plan`.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/make_plan.h"
#include "runtime/personalise/plan_change.h"
#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/json.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/records.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/deployment/check_options.h"
#include "tools/wisp/deployment/duration.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/deployment/plan_gains.h"
#include "tools/wisp/option_names.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

struct Times {
  uint32_t runs;
  uint64_t every;  // seconds
};

Result<Times> GetTimes(const PlanArguments& a) {
  WISP_ASSIGN_OR_RETURN(const uint64_t whole, ParseDuration("--for", a.duration));
  const std::string every = a.every.empty() ? "1 day" : a.every;
  WISP_ASSIGN_OR_RETURN(const uint64_t each, ParseDuration("--every", every));
  constexpr uint64_t kMostRuns = 1'000'000;
  const uint64_t runs = whole / each;
  if (runs == 0 || runs > kMostRuns)
    return InvalidArgument("--for ", a.duration, " has ", runs, " times --every ", every, ", allowed are 1 to ",
                           kMostRuns);
  return Times{static_cast<uint32_t>(runs), each};
}

Result<DeploymentRequest> MakeRequest(const PlanArguments& a) {
  std::string missing;
  const auto need = [&](bool given, const char* option) {
    if (!given) missing += (missing.empty() ? "" : ", ") + std::string(option);
  };
  need(a.epsilon.has_value(), "--epsilon");
  need(a.unit.has_value(), "--unit");
  need(a.num_records_public.has_value(), "--num-records-public");
  need(!a.duration.empty(), "--for");
  if (!missing.empty())
    return InvalidArgument(
        "wisp plan needs --epsilon, --unit (what one record is, which is protected as a whole: user, session or day), "
        "--num-records-public and --for; missing is ",
        missing, "; or give --left, for the plan that there is");
  DeploymentRequest r{.num_records_public = *a.num_records_public,
                      .num_records_at_start = a.num_records_at_start,
                      .epsilon = *a.epsilon};
  r.delta = a.delta.value_or(std::min(1e-5, 0.1 / *a.num_records_public));
  WISP_ASSIGN_OR_RETURN(const Times times, GetTimes(a));
  r.runs = times.runs, r.every = times.every;
  r.steps_per_run = a.steps.value_or(0);
  r.expected_batch = a.expected_batch.value_or(0);
  r.learning_rate = a.learning_rate.value_or(0);
  r.evaluations = a.evaluation == "none" ? 0 : a.evaluations;
  r.evaluates_locally = a.evaluation == "local";
  if (!a.trains_until.empty()) {
    WISP_ASSIGN_OR_RETURN(r.trains_until, ParseMoment("--trains-until", a.trains_until));
  }
  return r;
}

// Returns the cost of training in one session, if it were all that ever happened.
Result<double> ComputeRunCost(const Architecture& architecture, const DeploymentSettings& s) {
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(s.delta));
  WISP_ASSIGN_OR_RETURN(const auto planned_run, RunMechanisms(architecture, s));
  WISP_ASSIGN_OR_RETURN(const privacy::StatedEpsilon stated, privacy::StateEpsilon(planned_run, delta));
  return stated.epsilon;
}

const char* GetKind(Outlook::Kind kind) {
  switch (kind) {
    case Outlook::Kind::kGain:
      return "gain";
    case Outlook::Kind::kSomeGain:
      return "some gain";
    case Outlook::Kind::kHopeless:
      return "hopeless";
    case Outlook::Kind::kNewItems:
      return "new items only";
  }
  return "";
}

struct Planned {
  DeploymentSettings settings;
  Outlook outlook;
  std::vector<GainAt> gains;  // with other numbers of people and other epsilons; empty: not asked for
  double epsilon_of_run = 0;
  size_t bytes = 0;
  DeploymentTime time;
  std::optional<std::string> made_before;  // the date of a plan that was there before
};

// Private evaluation does not look at a person's other records: they would make one record's gain depend on them.
std::string DescribeOneRecordLists(privacy::PrivacyUnit unit) {
  const std::string record(privacy::ToText(unit));
  return "each " + record +
         " is evaluated by itself: its lists follow its own events only, and leave out only their items. " +
         "Ask for lists with the events of the current " + record +
         " as history; with a longer one the model that was found better may be worse. wisp evaluate --unit " + record +
         " measures a model in the same way";
}

Json ToJson(const Planned& p, const std::string& ledger, privacy::PrivacyUnit unit) {
  const DeploymentSettings& s = p.settings;
  Json j = {{"ledger", ledger},
            {"unit", std::string(privacy::ToText(unit))},
            {"epsilon", s.epsilon},
            {"delta", s.delta},
            {"runs", s.runs},
            {"steps_per_run", s.steps_per_run},
            {"expected_batch", s.expected_batch},
            {"num_records_public", s.num_records_public},
            {"training_noise", s.training_noise},
            {"bias_weight_releases", s.bias_weight_releases},
            {"bias_weight_share", s.bias_weight_share},
            {"bias_weight_noise", s.bias_weight_noise},
            {"succession_releases", s.succession_releases},
            {"succession_share", s.succession_share},
            {"succession_noise", s.succession_noise},
            {"epsilon_of_one_run", p.epsilon_of_run},
            {"evaluations", s.evaluations},
            {"evaluation_noise", s.evaluation_noise},
            {"evaluates_locally", s.evaluates_locally != 0},
            {"allow_seen", s.allow_seen != 0},
            {"trains_until", s.trains_until},
            {"learning_rate", s.learning_rate},
            {"shrinks_changes", s.shrinks_changes != 0},
            {"noise_to_signal", p.outlook.noise_to_signal},
            {"noise_of_an_item", p.outlook.noise_of_an_item},
            {"succession_signal", p.outlook.succession_signal},
            {"outlook", GetKind(p.outlook.kind)},
            {"expected", Describe(p.outlook.expected)},
            {"bytes", p.bytes},
            {"cpu_seconds_of_run", p.time.cpu_of_run},
            {"seconds_of_run", p.time.wall_of_run},
            {"cpu_seconds_of_evaluation", p.time.cpu_of_evaluation},
            {"seconds_of_evaluation", p.time.wall_of_evaluation}};
  j["power"] = Json::array();
  for (const Outlook::PowerRow& row : p.outlook.power)
    j["power"].push_back({{"gain", row.gain},
                          {"after_first", row.after_first},
                          {"after_half", row.after_half},
                          {"after_all", row.after_all},
                          {"by_weight", row.by_weight}});
  if (!p.gains.empty()) j["gains"] = GainsToJson(p.gains);
  j["advice"] = p.outlook.advice;
  if (p.made_before) j["made_before"] = *p.made_before;
  return j;
}

// The NDCG@10 of a list that holds the wanted item at each of its ten places with the same probability.
constexpr double kHitNdcg = 0.4544;

std::string Percent(double share) {
  const double percent = 100 * share;
  return percent > 99.5 && share < 1 ? ">99 %" : Fixed(percent, 0) + " %";
}

void PrintEvaluation(const Planned& p) {
  const DeploymentSettings& s = p.settings;
  if (s.evaluations == 0) {
    PrintText("evaluates nothing: the newest model is served, better or not\n");
    return;
  }
  if (s.evaluates_locally != 0) {
    PrintText(
        "evaluates locally: later events decide each run, without noise and without a charge. Whoever sees which "
        "model\n"
        "          is served, or what it recommends, learns something of the records\n");
    return;
  }
  PrintText("evaluates %s with noise %s; wrong at any time in at most %s of deployments\n",
            s.evaluations == 1 ? "once" : (Thousands(s.evaluations) + " times").c_str(),
            privacy::ShortText(s.evaluation_noise).c_str(), Percent(s.error).c_str());
  PrintText("          each uses the events %s\n",
            s.trains_until != 0
                ? "after the day of --trains-until; earlier events train"
                : "after the previous evaluation, by the log's times. A log\n"
                  "          without times, or one that does not grow, finds nothing better: divide it by a day "
                  "(--trains-until)");
  // The first evaluation may be the last one, or the one in the middle.
  std::map<uint32_t, double Outlook::PowerRow::*> shown = {{1, &Outlook::PowerRow::after_first}};
  shown.insert(
      {{(s.evaluations + 1) / 2, &Outlook::PowerRow::after_half}, {s.evaluations, &Outlook::PowerRow::after_all}});
  if (p.outlook.power.empty()) return;
  PrintText("          the chance, if each record has an event in the time of each, that so many\n");
  PrintText("          more of 100 choices in the lists are found                        ");
  for (const auto& [evaluations, chance] : shown) PrintText("   %8s", ("after " + std::to_string(evaluations)).c_str());
  if (s.bias_weight_releases > 0) PrintText("   %8s", "by weight");
  for (const Outlook::PowerRow& row : p.outlook.power) {
    PrintText("\n          %37.0f (a gain of %5.3f in NDCG@10)", 100 * row.gain / kHitNdcg, row.gain);
    for (const auto& [evaluations, chance] : shown) PrintText("   %8s", Percent(row.*chance).c_str());
    if (s.bias_weight_releases > 0) PrintText("   %8s", Percent(row.by_weight).c_str());
  }
  PrintText("\n");
}

void Print(const Planned& p, const std::string& ledger, privacy::PrivacyUnit unit) {
  const DeploymentSettings& s = p.settings;
  const auto text = [](double number) { return privacy::ShortText(number); };
  PrintText("plan      %s: %s of %s%s, of about %s of %s records each\n", ledger.c_str(),
            FormatCount(s.runs, "run").c_str(), FormatCount(s.steps_per_run, "step").c_str(),
            s.num_records_at_start > 0 ? " on average, more with more records" : "",
            Thousands(s.expected_batch).c_str(), Thousands(s.num_records_public).c_str());
  PrintText("privacy   epsilon %s at delta %s over all of them, for every %s; one run alone: %s\n",
            text(s.epsilon).c_str(), text(s.delta).c_str(), std::string(privacy::ToText(unit)).c_str(),
            privacy::EpsilonText(p.epsilon_of_run, 3).c_str());
  PrintText("noise     %s times the clipping norm a step\n", text(s.training_noise).c_str());
  const auto times = [](uint32_t releases) {
    return releases == 1 ? std::string("once") : Thousands(releases) + " times";
  };
  if (s.bias_weight_releases > 0)
    PrintText("weighs    the output bias anew, %s, with noise %s\n", times(s.bias_weight_releases).c_str(),
              text(s.bias_weight_noise).c_str());
  if (s.succession_releases > 0)
    PrintText("counts    which item follows which, %s, with noise %s\n", times(s.succession_releases).c_str(),
              text(s.succession_noise).c_str());
  PrintEvaluation(p);
  PrintText("takes     %s, and %s a run (%s of processor time); an evaluation %s (%s)\n", Megabytes(p.bytes).c_str(),
            Duration(p.time.wall_of_run).c_str(), Duration(p.time.cpu_of_run).c_str(),
            Duration(p.time.wall_of_evaluation).c_str(), Duration(p.time.cpu_of_evaluation).c_str());
  PrintText("brings    %s%s %s (docs/gains.md)\n", GetKind(p.outlook.kind),
            p.outlook.expected.is_near ? ":" : " by its noise;", Describe(p.outlook.expected).c_str());
  PrintText("          noise to signal %s; of one item, with %u events a record, %s%s\n",
            text(p.outlook.noise_to_signal).c_str(), p.outlook.typical_events, text(p.outlook.noise_of_an_item).c_str(),
            s.succession_releases > 0 ? ("; the counts' signal to noise " + text(p.outlook.succession_signal)).c_str()
                                      : "");
  if (!p.gains.empty()) PrintGains(p.gains);
  for (const std::string& advice : p.outlook.advice) PrintText("advice    %s\n", advice.c_str());
}

Result<privacy::Ledger> LedgerForPlan(const PlanArguments& a, const ModelFile& base, const ChosenUnit& unit) {
  const std::string path = LedgerPath(a.deployment);
  FineTuneStart start{
      .base = &base, .base_path = a.deployment.model, .dataset = GetDataset(a.deployment), .run = "plan"};
  const privacy::RecordSpec record = privacy::RecordSpec::OfEvents({.unit = unit.unit,
                                                                    .session_gap = a.session_gap,
                                                                    .times_per_second = a.times_per_second,
                                                                    .source = GetSource(a.deployment.data)});
  WISP_ASSIGN_OR_RETURN(start.ledger, OpenRunLedger(path, a.deployment.anchor, record, unit.chosen));
  return OpenLedgerToTrain(start);
}

Status PrintLeft(const PlanArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const auto anchor, OpenAnchor(a.deployment.anchor, LedgerPath(a.deployment)));
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger,
                        privacy::Ledger::OpenExisting(LedgerPath(a.deployment), anchor, a.deployment.anchor.begin));
  WISP_ASSIGN_OR_RETURN(const DeploymentSettings settings, RequireSettings(ledger));
  WISP_ASSIGN_OR_RETURN(const DeploymentLeft left, ComputeLeft(ledger, settings));
  Json j = {{"ledger", ledger.path()},  {"runs", settings.runs},       {"runs_left", left.runs},
            {"steps_left", left.steps}, {"epsilon", settings.epsilon}, {"epsilon_beside_the_plan", left.epsilon}};
  if (settings.bias_weight_releases > 0) j["bias_weight_releases_left"] = left.bias_weight_releases;
  if (settings.succession_releases > 0) j["succession_releases_left"] = left.succession_releases;
  if (EvaluatesPrivately(settings)) j["evaluations_left"] = left.evaluations;
  if (format == OutputFormat::kJson) {
    PrintJson(j);
    return OkStatus();
  }
  PrintText("%s: of %s %s are left (%s)%s; epsilon %s of the limit is beside the plan\n", ledger.path().c_str(),
            FormatCount(settings.runs, "run").c_str(), Thousands(left.runs).c_str(),
            FormatCount(left.steps, "step").c_str(), EvaluationsLeft(settings, left, ", and ").c_str(),
            privacy::ShortText(left.epsilon).c_str());
  return OkStatus();
}

Json ToJson(const DeploymentSettings& s, uint64_t steps_left, double noise_to_signal) {
  return {{"steps_left", steps_left},
          {"expected_batch", s.expected_batch},
          {"num_records_public", s.num_records_public},
          {"training_noise", s.training_noise},
          {"learning_rate", s.learning_rate},
          {"noise_to_signal", noise_to_signal}};
}

void Print(const ChangedDeployment& deployment, const Json& before, const Json& now) {
  const auto text = [](const Json& number) { return privacy::ShortText(number.get<double>()); };
  PrintText("%-22s %14s %14s\n", "", "until now", "from now on");
  for (const auto& [key, name] :
       std::vector<std::pair<const char*, const char*>>{{"steps_left", "steps to come"},
                                                        {"expected_batch", "records a step"},
                                                        {"num_records_public", "records"},
                                                        {"training_noise", "noise a step"},
                                                        {"learning_rate", "learning rate"},
                                                        {"noise_to_signal", "noise to signal"}})
    PrintText("%-22s %14s %14s\n", name, text(before.at(key)).c_str(), text(now.at(key)).c_str());
  PrintText("%s of %s are to come. %s\n", FormatCount(deployment.settings.runs, "run").c_str(),
            FormatCount(deployment.settings.steps_per_run, "step").c_str(),
            deployment.is_free
                ? "It costs nothing: the steps are those that were planned."
                : "Steps of another kind go through the filter: the limit stays as it is, and the noise is "
                  "the least with which all of it fits.");
}

Status Change(const PlanArguments& a, OutputFormat format) {
  if (a.duration.empty() || a.every.empty())
    return InvalidArgument("wisp plan --change needs --for, how long the rest of the deployment is, and --every");
  WISP_ASSIGN_OR_RETURN(const Times times, GetTimes(a));
  const std::string path = LedgerPath(a.deployment);
  WISP_ASSIGN_OR_RETURN(const auto anchor, OpenAnchor(a.deployment.anchor, path));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::OpenExisting(path, anchor, a.deployment.anchor.begin));
  WISP_ASSIGN_OR_RETURN(const DeploymentSettings settings, RequireSettings(ledger));
  WISP_RETURN_IF_ERROR(CheckChange(a, settings, times.runs));
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(a.deployment.model, Verify::kFull));
  const Architecture& architecture = base.architecture();
  WISP_ASSIGN_OR_RETURN(const ChangedDeployment deployment,
                        ChangeDeployment(PlannedBase(base), ledger, settings,
                                         {.runs = times.runs,
                                          .steps_per_run = a.steps.value_or(0),
                                          .expected_batch = a.expected_batch.value_or(0),
                                          .num_records_public = a.num_records_public.value_or(0),
                                          .learning_rate = a.learning_rate.value_or(0),
                                          .every = times.every}));
  if (!a.dry_run) WISP_RETURN_IF_ERROR(WriteChange(ledger, deployment, "plan " + Timestamp()));
  const Json before = ToJson(settings, deployment.before.steps, NoiseToSignal(architecture, settings));
  const uint64_t to_come = deployment.is_free ? deployment.before.steps : deployment.settings.num_steps();
  const Json now = ToJson(deployment.settings, to_come, NoiseToSignal(architecture, deployment.settings));
  if (format == OutputFormat::kJson) {
    const Json j = {{"ledger", path},
                    {"runs", deployment.settings.runs},
                    {"steps_per_run", deployment.settings.steps_per_run},
                    {"free", deployment.is_free},
                    {"until_now", before},
                    {"from_now_on", now}};
    PrintJson(j);
    return OkStatus();
  }
  Print(deployment, before, now);
  PrintText("written   %s\n", a.dry_run ? "nothing: --dry-run" : (path + ", the ledger of this plan").c_str());
  return OkStatus();
}

}  // namespace

Status PlanCommand(const PlanArguments& a, OutputFormat format) {
  if (a.left) return PrintLeft(a, format);
  if (a.change) return Change(a, format);
  WISP_ASSIGN_OR_RETURN(const DeploymentRequest request, MakeRequest(a));
  WISP_RETURN_IF_ERROR(CheckPlan(a, request));
  WISP_ASSIGN_OR_RETURN(const ChosenUnit unit, UnitChosen(a.unit));
  WISP_RETURN_IF_ERROR(CheckedUnits(unit.unit, a.session_gap, a.times_per_second).status());
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(a.deployment.model, Verify::kFull));
  const std::string path = LedgerPath(a.deployment);
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, LedgerForPlan(a, base, unit));
  WISP_ASSIGN_OR_RETURN(
      const MadePlan made,
      MakePlan(ledger, PlannedBase(base),
               {.request = request, .run = "plan " + Timestamp(), .replaces = a.replace, .dry_run = a.dry_run}));
  const DeploymentSettings& settings = made.deployment.settings;
  Planned planned{.settings = settings,
                  .outlook = MakeOutlook(base.architecture(), settings, a.typical_events, unit.unit),
                  .made_before = made.made_before};
  if (a.dry_run) planned.gains = ForecastGains(base.architecture(), request, settings);
  if (settings.evaluations > 0 && settings.allow_seen == 0 && unit.unit != privacy::PrivacyUnit::kUser)
    planned.outlook.advice.push_back(DescribeOneRecordLists(unit.unit));
  if (request.evaluations && *request.evaluations > settings.evaluations && !made.made_before)
    planned.outlook.advice.push_back(std::to_string(*request.evaluations) +
                                     " evaluations were asked for; a run evaluates at most once, so there are " +
                                     std::to_string(settings.evaluations));
  if (!a.deployment.data.path.empty() && !platform::IsThere(a.deployment.data.path))
    Warn("there is no file '" + a.deployment.data.path + "' yet: the plan is for the log that will have this name");
  for (std::string& advice : planned.outlook.advice) advice = InProgramWords(advice);
  WISP_ASSIGN_OR_RETURN(planned.epsilon_of_run, ComputeRunCost(base.architecture(), settings));
  WISP_ASSIGN_OR_RETURN(planned.bytes, CountRunMemory(base.architecture(), settings, a.deployment.threads));
  std::vector<float> dequantised;
  WISP_ASSIGN_OR_RETURN(
      planned.time,
      MeasureDeployment(
          base.architecture(), base.AllWeights(dequantised), made.deployment,
          {.ledger_path = path, .typical_events = a.typical_events, .num_threads = a.deployment.threads}));
  if (format == OutputFormat::kJson) {
    PrintJson(ToJson(planned, path, unit.unit));
    return OkStatus();
  }
  Print(planned, path, unit.unit);
  const std::string written = a.dry_run ? "nothing: --dry-run"
                              : planned.made_before
                                  ? "nothing: the ledger has had this plan since " + *planned.made_before
                                  : path + ", the ledger of this plan";
  PrintText("written   %s\n", written.c_str());
  return OkStatus();
}

}  // namespace wisp::tools
