// Implements `wisp personalise`.
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"
#include "runtime/core/text.h"
#include "runtime/personalise/planned_run.h"
#include "runtime/privacy/json.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/device.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

using Serves = PlannedRunResult::Serves;

const char* Served(Serves serves) {
  switch (serves) {
    case Serves::kBase:
      return "the base";
    case Serves::kWeighedBase:
      return "the base with another weight of its bias";
    case Serves::kEarlierCandidate:
      return "an earlier candidate";
    case Serves::kNewestCandidate:
      return "the newest candidate";
  }
  return "";
}

Json ToJson(const PlannedRunResult& n, const std::string& out) {
  Json j = {{"model", out},
            {"serves", Served(n.serves)},
            {"changed", n.changed},
            {"steps", n.steps},
            {"steps_of_model", n.steps_of_model},
            {"evaluated", n.evaluated},
            {"verdict", GetName(n.verdict.kind)},
            {"evidence", n.verdict.evidence},
            {"threshold", n.verdict.threshold},
            {"runs_left", n.left.runs},
            {"steps_left", n.left.steps},
            {"epsilon", n.settings.epsilon},
            {"delta", n.settings.delta}};
  if (n.evaluated) j["evaluation_events"] = n.evaluation_events;
  if (EvaluatesPrivately(n.settings)) j["evaluations_left"] = n.left.evaluations;
  if (n.training) {
    j["records"] = n.training->num_records;
    j["records_dropped"] = n.training->num_dropped;
    j["seconds"] = n.training->seconds;
    if (!n.training->save_failure.empty()) j["save_failure"] = n.training->save_failure;
  }
  j["not_private"] = NotPrivate(j, n.settings.evaluates_locally != 0 ? Evaluated::kLocally : Evaluated::kPrivately);
  return j;
}

// Says which model is served, and why not the one that this run trained. A verdict is about the candidates so far; the
// model is one of them, so an earlier one may be served although they were found better.
std::string ServedInWords(const PlannedRunResult& n) {
  if (n.serves != Serves::kEarlierCandidate) return Served(n.serves);
  const std::string served = Served(n.serves);
  if (!n.evaluated) return served + "; this run's candidate was not evaluated yet";
  if (n.verdict.kind == Verdict::Kind::kBetter) return served + ", whose own gain was clearly larger than the newest's";
  return served + ", until a newer one is found better";
}

// Without times in the log, or without events since the last training session, the result is noise alone.
void WarnIfNothingEvaluated(const PlannedRunResult& n) {
  if (!n.evaluated || n.evaluation_events > 0) return;
  PrintText(
      "          on no event: the log has none later than what the candidate learned from, so it cannot\n"
      "          be found better (local only). Is the log written to, and do its times count as the plan says?\n"
      "          A log that is imported at once needs a plan with --trains-until.\n");
}

void Print(const PlannedRunResult& n, const std::string& out, const Json& j, bool is_first) {
  if (n.steps > 0) {
    PrintText("trained   %s, %s since it last started from a file\n", FormatCount(n.steps, "step").c_str(),
              Thousands(n.steps_of_model).c_str());
  } else {
    PrintText("trained   nothing: the plan has no step left\n");
  }
  if (n.evaluated)
    PrintText("evaluated %s %s than the base: evidence %s, threshold %s\n",
              n.settings.evaluates_locally != 0 ? "the newest candidate:" : "the candidates so far, together:",
              n.verdict.kind == Verdict::Kind::kUndecided ? "neither better nor worse" : GetName(n.verdict.kind),
              privacy::ShortText(n.verdict.evidence).c_str(), privacy::ShortText(n.verdict.threshold).c_str());
  WarnIfNothingEvaluated(n);
  PrintText("serves    %s: %s%s\n", out.c_str(), ServedInWords(n).c_str(), n.changed && !is_first ? " (changed)" : "");
  PrintText("left      %s of %s%s; epsilon %s at delta %s covers all of them\n", Thousands(n.left.runs).c_str(),
            FormatCount(n.settings.runs, "run").c_str(), EvaluationsLeft(n.settings, n.left, ", ").c_str(),
            privacy::ShortText(n.settings.epsilon).c_str(), privacy::ShortText(n.settings.delta).c_str());
  PrintText("%s\n", NotPrivateInWords(j).c_str());
}

}  // namespace

Status Personalise(const PersonaliseArguments& a, OutputFormat format) {
  // Otherwise the error would name the ledger, which lies beside the missing log.
  if (!platform::IsThere(a.deployment.data.path))
    return IoError(a.deployment.data.path, ": the log cannot be opened: ", Reason(errno));
  const std::string ledger = LedgerPath(a.deployment);
  WISP_RETURN_IF_ERROR(CheckOutput({"--out", a.out}, {{"--model", a.deployment.model},
                                                      {"--data", a.deployment.data.path},
                                                      {"--ledger", ledger},
                                                      {"--anchor", a.deployment.anchor.file}}));
  PlannedRunOptions o;
  o.base_path = a.deployment.model;
  o.output = a.out;
  o.reads = {{"--data", a.deployment.data.path}, {"--anchor", a.deployment.anchor.file}};
  WISP_ASSIGN_OR_RETURN(o.ledger.anchor, OpenAnchor(a.deployment.anchor, ledger));
  o.ledger.path = ledger;
  o.ledger.begin_anchor = a.deployment.anchor.begin;
  o.dataset = GetDataset(a.deployment);
  o.other_data = a.other_data;
  o.early = a.early;
  o.start_over = a.start_over ? PlannedRunOptions::StartOver::kAllowed : PlannedRunOptions::StartOver::kRefused;
  o.say = [](PlannedRunOptions::Says kind, const std::string& sentence) {
    if (kind == PlannedRunOptions::Says::kWarning)
      std::fprintf(stderr, "wisp: warning: %s\n", Printable(sentence).c_str());
  };
  o.source = GetSource(a.deployment.data);
  o.run = "run " + Timestamp();
  o.created_by = "wisp " + Version();
  o.num_threads = a.deployment.threads;
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(a.device, DeviceUse::kTraining));
  o.device = device.device;
  o.read = [&](const data::ReadOptions& options) { return ReadData(a.deployment.data, options); };
  const bool is_first = !platform::IsThere(a.out);  // nothing was served before
  Progress progress("run");
  const volatile std::sig_atomic_t& interrupted = CatchInterrupts();
  o.progress = [&](const JobProgress& p) {
    progress.Update(p.step, p.num_steps, "loss " + Fixed(p.mean_loss, 3));
    return interrupted == 0;
  };
  o.cancelled = [&] { return interrupted != 0; };
  WISP_ASSIGN_OR_RETURN(const PlannedRunResult planned_run, RunPlanned(o));
  const Json j = ToJson(planned_run, a.out);
  if (format == OutputFormat::kJson) {
    PrintJson(j);
  } else {
    Print(planned_run, a.out, j, is_first);
  }
  return OkStatus();
}

}  // namespace wisp::tools
