// Times scoring, after a comparison with the reference kernels: a top 10 after a whole history, after a history that
// grew by one event, with loading the model, and sampled privately.
#include "runtime/private_sampling/private_recommender.h"
#include "runtime/inference/batch_recommender.h"
#include "tools/lab/bench/bench_checks.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/bench/fma_peak.h"
#include "tools/wisp/device.h"
#include "tools/wisp/resident_memory.h"

namespace wisp::tools {
namespace {

constexpr double kFloatScoreTolerance = 1e-4;  // relative to the largest score
constexpr double kInt8ScoreTolerance = 0.1;    // finds mistakes only; docs/small-models.md says what int8 costs

// Counts the multiply-adds of scoring a history of `length` items, as two operations each. Every block computes the
// keys and values of all positions. Everything else in the last block is computed for the last position alone.
double Flops(const Architecture& a, double length) {
  double sum = static_cast<double>(a.num_items) * a.width;
  for (size_t b = 0; b < a.blocks.size(); ++b) {
    const AttentionSpec& of = a.blocks[b].attention;
    const FeedForwardSpec& forward = a.blocks[b].feed_forward;
    const bool last = b + 1 == a.blocks.size();
    const double d = a.width, queries = last ? 1 : length, pairs = last ? length : length * (length + 1) / 2;
    const double q = of.queries_width(), kv = of.keys_width();
    sum += length * d * 2 * kv + queries * d * (2 * q + forward.in_rows() + forward.inner_width) + 2 * pairs * q;
  }
  return 2 * sum;
}

// Histories of one length that each differ from the one before in the oldest item, so that a session can reuse nothing.
class Histories {
 public:
  Histories(uint32_t length, uint32_t num_items) : num_items_(num_items) {
    for (uint32_t t = 0; t < length; ++t) items_.push_back(static_cast<int32_t>(t * 7919u % num_items));
  }
  std::span<const int32_t> Next() {
    items_[0] = static_cast<int32_t>((static_cast<uint32_t>(items_[0]) + 1) % num_items_);
    return items_;
  }

 private:
  uint32_t num_items_;
  std::vector<int32_t> items_;
};

class ScoringBench {
 public:
  ScoringBench(const BenchArguments& a, std::string path, const TemporaryFolder& folder)
      : a_(a), path_(std::move(path)), folder_(folder) {}

  // Times the whole way from a history in the host's memory to its best items in the host's memory.
  Status RunOnDevice(Json& result) {
    WISP_ASSIGN_OR_RETURN(const OpenedDevice device, OpenDevice(a_.device));
    WISP_ASSIGN_OR_RETURN(session_, Session::Open(path_, SessionOptions{.device = device.device}));
    histories_.emplace(a_.length, session_->architecture().num_items);
    Json j = {{"history", a_.length},
              {"items", session_->architecture().num_items},
              {"device", device.description},
              {"planned_bytes", session_->planned_bytes()},
              {"planned_bytes_on_device", session_->memory().on_device}};
    const double tolerance = a_.device.arithmetic == "float32" ? kFloatScoreTolerance : kInt8ScoreTolerance;
    WISP_RETURN_IF_ERROR(CheckScores("a score", *session_, histories_->Next(), tolerance));
    WISP_RETURN_IF_ERROR(session_->Recommend(histories_->Next(), {.count = 10}).status());
    WISP_ASSIGN_OR_RETURN(j["top_10_ms"], WholeHistory(*session_));
    WISP_ASSIGN_OR_RETURN(j["appended_event_top_10_ms"], AppendedEvent(*session_));
    result["scoring"] = j;
    return Batches(result["batch"]);
  }

