// Implements `wisp-lab bench`: training steps with and without privacy, scoring, private sampling and load, beside the
// processor's measured FMA peak.
//
// The two methods take turns, step by step, in one process; figures are medians with their quartiles. On a noisy
// machine only ratios within one run are reliable.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/bench/fma_peak.h"
#include "tools/lab/commands.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

size_t Processors() { return std::max(1u, std::thread::hardware_concurrency()); }

// Measures the peak of all threads at once, by probes between the samples. Threads beyond the number of processors take
// turns, so they add nothing to it.
double Peak(Workers& workers) {
  std::vector<double> best(workers.size(), 0);
  workers.Run([&](size_t w) {
    for (int i = 0; i < 300; ++i) best[w] = std::max(best[w], FmaProbe());
  });
  std::sort(best.begin(), best.end(), std::greater<>());
  best.resize(std::min(workers.size(), Processors()));
  return std::accumulate(best.begin(), best.end(), 0.0);
}

// The options that each bench reads, among those that the command line may name.
const std::map<std::string, std::vector<std::string>> kReads = {
    {"both", {"--model", "--threads", "--batch", "--items", "--length", "--inner-width", "--repeats"}},
    {"train", {"--recipe", "--threads", "--batch", "--items", "--length", "--inner-width", "--repeats"}},
    {"products", {"--recipe", "--batch", "--items", "--length", "--inner-width", "--repeats"}},
    {"score", {"--model", "--threads", "--items", "--length", "--inner-width", "--repeats"}},
    {"encoder", {"--tensors", "--threads", "--items", "--length", "--repeats"}},
    {"decoder", {"--model", "--tensors", "--threads", "--length", "--repeats", "--cache"}},
    {"ops", {"--items", "--length", "--inner-width", "--repeats"}},
    {"clipping", {"--threads", "--batch", "--items", "--length", "--inner-width", "--repeats"}},
    {"sparse", {"--threads", "--batch", "--repeats"}},
    {"panels", {"--repeats"}},
    {"roofline", {"--model", "--recipe", "--threads", "--batch", "--items", "--length", "--inner-width", "--repeats"}}};

Status CheckGiven(const BenchArguments& a) {
  for (const std::string& option : a.given) {
    if (a.all && option != "--threads")
      return InvalidArgument(option, " does not go with --all, whose sizes are fixed");
    if (a.all) continue;
    std::string readers;
    bool reads = false;
    for (const auto& [what, options] : kReads) {
      if (std::find(options.begin(), options.end(), option) == options.end()) continue;
      reads = reads || what == a.what;
      readers += (readers.empty() ? "" : ", ") + what;
    }
    if (!reads) return InvalidArgument(option, " is of --what ", readers, "; --what ", a.what, " does not read it");
  }
  return OkStatus();
}

// Counts the multiply-adds that a record of T positions needs, forward and backward, as two operations each. Attention
// is counted below the causal edge only; recomputation is not counted.
double RecordFlops(const Architecture& a, double t) {
  const double d = a.width, f = a.blocks[0].feed_forward.inner_width, m = a.num_items;
  const double linear = 2 * t * (4 * d * d + 2 * d * f);
  const double attention = 2 * t * t * d;  // forward: two products over half of T x T
  return 3 * 2 * t * m * d + static_cast<double>(a.blocks.size()) * (3 * linear + 3.5 * attention);
}

// Prints each row of a table on its own line.
void PrintRows(const Json& rows, const std::string& indent) {
  for (const Json& row : rows) {
    PrintText("%s", indent.c_str());
    for (const auto& [key, value] : row.items()) {
      const Json& shown = value.is_object() ? value["median"] : value;
      const std::string text = shown.is_string() ? shown.get<std::string>() : Json(shown).dump();
      PrintText("%s%s %s", key == row.begin().key() ? "" : ", ", key.c_str(), text.substr(0, 32).c_str());
    }
    PrintText("\n");
  }
}

void PrintFigures(const Json& json, const std::string& indent) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_array()) {
      PrintRows(value, indent);
    } else if (value.is_object() && !value.contains("median")) {
      PrintText("%s%s\n", indent.c_str(), key.c_str());
      PrintFigures(value, indent + "  ");
    } else if (value.is_object()) {
      PrintText("%s%-28s %.4g   (quartiles %.4g to %.4g)\n", indent.c_str(), key.c_str(), value["median"].get<double>(),
                value["quartiles"][0].get<double>(), value["quartiles"][1].get<double>());
    } else if (value.is_number()) {
      PrintText("%s%-28s %.6g\n", indent.c_str(), key.c_str(), value.get<double>());
    } else {
      PrintText("%s%-28s %s\n", indent.c_str(), key.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : JsonText(value).c_str());
    }
  }
}

// Prints lines of JSON, or a table.
Status PrintOps(const BenchArguments& a, OutputFormat format) {
  std::vector<Json> lines;
  WISP_RETURN_IF_ERROR(BenchOps(a, lines));
  if (format == OutputFormat::kJson) {
    for (const Json& line : lines) PrintJson(line, kOneLine);
    return OkStatus();
  }
  PrintText("%s, one thread: %.4g GFLOP/s of multiply-adds, %.4g GB/s of memory\n",
            lines[0]["ops"].get<std::string>().c_str(), lines[0]["fma_peak_gflops"].get<double>(),
            lines[0]["memory_gb_per_s"].get<double>());
  PrintText("%-24s %-40s %10s  %-19s %9s %9s  %s\n", "op", "shape", "us", "(quartiles)", "GFLOP/s", "GB/s",
            "% of the roofline");
  for (size_t i = 1; i < lines.size(); ++i) {
    const Json &j = lines[i], &us = j["us"];
    PrintText("%-24s %-40s %10.4g  (%8.4g-%8.4g) %9.4g %9.4g  %.3g of %s\n", j["op"].get<std::string>().c_str(),
              j["shape"].get<std::string>().c_str(), us["median"].get<double>(), us["quartiles"][0].get<double>(),
              us["quartiles"][1].get<double>(), j["gflops"].get<double>(), j["gb_per_s"].get<double>(),
              j["percent_of_roofline"]["median"].get<double>(), j["bound_by"].get<std::string>().c_str());
  }
  return OkStatus();
}

}  // namespace

