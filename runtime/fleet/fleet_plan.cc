#include "runtime/fleet/fleet_plan.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "runtime/core/first_characters.h"
#include "runtime/fleet/flat_json.h"
#include "runtime/core/hex.h"
#include "runtime/core/text.h"
#include "runtime/fleet/plan_fields.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/noise/exact_sum.h"

namespace wisp::fleet {
namespace {

constexpr uint64_t kFormat = 1;
constexpr double kLargestRate = 1e6;
constexpr const char* kOptimizerNames[] = {"adam", "adamw", "sgd"};
constexpr const char* kDecayNames[] = {"constant", "linear"};
// Random allocation accounts for this noise (RandomAllocationOptions).
constexpr Range kNoise{0.1, 1e4};

// The order is that of the file, and so part of every plan's hash.
std::vector<PlanField> ListFields(FleetPlan& p) {
  return {
      PlanField::Number("num_weights", p.num_weights, {1, 0x1p32}),
      PlanField::Word("part", p.part, FleetPlan::kPartNames),
      PlanField::Number("adapter_rank", p.adapter_rank, {0, 256}),
      PlanField::Number("devices", p.devices, {2, 1e9}),
      PlanField::Number("rounds", p.rounds, {1, 1e6}),
      PlanField::Number("takes_part", p.takes_part, {1, 1e6}),
      PlanField::Number("evaluators", p.evaluators, {0, 0.5}),
      PlanField::Number("evaluations", p.evaluations, {0, 1e6}),
      PlanField::Word("method", p.method, FleetPlan::kMethodNames),
      PlanField::Number("local_steps", p.local_steps, {0, 1000}),
      PlanField::Number("local_learning_rate", p.local_learning_rate, {0, kLargestRate}),
      PlanField::Number("clipping_norm", p.clipping_norm, {1e-6, 1e6}),
      PlanField::Number("bits", p.bits, {8, 32}),
      PlanField::Number("weight_bits", p.weight_bits, {16, 32}),
      PlanField::Number("noise_multiplier", p.noise_multiplier, kNoise),
      PlanField::Number("epsilon", p.epsilon, {privacy::kSmallestTarget, privacy::kLargestTarget}),
      PlanField::Number("delta", p.delta, {1e-30, 1e-3}),
      PlanField::Number("round_seconds", p.round_seconds, {1, 604800}),
      PlanField::Word("optimizer", p.optimizer.kind, kOptimizerNames),
      PlanField::Number("learning_rate", p.optimizer.learning_rate, {0, kLargestRate}),
      PlanField::Number("beta1", p.optimizer.beta1, {0, 1}),
      PlanField::Number("beta2", p.optimizer.beta2, {0, 1}),
      PlanField::Number("optimizer_epsilon", p.optimizer.epsilon, {0, 1}),
      PlanField::Number("momentum", p.optimizer.momentum, {0, 1}),
      PlanField::Number("weight_decay", p.optimizer.weight_decay, {0, 1}),
      PlanField::Number("warmup_rounds", p.optimizer.warmup_steps, {0, 1e6}),
      PlanField::Word("decay", p.optimizer.decay, kDecayNames),
      PlanField::Number("final_fraction", p.optimizer.final_fraction, {0, 1}),
  };
}

// Names go into files, ledgers and messages.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return IsAsciiLetter(c) || IsAsciiDigit(c) || c == '-' || c == '_';
  });
}

// Every coordinate of an update fits into 16 bits with so many steps. With 8 bits, one that has more than an eighth of
// the norm may not fit, and is clipped.
constexpr double kStepsAtSixteen = 0x1p14;
// Stochastic rounding adds at most 1/4 to a square in the mean, so d coordinates add at most d / 4 to the squared norm.
// With K = 1.77 sqrt(d) that is 8 % of it: clipping to 0.96 of the norm leaves room.
double LeastSteps(uint64_t num_weights) { return 1.77 * std::sqrt(static_cast<double>(num_weights)); }

Status CheckRounds(const FleetPlan& p, const std::string& source) {
  if (p.rounds % p.takes_part != 0) {
    return InvalidArgument(source, ": takes_part is ", p.takes_part, ", and must divide the ",
                           Counted(p.rounds, "round"), ": a device takes part once in each of so many equal blocks");
  }
  if ((p.evaluators > 0) != (p.evaluations > 0)) {
    return InvalidArgument(source, ": evaluators is ", privacy::DoubleText(p.evaluators), " and evaluations is ",
                           p.evaluations, ", allowed are both above 0 or both 0");
  }
  if (p.evaluations > p.rounds || p.evaluations % p.takes_part != 0) {
    return InvalidArgument(source, ": evaluations is ", p.evaluations, ", allowed is a multiple of takes_part ",
                           p.takes_part, " up to the ", Counted(p.rounds, "round"));
  }
  return OkStatus();
}

