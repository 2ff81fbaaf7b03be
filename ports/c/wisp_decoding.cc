// The C interface's private recommending: sampling items and charging the ledger for them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ports/c/anchor_c.h"
#include "ports/c/sampling_c.h"
#include "ports/c/options_c.h"
#include "ports/c/status_c.h"
#include "runtime/private_sampling/private_recommender.h"
#include "runtime/privacy/statement.h"

struct wisp_private_recommender {
  std::optional<wisp::privacy::Ledger> ledger;
  std::optional<wisp::PrivateRecommender> recommender;
};

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::Guarded;
namespace privacy = wisp::privacy;

Status CheckSampleOptions(const wisp_private_options& o) {
  WISP_RETURN_IF_ERROR(wisp::ports::CheckNumbers("wisp_private_options", {{"lambda", o.lambda},
                                                                          {"clip", o.clip},
                                                                          {"epsilon_per_sample", o.epsilon_per_sample},
                                                                          {"epsilon", o.epsilon},
                                                                          {"delta", o.delta},
                                                                          {"budget_epsilon", o.budget_epsilon},
                                                                          {"temperature", o.temperature},
                                                                          {"top_p", o.top_p}}));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_private_options", o.public_datasets, o.num_public_datasets));
  for (size_t i = 0; i < o.num_public_datasets; ++i) {
    if (o.public_datasets[i] == nullptr)
      return InvalidArgument("wisp_private_options: a label of public_datasets is NULL");
  }
  if ((o.epsilon > 0) != (o.planned_samples > 0))
    return InvalidArgument("wisp_private_options: epsilon and planned_samples belong together");
  return OkStatus();
}

std::optional<double> Given(double value) { return value > 0 ? std::optional<double>(value) : std::nullopt; }

Result<wisp::SampleGoal> MakeGoal(const wisp_private_options& o) {
  wisp::SampleGoal goal{
      .lambda = Given(o.lambda), .clip = Given(o.clip), .epsilon_per_sample = Given(o.epsilon_per_sample)};
  if (o.epsilon == 0) return goal;
  WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(o.epsilon, o.delta));
  goal.planned = wisp::SampleGoal::Planned{target, o.planned_samples};
  return goal;
}

Result<std::optional<wisp::DecodingMode>> ChooseMode(const wisp_private_options& o) {
  using Mode = std::optional<wisp::DecodingMode>;
  const int32_t decoding = wisp::ports::GetNumber(o.decoding);
  switch (decoding) {
    case WISP_DECODING_DEFAULT:
      return Mode();
    case WISP_DECODING_MIXED:
      return Mode(wisp::DecodingMode::kUniform);
    case WISP_DECODING_ANCHORED:
      return Mode(wisp::DecodingMode::kBaseAnchored);
  }
  return InvalidArgument("wisp_private_options: there is no decoding ", decoding);
}

// Empty if the caller chose no unit.
Result<std::optional<privacy::PrivacyUnit>> SampleUnit(const wisp_private_options& o) {
  const int32_t number = wisp::ports::GetNumber(o.unit);
  const auto unit = wisp::ports::UnitFromNumber(number);
  if (unit || number == 0) return unit;
  return InvalidArgument("wisp_private_options: unit is ", number, ", allowed are 0 and those of wisp_unit");
}

}  // namespace

namespace wisp::ports {

Result<ReadSamples> ReadPrivateSamples(const wisp_private_options& given, const std::string& run) {
  WISP_ASSIGN_OR_RETURN(const auto o, MakeOptions(&given, "wisp_private_options"));
  WISP_RETURN_IF_ERROR(CheckSampleOptions(o));
  ReadSamples read{.options = {.temperature = o.temperature == 0 ? 1 : o.temperature,
                               .top_k = o.top_k,
                               .nucleus = o.top_p == 0 ? 1 : o.top_p,
                               .num_records_public = o.num_records_public,
                               .allow_large_delta = o.allow_large_delta != 0,
                               .other_data = o.other_data != 0,
                               .samples_per_charge = std::max(1u, o.samples_per_charge)},
                   .public_datasets = {o.public_datasets, o.public_datasets + o.num_public_datasets},
                   .base_model = o.base_model};
  WISP_ASSIGN_OR_RETURN(read.options.mode, ChooseMode(o));
  WISP_ASSIGN_OR_RETURN(read.options.goal, MakeGoal(o));
  if (o.budget_epsilon > 0) {
    WISP_ASSIGN_OR_RETURN(read.options.new_limit, privacy::EpsilonDelta::Create(o.budget_epsilon, o.delta));
  }
  const std::string tuning = o.uncharged_tuning == nullptr ? "" : o.uncharged_tuning;
  WISP_RETURN_IF_ERROR(privacy::CheckTuning("wisp_private_options: uncharged_tuning", tuning));
  read.options.run = privacy::WithTuning(run, tuning);
  return read;
}

// Decoders learn lines, paragraphs or chunks, whoever wrote them.
SamplesShow ShownBy(const ModelFile& model) {
  return model.tokenizer().empty() ? SamplesShow::kRecords : SamplesShow::kTextRecords;
}

Status OpenGivenLedger(const wisp_private_options& given, const DecodingNeed& need, const std::string& named,
                       SamplesShow shown, std::optional<privacy::Ledger>& out) {
  WISP_ASSIGN_OR_RETURN(const auto o, MakeOptions(&given, "wisp_private_options"));
  if (o.ledger_path == nullptr) return OkStatus();
  WISP_ASSIGN_OR_RETURN(std::string dataset, DatasetToCharge(need));
  if (dataset.empty()) dataset = named;
  WISP_ASSIGN_OR_RETURN(const auto anchor, OpenAnchor(o.anchor));
  WISP_ASSIGN_OR_RETURN(const auto unit, SampleUnit(o));
  const bool of_texts = shown == SamplesShow::kTexts;
  const auto usual = shown == SamplesShow::kRecords ? privacy::PrivacyUnit::kUser : privacy::PrivacyUnit::kInteraction;
  const privacy::RecordSpec record = MakeSampleRecord(unit.value_or(usual), of_texts);
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::Open(o.ledger_path, {.dataset = dataset,
                                                              .record = record,
                                                              .unit_chosen = of_texts || unit.has_value(),
                                                              .anchor = anchor.kept,
                                                              .begin_anchor = anchor.begins}));
  WISP_RETURN_IF_ERROR(ledger.CheckDataset(dataset));
  out.emplace(std::move(ledger));
  return OkStatus();
}

}  // namespace wisp::ports