Status BenchTraining(const BenchArguments& a, Json& result) {
  WISP_ASSIGN_OR_RETURN(const auto pair, StepPair::Create(a));
  const std::vector<Record>& records = pair->problem().records;
  const size_t length = records[0].inputs.size();
  const double flops =
      RecordFlops(pair->problem().architecture, static_cast<double>(length)) * static_cast<double>(records.size());
  std::vector<double> percents;
  double peak = 0;
  const bool has_roofline = pair->device().is_processor();
  for (uint32_t i = 0; i < a.repeats; ++i) {
    WISP_RETURN_IF_ERROR(pair->Sample());
    if (!has_roofline) continue;
    const double roofline = Peak(pair->ordinary().workers());
    peak = std::max(peak, roofline);
    percents.push_back(100 * flops / pair->ordinary_seconds().back() / 1e9 / roofline);
  }
  const size_t bytes[2] = {pair->ordinary().planned_bytes(), pair->with_privacy().planned_bytes()};
  result["training"] = {{"records", records.size()},
                        {"positions", length},
                        {"items", a.items},
                        {"threads", pair->ordinary().workers().size()},
                        {"ordinary_step_seconds", ToJson(ComputeSpread(pair->ordinary_seconds()))},
                        {"private_step_seconds", ToJson(ComputeSpread(pair->private_seconds()))},
                        {"private_over_ordinary", ToJson(ComputeSpread(pair->ratios()))},
                        {"gflops_per_step", flops / 1e9},
                        {"ordinary_bytes", bytes[0]},
                        {"private_bytes", bytes[1]},
                        {"private_over_ordinary_bytes", static_cast<double>(bytes[1]) / static_cast<double>(bytes[0])}};
  if (has_roofline) {
    result["training"].update({{"fma_peak_gflops", peak},
                               {"threads_in_peak", std::min(pair->ordinary().workers().size(), Processors())},
                               {"ordinary_percent_of_peak", ToJson(ComputeSpread(percents))}});
  } else {
    WISP_ASSIGN_OR_RETURN(const double over, pair->BytesOverOrdinaryAtEqualRecords());
    result["training"].update({{"device", pair->device().description},
                               {"records_at_once", pair->ordinary().graph().max_records()},
                               {"records_at_once_private", pair->with_privacy().graph().max_records()},
                               {"private_over_ordinary_bytes_at_equal_records", over}});
  }
  return OkStatus();
}

Status Bench(const BenchArguments& given, OutputFormat format) {
  BenchArguments a = given;
  if (a.all) a.what = "machine";
  if (a.what != "machine" && a.what != "both" && a.what != "train" && a.what != "score" && a.what != "encoder" &&
      a.what != "decoder" && a.what != "ops" && a.what != "sparse" && a.what != "clipping" && a.what != "products" &&
      a.what != "panels" && a.what != "roofline") {
    return InvalidArgument(
        "--what is '", a.what,
        "', allowed are both, train, score, encoder, decoder, ops, sparse, clipping, products, panels and roofline");
  }
  WISP_RETURN_IF_ERROR(CheckGiven(a));
  const bool on_devices =
      a.what == "train" || a.what == "score" || a.what == "encoder" || a.what == "products" || a.what == "roofline";
  if (a.device.name != "cpu" && !on_devices)
    return InvalidArgument("--device ", a.device.name,
                           " is of --what train, score, encoder, products and roofline; --what ", a.what,
                           " does not read it");
  if (a.threads > Processors()) {
    std::fprintf(stderr,
                 "wisp: --threads is %u, and there are %zu processors: threads wait for each other, and the peak is "
                 "that of the processors\n",
                 a.threads, Processors());
  }
  if (a.repeats == 0 || a.batch == 0 || a.length == 0)
    return InvalidArgument("--repeats, --batch and --length must be 1 or more");
  if (a.items < 2) return InvalidArgument("--items must be 2 or more");
  if (a.what == "ops") return PrintOps(a, format);
  if (a.what == "roofline") return BenchRoofline(a, format);
  Json result = {{"ops", kernels::BestOps().name}};
  if (a.what == "both" || a.what == "train") WISP_RETURN_IF_ERROR(BenchTraining(a, result));
  if (a.what == "both" || a.what == "score") WISP_RETURN_IF_ERROR(BenchScoring(a, result));
  if (a.what == "machine") WISP_RETURN_IF_ERROR(BenchMachine(a, result));
  if (a.what == "products") WISP_RETURN_IF_ERROR(BenchProducts(a, result));
  if (a.what == "panels") WISP_RETURN_IF_ERROR(BenchPanels(a, result));
  if (a.what == "encoder") WISP_RETURN_IF_ERROR(BenchEncoder(a, result));
  if (a.what == "decoder") WISP_RETURN_IF_ERROR(BenchDecoder(a, result));
  if (a.what == "clipping") WISP_RETURN_IF_ERROR(BenchClipping(a, result));
  if (a.what == "sparse") WISP_RETURN_IF_ERROR(BenchSparse(a, result));
  if (format == OutputFormat::kJson) {
    PrintJson(result, kOneLine);
  } else {
    PrintFigures(result, "");
  }
  return OkStatus();
}

}  // namespace wisp::tools