  Status Run(Json& result) {
    const auto before = MeasureResidentMemory();
    WISP_ASSIGN_OR_RETURN(session_, Session::Open(path_));
    histories_.emplace(a_.length, session_->architecture().num_items);
    Json j = {{"history", a_.length}, {"items", session_->architecture().num_items}, {"threads", 1}};
    WISP_RETURN_IF_ERROR(session_->Recommend(histories_->Next(), {.count = 10}).status());
    if (const auto after = MeasureResidentMemory(); before && after) {
      j["opened_own_bytes"] = after->own_bytes - before->own_bytes;
      // The model file, and those pages of the program that ran here for the first time.
      j["opened_mapped_bytes"] = after->mapped_bytes - before->mapped_bytes;
    }
    WISP_RETURN_IF_ERROR(CheckScores("a score", *session_, histories_->Next(), kFloatScoreTolerance));
    WISP_RETURN_IF_ERROR(BenchPeakShare(j));
    WISP_ASSIGN_OR_RETURN(j["appended_event_top_10_ms"], AppendedEvent(*session_));
    if (kernels::Int8Ops() != nullptr) {
      WISP_ASSIGN_OR_RETURN(const auto int8, Session::Open(path_, Backend::kInt8));
      WISP_RETURN_IF_ERROR(CheckScores("a score in int8", *int8, histories_->Next(), kInt8ScoreTolerance));
      WISP_ASSIGN_OR_RETURN(j["top_10_ms_int8"], WholeHistory(*int8));
      WISP_ASSIGN_OR_RETURN(j["appended_event_top_10_ms_int8"], AppendedEvent(*int8));
      j["planned_bytes_int8"] = int8->planned_bytes();
    }
    if (const size_t threads = a_.threads == 0 ? DefaultThreads() : a_.threads; threads > 1)
      WISP_RETURN_IF_ERROR(SeveralThreads(threads, j["several_threads"]));
    WISP_RETURN_IF_ERROR(Float16Tables(j));
    if (kernels::XnnpackOps() != nullptr) {
      WISP_ASSIGN_OR_RETURN(const auto other, Session::Open(path_, Backend::kXnnpack));
      WISP_RETURN_IF_ERROR(CheckScores("a score by XNNPACK", *other, histories_->Next(), kFloatScoreTolerance));
      WISP_ASSIGN_OR_RETURN(j["top_10_ms_xnnpack"], WholeHistory(*other));
    }
    WISP_ASSIGN_OR_RETURN(j["open_and_top_10_ms"], Cold());
    j["planned_bytes"] = session_->planned_bytes();
    j["file_bytes"] = session_->file().size_bytes();
    result["scoring"] = j;
    WISP_RETURN_IF_ERROR(Batches(result["batch"]));
    return Sampling(result["sampling"]);
  }

 private:
  // Returns the milliseconds of `work`, `count` times.
  Result<std::vector<double>> Samples(size_t count, const std::function<Status()>& work) const {
    std::vector<double> samples;
    Status status;
    for (size_t i = 0; i < count; ++i) {
      samples.push_back(1e3 * Seconds([&] { status = work(); }));
      WISP_RETURN_IF_ERROR(status);
    }
    return samples;
  }

  Result<Json> WholeHistory(Session& session) {
    WISP_ASSIGN_OR_RETURN(const auto samples, Samples(repeats() * 5, [&] {
                            return session.Recommend(histories_->Next(), {.count = 10}).status();
                          }));
    return ToJson(ComputeSpread(samples));
  }

  // Times a whole history, and the share of the peak of multiply-adds that was measured just before.
  Status BenchPeakShare(Json& j) {
    const double flops = Flops(session_->architecture(), a_.length);
    std::vector<double> ms, percents;
    for (size_t i = 0; i < repeats() * 5; ++i) {
      double peak = 0;
      for (int probe = 0; probe < 20; ++probe) peak = std::max(peak, FmaProbe());
      Status status;
      ms.push_back(1e3 * Seconds([&] { status = session_->Recommend(histories_->Next(), {.count = 10}).status(); }));
      WISP_RETURN_IF_ERROR(status);
      percents.push_back(100 * flops / (1e6 * ms.back()) / peak);
    }
    j["top_10_ms"] = ToJson(ComputeSpread(ms));
    j["mflops"] = flops / 1e6;
    j["percent_of_peak"] = ToJson(ComputeSpread(percents));
    return OkStatus();
  }

