// Implements `wisp-lab bench --what roofline`. It counts the bytes and operations of each op in a training step and in
// scoring a history, on the graph that runs. From these it projects the least time on devices by their data sheets;
// nothing is measured. With --device it adds the time that each op takes there, from one wait to the next, and the
// speed at which that device copies its memory.
//
// A roofline leaves out launches, the host's work meanwhile (noise), and copies to and from the device. Records have
// the longest length; all other lengths cost less.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/arena.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/layers/model_view.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/wisp/device.h"
#include "tools/wisp/output.h"
#include "tools/lab/roofline/counting_device.h"

namespace wisp::tools {
namespace {

// Returns the bytes per second, read and written, of a copy within the device's memory. It copies ever longer arrays
// until the clock's resolution does not matter.
double CopyBandwidth(const kernels::Device& device) {
  constexpr size_t kLargest = size_t{64} << 20;  // floats
  constexpr double kSure = 2e-3;                 // seconds
  for (size_t n = size_t{1} << 16;; n *= 4) {
    const AlignedArray<float> x(n, device.memory), y(n, device.memory);
    const auto copy = [&] {
      device.ops->scale({.x = x.data(), .y = y.data(), .n = n, .a = 1, .store = kernels::Store::kAssign});
      (void)device.memory.wait();
    };
    copy();
    std::vector<double> seconds(5);
    for (double& s : seconds) s = Seconds(copy);
    const double median = ComputeSpread(seconds).median;
    if (median >= kSure || n >= kLargest) return 8 * static_cast<double>(n) / median;
  }
}

class RooflineBench {
 public:
  RooflineBench(const BenchArguments& arguments, BenchSubject subject)
      : a_(arguments), s_(std::move(subject)), problem_(s_) {}

  Result<Json> Run() {
    WISP_ASSIGN_OR_RETURN(device_, OpenDevice(a_.device, DeviceUse::kTraining));
    rooflines_ = Rooflines();
    if (measures()) rooflines_.push_back(GetDeviceRoofline());
    Json j;
    for (const Roofline& roofline : rooflines_)
      j["devices"].push_back({{"name", roofline.name},
                              {"gb_per_s", roofline.gb_per_s},
                              {"gflops", roofline.gflops},
                              {"source", roofline.source}});
    WISP_ASSIGN_OR_RETURN(j["training"], CountTraining());
    WISP_ASSIGN_OR_RETURN(j["inference"], CountInference());
    return j;
  }

 private:
  bool measures() const { return !device_.is_processor(); }
  const kernels::Device* inner() const { return measures() ? &device_.device : nullptr; }

  // The bandwidth is the one measured here. The arithmetic peak comes from the data sheet with the device's name, if
  // there is one.
  Roofline GetDeviceRoofline() const {
    Roofline here{.name = "here", .gb_per_s = CopyBandwidth(device_.device) / 1e9, .source = "measured copy"};
    for (const Roofline& roofline : Rooflines()) {
      if (device_.description.find(roofline.name) == std::string::npos) continue;
      here.gflops = roofline.gflops;
      here.source += ", arithmetic of " + roofline.name;
    }
    return here;
  }

  // Every step takes all records, and its first charge is for all steps.
  TrainingOptions Options(const kernels::Device& device, privacy::Ledger* ledger) const {
    constexpr uint64_t kSteps = 1000000;
    TrainingOptions o = s_.training;
    o.sampling = Sampling::kPoisson;
    o.num_steps = kSteps;
    o.expected_batch = s_.batch;
    o.num_records_public = s_.batch;
    o.num_threads = a_.threads;
    o.device = device;
    o.privacy.noise_multiplier = 1;
    o.privacy.ledger = ledger;
    o.privacy.run = "roofline";
    o.privacy.steps_per_charge = kSteps;
    return o;
  }

  Result<Json> CountTraining() {
    WISP_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
    WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                          privacy::Ledger::Open(folder.File("ledger"),
                                                {.dataset = "bench", .record = privacy::RecordSpec::OfEvents({})}));
    CountingDevice counting(inner(), rooflines_);
    WISP_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(s_.architecture, problem_.weights, problem_.records,
                                                              Options(counting.device(), &ledger)));
    WISP_ASSIGN_OR_RETURN(Json j, Sample(counting, [&] { return trainer->Step().status(); }));
    j.update({{"records", s_.batch},
              {"length", s_.length},
              {"items", s_.architecture.num_items},
              {"records_at_once", trainer->graph().max_records()},
              {"private", IsPrivate(s_.training)}});
    return j;
  }

  // Counts the scores of all items after a history, without a key/value cache from before.
  Result<Json> CountInference() {
    CountingDevice counting(inner(), rooflines_);
    const kernels::Device device = counting.device();
    const auto graph = MakeModelView(s_.architecture, device, {.use = GraphUse::kInference});
    AlignedArray<float> flat(problem_.weights.size(), device.memory);
    device.memory.copy_in(flat.data(), problem_.weights.data(), problem_.weights.size() * sizeof(float));
    const PackedWeights packed(*graph, flat.data());
    const Buffers buffers = graph->AllocateForInference();
    KeyValueCache cache = graph->AllocateCache(CacheBlocks::kAll);
    const AlignedArray<float> scores(s_.architecture.num_items, device.memory);
    std::vector<float> on_host(s_.architecture.num_items);
    RecordContext context{.weights = packed.view(), .buffers = buffers, .cache = &cache};
    WISP_ASSIGN_OR_RETURN(Json j, Sample(counting, [&] {
                            graph->Score(context, problem_.records[0].inputs, scores.data());
                            device.memory.copy_out(on_host.data(), scores.data(), on_host.size() * sizeof(float));
                            return OkStatus();
                          }));
    j.update({{"records", 1}, {"length", s_.length}, {"items", s_.architecture.num_items}});
    return j;
  }

