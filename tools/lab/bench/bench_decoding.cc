#include "tools/lab/bench/bench_decoding.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/core/hex.h"
#include "runtime/core/threads.h"
#include "runtime/private_sampling/decoding_quality.h"
#include "runtime/inference/session.h"
#include "runtime/privacy/accounting/decoding_calibration.h"
#include "runtime/train/run/records.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

constexpr double kOutside = -1;  // stands for a probability where the next item is not in the support

// A file without provenance was never trained (wisp new), so it has seen no records.
Status CheckBase(const std::string& path, const ModelFile& base, const ModelFile& model,
                 const std::vector<std::string>& public_datasets) {
  if (!base.provenance().empty()) {
    const DecodingNeed need = FindNeed(base, {.public_datasets = public_datasets});
    if (need.kind != DecodingNeed::Kind::kFree) {
      return PrivacyRefused(path, ": the base model must be public: ", need.reason);
    }
  }
  bool same = base.num_items() == model.num_items() && base.has_item_keys() == model.has_item_keys();
  for (size_t i = 0; same && model.has_item_keys() && i < model.num_items(); ++i)
    same = base.item_key(i) == model.item_key(i);
  return same ? OkStatus() : InvalidArgument(path, ": the base model has other items than the model");
}

// The law by which a cell samples, and its cost.
struct Law {
  ItemLaw item;
  size_t base_top = 0;
  bool of_base = false;
  Json figures = Json::object();
};

Result<Law> MakeLaw(const DecodeCell& c, uint64_t num_items) {
  Law law{.item = {.mode = c.mode, .temperature = c.temperature}, .base_top = c.base_top, .of_base = c.of_base};
  if (c.base_top > num_items)
    return InvalidArgument("the support base:", c.base_top, " is larger than the catalogue of ", num_items);
  if (c.mode == DecodingMode::kPlain) return law;
  const bool pure = c.composition == DecodeCell::Composition::kPure, anchored = c.mode == DecodingMode::kBaseAnchored;
  const privacy::PublicMixture uniform{.support = c.base_top > 0 ? c.base_top : num_items};
  double epsilon = c.epsilon, lambda = 0, range = 0;
  if (pure) {
    const privacy::PureRequest request{.epsilon = c.epsilon, .samples = c.samples};
    WISP_ASSIGN_OR_RETURN(const auto m,
                          anchored ? privacy::PureBoundedRange(request) : privacy::PureResponse(request, uniform));
    lambda = m.lambda();
    range = m.range();
    epsilon = m.PureEpsilonPerStep() * static_cast<double>(c.samples);
  } else {
    WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(c.epsilon, c.delta));
    const privacy::SampleRequest request{.target = target, .samples = c.samples};
    WISP_ASSIGN_OR_RETURN(const auto calibrated, anchored ? privacy::CalibrateBoundedRange(request)
                                                          : privacy::CalibrateResponse(request, uniform));
    lambda = calibrated.mechanism.lambda();
    range = calibrated.mechanism.range();
    epsilon = calibrated.epsilon;
  }
  if (anchored) {
    WISP_ASSIGN_OR_RETURN(law.item.clip, ClipForRange(range, c.temperature));
  } else {
    law.item.lambda = lambda;
  }
  law.figures = {{"epsilon", epsilon},
                 {"delta", c.delta},
                 {"samples", c.samples},
                 {anchored ? "clip" : "lambda", anchored ? law.item.clip : law.item.lambda}};
  return law;
}

// One thread's sessions, and its figures for a user.
struct Reader {
  std::unique_ptr<Session> model, base;
  std::vector<float> scores, base_scores;
  std::vector<uint8_t> seen;

  std::vector<int32_t> Left(std::span<const int32_t> history) {
    TakeUnoffered(history, {}, model->file().lists(), [this](int32_t item) { seen[static_cast<size_t>(item)] = 1; });
    std::vector<int32_t> left;
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == 0) left.push_back(static_cast<int32_t>(i));
    }
    std::fill(seen.begin(), seen.end(), uint8_t{0});
    return left;
  }

  Status Score(std::span<const int32_t> history) {
    WISP_RETURN_IF_ERROR(model->Score(history, scores));
    return base == nullptr ? OkStatus() : base->Score(history, base_scores);
  }

  Result<std::vector<int32_t>> BaseBest(std::span<const int32_t> history, size_t count) {
    WISP_ASSIGN_OR_RETURN(const auto best, base->Recommend(history, {.count = count}));
    std::vector<int32_t> support;
    support.reserve(best.size());
    for (const Recommendation& r : best) support.push_back(r.item);
    return support;
  }
};

class DecodingBench {
 public:
  DecodingBench(const DecodingData& data, std::vector<Law> laws) : d_(data), laws_(std::move(laws)) {}

  Result<std::vector<Json>> Run(std::span<const RankingCase> cases) {
    probabilities_.assign(laws_.size(), std::vector<double>(cases.size()));
    Workers workers(d_.threads == 0 ? DefaultThreads() : d_.threads);
    std::vector<Status> statuses(workers.size());
    workers.Run([&](size_t w) { statuses[w] = RunSome(cases, w, workers.size()); });
    for (const Status& status : statuses) WISP_RETURN_IF_ERROR(status);
    std::vector<Json> all;
    for (size_t l = 0; l < laws_.size(); ++l) {
      WISP_ASSIGN_OR_RETURN(Json figures, Figures(l, cases.size()));
      all.push_back(std::move(figures));
    }
    return all;
  }