  // Times a whole history whose positions several threads share, in turns with one thread.
  Status SeveralThreads(size_t threads, Json& j) {
    j["threads"] = threads;
    for (const Backend backend : {Backend::kSimd, Backend::kInt8}) {
      if (!GetOps(backend).ok()) continue;
      WISP_ASSIGN_OR_RETURN(const auto alone, Session::Open(path_, backend));
      WISP_ASSIGN_OR_RETURN(const auto shared, Session::Open(path_, {.backend = backend, .num_threads = threads}));
      std::vector<double> ms, over_one;
      Status status;
      for (uint32_t i = 0; i <= repeats() * 5; ++i) {
        const auto history = histories_->Next();
        const auto sample = [&](Session& s) {
          return 1e3 * Seconds([&] { status = s.Recommend(history, {.count = 10}).status(); });
        };
        const double one = sample(*alone);
        WISP_RETURN_IF_ERROR(status);
        const double several = sample(*shared);
        WISP_RETURN_IF_ERROR(status);
        if (i == 0) continue;  // warms up
        ms.push_back(several);
        over_one.push_back(one / several);
      }
      const std::string suffix = backend == Backend::kInt8 ? "_int8" : "";
      j["top_10_ms" + suffix] = ToJson(ComputeSpread(ms));
      j["over_one_thread" + suffix] = ToJson(ComputeSpread(over_one));
    }
    return OkStatus();
  }

  // Times the last event of a history whose other events the session has just seen.
  Result<Json> AppendedEvent(Session& session) {
    std::vector<double> samples;
    for (uint32_t i = 0; i < repeats() * 5; ++i) {
      const auto history = histories_->Next();
      Status status = history.size() > 1 ? session.Recommend(history.first(history.size() - 1), {.count = 10}).status()
                                         : OkStatus();
      WISP_RETURN_IF_ERROR(status);
      samples.push_back(1e3 * Seconds([&] { status = session.Recommend(history, {.count = 10}).status(); }));
      WISP_RETURN_IF_ERROR(status);
    }
    return ToJson(ComputeSpread(samples));
  }

  // Times the same weights with float16 tables. It does nothing if they are float16 already or do not fit into float16.
  Status Float16Tables(Json& j) {
    const std::string path = folder_.File("f16.wisp");
    const ModelFile& file = session_->file();
    if (file.flat_weights().empty()) return OkStatus();
    if (!WriteModel(
             path,
             {.architecture = file.architecture(), .weights = file.flat_weights(), .storage = WeightStorage::kHalf})
             .ok())
      return OkStatus();
    WISP_ASSIGN_OR_RETURN(const auto halves, Session::Open(path));
    WISP_RETURN_IF_ERROR(
        CheckScores("a score from tables of 16 bits", *halves, histories_->Next(), kFloatScoreTolerance));
    WISP_ASSIGN_OR_RETURN(j["top_10_ms_f16"], WholeHistory(*halves));
    WISP_ASSIGN_OR_RETURN(j["appended_event_top_10_ms_f16"], AppendedEvent(*halves));
    j["planned_bytes_f16"] = halves->planned_bytes();
    return OkStatus();
  }

  Result<Json> Cold() {
    WISP_ASSIGN_OR_RETURN(const auto samples, Samples(repeats(), [&]() -> Status {
                            WISP_ASSIGN_OR_RETURN(const auto opened, Session::Open(path_));
                            return opened->Recommend(histories_->Next(), {.count = 10}).status();
                          }));
    return ToJson(ComputeSpread(samples));
  }

  // Times batches of 1, 8 and 32 histories, in turns with as many one by one on one thread. Reports histories per
  // second.
  Status Batches(Json& result) {
    const uint32_t num_items = session_->architecture().num_items;
    WISP_ASSIGN_OR_RETURN(const auto recommender, BatchRecommender::Create(*session_, {.num_threads = a_.threads}));
    result = {{"threads", recommender->num_threads()}, {"planned_bytes", recommender->memory().total()}};
    for (const size_t size : {1, 8, 32}) {
      std::vector<int32_t> items(size * a_.length);
      for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int32_t>((i * 7919 + i / a_.length) % num_items);
      std::vector<std::span<const int32_t>> histories;
      for (size_t i = 0; i < size; ++i) histories.push_back(std::span(items).subspan(i * a_.length, a_.length));
      std::vector<Recommendation> best(size * 10);
      std::vector<size_t> found(size);
      std::vector<double> rates, ratios;
      Status status;
      for (uint32_t i = 0; i <= repeats(); ++i) {
        const double together =
            Seconds([&] { status = recommender->Recommend(histories, {.count = 10}, best, found); });
        WISP_RETURN_IF_ERROR(status);
        double alone = 0;
        for (size_t h = 0; h < size; ++h) {
          const auto fresh = histories_->Next();  // the cache holds nothing of it
          alone += Seconds([&] { status = session_->Recommend(fresh, {.count = 10}).status(); });
          WISP_RETURN_IF_ERROR(status);
        }
        if (i == 0) continue;  // warms up
        rates.push_back(static_cast<double>(size) / together);
        ratios.push_back(alone / together);
      }
      result[std::to_string(size)] = {{"histories_per_s", ToJson(ComputeSpread(rates))},
                                      {"over_one_by_one", ToJson(ComputeSpread(ratios))}};
    }
    return OkStatus();
  }