  // Runs once to warm up, and then once for each sample. Without a device to time, it runs once.
  Result<Json> Sample(CountingDevice& counting, const std::function<Status()>& work) {
    WISP_RETURN_IF_ERROR(work());
    std::vector<std::vector<double>> seconds(counting.totals().size());
    for (uint32_t i = 0; i < (measures() ? a_.repeats : 1); ++i) {
      counting.Clear();
      WISP_RETURN_IF_ERROR(work());
      for (size_t op = 0; op < seconds.size(); ++op) seconds[op].push_back(counting.totals()[op].seconds);
    }
    return OpsJson(counting, seconds);
  }

  Json OpsJson(const CountingDevice& counting, const std::vector<std::vector<double>>& seconds) const {
    Json ops = Json::array();
    OpTotals all{.op = "all", .cost = {}, .roofline_seconds = std::vector<double>(rooflines_.size())};
    std::vector<double> sums(seconds[0].size());
    for (size_t i = 0; i < seconds.size(); ++i) {
      const OpTotals& op = counting.totals()[i];
      if (op.calls == 0) continue;
      ops.push_back(OpJson(op, seconds[i]));
      all.calls += op.calls;
      all.cost.bytes += op.cost.bytes;
      all.cost.operations += op.cost.operations;
      for (size_t r = 0; r < rooflines_.size(); ++r) all.roofline_seconds[r] += op.roofline_seconds[r];
      for (size_t s = 0; s < sums.size(); ++s) sums[s] += seconds[i][s];
    }
    return {{"bytes_copied_in", counting.bytes_in()},
            {"bytes_copied_out", counting.bytes_out()},
            {"ops", ops},
            {"total", OpJson(all, sums)}};
  }

  Json OpJson(const OpTotals& op, const std::vector<double>& seconds) const {
    Json j = {{"op", op.op}, {"calls", op.calls}, {"bytes", op.cost.bytes}, {"operations", op.cost.operations}};
    for (size_t r = 0; r < rooflines_.size(); ++r) j["roofline_ms"][rooflines_[r].name] = 1e3 * op.roofline_seconds[r];
    if (!measures()) return j;
    const Spread spread = ComputeSpread(seconds);
    j["measured_ms"] = {{"median", 1e3 * spread.median}, {"quartiles", {1e3 * spread.low, 1e3 * spread.high}}};
    j["time_over_roofline"] = spread.median / op.roofline_seconds.back();
    return j;
  }

  const BenchArguments& a_;
  BenchSubject s_;
  BenchProblem problem_;
  OpenedDevice device_;
  std::vector<Roofline> rooflines_;
};

void PrintRow(const Json& op, const Json& devices) {
  PrintText("%-26s %7llu %11.4g %11.4g", op["op"].get<std::string>().c_str(),
            static_cast<unsigned long long>(op["calls"].get<uint64_t>()), op["bytes"].get<double>() / 1e6,
            op["operations"].get<double>() / 1e6);
  for (const Json& device : devices)
    PrintText(" %10.4g", op["roofline_ms"][device["name"].get<std::string>()].get<double>());
  if (op.contains("measured_ms"))
    PrintText(" %12.4g %9.3g", op["measured_ms"]["median"].get<double>(), op["time_over_roofline"].get<double>());
  PrintText("\n");
}

void PrintPart(const char* title, const Json& part, const Json& devices) {
  PrintText("\n%s: records %u, length %u, items %u; %.4g MB copied in, %.4g MB out\n", title,
            part["records"].get<uint32_t>(), part["length"].get<uint32_t>(), part["items"].get<uint32_t>(),
            part["bytes_copied_in"].get<double>() / 1e6, part["bytes_copied_out"].get<double>() / 1e6);
  PrintText("%-26s %7s %11s %11s", "op", "calls", "MB", "MFLOP");
  for (const Json& device : devices) PrintText(" %10s", device["name"].get<std::string>().c_str());
  if (part["total"].contains("measured_ms")) PrintText(" %12s %9s", "measured ms", "over roofline");
  PrintText("\n");
  for (const Json& op : part["ops"]) PrintRow(op, devices);
  PrintRow(part["total"], devices);
}

}  // namespace

Status BenchRoofline(const BenchArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(BenchSubject subject, MakeBenchSubject(a));
  WISP_ASSIGN_OR_RETURN(const Json j, RooflineBench(a, std::move(subject)).Run());
  if (format == OutputFormat::kJson) {
    PrintJson(j, kOneLine);
    return OkStatus();
  }
  PrintText("milliseconds that memory and arithmetic take at least; columns of data sheets are projections:\n");
  for (const Json& device : j["devices"]) {
    const double gflops = device["gflops"].get<double>();
    PrintText("  %-6s %8.4g GB/s   ", device["name"].get<std::string>().c_str(), device["gb_per_s"].get<double>());
    gflops > 0 ? PrintText("%8.5g GFLOP/s", gflops) : PrintText("%16s", "memory alone");
    PrintText("   %s\n", device["source"].get<std::string>().c_str());
  }
  PrintPart("a training step", j["training"], j["devices"]);
  PrintPart("the scores of all items after a history", j["inference"], j["devices"]);
  return OkStatus();
}

}  // namespace wisp::tools