 private:
  Status RunSome(std::span<const RankingCase> cases, size_t first, size_t stride) {
    Reader reader;
    WISP_ASSIGN_OR_RETURN(reader.model, Session::Open(d_.model, Backend::kSimd, Verify::kFull));
    if (!d_.base.empty()) {
      WISP_ASSIGN_OR_RETURN(reader.base, Session::Open(d_.base, Backend::kSimd, Verify::kFull));
    }
    const size_t num_items = reader.model->architecture().num_items;
    reader.scores.resize(num_items);
    if (reader.base != nullptr) reader.base_scores.resize(num_items);
    reader.seen.assign(num_items, 0);
    for (size_t i = first; i < cases.size(); i += stride) WISP_RETURN_IF_ERROR(Add(reader, cases[i], i));
    return OkStatus();
  }

  Status Add(Reader& reader, const RankingCase& c, size_t index) {
    WISP_RETURN_IF_ERROR(reader.Score(c.history));
    const std::vector<int32_t> left = reader.Left(c.history);
    std::vector<int32_t> best;  // the base's best items, as many as the largest support among the laws takes
    size_t best_of = 0;
    for (size_t l = 0; l < laws_.size(); ++l) {
      const size_t top = laws_[l].base_top;
      if (top > 0 && best_of != top) {
        WISP_ASSIGN_OR_RETURN(best, reader.BaseBest(c.history, top));
        best_of = top;
      }
      const std::vector<int32_t>& support = top > 0 ? best : left;
      const bool inside = std::find(support.begin(), support.end(), c.target) != support.end();
      const ItemScores scores{laws_[l].of_base ? reader.base_scores : reader.scores, reader.base_scores};
      probabilities_[l][index] = inside ? ItemProbability(laws_[l].item, scores, support, c.target) : kOutside;
    }
    return OkStatus();
  }

  // Sums in the order of users, so that any number of threads gives the same bits.
  Result<Json> Figures(size_t law, size_t num_users) const {
    Perplexity sum;
    for (const double p : probabilities_[law]) {
      if (p != kOutside) sum.Add(p);
    }
    if (sum.count() == 0) return InvalidData(d_.data.path, ": no user's next item is in the support");
    if (!std::isfinite(sum.Value()))
      return InvalidData(d_.model, ": its probability of some user's next item is 0, the perplexity is infinite");
    Json figures = {{"perplexity", sum.Value()},
                    {"users", num_users},
                    {"covered", static_cast<double>(sum.count()) / static_cast<double>(num_users)}};
    figures.update(laws_[law].figures);
    return figures;
  }

  const DecodingData& d_;
  std::vector<Law> laws_;
  std::vector<std::vector<double>> probabilities_;  // for each law, for each user's next item
};

Status CheckSize(const DecodingData& d, const data::Sequences& sequences) {
  const size_t users = sequences.num_users(), items = sequences.item_keys.size();
  if ((d.users == 0 || users == d.users) && (d.items == 0 || items == d.items)) return OkStatus();
  return InvalidData(d.data.path, " has ", users, " users over a catalogue of ", items, " items, the table wants ",
                     d.users, " and ", d.items);
}

}  // namespace

Result<DecodingFiles> CheckDecodingFiles(const DecodingData& d) {
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(d.model));
  if (!model.provenance().empty() &&
      FindNeed(model, {.public_datasets = d.public_datasets}).kind == DecodingNeed::Kind::kFree) {
    return InvalidArgument(
        d.model,
        ": samples from it are free, as it carries a guarantee or its data is declared public; these "
        "cells want a model that "
        "was trained without privacy");
  }
  DecodingFiles files{.model = ToHex(model.content_hash())};
  if (d.base.empty()) return files;
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(d.base));
  WISP_RETURN_IF_ERROR(CheckBase(d.base, base, model, d.public_datasets));
  files.base = ToHex(base.content_hash());
  return files;
}

Result<std::vector<Json>> MeasureDecoding(const DecodingData& d, const std::vector<DecodeCell>& cells) {
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(d.model));
  std::vector<Law> laws;
  for (const DecodeCell& cell : cells) {
    WISP_ASSIGN_OR_RETURN(Law law, MakeLaw(cell, model.num_items()));
    laws.push_back(std::move(law));
  }
  WISP_ASSIGN_OR_RETURN(const data::ReadResult data, ReadData(d.data, {}, &model));
  WISP_RETURN_IF_ERROR(CheckSize(d, data.sequences));
  const RecordSet set = MakeRecords(data.sequences, model.architecture().max_length, HoldOut::kValidationAndTest);
  if (set.test.empty()) return InvalidData(d.data.path, ": no user has enough events to be tested");
  return DecodingBench(d, std::move(laws)).Run(set.test);
}

}  // namespace wisp::tools
