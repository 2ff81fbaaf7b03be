// wisp bench: training steps with and without privacy, scoring and load, beside the processor's measured FMA peak.
//
// The two methods take turns, step by step, in one process; figures are medians with their quartiles. On a noisy machine
// only ratios of one run mean much.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/data/synth.h"
#include "runtime/inference/session.h"
#include "runtime/train/initialise.h"
#include "runtime/train/trainer.h"
#include "tools/wisp/bench_parts.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/fma_peak.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {
namespace {

// The peak of `threads` threads at once, by probes between the samples.
double Peak(Workers& workers) {
  std::vector<double> best(workers.size(), 0);
  workers.Run([&](size_t w) {
    for (int i = 0; i < 300; ++i) best[w] = std::max(best[w], FmaProbe());
  });
  double sum = 0;
  for (double b : best) sum += b;
  return sum;
}

// Multiply-adds that a record of T positions needs, forward and backward, counted as two operations each. Attention is
// counted below the causal edge only; recomputation is not counted.
double RecordFlops(const Architecture& a, double t) {
  const double d = a.width, f = a.inner_width, m = a.num_items;
  const double linear = 2 * t * (4 * d * d + 2 * d * f);
  const double attention = 2 * t * t * d;  // forward: two products over half of T x T
  return 3 * 2 * t * m * d + a.num_blocks * (3 * linear + 3.5 * attention);
}

struct Problem {
  explicit Problem(const BenchArguments& arguments) {
    architecture = {.num_items = arguments.items, .max_length = arguments.length, .width = 64, .num_heads = 1, .num_blocks = 2,
                    .inner_width = 256, .embedding_scale = 8};
    auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
    weights.resize(FlatSize(ParametersOf(architecture)));
    InitialiseWeights(architecture, {}, random, weights);
    items.resize(size_t{arguments.batch} * (arguments.length + 1));
    for (int32_t& item : items) item = static_cast<int32_t>(random.UniformBelow(arguments.items));
    for (size_t r = 0; r < arguments.batch; ++r) {
      const std::span<const int32_t> all(items.data() + r * (arguments.length + 1), arguments.length + 1);
      records.push_back({all.first(arguments.length), all.last(arguments.length)});
    }
  }
  Architecture architecture;
  std::vector<float> weights;
  std::vector<int32_t> items;
  std::vector<Record> records;
};

TrainingOptions Options(const BenchArguments& a, Method method, privacy::Ledger* ledger) {
  TrainingOptions o{.method = method, .sampling = Sampling::kPoisson, .num_steps = 1000000, .expected_batch = a.batch,
                    .num_records_public = a.batch, .optimizer = {.learning_rate = 1e-4f}, .num_threads = a.threads};
  // A charge is a disk sync; it is taken once, for the whole bench.
  o.privacy = {.noise_multiplier = 1, .ledger = ledger, .run = "bench", .steps_per_charge = 1000000};
  return o;
}

Status BenchTraining(const BenchArguments& a, Json& result) {
  const Problem problem(a);
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(folder.File("ledger"), {.dataset = "bench"}));
  std::unique_ptr<Trainer> trainers[2];
  std::vector<double> samples[2], percents;
  for (size_t m = 0; m < 2; ++m) {
    WISP_ASSIGN_OR_RETURN(trainers[m], Trainer::Create(problem.architecture, problem.weights, problem.records,
                                                       Options(a, m == 0 ? Method::kOrdinary : Method::kPhantom, &ledger)));
    WISP_RETURN_IF_ERROR(trainers[m]->Step().status());
  }
  const double flops = RecordFlops(problem.architecture, a.length) * a.batch;
  std::vector<double> ratios;
  double peak = 0;
  for (uint32_t i = 0; i < a.repeats; ++i) {
    Status status;
    for (size_t m = 0; m < 2; ++m) {
      samples[m].push_back(Seconds([&] { status = trainers[m]->Step().status(); }));
      WISP_RETURN_IF_ERROR(status);
    }
    ratios.push_back(samples[1].back() / samples[0].back());
    const double roof = Peak(trainers[0]->workers());
    peak = std::max(peak, roof);
    percents.push_back(100 * flops / samples[0].back() / 1e9 / roof);
  }
  result["training"] = {{"records", a.batch}, {"positions", a.length}, {"items", a.items}, {"threads", trainers[0]->workers().size()},
                        {"ordinary_step_seconds", ToJson(SpreadOf(samples[0]))}, {"private_step_seconds", ToJson(SpreadOf(samples[1]))},
                        {"private_over_ordinary", ToJson(SpreadOf(ratios))}, {"gflops_per_step", flops / 1e9}, {"fma_peak_gflops", peak},
                        {"ordinary_percent_of_peak", ToJson(SpreadOf(percents))}, {"ordinary_bytes", trainers[0]->planned_bytes()},
                        {"private_bytes", trainers[1]->planned_bytes()},
                        {"private_over_ordinary_bytes", static_cast<double>(trainers[1]->planned_bytes()) / static_cast<double>(trainers[0]->planned_bytes())}};
  return OkStatus();
}

