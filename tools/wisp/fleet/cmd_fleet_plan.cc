// Implements `wisp fleet plan`.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/core/file.h"
#include "runtime/core/hex.h"
#include "runtime/fleet/fleet_budget.h"
#include "runtime/fleet/fleet_forecast.h"
#include "runtime/fleet/fleet_plan.h"
#include "runtime/fleet/fleet_policy.h"
#include "runtime/fleet/round_model.h"
#include "runtime/model/model_file.h"
#include "runtime/privacy/json.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

using fleet::FleetCost;
using fleet::FleetForecast;
using fleet::FleetPlan;

constexpr char kTrustForDevice[] = "if the server adds the noise before it shows a model to anybody";
constexpr char kTrustForReaders[] =
    "if it also draws each device's rounds by chance, and tells nobody who took part in which";

template <class E, size_t kCount>
E Named(const std::string& name, const char* const (&names)[kCount]) {
  return static_cast<E>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

Result<FleetPlan> MakeGoal(const FleetPlanArguments& a) {
  FleetPlan goal{.name = a.name,
                 .num_weights = a.num_weights,
                 .part = Named<FleetPlan::Part>(a.part, FleetPlan::kPartNames),
                 .adapter_rank = a.part == "adapter" ? a.adapter_rank : 0,
                 .devices = a.devices,
                 .rounds = a.rounds,
                 .takes_part = a.takes_part,
                 .evaluators = a.evaluators,
                 .evaluations = a.evaluations,
                 .method = Named<FleetPlan::Method>(a.method, FleetPlan::kMethodNames),
                 .local_steps = a.local_steps,
                 .local_learning_rate = a.local_learning_rate,
                 .clipping_norm = a.clipping_norm,
                 .bits = a.bits,
                 .epsilon = a.epsilon.value_or(0),
                 .delta = a.delta.value_or(std::min(1e-5, 0.1 / static_cast<double>(std::max(a.devices, uint64_t{1})))),
                 .round_seconds = a.round_seconds};
  goal.optimizer.learning_rate = static_cast<float>(a.learning_rate);
  if (a.model.empty()) return goal;
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(a.model, Verify::kFull));
  goal.base_hash = base.content_hash();
  WISP_ASSIGN_OR_RETURN(goal.num_weights, fleet::RoundModel::CountWeights(base, goal));
  return goal;
}

// Ways to a gain that is clear, if the plan has none.
std::vector<std::string> Advise(const FleetPlan& plan, const FleetForecast& f) {
  std::vector<std::string> advice;
  if (f.outlook != fleet::FleetOutlook::kClear) {
    advice.push_back("about " + Thousands(f.devices_for_clear) + " devices would make it a clear gain at this epsilon");
    advice.push_back(f.takes_part_for_clear
                         ? "with these devices, --takes-part " + std::to_string(*f.takes_part_for_clear) +
                               " would: each of them then receives and sends " +
                               Megabytes(f.down * *f.takes_part_for_clear + f.up * *f.takes_part_for_clear)
                         : "with these devices no --takes-part would, not even every device in every round; fewer "
                           "weights (--part) need less noise");
  }
  if (f.server_seconds_a_round > plan.round_seconds) {
    advice.push_back("the server's processor needs " + Duration(f.server_seconds_a_round) +
                     " for a round's calls, more than --round-seconds: take more rounds, or longer ones");
  }
  return advice;
}

Json ToJson(const FleetPlan& plan, const FleetCost& cost, const FleetForecast& f) {
  Json j = {{"name", plan.name},
            {"num_weights", plan.num_weights},
            {"devices", plan.devices},
            {"rounds", plan.rounds},
            {"takes_part", plan.takes_part},
            {"cohort", plan.cohort()},
            {"noise_multiplier", plan.noise_multiplier},
            {"delta", plan.delta},
            {"epsilon_of_a_device", cost.device},
            {"epsilon_for_readers", cost.readers},
            {"outlook", fleet::InWords(f.outlook)},
            {"noise_to_signal", f.noise_to_signal},
            {"devices_for_a_clear_gain", f.devices_for_clear}};
  j["takes_part_for_a_clear_gain"] = f.takes_part_for_clear ? Json(*f.takes_part_for_clear) : Json(nullptr);
  j.update(Json({{"bytes_down", f.down},
                 {"bytes_up", f.up},
                 {"bytes_of_a_device", f.device_bytes},
                 {"server_bytes_a_round", f.server_bytes_a_round},
                 {"server_bytes", f.server_bytes},
                 {"server_seconds_a_round", f.server_seconds_a_round},
                 {"days", f.days}}));
  if (plan.evaluations > 0) {
    j.update(Json({{"evaluations", plan.evaluations},
                   {"cohort_of_evaluation", plan.cohort_of_evaluation()},
                   {"evaluation_noise", f.evaluation_noise},
                   {"epsilon_for_readers_of_evaluations", cost.readers_of_evaluations}}));
  }
  j["advice"] = Advise(plan, f);
  if (plan.base_hash != 0) j["plan"] = ToHex(plan.hash());
  return j;
}

// The policy of the devices.
fleet::FleetPolicy MakeDevicePolicy(const FleetPlanArguments& a, const FleetPlan& plan) {
  fleet::FleetPolicy policy = fleet::MakePolicy(plan, a.server);
  policy.records_epsilon = a.records_epsilon;
  policy.records_delta = a.records_delta;
  policy.records_public = a.num_records_public;
  policy.records_batch = a.batch;
  return policy;
}

