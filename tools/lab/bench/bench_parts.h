// Code that the parts of `wisp-lab bench` share: times, spreads, JSON, and a pair of trainers whose steps take turns.
#ifndef WISP_TOOLS_LAB_BENCH_BENCH_PARTS_H_
#define WISP_TOOLS_LAB_BENCH_BENCH_PARTS_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/devices.h"
#include "runtime/train/run/initialise.h"
#include "runtime/train/trainer.h"
#include "tools/lab/commands.h"
#include "tools/wisp/output.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {

inline double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Spread {
  double low, median, high;  // quartiles
};

inline Spread ComputeSpread(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return {samples[n / 4], samples[n / 2], samples[n * 3 / 4]};
}

inline Json ToJson(const Spread& s) { return {{"median", s.median}, {"quartiles", {s.low, s.high}}}; }

// Returns true if the command line names the option.
bool IsGiven(const BenchArguments& arguments, const char* option);

// The model and method that are trained. They come from a recipe, with its batch and its longest records; without one
// they are the bench's own recommender of width 64 with two blocks.
struct BenchSubject {
  Architecture architecture;
  InitialisationOptions initialisation;
  TrainingOptions training;
  uint32_t batch = 0, length = 0;
};
Result<BenchSubject> MakeBenchSubject(const BenchArguments& arguments);
BenchSubject OwnSubject(const BenchArguments& arguments);

// A subject's weights, and random records of full length.
struct BenchProblem {
  explicit BenchProblem(const BenchSubject& subject);
  Architecture architecture;
  std::vector<float> weights;
  std::vector<int32_t> items;
  std::vector<Record> records;
};

// Two trainers of one problem, an ordinary one and a private one (phantom clipping). Each has taken one step to warm
// up, whose loss was checked, as was one record's gradient (bench_checks.h). Every step takes all records.
class StepPair {
 public:
  static Result<std::unique_ptr<StepPair>> Create(const BenchArguments& arguments);
  StepPair(const StepPair&) = delete;
  StepPair& operator=(const StepPair&) = delete;

  // Times one step of each trainer, one after the other.
  Status Sample();

  // Returns the bytes by which the private trainer's memory plan exceeds that of an ordinary one with as many records
  // at once.
  Result<double> BytesOverOrdinaryAtEqualRecords() const;

  const BenchProblem& problem() const { return problem_; }
  const OpenedDevice& device() const { return device_; }
  Trainer& ordinary() { return *trainers_[0]; }
  Trainer& with_privacy() { return *trainers_[1]; }
  const std::vector<double>& ordinary_seconds() const { return seconds_[0]; }
  const std::vector<double>& private_seconds() const { return seconds_[1]; }
  const std::vector<double>& ratios() const { return ratios_; }  // private over ordinary, pair by pair

 private:
  StepPair(const BenchSubject& subject, OpenedDevice device, TemporaryFolder folder, privacy::Ledger ledger)
      : device_(std::move(device)), problem_(subject), folder_(std::move(folder)), ledger_(std::move(ledger)) {}

  OpenedDevice device_;
  BenchProblem problem_;
  TemporaryFolder folder_;
  privacy::Ledger ledger_;
  TrainingOptions ordinary_options_;
  std::unique_ptr<Trainer> trainers_[2];
  std::vector<double> seconds_[2], ratios_;
};

// The numbers that one method gave, under the method's name.
struct MethodFigures {
  std::string method;
  Json figures;
};

// Times steps of a StepPair beside the processor's measured peak (cmd_bench.cc).
Status BenchTraining(const BenchArguments& arguments, Json& result);

// Measures a machine whole, in five minutes (bench_machine.cc).
Status BenchMachine(const BenchArguments& arguments, Json& result);

// Times a top 10 after a long history, after one more event, with loading the model, and sampled privately
// (bench_scoring.cc).
Status BenchScoring(const BenchArguments& arguments, Json& result);

// Times every op of the kernels at the recommender's shapes. `lines` gets first the rooflines and then one line for
// each op. It is an error if a result is wrong (bench_ops.cc; the ops are in bench_ops_cases.h).
Status BenchOps(const BenchArguments& arguments, std::vector<Json>& lines);

// Times 128 tokens through an encoder of width 384, in float32 and int8 (bench_encoder.cc).
Status BenchEncoder(const BenchArguments& arguments, Json& result);

// Times a prompt through a decoder's file, and tokens one at a time (bench_decoder.cc).
Status BenchDecoder(const BenchArguments& arguments, Json& result);

// Times the matrix products of a step, shape by shape (bench_products.cc).
Status BenchProducts(const BenchArguments& arguments, Json& result);
Status BenchPanels(const BenchArguments& arguments, Json& result);

// Prints the operations and bytes of each op, and the least time that they take (bench_roofline.cc).
Status BenchRoofline(const BenchArguments& arguments, OutputFormat format);

// Times a step of DP-AdaFEST and of dense DP-SGD over catalogues of 1e5 to 1e7 items (bench_sparse.cc).
Status BenchSparse(const BenchArguments& arguments, Json& result);
// Measures one catalogue. The methods are adafest and dense.
Result<std::vector<MethodFigures>> MeasureSparse(const BenchArguments& arguments);

// Times an ordinary step, a private one, and the share that ghost clipping of the embedding would add
// (bench_clipping.cc).
Status BenchClipping(const BenchArguments& arguments, Json& result);
// The methods are ordinary, phantom and ghost.
Result<std::vector<MethodFigures>> MeasureClipping(const BenchArguments& arguments);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_BENCH_BENCH_PARTS_H_
