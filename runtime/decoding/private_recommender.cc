#include "runtime/decoding/private_recommender.h"

#include <algorithm>
#include <utility>

#include "kernels/kernels.h"
#include "runtime/decoding/check_paid.h"
#include "runtime/decoding/draw_law.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/accounting/decoding_calibration.h"
#include "runtime/privacy/json.h"

namespace wisp {
namespace {

using privacy::EpsilonDelta;

// What is proved holds for any scores; what the draws are worth was looked at with those of floats only.
Status CheckBackend(const char* which, const Session& session) {
  if (&session.graph().ops() == &kernels::BestOps()) return OkStatus();
  return Unsupported("recommending privately is for the default kernels, in float: open the ", which,
                     " without another backend");
}

// Scores of a base are read as public: that it is must follow from what it states of itself and from what the app
// declares.
Status CheckBase(const Session& session, const PrivateRecommenderOptions& o) {
  if (o.base == nullptr) return OkStatus();
  const ModelFile &base = o.base->file(), &model = session.file();
  if (const DecodingNeed need = NeedOf(base, PolicyOf(o)); need.kind != DecodingNeed::Kind::kFree) {
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

Result<DecodingMode> ModeOf(const PrivateRecommenderOptions& o) {
  const DecodingMode mode = o.mode.value_or(o.base != nullptr ? DecodingMode::kBaseAnchored : DecodingMode::kUniform);
  if (mode != DecodingMode::kUniform && mode != DecodingMode::kBaseAnchored)
    return InvalidArgument("recommending knows the modes mixed and anchored");
  if (mode == DecodingMode::kBaseAnchored && o.base == nullptr)
    return InvalidArgument("anchored recommending needs the base model");
  return mode;
}

// With a number of records that nobody declares, what is asked for now is held to so many.
constexpr double kAssumedRecords = 10'000;

Status CheckRequestedDelta(const std::string& whose, double delta, const PrivateRecommenderOptions& o) {
  if (o.num_records_public > 0)
    return privacy::CheckDelta(whose, delta, static_cast<double>(o.num_records_public), o.allow_large_delta);
  Status assumed = privacy::CheckDelta(whose, delta, kAssumedRecords, o.allow_large_delta);
  if (assumed.ok()) return assumed;
  return PrivacyRefused(assumed.message(),
                        "; so many are assumed where nobody declares their number (num_records_public)");
}

// A limit that stands was accepted before: what it must not do is publish a record of as many as are declared now.
Status CheckStandingDelta(double delta, const PrivateRecommenderOptions& o) {
  const double records = static_cast<double>(o.num_records_public);
  const bool few = records <= privacy::kFewRecords;  // of these it must keep CheckDelta's whole promise
  if (o.num_records_public == 0 || (!few && delta < 1 / records)) return OkStatus();
  return privacy::CheckDelta("the ledger's limit: its delta", delta, records, o.allow_large_delta);
}

Status CheckGoal(const PrivateRecommenderOptions& o, DecodingMode mode) {
  const DrawGoal& goal = o.goal;
  if (goal.lambda.has_value() + goal.clip.has_value() + goal.epsilon_per_draw.has_value() + goal.lifetime.has_value() !=
      1) {
    return InvalidArgument(
        "draws from this model are charged: exactly one of lambda (mixed) or clip (anchored), an epsilon per draw, or "
        "a target "
        "with a lifetime is needed");
  }
  if (goal.lambda && mode != DecodingMode::kUniform)
    return InvalidArgument("lambda was given, but the mode is anchored, which has a clip instead");
  if (goal.clip && mode != DecodingMode::kBaseAnchored)
    return InvalidArgument("a clip was given, but the mode is mixed, which has lambda instead");
  return goal.lifetime ? CheckRequestedDelta("the target's delta", goal.lifetime->target.delta(), o) : OkStatus();
}

// Nothing but a limit ends the draws after their lifetime.
Status CheckLimit(const PrivateRecommenderOptions& o) {
  if (o.new_limit) {
    WISP_RETURN_IF_ERROR(CheckRequestedDelta("the new limit's delta", o.new_limit->delta(), o));
    WISP_RETURN_IF_ERROR(o.ledger->CheckLimit(*o.new_limit));
    WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> now, o.ledger->Limit());
    const bool same = now && now->epsilon() == o.new_limit->epsilon() && now->delta() == o.new_limit->delta();
    return same ? OkStatus() : o.ledger->SetLimit(*o.new_limit);
  }
  WISP_ASSIGN_OR_RETURN(const std::optional<EpsilonDelta> limit, o.ledger->Limit());
  if (limit) return CheckStandingDelta(limit->delta(), o);
  if (!o.goal.lifetime) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const auto entries, o.ledger->Entries());
  if (entries.empty()) return o.ledger->SetLimit(o.goal.lifetime->target);
  return PrivacyRefused(
      "a target for all draws together, from data whose ledger has spendings and no limit: nothing would end the "
      "draws; "
      "limit the ledger first, over everything");
}

Result<double> LambdaOf(const PrivateRecommenderOptions& o, uint64_t support) {
  if (o.goal.lambda) return *o.goal.lambda;
  const privacy::PublicMixture uniform{.support = support};
  const auto adjacency = o.ledger->adjacency();
  if (o.goal.epsilon_per_draw) {
    WISP_ASSIGN_OR_RETURN(
        const auto m,
        privacy::PureResponse({.epsilon = *o.goal.epsilon_per_draw, .draws = 1, .adjacency = adjacency}, uniform));
    return m.lambda();
  }
  WISP_ASSIGN_OR_RETURN(
      const auto c, privacy::CalibrateResponse({o.goal.lifetime->target, o.goal.lifetime->draws, adjacency}, uniform));
  return c.mechanism.lambda();
}

Result<double> ClipOf(const PrivateRecommenderOptions& o) {
  if (o.goal.clip) return *o.goal.clip;
  double range = o.goal.epsilon_per_draw.value_or(0);
  if (o.goal.lifetime) {
    WISP_ASSIGN_OR_RETURN(const auto c, privacy::CalibrateBoundedRange(
                                            {o.goal.lifetime->target, o.goal.lifetime->draws, o.ledger->adjacency()}));
    range = c.mechanism.range();
  }
  return ClipForRange(range, o.temperature);
}

// All that is charged for: checked, and made into lambda or clip.
Status SetUpCharge(const PrivateRecommenderOptions& o, uint64_t support, PrivateSamplerOptions& s) {
  if (o.ledger == nullptr) {
    return PrivacyRefused(
        "private recommending from these weights needs a ledger, the file that remembers what was spent: ",
        s.need.reason);
  }
  WISP_ASSIGN_OR_RETURN(const std::string dataset, DatasetToCharge(s.need));
  if (!dataset.empty()) WISP_RETURN_IF_ERROR(o.ledger->CheckDataset(dataset));
  WISP_ASSIGN_OR_RETURN(s.mode, ModeOf(o));
  WISP_RETURN_IF_ERROR(CheckGoal(o, s.mode));
  if (s.mode == DecodingMode::kUniform) {
    WISP_ASSIGN_OR_RETURN(s.lambda, LambdaOf(o, support));
  } else {
    WISP_ASSIGN_OR_RETURN(s.clip, ClipOf(o));
  }
  return OkStatus();
}

// A lifetime is a plan, where the ledger is still empty: so many draws, none dearer than these, whatever they show.
Status PlanLifetime(const PrivateRecommenderOptions& o, uint64_t support, const PrivateSamplerOptions& s) {
  if (!o.goal.lifetime) return OkStatus();
  const DrawCost draw = s.mode == DecodingMode::kUniform ? UniformDrawCost(support, s.lambda)
                                                         : AnchoredDrawCost(s.clip, o.temperature, support);
  WISP_ASSIGN_OR_RETURN(const auto draws, ToMechanism(draw, o.goal.lifetime->draws, o.ledger->adjacency()));
  const privacy::ChargeRequest all{.mechanism = draws,
                                   .run = o.run,
                                   .noise = o.reproducible_seed ? privacy::NoiseKind::kReproducible
                                                                : privacy::NoiseKind::kSecure};
  return o.ledger->PlanRun({&all, 1});
}

// What model and base have spent on the ledger's data is part of what the ledger states, charged draws or free ones.
Status CheckLedgerHas(const Session& session, const PrivateRecommenderOptions& o) {
  if (o.ledger == nullptr || o.other_data) return OkStatus();
  WISP_RETURN_IF_ERROR(CheckPaid(session.file(), "the model", o.public_datasets, *o.ledger));
  return o.base == nullptr ? OkStatus() : CheckPaid(o.base->file(), "the base model", o.public_datasets, *o.ledger);
}

uint64_t SupportFor(const PrivateRecommenderOptions& o, uint64_t num_items) {
  const bool smaller = o.charge_for == ChargeFor::kSupportLeft && o.largest_support > 0;
  return smaller ? std::min<uint64_t>(o.largest_support, num_items) : num_items;
}

}  // namespace

DecodingPolicy PolicyOf(const PrivateRecommenderOptions& o) {
  const bool as_papers = o.allow_large_delta && static_cast<double>(o.num_records_public) > privacy::kFewRecords;
  return {.public_datasets = o.public_datasets, .num_records_public = as_papers ? 0 : o.num_records_public};
}

PrivateRecommender::PrivateRecommender(Session& session, const PrivateRecommenderOptions& options,
                                       PrivateSamplerOptions&& set_up, PrivateSampler sampler)
    : session_(&session),
      base_(options.base),
      reason_(std::move(set_up.need.reason)),
      mode_(set_up.mode),
      lambda_(set_up.lambda),
      clip_(set_up.clip),
      sampler_(std::move(sampler)),
      scores_(session.architecture().num_items),
      base_scores_(mode_ == DecodingMode::kBaseAnchored ? scores_.size() : 0) {
  const uint64_t support = SupportFor(options, scores_.size());
  if (mode_ == DecodingMode::kUniform) epsilon_per_draw_ = EpsilonOf(UniformDrawCost(support, lambda_));
  if (mode_ == DecodingMode::kBaseAnchored)
    epsilon_per_draw_ = EpsilonOf(AnchoredDrawCost(clip_, options.temperature, support));
}

Status PrivateRecommender::CheckBackends(const Session& session, const Session* base) {
  WISP_RETURN_IF_ERROR(CheckBackend("model", session));
  return base == nullptr ? OkStatus() : CheckBackend("base model", *base);
}

Result<PrivateRecommender> PrivateRecommender::Create(Session& session, const PrivateRecommenderOptions& o) {
  WISP_RETURN_IF_ERROR(CheckBackends(session, o.base));
  WISP_RETURN_IF_ERROR(CheckBase(session, o));
  PrivateSamplerOptions s{.mode = DecodingMode::kPlain,
                          .num_items = session.architecture().num_items,
                          .temperature = o.temperature,
                          .top_k = o.top_k,
                          .nucleus = o.nucleus,
                          .need = NeedOf(session.file(), PolicyOf(o)),
                          .run = o.run,
                          .draws_per_charge = o.draws_per_charge,
                          .charge_for = o.charge_for,
                          .reproducible_seed = o.reproducible_seed,
                          .selection = o.selection,
                          .after_mixing = o.after_mixing};
  const bool charged = s.need.kind == DecodingNeed::Kind::kCharge;
  if (charged) {
    s.ledger = o.ledger;
    WISP_RETURN_IF_ERROR(SetUpCharge(o, SupportFor(o, s.num_items), s));
  }
  WISP_RETURN_IF_ERROR(CheckLedgerHas(session, o));
  WISP_ASSIGN_OR_RETURN(PrivateSampler sampler, PrivateSampler::Create(s));
  // Last, for it may write: a request that was refused leaves the ledger as it is.
  if (charged) {
    WISP_RETURN_IF_ERROR(CheckLimit(o));
    WISP_RETURN_IF_ERROR(PlanLifetime(o, SupportFor(o, s.num_items), s));
  }
  return PrivateRecommender(session, o, std::move(s), std::move(sampler));
}

Result<std::vector<int32_t>> PrivateRecommender::SupportFromBase(std::span<const int32_t> history,
                                                                 const PrivateRecommendOptions& o) {
  if (base_ == nullptr)
    return InvalidArgument("the base's best items are to be drawn from, but there is no base model");
  WISP_ASSIGN_OR_RETURN(
      const auto best,
      base_->Recommend(history,
                       {.count = o.base_top, .seen = o.seen, .excluded = o.excluded, .candidates = o.candidates}));
  std::vector<int32_t> support;
  support.reserve(best.size());
  for (const Recommendation& r : best) support.push_back(r.item);
  return support;
}

Result<std::vector<int32_t>> PrivateRecommender::Recommend(std::span<const int32_t> history,
                                                           const PrivateRecommendOptions& o) {
  DrawRequest request{.scores = scores_,
                      .base_scores = base_scores_,
                      .candidates = o.candidates,
                      .count = o.count,
                      .support_origin = o.support_origin};
  std::vector<int32_t> support, excluded(o.excluded.begin(), o.excluded.end());
  const std::span<const int32_t> retired = session_->file().retired();  // public, as the catalogue is
  excluded.insert(excluded.end(), retired.begin(), retired.end());
  if (o.base_top > 0) {
    WISP_ASSIGN_OR_RETURN(support, SupportFromBase(history, o));
    if (support.empty()) return support;  // an empty list of candidates would stand for all items
    request.candidates = support;
  }
  WISP_RETURN_IF_ERROR(session_->Score(history, scores_));
  // Of weights that are drawn from freely. What the others' scores are may depend on their records: no error may tell.
  const auto finite = [](float score) { return score - score == 0; };
  if (is_free() && !std::all_of(scores_.begin(), scores_.end(), finite)) return session_->NotFinite();
  if (!base_scores_.empty()) {
    WISP_RETURN_IF_ERROR(base_->Score(history, base_scores_));
    Centre(scores_, base_scores_);
  }
  if (o.seen == SeenItems::kExclude) excluded.insert(excluded.end(), history.begin(), history.end());
  request.excluded = excluded;
  return sampler_.Draw(request);
}

}  // namespace wisp