Status CheckUpdate(const FleetPlan& p, const std::string& source) {
  if ((p.part == FleetPlan::Part::kAdapter) != (p.adapter_rank > 0)) {
    return InvalidArgument(source, ": adapter_rank is ", p.adapter_rank, ", allowed with part ", GetName(p.part),
                           p.adapter_rank > 0 ? " is 0" : " are 1 to 256");
  }
  if (p.bits != 8 && p.bits != 16 && p.bits != 32) {
    return InvalidArgument(source, ": bits is ", p.bits, ", allowed is 8, 16 or 32");
  }
  if (p.weight_bits != 16 && p.weight_bits != 32) {
    return InvalidArgument(source, ": weight_bits is ", p.weight_bits, ", allowed is 16 or 32");
  }
  if (p.bits == 16 && LeastSteps(p.num_weights) > kStepsAtSixteen) {
    return InvalidArgument(source, ": num_weights is ", p.num_weights, ", too many for 16 bits a number: take 8 or 32");
  }
  const bool is_local = p.method == FleetPlan::Method::kLocal;
  // The steps use the rate as a float.
  const bool has_rate = static_cast<float>(p.local_learning_rate) > 0;
  if (is_local != (p.local_steps > 0) || is_local != has_rate) {
    return InvalidArgument(source, ": local_steps is ", p.local_steps, " and local_learning_rate is ",
                           privacy::DoubleText(p.local_learning_rate), ", allowed with method ", GetName(p.method),
                           is_local ? " are numbers above 0" : " is 0 for both");
  }
  return OkStatus();
}

}  // namespace

const char* GetName(FleetPlan::Part part) { return FleetPlan::kPartNames[static_cast<size_t>(part)]; }
const char* GetName(FleetPlan::Method method) { return FleetPlan::kMethodNames[static_cast<size_t>(method)]; }

Status FleetPlan::Check(const std::string& source) const {
  if (!IsName(name)) {
    return InvalidArgument(source, ": name is '", OneLine(name), "', allowed are 1 to 64 letters, digits, - and _");
  }
  FleetPlan copy = *this;
  WISP_RETURN_IF_ERROR(CheckFields(source, ListFields(copy)));
  WISP_RETURN_IF_ERROR(CheckRounds(*this, source));
  WISP_RETURN_IF_ERROR(CheckUpdate(*this, source));
  WISP_RETURN_IF_ERROR(privacy::CheckDelta(source + ": delta", delta, static_cast<double>(devices), false));
  WISP_RETURN_IF_ERROR(privacy::ExactGrid::Validate(
      {.clipping_norm = clipping_norm, .num_coordinates = num_weights, .noise_multiplier = noise_multiplier}));
  return Validate(optimizer);
}

std::string FleetPlan::ToText() const {
  FleetPlan copy = *this;
  privacy::JsonWriter json;
  json.BeginObject().Key("fleet_plan").Value(kFormat).Key("name").Value(name).Key("base_hash").Value(ToHex(base_hash));
  WriteFields(ListFields(copy), json);
  return json.EndObject().Take();
}

Result<FleetPlan> FleetPlan::FromText(std::string_view text, const std::string& source) {
  WISP_ASSIGN_OR_RETURN(FlatJson json, FlatJson::Parse(text, source, kMostTextBytes));
  WISP_RETURN_IF_ERROR(json.Whole("fleet_plan", kFormat, kFormat).status());
  FleetPlan plan;
  WISP_ASSIGN_OR_RETURN(plan.name, json.Text("name", kMostTextBytes));
  WISP_ASSIGN_OR_RETURN(const std::string base_hash, json.Text("base_hash", kMostTextBytes));
  WISP_RETURN_IF_ERROR(ReadFields(json, source, ListFields(plan)));
  WISP_RETURN_IF_ERROR(json.NoOtherKeys());
  std::from_chars(base_hash.data(), base_hash.data() + base_hash.size(), plan.base_hash, 16);
  if (ToHex(plan.base_hash) != base_hash || plan.base_hash == 0) {
    return InvalidData(source, ": \"base_hash\" is \"", OneLine(std::string(FirstCharacters(base_hash, 40))),
                       "\"; allowed are 16 lower-case hexadecimal digits, not all of them 0");
  }
  WISP_RETURN_IF_ERROR(plan.Check(source));
  return plan;
}

Sha256Hash FleetPlan::hash() const { return Sha256(ToText()); }

double FleetPlan::cohort() const { return static_cast<double>(devices) * (1 - evaluators) * takes_part / rounds; }

double FleetPlan::cohort_of_evaluation() const {
  return evaluations == 0 ? 0 : static_cast<double>(devices) * evaluators * takes_part / evaluations;
}

std::optional<uint32_t> FleetPlan::EvaluationAfter(uint32_t round) const {
  const auto done = [this](uint64_t rounds_done) { return rounds_done * evaluations / rounds; };
  if (done(uint64_t{round} + 1) == done(round)) return std::nullopt;
  return static_cast<uint32_t>(done(round));
}

uint64_t FleetPlan::steps_per_clip() const {
  if (bits == 32) return uint64_t{1} << 30;
  if (bits == 16) return uint64_t{1} << 14;
  return std::bit_ceil(static_cast<uint64_t>(std::ceil(LeastSteps(num_weights))));
}

bool IsEvaluator(const FleetPlan& plan, const Sha256Hash& plan_hash, uint64_t node_id) {
  const Sha256Hash of_device = Sha256("wisp fleet role\n" + ToHex(plan_hash) + "\n" + ToHex(node_id));
  uint64_t first = 0;
  for (size_t i = 0; i < sizeof first; ++i) first = first << 8 | of_device[i];
  return static_cast<double>(first >> 11) * 0x1p-53 < plan.evaluators;
}

}  // namespace wisp::fleet
