// Implements `wisp-lab bench --what sparse`: the cost of a private step when the item table grows, for DP-AdaFEST and
// dense DP-SGD.
//
// Both train the same model (d = 64, one block, 8 positions, a sampled softmax of 256 negatives) on the same records
// with the same expected batch; they differ only in how they treat the item table. Catalogues run one after the other,
// because the largest needs 13 GB for the dense method: weights, two moments, and an exact sum of 64-bit integers.
#include <algorithm>
#include <cmath>

#include "runtime/train/run/initialise.h"
#include "runtime/train/trainer.h"
#include "tools/lab/bench/bench_parts.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kLength = 8, kNegatives = 256;
constexpr uint32_t kRecords = 16384;
constexpr size_t kDenseSteps = 3;

struct SparseProblem {
  explicit SparseProblem(uint32_t num_items) {
    architecture = UniformArchitecture{.num_items = num_items,
                                       .max_length = kLength,
                                       .width = 64,
                                       .num_heads = 1,
                                       .num_blocks = 1,
                                       .inner_width = 64,
                                       .embedding_scale = 8};
    auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
    weights.assign(FlatSize(ListParameters(architecture)), 0.01f);
    items.resize(size_t{kRecords} * (kLength + 1));
    // Popularity falls like 1 / rank: the item of rank r is sampled with probability about 1 / (r log M).
    for (int32_t& item : items)
      item = static_cast<int32_t>(std::exp(random.UniformDouble() * std::log(static_cast<double>(num_items)))) - 1;
    for (size_t r = 0; r < kRecords; ++r) {
      const std::span<const int32_t> all(items.data() + r * (kLength + 1), kLength + 1);
      records.push_back({all.first(kLength), all.last(kLength)});
    }
  }
  Architecture architecture;
  std::vector<float> weights;
  std::vector<int32_t> items;
  std::vector<Record> records;
};

TrainingOptions Options(const BenchArguments& a, Method method, privacy::Ledger* ledger) {
  TrainingOptions o{.method = method,
                    .sampling = Sampling::kPoisson,
                    .num_steps = 1000000,
                    .expected_batch = a.batch,
                    .num_records_public = kRecords,
                    .optimizer = {.learning_rate = 1e-4f},
                    .num_threads = a.threads};
  o.num_negatives = kNegatives;
  o.sparse = {.map_clipping_norm = 1, .map_threshold = 8, .map_noise_ratio = 1};
  // The noise of the pair is sqrt(2), so untouched rows survive beyond 5.6 deviations: one in 1e8.
  o.privacy = {.noise_multiplier = 1, .ledger = ledger, .run = "bench", .steps_per_charge = 1000000};
  return o;
}

Result<std::vector<double>> TimeSteps(const BenchArguments& a, const SparseProblem& problem, Method method,
                                      size_t steps) {
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  WISP_ASSIGN_OR_RETURN(
      privacy::Ledger ledger,
      privacy::Ledger::Open(folder.File("ledger"), {.dataset = "bench", .record = privacy::RecordSpec::OfEvents({})}));
  WISP_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(problem.architecture, problem.weights, problem.records,
                                                      Options(a, method, &ledger)));
  WISP_RETURN_IF_ERROR(trainer->Step().status());
  std::vector<double> samples;
  for (size_t i = 0; i < steps; ++i) {
    Status status;
    samples.push_back(Seconds([&] { status = trainer->Step().status(); }));
    WISP_RETURN_IF_ERROR(status);
  }
  return samples;
}

struct SparseSeconds {
  std::vector<double> sparse, dense;  // times of single steps
};

Result<SparseSeconds> TimeBoth(const BenchArguments& a, uint32_t num_items) {
  if (a.batch > kRecords / 2)
    return InvalidArgument("--batch is ", a.batch, ", allowed are 1 to ", kRecords / 2, " for sparse steps");
  const SparseProblem problem(num_items);
  SparseSeconds seconds;
  WISP_ASSIGN_OR_RETURN(seconds.sparse, TimeSteps(a, problem, Method::kAdaFest, a.repeats));
  WISP_ASSIGN_OR_RETURN(seconds.dense,
                        TimeSteps(a, problem, Method::kPhantom, std::min<size_t>(a.repeats, kDenseSteps)));
  return seconds;
}

Json StepFigures(const BenchArguments& a, const std::vector<double>& seconds) {
  const Spread s = ComputeSpread(seconds);
  return {{"batch", a.batch},
          {"items", a.items},
          {"positions", kLength},
          {"negatives", kNegatives},
          {"seconds_of_100_steps", 100 * s.median},
          {"step_seconds", s.median},
          {"step_seconds_quartile_1", s.low},
          {"step_seconds_quartile_3", s.high},
          {"steps_measured", seconds.size()}};
}

}  // namespace

Result<std::vector<MethodFigures>> MeasureSparse(const BenchArguments& a) {
  Result<SparseSeconds> measured = SparseSeconds();
  const double total = Seconds([&] { measured = TimeBoth(a, a.items); });
  WISP_ASSIGN_OR_RETURN(const SparseSeconds seconds, std::move(measured));
  std::vector<MethodFigures> all = {{"adafest", StepFigures(a, seconds.sparse)},
                                    {"dense", StepFigures(a, seconds.dense)}};
  all[0].figures["dense_over_adafest"] = ComputeSpread(seconds.dense).median / ComputeSpread(seconds.sparse).median;
  for (MethodFigures& m : all) m.figures["measured_seconds"] = total;
  return all;
}

Status BenchSparse(const BenchArguments& a, Json& result) {
  Json rows = Json::object();
  for (uint32_t num_items : {100'000u, 1'000'000u, 10'000'000u}) {
    WISP_ASSIGN_OR_RETURN(const SparseSeconds seconds, TimeBoth(a, num_items));
    const Spread sparse = ComputeSpread(seconds.sparse), dense = ComputeSpread(seconds.dense);
    rows[std::to_string(num_items)] = {{"adafest_step_seconds", ToJson(sparse)},
                                       {"dense_step_seconds", ToJson(dense)},
                                       {"dense_over_adafest", dense.median / sparse.median}};
  }
  result["sparse"] = {{"records", a.batch}, {"positions", kLength}, {"negatives", kNegatives}, {"items", rows}};
  return OkStatus();
}

}  // namespace wisp::tools
