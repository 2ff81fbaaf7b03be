// wisp bench: training steps with and without privacy, scoring, private drawing and load, beside the processor's measured FMA peak.
//
// The two methods take turns, step by step, in one process; figures are medians with their quartiles. On a noisy machine
// only ratios of one run mean much.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/inference/private_recommender.h"
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

Status BenchTraining(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(const auto pair, StepPair::Create(a));
  const double flops = RecordFlops(pair->problem().architecture, a.length) * a.batch;
  std::vector<double> percents;
  double peak = 0;
  for (uint32_t i = 0; i < a.repeats; ++i) {
    WISP_RETURN_IF_ERROR(pair->Sample());
    const double roof = Peak(pair->ordinary().workers());
    peak = std::max(peak, roof);
    percents.push_back(100 * flops / pair->ordinary_seconds().back() / 1e9 / roof);
  }
  const size_t bytes[2] = {pair->ordinary().planned_bytes(), pair->with_privacy().planned_bytes()};
  result["training"] = {{"records", a.batch}, {"positions", a.length}, {"items", a.items}, {"threads", pair->ordinary().workers().size()},
                        {"ordinary_step_seconds", ToJson(SpreadOf(pair->ordinary_seconds()))},
                        {"private_step_seconds", ToJson(SpreadOf(pair->private_seconds()))},
                        {"private_over_ordinary", ToJson(SpreadOf(pair->ratios()))}, {"gflops_per_step", flops / 1e9}, {"fma_peak_gflops", peak},
                        {"ordinary_percent_of_peak", ToJson(SpreadOf(percents))}, {"ordinary_bytes", bytes[0]}, {"private_bytes", bytes[1]},
                        {"private_over_ordinary_bytes", static_cast<double>(bytes[1]) / static_cast<double>(bytes[0])}};
  return OkStatus();
}

// Ten items drawn privately over the ten best, in turns. The durable charge, a disk sync for each block, is taken once before.
// Anchored decoding scores the base too, which costs as much as the model does and is left out here.
Status BenchDrawing(const BenchArguments& a, Session& session, std::span<const int32_t> history, Json& result) {
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(folder.File("ledger"), {.dataset = "bench"}));
  PrivateSamplerOptions options{.mode = DecodingMode::kUniform, .num_items = session.architecture().num_items, .lambda = 1e-3, .clip = 0.5,
                                .ledger = &ledger, .run = "bench", .draws_per_charge = 1000000, .charge_for = ChargeFor::kWholeCatalogue};
  std::vector<float> scores(session.architecture().num_items);
  for (const DecodingMode mode : {DecodingMode::kUniform, DecodingMode::kBaseAnchored}) {
    options.mode = mode;
    WISP_ASSIGN_OR_RETURN(PrivateSampler sampler, PrivateSampler::Create(options));
    const bool anchored = mode == DecodingMode::kBaseAnchored;
    Status status;
    const auto draw = [&](size_t count) {
      status = session.Score(history, scores);
      if (!status.ok()) return;
      status = sampler.Draw({.scores = scores, .base_scores = anchored ? std::span<const float>(scores) : std::span<const float>(), .excluded = history,
                             .count = count}).status();
    };
    draw(10);
    WISP_RETURN_IF_ERROR(status);
    std::vector<double> best, drawn, ratios;
    for (uint32_t i = 0; i < std::max(20u, a.repeats) * 10; ++i) {
      best.push_back(1e3 * Seconds([&] { status = session.Recommend(history, {.count = 10}).status(); }));
      WISP_RETURN_IF_ERROR(status);
      drawn.push_back(1e3 * Seconds([&] { draw(10); }));
      WISP_RETURN_IF_ERROR(status);
      ratios.push_back(drawn.back() / best.back());
    }
    result[anchored ? "anchored" : "mixed"] = {{"top_10_ms", ToJson(SpreadOf(best))}, {"drawn_10_ms", ToJson(SpreadOf(drawn))},
                                               {"drawn_over_top_10", ToJson(SpreadOf(ratios))}};
  }
  return OkStatus();
}

Status BenchScoring(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const BenchProblem problem(a);
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
  return BenchDrawing(a, *session, history, result["drawing"]);
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
  if (a.what != "all" && a.what != "train" && a.what != "score" && a.what != "sparse" && a.what != "clipping") {
    return InvalidArgument("--what is '" + a.what + "', allowed are all, train, score, sparse and clipping");
  }
  if (a.repeats == 0 || a.batch == 0) return InvalidArgument("--repeats and --batch must be 1 or more");
  if (a.items < 2) return InvalidArgument("--items must be 2 or more");
  Json result = {{"ops", kernels::BestOps().name}};
  if (a.what == "all" || a.what == "train") WISP_RETURN_IF_ERROR(BenchTraining(a, result));
  if (a.what == "all" || a.what == "score") WISP_RETURN_IF_ERROR(BenchScoring(a, result));
  if (a.what == "clipping") WISP_RETURN_IF_ERROR(BenchClipping(a, result));
  if (a.what == "sparse") WISP_RETURN_IF_ERROR(BenchSparse(a, result));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", result.dump().c_str());
  } else {
    PrintText(result, "");
  }
  return OkStatus();
}

}  // namespace wisp::tools
