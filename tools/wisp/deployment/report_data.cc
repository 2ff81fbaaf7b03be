#include "tools/wisp/deployment/report_data.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/core/platform.h"
#include "runtime/personalise/planned_run.h"
#include "runtime/personalise/plan_files.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/run/records.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

constexpr size_t kPoints = 12;  // points of the plan's curve, few because the accountant takes a while for each

std::string GetDay(const std::string& time_utc) { return time_utc.substr(0, 10); }

Status ReadSteps(const privacy::Ledger& ledger, ReportedDeployment& deployment) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerPlan> plans, ledger.Plans());
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerEntry> entries, ledger.Entries());
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(deployment.settings.delta));
  WISP_ASSIGN_OR_RETURN(deployment.steps_done, StepsTrained(ledger));
  deployment.steps_planned = deployment.steps_done + deployment.left.steps;
  if (!entries.empty())
    deployment.first_day = GetDay(entries.front().time_utc), deployment.last_day = GetDay(entries.back().time_utc);
  for (const privacy::LedgerPlan& plan : plans) {
    if (plan.settings.empty()) continue;
    deployment.changed = deployment.changed || (!entries.empty() && plan.seq > entries.front().seq);
    const privacy::PlannedMechanism& all = plan.mechanisms.front();
    if (deployment.left.by_filter || all.mechanism.steps() != deployment.settings.num_steps()) continue;
    deployment.plan.assign(1, {0, 0});
    for (size_t point = 1; point <= kPoints; ++point) {
      const uint64_t steps = std::max<uint64_t>(1, all.mechanism.steps() * point / kPoints);
      WISP_ASSIGN_OR_RETURN(const privacy::Mechanism some, all.mechanism.WithSteps(steps));
      privacy::Composition spent;
      spent.Add(some, privacy::NoiseKind::kSecure, all.loss_slack);
      // Releases beside the steps come first.
      for (size_t other = 1; other < plan.mechanisms.size(); ++other)
        spent.Add(plan.mechanisms[other].mechanism, privacy::NoiseKind::kSecure, plan.mechanisms[other].loss_slack);
      WISP_ASSIGN_OR_RETURN(const double epsilon, spent.Epsilon(delta));
      deployment.plan.push_back({steps, epsilon});
    }
  }
  return OkStatus();
}

// Reads all evaluations. They are numbered separately for each base and lineage.
Status ReadEvaluations(const privacy::Ledger& ledger, ReportedDeployment& deployment) {
  WISP_ASSIGN_OR_RETURN(const std::vector<privacy::LedgerResult> results, ledger.Results());
  std::map<std::pair<uint64_t, uint64_t>, std::vector<Evaluation>> of_lines;
  for (const privacy::LedgerResult& result : results) {
    if (IsWeighedBias(result.text)) continue;
    WISP_ASSIGN_OR_RETURN(const Evaluation j, ParseEvaluation(result.text));
    std::vector<Evaluation>& of_line = of_lines[{j.base, j.line}];
    of_line.push_back(j);
    WISP_ASSIGN_OR_RETURN(const auto then, SettingsBefore(ledger, result.seq));
    const DeploymentSettings& s = then ? *then : deployment.settings;
    const double scale = s.gain_scale / std::max(1u, s.num_records_public);
    deployment.evaluations.push_back({.day = GetDay(result.time_utc),
                                      .gain = j.gains * scale,
                                      .deviation = j.gain_noise() * scale,
                                      .found = Serve(deployment.settings.rule(), of_line).verdict.kind});
  }
  return OkStatus();
}

Status AddQuality(const ReportArguments& a, const std::string& name, const std::string& path,
                  ReportedDeployment& deployment) {
  if (path.empty() || !platform::IsThere(path)) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(path, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const data::ReadResult events, ReadData(a.data, ReadLimits{.private_run = true}, &model));
  const RecordSet set = MakeRecords(events.sequences, model.architecture().max_length, HoldOut::kTest);
  Workers workers(a.threads == 0 ? DefaultThreads() : a.threads);
  deployment.qualities.push_back({name, EvaluateModel(model, set.test, workers)});
  return OkStatus();
}

}  // namespace

Result<ReportedDeployment> ReadDeployment(const ReportArguments& a) {
  WISP_ASSIGN_OR_RETURN(const auto anchor, OpenAnchor(a.anchor, a.ledger));
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(a.ledger, anchor, a.anchor.begin));
  WISP_ASSIGN_OR_RETURN(const DeploymentSettings settings, RequireSettings(ledger));
  ReportedDeployment deployment{.ledger_name = FileName(a.ledger),
                                .dataset = ledger.dataset(),
                                .unit = std::string(privacy::ToText(ledger.unit())),
                                .settings = settings};
  WISP_ASSIGN_OR_RETURN(deployment.left, ComputeLeft(ledger, settings));
  WISP_ASSIGN_OR_RETURN(const privacy::Delta delta, privacy::Delta::Create(settings.delta));
  WISP_ASSIGN_OR_RETURN(deployment.epsilon_stated, ledger.Spent(delta));
  WISP_ASSIGN_OR_RETURN(privacy::PrivacyStatement statement,
                        privacy::MakeStatement(ledger, deployment.ledger_name, delta));
  statement.created_by = "wisp " + Version();
  deployment.statement = privacy::ToText(statement);
  WISP_RETURN_IF_ERROR(ReadSteps(ledger, deployment));
  WISP_RETURN_IF_ERROR(ReadEvaluations(ledger, deployment));
  if (!a.model.empty() && !a.out.empty()) {
    // The settings are those that the candidate was trained with: a plan may have changed since.
    WISP_ASSIGN_OR_RETURN(const auto entries, ledger.Entries());
    uint64_t last = 0;
    for (const privacy::LedgerEntry& e : entries) last = e.purpose == kEvaluationPurpose ? last : e.seq;
    WISP_ASSIGN_OR_RETURN(const auto then, SettingsBefore(ledger, last));
    WISP_ASSIGN_OR_RETURN(deployment.layers, CompareCandidate(a.model, a.out, then ? *then : deployment.settings));
  }
  if (a.data.path.empty()) return deployment;
  // Damaged figures are not shown; the next training session replaces them.
  if (auto runs = ReadRunFigures(PlanFiles(a.out).local); runs.ok()) deployment.runs = *std::move(runs);
  WISP_RETURN_IF_ERROR(AddQuality(a, "the base", a.model, deployment));
  WISP_RETURN_IF_ERROR(AddQuality(a, "what is served", a.out, deployment));
  WISP_RETURN_IF_ERROR(AddQuality(a, "the newest candidate", PlanFiles(a.out).candidate, deployment));
  return deployment;
}

}  // namespace wisp::tools
