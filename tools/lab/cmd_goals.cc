// Implements `wisp-lab goals`: the goals for GPUs beside what tests/cuda/gpu measured, read from the files that it left
// in a folder. A test compares this list with the table of kernels/cuda/README.md.
//
// A projection is the least time by a data sheet (wisp-lab bench --what roofline). It is computed on any machine, and
// labelled.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/lab/commands.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

using Measured = std::optional<double>;

// An op with a shorter roofline mostly takes the time of its launch and of the wait for it.
constexpr double kFillsTheChipMs = 0.05;
// The steps of models/recipes/cafe-device.json for 2,000 people: 30 epochs, 500 people a step.
constexpr double kSteps = 2000.0 * 30 / 500;

struct GpuGoal {
  const char* work;
  double goal;
  bool is_least;  // true if a larger figure is better
  Measured measured;
  bool is_projection = false;
};

class MeasuredFigures {
 public:
  explicit MeasuredFigures(std::string folder) : folder_(std::move(folder)) {}

  // Returns a number of a file, by a JSON pointer, times `scale`. A file or field that is missing was not measured.
  Measured Get(const char* file, const char* pointer, double scale = 1) const {
    const std::vector<Json> lines = Read(file);
    return lines.empty() ? Measured() : Number(lines[0], pointer, scale);
  }

  // Returns a number of the first line of a file that has this contender and the number.
  Measured GetOf(const char* file, const char* contender, const char* pointer) const {
    for (const Json& line : Read(file)) {
      const Measured found = Number(line, pointer, 1);
      if (found && line.value("contender", "") == contender) return found;
    }
    return {};
  }

  // Returns the share of a copy's bandwidth that memory-bound ops of a step reach, each weighted by its time.
  Measured ShareOfBandwidth() const {
    const Measured gb_per_s = Here("gb_per_s");
    if (!gb_per_s) return {};
    const double gflops = Here("gflops").value_or(0);
    double least = 0, taken = 0;
    const std::vector<Json> roofline = Read("roofline.json");
    if (!roofline[0].contains(Json::json_pointer("/training/ops"))) return {};
    for (const Json& op : roofline[0]["training"]["ops"]) {
      const double memory_ms = op["bytes"].get<double>() / *gb_per_s / 1e6;
      const double arithmetic_ms = gflops > 0 ? op["operations"].get<double>() / gflops / 1e6 : 0;
      if (memory_ms < arithmetic_ms || memory_ms / op["calls"].get<double>() < kFillsTheChipMs) continue;
      least += memory_ms;
      taken += op["measured_ms"]["median"].get<double>();
    }
    return taken > 0 ? Measured(least / taken) : Measured();
  }

 private:
  static Measured Number(const Json& json, const char* pointer, double scale) {
    const Json::json_pointer at(pointer);
    return json.contains(at) && json[at].is_number() ? Measured(scale * json[at].get<double>()) : Measured();
  }

  // Returns a figure of the device that was measured, which the rooflines name "here".
  Measured Here(const char* key) const {
    const std::vector<Json> roofline = Read("roofline.json");
    if (roofline.empty() || !roofline[0].contains("devices")) return {};
    const Json& last = roofline[0]["devices"].back();
    return last["name"] == "here" ? Number(last, (std::string("/") + key).c_str(), 1) : Measured();
  }

  // Reads a file that is one object, or one object a line.
  std::vector<Json> Read(const char* file) const {
    std::ifstream stream(folder_ + "/" + file);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto parse = [](const std::string& one) { return Json::parse(one, nullptr, /*allow_exceptions=*/false); };
    std::vector<Json> found = {parse(text)};
    if (found[0].is_discarded()) {
      found.clear();
      for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
        end = std::min(text.find('\n', begin), text.size());
        found.push_back(parse(text.substr(begin, end - begin)));
      }
    }
    std::erase_if(found, [](const Json& json) { return !json.is_object(); });
    return found;
  }

  std::string folder_;
};

std::vector<GpuGoal> ListGoals(const MeasuredFigures& f) {
  const char* const step = "train-2048.json";
  const Measured bytes = f.Get("module.json", "/bytes"), architectures = f.Get("module.json", "/architectures");
  return {
      {"private step of 2,048 records, ms", 45, false, f.Get(step, "/training/private_step_seconds/median", 1e3)},
      {"ordinary step of 2,048 records, ms", 40, false, f.Get(step, "/training/ordinary_step_seconds/median", 1e3)},
      {"private over ordinary step", 1.1, false, f.Get(step, "/training/private_over_ordinary/median")},
      {"planned memory of a private over an ordinary step", 1.05, false,
       f.Get(step, "/training/private_over_ordinary_bytes_at_equal_records")},
      {"PyTorch's step over ours", 3, true, f.GetOf("training.json", "torch fast", "/over_wisp/median")},
      {"Opacus's step, ghost clipping, over ours", 8, true,
       f.GetOf("private.json", "opacus ghost", "/over_wisp/median")},
      {"private run of 40 epochs, accounting included, s", 6, false, f.Get("run.json", "/seconds")},
      {"history of 200 to the best 10, us", 40, false, f.Get("score.json", "/scoring/top_10_ms/median", 1e3)},
      {"one more event, us", 15, false, f.Get("score.json", "/scoring/appended_event_top_10_ms/median", 1e3)},
      {"MiniLM's shape, 128 tokens, float16, ms", 0.2, false, f.Get("encoder.json", "/encoder/ms_float16/median")},
      {"products of the step, share of cuBLAS's speed", 0.7, true,
       f.GetOf("products.json", "geometric mean", "/share_of_its_speed")},
      {"memory-bound ops, share of a copy's bandwidth", 0.75, true, f.ShareOfBandwidth()},
      {"module, MB for each architecture", 1.5, false,
       bytes && architectures ? Measured(*bytes / *architectures / 1e6) : Measured()},
      {"private step of 2,048 records on Orin, ms", 500, false,
       f.Get("projected-step.json", "/training/total/roofline_ms/Orin"), true},
      {"training on 2,000 people of the cafe on Orin, s", 60, false,
       f.Get("projected-cafe.json", "/training/total/roofline_ms/Orin", 1e-3 * kSteps), true},
      {"memory of that training beside the context, MB", 64, false, f.Get("memory.json", "/training/total", 1e-6)},
  };
}

}  // namespace

Status PrintGoals(const GoalsArguments& a, OutputFormat format) {
  const std::vector<GpuGoal> goals = ListGoals(MeasuredFigures(a.figures));
  Json all = Json::array();
  if (format == OutputFormat::kText) PrintText("%-52s %8s %10s\n", "work", "goal", "measured");
  for (const GpuGoal& g : goals) {
    std::string verdict = "not measured";
    if (g.measured) verdict = (g.is_least ? *g.measured >= g.goal : *g.measured <= g.goal) ? "met" : "missed";
    if (g.measured && g.is_projection) verdict += " (projection)";
    all.push_back({{"work", g.work}, {"goal", g.goal}, {"verdict", verdict}});
    if (g.measured) all.back()["measured"] = *g.measured;
    if (format == OutputFormat::kJson) continue;
    char measured[32] = "-";
    if (g.measured) std::snprintf(measured, sizeof measured, "%.4g", *g.measured);
    PrintText("%-52s %8.4g %10s %s\n", g.work, g.goal, measured, verdict.c_str());
  }
  if (format == OutputFormat::kJson) PrintJson(all);
  return OkStatus();
}

}  // namespace wisp::tools
