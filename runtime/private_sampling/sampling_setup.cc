#include "runtime/private_sampling/sampling_setup.h"

#include <algorithm>
#include <utility>

#include "kernels/kernels.h"
#include "runtime/private_sampling/check_paid.h"
#include "runtime/private_sampling/sample_law.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/decoding_calibration.h"
#include "runtime/privacy/json.h"

namespace wisp {
namespace {

using privacy::EpsilonDelta;

// The guarantee holds for any scores. The utility of samples was measured only with the kernels of kSimd.
Status CheckBackend(const char* which, const Session& session) {
  if (&session.graph().ops() == &kernels::BestOps()) return OkStatus();
  return Unsupported("recommending privately is for the default kernels, in float: open the ", which,
                     " without another backend");
}

// The base's scores are treated as public. This must follow from the base's provenance and from what the app declares.
Status CheckBase(const Session& session, const PrivateSampleOptions& o) {
  if (o.base == nullptr) return OkStatus();
  const ModelFile &base = o.base->file(), &model = session.file();
  if (const DecodingNeed need = FindNeed(base, MakePolicy(o)); need.kind != DecodingNeed::Kind::kFree) {
    return PrivacyRefused("the base model must be public: ", need.reason);
  }
  const std::string differ = "the base model has other items than the model";
  if (base.num_items() != model.num_items()) {
    return InvalidArgument(differ, ": ", base.num_items(), " against ", model.num_items());
  }
  if (!base.has_item_keys() || !model.has_item_keys()) return OkStatus();
  for (size_t i = 0; i < model.num_items(); ++i) {
    if (base.item_key(i) != model.item_key(i)) return InvalidArgument(differ, ": item ", i, " has another key");
  }
  return OkStatus();
}

Result<DecodingMode> ChooseMode(const PrivateSampleOptions& o) {
  const DecodingMode mode = o.mode.value_or(o.contexts > 0      ? DecodingMode::kAggregate
                                            : o.base != nullptr ? DecodingMode::kBaseAnchored
                                                                : DecodingMode::kUniform);
  if ((o.contexts > 0) != (mode == DecodingMode::kAggregate) || (o.contexts > 0 && o.base != nullptr))
    return InvalidArgument(
        "private contexts and their number go with the mode aggregate alone, which has no base model");
  if (mode == DecodingMode::kBaseAnchored && o.base == nullptr)
    return InvalidArgument("anchored sampling needs the base model");
  if (mode == DecodingMode::kNonUniform && o.base == nullptr)
    return InvalidArgument("mixing with the base's distribution needs the base model");
  return mode;
}

// If no number of records is declared, requests are checked against this number.
constexpr double kAssumedRecords = 10'000;

Status CheckRequestedDelta(const std::string& whose, double delta, const PrivateSampleOptions& o) {
  if (o.num_records_public > 0)
    return privacy::CheckDelta(whose, delta, static_cast<double>(o.num_records_public), o.allow_large_delta);
  Status assumed = privacy::CheckDelta(whose, delta, kAssumedRecords, o.allow_large_delta);
  if (assumed.ok()) return assumed;
  return PrivacyRefused(assumed.message(),
                        "; so many are assumed where nobody declares their number (num_records_public)");
}

// An existing limit was accepted earlier. It must still not allow publishing a record, for the number of records
// declared now.
Status CheckStandingDelta(double delta, const PrivateSampleOptions& o) {
  const double records = static_cast<double>(o.num_records_public);
  const bool few = records <= privacy::kFewRecords;  // for few records it must keep all that CheckDelta promises
  if (o.num_records_public == 0 || (!few && delta < 1 / records)) return OkStatus();
  return privacy::CheckDelta("the ledger's limit: its delta", delta, records, o.allow_large_delta);
}

Status CheckGoal(const PrivateSampleOptions& o, DecodingMode mode) {
  const SampleGoal& goal = o.goal;
  if (goal.lambda.has_value() + goal.clip.has_value() + goal.epsilon_per_sample.has_value() +
          goal.planned.has_value() !=
      1) {
    return InvalidArgument(
        "samples from this model are charged: exactly one of lambda (mixed) or clip (anchored), an epsilon per sample, "
        "or "
        "a target "
        "with a planned number is needed");
  }
  if (goal.lambda && HasClip(mode))
    return InvalidArgument("lambda was given, but the mode is anchored, which has a clip instead");
  if (goal.clip && !HasClip(mode))
    return InvalidArgument("a clip was given, but the mode is mixed, which has lambda instead");
  return goal.planned ? CheckRequestedDelta("the target's delta", goal.planned->target.delta(), o) : OkStatus();
}

// Checks the delta of the new or existing limit, and that the new limit can be set.
Status CheckLimit(const PrivateSampleOptions& o, const SamplePromise& promise) {
  if (o.new_limit) {
    WISP_RETURN_IF_ERROR(CheckRequestedDelta("the new limit's delta", o.new_limit->delta(), o));
  } else {
    WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> limit, o.ledger->Limit());
    if (limit) WISP_RETURN_IF_ERROR(CheckStandingDelta(limit->delta(), o));
  }
  return promise.LimitToSet().status();
}

// The public distribution to mix in: uniform, or the base's softmax with at least a minimum for each item of the
// support.
privacy::PublicMixture MakeMixture(const PrivateSampleOptions& o, DecodingMode mode, uint64_t support) {
  if (mode == DecodingMode::kUniform) return {.support = support};
  return {.min_probability = MinMixtureProbability(o.mixing_floor, support)};
}

Result<double> ComputeLambda(const PrivateSampleOptions& o, const privacy::PublicMixture& mixture) {
  if (o.goal.lambda) return *o.goal.lambda;
  const auto adjacency = o.ledger->adjacency();
  if (o.goal.epsilon_per_sample) {
    WISP_ASSIGN_OR_RETURN(
        const auto m,
        privacy::PureResponse({.epsilon = *o.goal.epsilon_per_sample, .samples = 1, .adjacency = adjacency}, mixture));
    return m.lambda();
  }
  WISP_ASSIGN_OR_RETURN(
      const auto c, privacy::CalibrateResponse({o.goal.planned->target, o.goal.planned->samples, adjacency}, mixture));
  return c.mechanism.lambda();
}

Result<double> ComputeClip(const PrivateSampleOptions& o) {
  if (o.goal.clip) return *o.goal.clip;
  double range = o.goal.epsilon_per_sample.value_or(0);
  if (o.goal.planned) {
    WISP_ASSIGN_OR_RETURN(const auto c, privacy::CalibrateBoundedRange(
                                            {o.goal.planned->target, o.goal.planned->samples, o.ledger->adjacency()}));
    range = c.mechanism.range();
  }
  if (o.contexts == 0) return ClipForRange(range, o.temperature);
  return AggregateClipForRange(
      range, {.temperature = o.temperature, .contexts = o.contexts, .adjacency = o.ledger->adjacency()});
}

// Checks everything that charging needs, and computes lambda or clip.
Status SetUpCharge(const PrivateSampleOptions& o, PrivateSamplerOptions& s) {
  if (o.ledger == nullptr) {
    return PrivacyRefused("sampling privately here needs a ledger, the file that remembers what was spent: ",
                          s.need.reason);
  }
  WISP_ASSIGN_OR_RETURN(const std::string dataset, DatasetToCharge(s.need));
  if (!dataset.empty()) WISP_RETURN_IF_ERROR(o.ledger->CheckDataset(dataset));
  WISP_ASSIGN_OR_RETURN(s.mode, ChooseMode(o));
  WISP_RETURN_IF_ERROR(CheckGoal(o, s.mode));
  if (HasClip(s.mode)) {
    WISP_ASSIGN_OR_RETURN(s.clip, ComputeClip(o));
    return OkStatus();
  }
  if (s.mode == DecodingMode::kNonUniform && !(o.mixing_floor >= kLeastMixingFloor && o.mixing_floor <= 1))
    return InvalidArgument("the uniform's share of what is mixed in is ", o.mixing_floor, ", allowed are 1e-4 to 1");
  const privacy::PublicMixture mixture = MakeMixture(o, s.mode, LargestSupport(o, s.num_items));
  s.min_probability = mixture.min_probability;
  WISP_ASSIGN_OR_RETURN(s.lambda, ComputeLambda(o, mixture));
  return OkStatus();
}

// A goal for a planned number makes a plan, if the ledger is still empty: this many samples, none more expensive
// than this, whatever they show.
Result<SamplePromise> MakePromise(const PrivateSampleOptions& o, const SampleCost& sample) {
  SamplePromise promise{.ledger = o.ledger, .new_limit = o.new_limit};
  if (!o.goal.planned) return promise;
  promise.planned = o.goal.planned->target;
  WISP_ASSIGN_OR_RETURN(const auto samples, ToMechanism(sample, o.goal.planned->samples, o.ledger->adjacency()));
  promise.plan = {{.mechanism = samples,
                   .run = o.run,
                   .noise = o.reproducible_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure}};
  return promise;
}

// The ledger must contain what model and base have spent on its data, whether samples are charged or free.
Status CheckLedgerHas(const Session& session, const PrivateSampleOptions& o) {
  if (o.ledger == nullptr || o.other_data) return OkStatus();
  WISP_RETURN_IF_ERROR(CheckPaid(session.file(), "the model", o.public_datasets, *o.ledger));
  return o.base == nullptr ? OkStatus() : CheckPaid(o.base->file(), "the base model", o.public_datasets, *o.ledger);
}

// With contexts in the prompt, their contents are charged for. The weights themselves must then reveal nothing.
Result<DecodingNeed> FindSamplesNeed(const Session& session, const PrivateSampleOptions& o) {
  DecodingNeed need = FindNeed(session.file(), MakePolicy(o));
  if (o.contexts == 0) return need;
  if (need.kind != DecodingNeed::Kind::kFree)
    return PrivacyRefused("with private texts in its prompt the model itself must be public: ", need.reason);
  return DecodingNeed{.reason = "private texts are in the prompt"};
}

}  // namespace

