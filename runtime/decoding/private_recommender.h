// Recommending privately in one call: a session's scores, drawn from by a PrivateSampler, paid for from the data's
// ledger.
//
//   WISP_ASSIGN_OR_RETURN(auto target, privacy::EpsilonDelta::Create(2, 1e-6));
//   WISP_ASSIGN_OR_RETURN(auto recommender, PrivateRecommender::Create(*session, {.base = shipped.get(),
//       .goal = {.lifetime = DrawGoal::Lifetime{target, 5000}}, .public_datasets = labels, .ledger = &ledger}));
//   WISP_ASSIGN_OR_RETURN(const std::vector<int32_t> items, recommender.Recommend(history, {.count = 10}));
//
// Sensitivity: every draw is a mechanism whose cost is proved in draw_cost.h. What is released: the items, in the order
// they were drawn; never scores. Which line charges: PrivateSampler::Pay, before a random number is drawn. Where the
// provenance gives every data set a guarantee, or all are declared public, nothing is charged and no ledger is touched:
// the items are drawn from the softmax itself. What is protected, and what is not, is said in private_sampling.h.
#ifndef WISP_RUNTIME_DECODING_PRIVATE_RECOMMENDER_H_
#define WISP_RUNTIME_DECODING_PRIVATE_RECOMMENDER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/decoding/private_sampling.h"
#include "runtime/inference/session.h"

namespace wisp {

// How far draws may lean on the model: exactly one of these where draws are charged; not read where they are free.
struct DrawGoal {
  std::optional<double> lambda;            // mixed: the model's share itself
  std::optional<double> clip;              // anchored: c itself, in logits
  std::optional<double> epsilon_per_draw;  // of one draw, at delta 0
  // So much for `draws` draws together, by the accountant (decoding_calibration.h). A ledger on which nothing was spent
  // and which has no limit gets the target as its limit; one with spendings and no limit is refused: nothing would end
  // the draws.
  struct Lifetime {
    privacy::EpsilonDelta target;
    uint64_t draws = 0;
  };
  std::optional<Lifetime> lifetime;
};

struct PrivateRecommenderOptions {
  // kUniform or kBaseAnchored; absent: anchored where there is a base, else uniform.
  std::optional<DecodingMode> mode = std::nullopt;
  // The public model, as it was shipped: the same items. It must need no charge itself under `public_datasets`: its
  // data sets are declared public, or it was trained with a guarantee. Must outlive the recommender.
  Session* base = nullptr;
  DrawGoal goal = {};
  double temperature = 1;
  uint32_t top_k = 0;                                 // uniform: of the softmax, before mixing; 0: all
  double nucleus = 1;                                 // uniform: likewise; 1: all
  std::span<const std::string> public_datasets = {};  // DecodingPolicy; read by Create only
  // A public number; 0: unknown, then taken for 10,000. The delta of the goal and of a limit are held to it
  // (privacy::CheckDelta); that of a limit that stands already only where the number is known, and to 1 / records
  // alone where there are more than ten.
  uint64_t num_records_public = 0;
  bool allow_large_delta = false;  // up to 1 / records is accepted, as papers have it; not with ten records or fewer
  // Otherwise a ledger that lacks what the model, or the base, has spent on its data set is refused (check_paid.h).
  // True: the user's word that a data set of the ledger's name in their provenance is another one.
  bool other_data = false;

  // Set: the ledger's limit from now on, over everything. Only once nothing else is refused; not read where draws are
  // free.
  std::optional<privacy::EpsilonDelta> new_limit = std::nullopt;
  // Of the training data, must outlive the recommender; may be absent where draws are free.
  privacy::Ledger* ledger = nullptr;
  std::string run = "recommendations";
  uint32_t draws_per_charge = 1;  // PrivateSamplerOptions
  // With kSupportLeft epsilon_per_draw and lifetime are met for supports of at most `largest_support` items (0: all
  // items); a larger one, where mixing, costs more a draw and is charged so.
  ChargeFor charge_for = ChargeFor::kWholeCatalogue;
  uint32_t largest_support = 0;
  std::optional<uint64_t> reproducible_seed = std::nullopt;  // set: draws repeat and there is NO guarantee

  Selection selection = Selection::kSample;  // the others are refused, with the reason
  AfterMixing after_mixing = AfterMixing::kNothing;
};

// Under which the need of the model, and of the base, is read.
DecodingPolicy PolicyOf(const PrivateRecommenderOptions& options);

struct PrivateRecommendOptions {
  size_t count = 10;
  SeenItems seen = SeenItems::kExclude;
  std::span<const int32_t> excluded = {};
  std::span<const int32_t> candidates = {};  // the support, a PUBLIC list; empty: all items
  size_t base_top = 0;                       // above 0: of these, only the so many best of the base; a public choice
  SupportOrigin support_origin = SupportOrigin::kPublic;
};

// Used by one thread at a time, with its sessions.
class PrivateRecommender {
 public:
  // kUnsupported: a session, or a base (may be null), with another backend than kSimd.
  static Status CheckBackends(const Session& session, const Session* base);
  // `session` must outlive the recommender. kPrivacyRefused: what has no guarantee, or no ledger where a charge is
  // needed. kUnsupported: CheckBackends.
  static Result<PrivateRecommender> Create(Session& session, const PrivateRecommenderOptions& options);

  // `count` distinct items in the order drawn, fewer when not so many are left. kPrivacyRefused where the budget is
  // spent: then nothing was drawn. Errors depend on public values and on the ledger only.
  Result<std::vector<int32_t>> Recommend(std::span<const int32_t> history, const PrivateRecommendOptions& options);

  bool is_free() const { return mode_ == DecodingMode::kPlain; }
  const std::string& reason() const { return reason_; }  // why it is free, or is not
  DecodingMode mode() const { return mode_; }
  double lambda() const { return lambda_; }  // 0 unless mixing
  double clip() const { return clip_; }      // 0 unless anchored
  // Of one draw at delta 0, from the largest support that it was set up for; 0 where free.
  double epsilon_per_draw() const { return epsilon_per_draw_; }
  uint64_t draws_charged() const { return sampler_.draws_charged(); }  // by this object

 private:
  PrivateRecommender(Session& session, const PrivateRecommenderOptions& options, PrivateSamplerOptions&& set_up,
                     PrivateSampler sampler);
  Result<std::vector<int32_t>> SupportFromBase(std::span<const int32_t> history,
                                               const PrivateRecommendOptions& options);

  Session* session_;
  Session* base_;
  std::string reason_;
  DecodingMode mode_;
  double lambda_, clip_, epsilon_per_draw_ = 0;
  PrivateSampler sampler_;
  std::vector<float> scores_, base_scores_;  // the second is empty unless anchored
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_PRIVATE_RECOMMENDER_H_