  // Compares sampling ten items privately with finding the ten best, in turns. The durable charge, a disk sync for each
  // block, is taken once before. Anchored decoding also scores the base, which costs as much as the model; that is left
  // out here.
  Status Sampling(Json& result) {
    WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                          privacy::Ledger::Open(folder_.File("ledger"),
                                                {.dataset = "bench", .record = privacy::RecordSpec::OfEvents({})}));
    PrivateSamplerOptions options{.num_items = session_->architecture().num_items,
                                  .lambda = 1e-3,
                                  .clip = 0.5,
                                  .ledger = &ledger,
                                  .run = "bench",
                                  .samples_per_charge = 1000000,
                                  .charge_for = ChargeFor::kWholeCatalogue};
    for (const DecodingMode mode : {DecodingMode::kUniform, DecodingMode::kBaseAnchored}) {
      options.mode = mode;
      WISP_ASSIGN_OR_RETURN(PrivateSampler sampler, PrivateSampler::Create(options));
      WISP_ASSIGN_OR_RETURN(result[mode == DecodingMode::kBaseAnchored ? "anchored" : "mixed"],
                            SampledOverBest(mode, sampler));
    }
    return OkStatus();
  }

  Result<Json> SampledOverBest(DecodingMode mode, PrivateSampler& sampler) {
    std::vector<float> scores(session_->architecture().num_items);
    const auto sample = [&]() -> Status {
      const auto history = histories_->Next();
      WISP_RETURN_IF_ERROR(session_->Score(history, scores));
      const auto base_scores =
          mode == DecodingMode::kBaseAnchored ? std::span<const float>(scores) : std::span<const float>();
      return sampler.Sample({.scores = scores, .base_scores = base_scores, .excluded = history, .count = 10}).status();
    };
    WISP_RETURN_IF_ERROR(sample());
    std::vector<double> best, sampled, ratios;
    Status status;
    for (uint32_t i = 0; i < repeats() * 10; ++i) {
      best.push_back(1e3 * Seconds([&] { status = session_->Recommend(histories_->Next(), {.count = 10}).status(); }));
      WISP_RETURN_IF_ERROR(status);
      sampled.push_back(1e3 * Seconds([&] { status = sample(); }));
      WISP_RETURN_IF_ERROR(status);
      ratios.push_back(sampled.back() / best.back());
    }
    return Json{{"top_10_ms", ToJson(ComputeSpread(best))},
                {"sampled_10_ms", ToJson(ComputeSpread(sampled))},
                {"sampled_over_top_10", ToJson(ComputeSpread(ratios))}};
  }

  // On a device the command line decides, because somebody without a GPU waits for its emulator.
  uint32_t repeats() const { return a_.device.name == "cpu" ? std::max(20u, a_.repeats) : a_.repeats; }

  const BenchArguments& a_;
  std::string path_;
  const TemporaryFolder& folder_;
  std::unique_ptr<Session> session_;
  std::optional<Histories> histories_;
};

}  // namespace

Status BenchScoring(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  std::string path = a.model;
  if (path.empty()) {
    const BenchProblem problem(OwnSubject(a));
    path = folder.File("model.wisp");
    WISP_RETURN_IF_ERROR(WriteModel(
        path, {.architecture = problem.architecture, .weights = problem.weights, .created_by = "wisp-lab bench"}));
  }
  ScoringBench bench(a, path, folder);
  return a.device.name == "cpu" ? bench.Run(result) : bench.RunOnDevice(result);
}

}  // namespace wisp::tools