// Without a limit, nothing would stop samples beyond the planned number.
Result<std::optional<EpsilonDelta>> SamplePromise::LimitToSet() const {
  if (ledger == nullptr) return std::optional<EpsilonDelta>();
  if (new_limit) WISP_RETURN_IF_ERROR(ledger->CheckLimit(*new_limit));
  WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> now, ledger->Limit());
  if (new_limit) {
    const bool same = now && now->epsilon() == new_limit->epsilon() && now->delta() == new_limit->delta();
    return same ? std::nullopt : new_limit;
  }
  if (now || !planned) return std::optional<EpsilonDelta>();
  WISP_ASSIGN_OR_RETURN(const auto entries, ledger->Entries());
  if (entries.empty()) return planned;
  return PrivacyRefused(
      "a target for all samples together, from data whose ledger has spendings and no limit: nothing would end the "
      "samples; "
      "limit the ledger first, over everything");
}

Status SamplePromise::Write() {
  if (ledger == nullptr) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> limit, LimitToSet());
  if (limit) WISP_RETURN_IF_ERROR(ledger->SetLimit(*limit));
  if (!plan.empty()) WISP_RETURN_IF_ERROR(ledger->PlanRun(plan));
  *this = {};
  return OkStatus();
}

DecodingPolicy MakePolicy(const PrivateSampleOptions& o) {
  const bool as_papers = o.allow_large_delta && static_cast<double>(o.num_records_public) > privacy::kFewRecords;
  return {.public_datasets = o.public_datasets, .num_records_public = as_papers ? 0 : o.num_records_public};
}

