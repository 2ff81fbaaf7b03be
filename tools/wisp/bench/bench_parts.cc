#include "tools/wisp/bench/bench_parts.h"

#include "runtime/train/run/initialise.h"
#include "tools/wisp/bench/bench_checks.h"
#include "tools/wisp/device.h"

namespace wisp::tools {
namespace {

TrainingOptions Options(const BenchArguments& a, Method method, const kernels::Device& device,
                        privacy::Ledger* ledger) {
  TrainingOptions o{.method = method,
                    .sampling = Sampling::kPoisson,
                    .num_steps = 1000000,
                    .expected_batch = a.batch,
                    .num_records_public = a.batch,
                    .optimizer = {.learning_rate = 1e-4f},
                    .num_threads = a.threads,
                    .device = device};
  // A charge is a disk sync; it is taken once, for the whole bench.
  o.privacy = {.noise_multiplier = 1, .ledger = ledger, .run = "bench", .steps_per_charge = 1000000};
  return o;
}

}  // namespace

BenchProblem::BenchProblem(const BenchArguments& arguments) {
  architecture = UniformArchitecture{.num_items = arguments.items,
                                     .max_length = arguments.length,
                                     .width = 64,
                                     .num_heads = 1,
                                     .num_blocks = 2,
                                     .inner_width = arguments.inner_width,
                                     .embedding_scale = 8};
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

Result<std::unique_ptr<StepPair>> StepPair::Create(const BenchArguments& a) {
  WISP_ASSIGN_OR_RETURN(OpenedDevice device, OpenDevice(a.device));
  WISP_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(folder.File("ledger"), {.dataset = "bench"}));
  std::unique_ptr<StepPair> pair(new StepPair(a, std::move(device), std::move(folder), std::move(ledger)));
  WISP_RETURN_IF_ERROR(CheckGradient(pair->problem_));
  for (size_t m = 0; m < 2; ++m) {
    const Method method = m == 0 ? Method::kOrdinary : Method::kPhantom;
    WISP_ASSIGN_OR_RETURN(pair->trainers_[m],
                          Trainer::Create(pair->problem_.architecture, pair->problem_.weights, pair->problem_.records,
                                          Options(a, method, pair->device_.device, &pair->ledger_)));
    WISP_ASSIGN_OR_RETURN(const StepReport first, pair->trainers_[m]->Step());
    WISP_RETURN_IF_ERROR(CheckFirstLoss(pair->problem_, first));
  }
  return pair;
}

Status StepPair::Sample() {
  for (size_t m = 0; m < 2; ++m) {
    Status status;
    seconds_[m].push_back(Seconds([&] { status = trainers_[m]->Step().status(); }));
    WISP_RETURN_IF_ERROR(status);
  }
  ratios_.push_back(seconds_[1].back() / seconds_[0].back());
  return OkStatus();
}

}  // namespace wisp::tools