namespace {

Status Open(wisp_model* model, const wisp_private_options* given, wisp_private_recommender** out) {
  if (model == nullptr || given == nullptr || out == nullptr) {
    return InvalidArgument("wisp_private_recommender_open: model, options and recommender must not be NULL");
  }
  WISP_ASSIGN_OR_RETURN(const wisp::ports::ReadSamples read,
                        wisp::ports::ReadPrivateSamples(*given, wisp::PrivateSampleOptions().run));
  wisp::PrivateRecommenderOptions options = read.options;
  options.public_datasets = read.public_datasets;
  if (read.base_model != nullptr) options.base = &wisp::ports::GetSession(read.base_model);
  auto made = std::make_unique<wisp_private_recommender>();
  const wisp::DecodingNeed need = wisp::FindNeed(wisp::ports::GetSession(model).file(), wisp::MakePolicy(options));
  WISP_RETURN_IF_ERROR(wisp::CheckSampleBackends(wisp::ports::GetSession(model), options.base));
  // Samples from damaged weights must not be paid for, so weights are verified here even if opening skipped that.
  WISP_RETURN_IF_ERROR(wisp::ports::GetSession(model).file().VerifyWeights());
  if (options.base != nullptr) WISP_RETURN_IF_ERROR(options.base->file().VerifyWeights());
  const auto shown = wisp::ports::ShownBy(wisp::ports::GetSession(model).file());
  WISP_RETURN_IF_ERROR(wisp::ports::OpenGivenLedger(*given, need, "", shown, made->ledger));
  options.ledger = made->ledger ? &*made->ledger : nullptr;
  WISP_ASSIGN_OR_RETURN(wisp::PrivateRecommender recommender,
                        wisp::PrivateRecommender::Create(wisp::ports::GetSession(model), options));
  made->recommender.emplace(std::move(recommender));
  *out = made.release();
  return OkStatus();
}

Status RecommendItems(wisp_private_recommender* r, const int32_t* history, size_t num_history,
                      const wisp_recommend_options* given, int32_t* items, size_t* count) {
  if (r == nullptr || (history == nullptr && num_history > 0) || items == nullptr || count == nullptr) {
    return InvalidArgument("wisp_private_recommend: recommender, history, items and count must not be NULL");
  }
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_recommend_options"));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_private_recommend", o.excluded, o.num_excluded));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_private_recommend", o.candidates, o.num_candidates));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_private_recommend", history, num_history));
  wisp::PrivateRecommendOptions options{.count = wisp::ports::GetCount(o, *count)};
  WISP_ASSIGN_OR_RETURN(options.seen, wisp::ports::ReadSeen(o));
  options.excluded = {o.excluded, o.num_excluded};
  options.candidates = {o.candidates, o.num_candidates};
  WISP_ASSIGN_OR_RETURN(const auto sampled, r->recommender->Recommend({history, num_history}, options));
  std::copy(sampled.begin(), sampled.end(), items);
  *count = sampled.size();
  return OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_private_recommender_open(wisp_model* model, const wisp_private_options* options,
                                        wisp_private_recommender** recommender, wisp_error* error) {
  return Guarded(error, [&] { return Open(model, options, recommender); });
}

void wisp_private_recommender_close(wisp_private_recommender* recommender) { delete recommender; }

int32_t wisp_private_recommender_is_free(const wisp_private_recommender* recommender) {
  return recommender != nullptr && recommender->recommender->is_free() ? 1 : 0;
}

wisp_code wisp_private_recommend(wisp_private_recommender* recommender, const int32_t* history, size_t num_history,
                                 const wisp_recommend_options* options, int32_t* items, size_t* count,
                                 wisp_error* error) {
  return Guarded(error, [&] { return RecommendItems(recommender, history, num_history, options, items, count); });
}

}  // extern "C"