std::string Whole(double number) { return Thousands(static_cast<uint64_t>(std::llround(number))); }

std::string Bytes(double bytes) {
  if (bytes < 1e6) return Fixed(bytes / 1e3, 1) + " KB";
  if (bytes < 1e9) return Megabytes(static_cast<uint64_t>(bytes));
  return Fixed(bytes / 1e9, 1) + " GB";
}

void Print(const FleetPlan& plan, const FleetCost& cost, const FleetForecast& f, bool assumed) {
  const auto text = [](double number) { return privacy::ShortText(number, 3); };
  const auto up = [](double epsilon) { return privacy::EpsilonText(epsilon, 3); };
  PrintText("plan      %s: %s, %s of %s; about %s train in each, and a device in %s at most\n", plan.name.c_str(),
            FormatCount(plan.devices, "device").c_str(), FormatCount(plan.rounds, "round").c_str(),
            Duration(plan.round_seconds).c_str(), Whole(plan.cohort()).c_str(), Thousands(plan.takes_part).c_str());
  PrintText("weights   %s that train%s\n", Thousands(plan.num_weights).c_str(),
            assumed ? ", by --weights; --model counts those of a model" : "");
  PrintText("noise     %s times the clipping norm, in the sum of a round\n",
            privacy::DoubleText(plan.noise_multiplier).c_str());
  PrintText("privacy   epsilon %s at delta %s for every device, whoever looks,\n          %s\n",
            up(cost.device).c_str(), privacy::DoubleText(plan.delta).c_str(), kTrustForDevice);
  PrintText("          epsilon %s for those who see all models,\n          %s\n", up(cost.readers).c_str(),
            kTrustForReaders);
  if (plan.evaluations > 0) {
    PrintText(
        "evaluates %s, on about %s devices that never train: the mean gain with noise %s;\n"
        "          epsilon %s for those who see the gains, with the same trust\n",
        plan.evaluations == 1 ? "once" : (Thousands(plan.evaluations) + " times").c_str(),
        Whole(plan.cohort_of_evaluation()).c_str(), text(f.evaluation_noise).c_str(),
        up(cost.readers_of_evaluations).c_str());
  }
  PrintText("brings    %s by its noise: noise to signal %s (below 0.2 a clear gain, above 0.8 none)\n",
            fleet::InWords(f.outlook), text(f.noise_to_signal).c_str());
  PrintText(
      "takes     %s down and %s up in a round, %s of a device in all; of the server %s a round,\n"
      "          %s in all, and %s of its processor a round; %s days\n",
      Bytes(static_cast<double>(f.down)).c_str(), Bytes(static_cast<double>(f.up)).c_str(),
      Bytes(static_cast<double>(f.device_bytes)).c_str(), Bytes(f.server_bytes_a_round).c_str(),
      Bytes(f.server_bytes).c_str(), Duration(f.server_seconds_a_round).c_str(), text(f.days).c_str());
  for (const std::string& advice : Advise(plan, f)) PrintText("advice    %s\n", advice.c_str());
}

Status CheckOutputs(const FleetPlanArguments& a) {
  WISP_RETURN_IF_ERROR(
      CheckOutputFile(FileKind::kJson, {"--out", a.out}, {{"--model", a.model}, {"--policy", a.policy}}));
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kJson, {"--policy", a.policy}, {{"--model", a.model}}));
  return a.policy.empty() ? OkStatus() : fleet::CheckServer(a.server, "--server");
}

Status WriteText(const std::string& path, std::string_view text) {
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(path, FileAccess::kShared));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(text))));
  return file.Commit();
}

}  // namespace

Status FleetPlanCommand(const FleetPlanArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckOutputs(a));
  if (!a.epsilon && !a.readers_epsilon)
    return InvalidArgument("--epsilon is missing; --readers-epsilon may replace it");
  WISP_ASSIGN_OR_RETURN(const FleetPlan goal, MakeGoal(a));
  WISP_ASSIGN_OR_RETURN(const FleetPlan plan, a.readers_epsilon ? fleet::MakePlanForReaders(goal, *a.readers_epsilon)
                                                                : fleet::MakePlan(goal));
  WISP_ASSIGN_OR_RETURN(const FleetCost cost, fleet::CostOf(plan));
  const FleetForecast forecast = fleet::ForecastOf(plan);
  const fleet::FleetPolicy policy = MakeDevicePolicy(a, plan);
  if (!a.policy.empty()) WISP_RETURN_IF_ERROR(policy.Check("--policy"));
  if (!a.out.empty()) WISP_RETURN_IF_ERROR(WriteText(a.out, plan.ToText()));
  if (!a.policy.empty()) WISP_RETURN_IF_ERROR(WriteText(a.policy, policy.ToText()));
  if (format == OutputFormat::kJson) {
    PrintJson(ToJson(plan, cost, forecast));
    return OkStatus();
  }
  Print(plan, cost, forecast, a.model.empty());
  if (policy.protects_records()) {
    PrintText(
        "records   epsilon %s at delta %s for each record on a device, against everybody, by its own runs;\n"
        "          their noise comes on top of what this forecast counts\n",
        privacy::EpsilonText(policy.records_epsilon, 3).c_str(), privacy::DoubleText(policy.records_delta).c_str());
  }
  const std::string written =
      a.out.empty()
          ? "nothing: without --out this is a forecast"
          : a.out + ", which is public" + (a.policy.empty() ? "" : ", and " + a.policy + ", which devices have");
  PrintText("written   %s\n", written.c_str());
  return OkStatus();
}

}  // namespace wisp::tools