Status BenchScoring(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const Problem problem(a);
  std::string path = a.model;
  if (path.empty()) {
    path = folder.File("model.wisp");
    WISP_RETURN_IF_ERROR(WriteModel(path, {.architecture = problem.architecture, .weights = problem.weights, .created_by = "wisp bench"}));
  }
  WISP_ASSIGN_OR_RETURN(const auto session, Session::Open(path));
  std::vector<int32_t> history;
  for (uint32_t t = 0; t < a.length; ++t) history.push_back(static_cast<int32_t>(t * 7919u % session->architecture().num_items));
  std::vector<double> score, cold;
  Status status;
  for (uint32_t i = 0; i < std::max(20u, a.repeats) * 5; ++i) {
    score.push_back(1e3 * Seconds([&] { status = session->Recommend(history, {.count = 10}).status(); }));
    WISP_RETURN_IF_ERROR(status);
  }
  for (uint32_t i = 0; i < std::max(20u, a.repeats); ++i) {
    cold.push_back(1e3 * Seconds([&] {
      const auto opened = Session::Open(path);
      status = opened.ok() ? (*opened)->Recommend(history, {.count = 10}).status() : opened.status();
    }));
    WISP_RETURN_IF_ERROR(status);
  }
  Json xnnpack;
  if (kernels::XnnpackOps() != nullptr) {
    WISP_ASSIGN_OR_RETURN(const auto other, Session::Open(path, Backend::kXnnpack));
    std::vector<double> samples;
    for (uint32_t i = 0; i < std::max(20u, a.repeats) * 5; ++i) {
      samples.push_back(1e3 * Seconds([&] { status = other->Recommend(history, {.count = 10}).status(); }));
      WISP_RETURN_IF_ERROR(status);
    }
    xnnpack = ToJson(SpreadOf(samples));
  }
  result["scoring"] = {{"history", a.length}, {"items", session->architecture().num_items}, {"threads", 1}, {"top_10_ms", ToJson(SpreadOf(score))},
                       {"top_10_ms_xnnpack", xnnpack},
                       {"open_and_top_10_ms", ToJson(SpreadOf(cold))}, {"planned_bytes", session->planned_bytes()}, {"file_bytes", session->file().size_bytes()}};
  return OkStatus();
}

void PrintText(const Json& json, const std::string& indent) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object() && !value.contains("median")) {
      std::printf("%s%s\n", indent.c_str(), key.c_str());
      PrintText(value, indent + "  ");
    } else if (value.is_object()) {
      std::printf("%s%-28s %.4g   (quartiles %.4g to %.4g)\n", indent.c_str(), key.c_str(), value["median"].get<double>(),
                  value["quartiles"][0].get<double>(), value["quartiles"][1].get<double>());
    } else if (value.is_number()) {
      std::printf("%s%-28s %.6g\n", indent.c_str(), key.c_str(), value.get<double>());
    } else {
      std::printf("%s%-28s %s\n", indent.c_str(), key.c_str(), value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    }
  }
}

}  // namespace

Status Bench(const BenchArguments& a, OutputFormat format) {
  if (a.what != "all" && a.what != "train" && a.what != "score" && a.what != "sparse") {
    return InvalidArgument("--what is '" + a.what + "', allowed are all, train, score and sparse");
  }
  if (a.repeats == 0 || a.batch == 0) return InvalidArgument("--repeats and --batch must be 1 or more");
  Json result = {{"ops", kernels::BestOps().name}};
  if (a.what == "all" || a.what == "train") WISP_RETURN_IF_ERROR(BenchTraining(a, result));
  if (a.what == "all" || a.what == "score") WISP_RETURN_IF_ERROR(BenchScoring(a, result));
  if (a.what == "sparse") WISP_RETURN_IF_ERROR(BenchSparse(a, result));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", result.dump().c_str());
  } else {
    PrintText(result, "");
  }
  return OkStatus();
}

}  // namespace wisp::tools