uint64_t LargestSupport(const PrivateSampleOptions& o, uint64_t num_items) {
  const bool smaller = o.charge_for == ChargeFor::kSupportLeft && o.largest_support > 0;
  return smaller ? std::min<uint64_t>(o.largest_support, num_items) : num_items;
}

Status CheckSampleBackends(const Session& session, const Session* base) {
  WISP_RETURN_IF_ERROR(CheckBackend("model", session));
  return base == nullptr ? OkStatus() : CheckBackend("base model", *base);
}

Result<SamplingSetup> SetUpSampling(const Session& session, const PrivateSampleOptions& o, uint32_t num_items) {
  WISP_RETURN_IF_ERROR(CheckSampleBackends(session, o.base));
  WISP_RETURN_IF_ERROR(CheckBase(session, o));
  PrivateSamplerOptions s{.mode = DecodingMode::kPlain,
                          .num_items = num_items,
                          .temperature = o.temperature,
                          .top_k = o.top_k,
                          .nucleus = o.nucleus,
                          .contexts = o.contexts,
                          .run = o.run,
                          .samples_per_charge = o.samples_per_charge,
                          .charge_for = o.charge_for,
                          .reproducible_seed = o.reproducible_seed,
                          .selection = o.selection,
                          .after_mixing = o.after_mixing};
  WISP_ASSIGN_OR_RETURN(s.need, FindSamplesNeed(session, o));
  const bool charged = s.need.kind == DecodingNeed::Kind::kCharge;
  if (charged) {
    s.ledger = o.ledger;
    WISP_RETURN_IF_ERROR(SetUpCharge(o, s));
  }
  WISP_RETURN_IF_ERROR(CheckLedgerHas(session, o));
  WISP_ASSIGN_OR_RETURN(PrivateSampler sampler, PrivateSampler::Create(s));
  const SampleCost cost = MaxSampleCost(s, LargestSupport(o, num_items));
  SamplePromise promise;
  if (charged) {
    WISP_ASSIGN_OR_RETURN(promise, MakePromise(o, cost));
    WISP_RETURN_IF_ERROR(CheckLimit(o, promise));
  }
  return SamplingSetup{.reason = std::move(s.need.reason),
                       .mode = s.mode,
                       .lambda = s.lambda,
                       .clip = s.clip,
                       .cost = cost,
                       .sampler = std::move(sampler),
                       .promise = std::move(promise)};
}

}  // namespace wisp
