// Measures a machine whole: `wisp-lab bench --all`. Its JSON is one row of docs/processors.md
// (tools/lab/reproduce/processors.py). Sizes are fixed, so that machines can be compared. It takes up to five minutes,
// 1.1 GB of memory and 190 MB of temporary files.
#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "runtime/inference/session.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/bench/fma_peak.h"
#include "tools/lab/bench/memory_bandwidth.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kRepeats = 11;  // for what takes long

// Names the processor as Linux does: its model name with family and model, or, on Arm, implementer and part.
std::string GetProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::map<std::string, std::string> first;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':'), end = line.find_last_not_of(" \t", colon - 1);
    if (colon == std::string::npos || end == std::string::npos || colon + 2 > line.size()) continue;
    first.try_emplace(line.substr(0, end + 1), line.substr(colon + 2));
  }
  std::string name = first["model name"];
  const auto add = [&](const char* key) {
    if (!first[key].empty()) name += (name.empty() ? "" : ", ") + (key + (" " + first[key]));
  };
  for (const char* key : {"cpu family", "model", "CPU implementer", "CPU part"}) add(key);
  return name.empty() ? "unknown" : name;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  char text[sizeof("2026-01-01")];
  std::tm parts{};
  return std::strftime(text, sizeof(text), "%Y-%m-%d", gmtime_r(&now, &parts)) > 0 ? text : "";
}

double BestPeak() {
  double best = 0;
  for (int i = 0; i < 300; ++i) best = std::max(best, FmaProbe());
  return best;
}

Json DescribeMachine() {
  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  Json j = {{"processor", GetProcessorName()},
            {"processors", processors},
            {"date", Today()},
            {"version", WISP_VERSION},
            {"kernels", kernels::BestOps().name},
            {"kernels_int8", kernels::Int8Ops() != nullptr ? kernels::Int8Ops()->name : "none"},
            {"fma_peak_gflops", BestPeak()},
            {"memory_gb_per_s", MeasureMemoryBandwidth().gb_per_s},
            {"read_gb_per_s", MeasureReadBandwidth(1)}};
  std::ifstream file("/proc/loadavg");
  if (double load = 0; file >> load) j["load_before"] = load;
  return j;
}

// Times the calibration of a run of 1,000 steps, at two extremes, and one sample of a step's noise.
Status BenchPrivacy(Json& result) {
  const struct {
    const char* name;
    double epsilon, sampling_probability;
  } kRuns[] = {{"calibration_epsilon_1_ms", 1, 0.35}, {"calibration_epsilon_10_ms", 10, 0.05}};
  for (const auto& run : kRuns) {
    std::vector<double> ms;
    for (uint32_t i = 0; i < kRepeats; ++i) {
      // An epsilon of its own, because a process keeps the figures that it computed.
      WISP_ASSIGN_OR_RETURN(const privacy::EpsilonDelta target,
                            privacy::EpsilonDelta::Create(run.epsilon * (1 + 0.01 * i), 1e-5));
      Status status;
      ms.push_back(1e3 * Seconds([&] {
                     status = privacy::CalibrateNoise(
                                  {.target = target, .sampling_probability = run.sampling_probability, .steps = 1000})
                                  .status();
                   }));
      WISP_RETURN_IF_ERROR(status);
    }
    result[run.name] = ToJson(ComputeSpread(ms));
  }
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  std::vector<int64_t> sum(1 << 17);
  std::vector<double> ns;
  for (uint32_t i = 0; i < kRepeats; ++i) {
    ns.push_back(1e9 * Seconds([&] { privacy::AddDiscreteGaussian(random, 1 << 20, sum); }) /
                 static_cast<double>(sum.size()));
  }
  result["noise_ns"] = ToJson(ComputeSpread(ns));
  return OkStatus();
}

// Opens one decoder in each form that its weights can have, and times it with BenchDecoder. Its weights, 34 million,
// are more than most caches hold.
Status BenchDecoders(const BenchArguments& a, Json& result) {
  constexpr uint32_t kPositions = 256;
  BenchArguments own = a;
  own.items = 16384;
  BenchSubject subject{.batch = 1, .length = 1};
  subject.architecture = UniformArchitecture{.num_items = own.items,
                                             .max_length = kPositions,
                                             .width = 512,
                                             .num_heads = 8,
                                             .num_blocks = 8,
                                             .inner_width = 2048,
                                             .activation = ActivationKind::kGelu};
  const BenchProblem problem(subject);
  WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  own.model = folder.File("decoder.wisp");
  own.repeats = kRepeats;
  own.given = {"--length"};
  own.length = 128;
  const struct {
    const char* name;
    WeightStorage storage;
  } kForms[] = {{"f32", WeightStorage::kPanels}, {"int8", WeightStorage::kInt8}, {"int4", WeightStorage::kInt4}};
  for (const auto& form : kForms) {
    WISP_RETURN_IF_ERROR(WriteModel(own.model, {.architecture = problem.architecture,
                                                .weights = problem.weights,
                                                .created_by = "wisp-lab bench",
                                                .storage = form.storage}));
    Json figures;
    WISP_RETURN_IF_ERROR(BenchDecoder(own, figures));
    std::vector<double> ms;
    for (uint32_t i = 0; i < kRepeats; ++i) {
      Status status;
      ms.push_back(1e3 * Seconds([&] { status = Session::Open(own.model).status(); }));
      WISP_RETURN_IF_ERROR(status);
    }
    figures["decoder"]["open_ms"] = ToJson(ComputeSpread(ms));
    result[form.name] = figures["decoder"];
  }
  return OkStatus();
}

}  // namespace

Status BenchMachine(const BenchArguments& a, Json& result) {
  BenchArguments one = a;
  one.threads = 1;
  result["machine"] = DescribeMachine();
  WISP_RETURN_IF_ERROR(BenchScoring(one, result));
  one.repeats = kRepeats;
  WISP_RETURN_IF_ERROR(BenchTraining(one, result));
  std::vector<Json> ops;
  WISP_RETURN_IF_ERROR(BenchOps(one, ops));
  result["each_op"] = ops;
  WISP_RETURN_IF_ERROR(BenchEncoder(one, result));
  BenchArguments several = a;
  several.repeats = kRepeats;
  Json shared;
  WISP_RETURN_IF_ERROR(BenchEncoder(several, shared));
  if (shared["encoder"].contains("several_threads"))
    result["encoder"]["several_threads"] = shared["encoder"]["several_threads"];
  WISP_RETURN_IF_ERROR(BenchDecoders(one, result["decoders"]));
  return BenchPrivacy(result["privacy"]);
}

}  // namespace wisp::tools
