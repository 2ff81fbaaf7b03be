#include "tools/lab/bench/bench_parts.h"

#include <algorithm>

#include "runtime/model/model_file.h"
#include "runtime/train/memory.h"
#include "tools/lab/bench/bench_checks.h"
#include "tools/wisp/device.h"
#include "tools/wisp/recipe/recipe.h"

namespace wisp::tools {
namespace {

TrainingOptions Options(const BenchArguments& a, uint32_t batch, Method method, const kernels::Device& device,
                        privacy::Ledger* ledger) {
  TrainingOptions o{.method = method,
                    .sampling = Sampling::kPoisson,
                    .num_steps = 1000000,
                    .expected_batch = batch,
                    .num_records_public = batch,
                    .optimizer = {.learning_rate = 1e-4f},
                    .num_threads = a.threads,
                    .device = device};
  // A charge syncs the disk, so the bench charges all of its steps at once.
  o.privacy = {.noise_multiplier = 1, .ledger = ledger, .run = "bench", .steps_per_charge = 1000000};
  return o;
}

}  // namespace

bool IsGiven(const BenchArguments& a, const char* option) {
  return std::find(a.given.begin(), a.given.end(), option) != a.given.end();
}

BenchSubject OwnSubject(const BenchArguments& a) {
  BenchSubject s{.batch = a.batch, .length = a.length};
  s.architecture = UniformArchitecture{.num_items = a.items,
                                       .max_length = a.length,
                                       .width = 64,
                                       .num_heads = 1,
                                       .num_blocks = 2,
                                       .inner_width = a.inner_width,
                                       .embedding_scale = 8};
  s.training.method = Method::kPhantom;
  return s;
}

Result<BenchSubject> MakeBenchSubject(const BenchArguments& a) {
  BenchSubject s = OwnSubject(a);
  if (!a.recipe.empty()) {
    WISP_ASSIGN_OR_RETURN(const RunSpec recipe, ReadRecipe(a.recipe));
    s.architecture = recipe.architecture;
    s.architecture.num_items = a.items;
    s.initialisation = recipe.initialisation;
    s.training = recipe.training;
    if (!IsGiven(a, "--batch")) s.batch = recipe.training.expected_batch;
  }
  const bool of_model = a.what == "roofline" && !a.model.empty();
  if (of_model) {
    WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(a.model));
    s.architecture = model.architecture();
  }
  if (!IsGiven(a, "--length") && (of_model || !a.recipe.empty())) s.length = s.architecture.max_length;
  WISP_RETURN_IF_ERROR(Validate(s.architecture));
  if (s.length <= s.architecture.max_length) return s;
  return InvalidArgument("--length is ", s.length, ", allowed are 1 to ", s.architecture.max_length);
}

BenchProblem::BenchProblem(const BenchSubject& s) : architecture(s.architecture) {
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  weights.resize(FlatSize(ListParameters(architecture)));
  InitialiseWeights(architecture, s.initialisation, random, weights);
  items.resize(size_t{s.batch} * (s.length + 1));
  for (int32_t& item : items) item = static_cast<int32_t>(random.UniformBelow(architecture.num_items));
  for (size_t r = 0; r < s.batch; ++r) {
    const std::span<const int32_t> all(items.data() + r * (s.length + 1), s.length + 1);
    records.push_back({all.first(s.length), all.last(s.length)});
  }
}

Result<std::unique_ptr<StepPair>> StepPair::Create(const BenchArguments& a) {
  WISP_ASSIGN_OR_RETURN(const BenchSubject subject, MakeBenchSubject(a));
  WISP_ASSIGN_OR_RETURN(OpenedDevice device, OpenDevice(a.device, DeviceUse::kTraining));
  WISP_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  WISP_ASSIGN_OR_RETURN(
      privacy::Ledger ledger,
      privacy::Ledger::Open(folder.File("ledger"), {.dataset = "bench", .record = privacy::RecordSpec::OfEvents({})}));
  std::unique_ptr<StepPair> pair(new StepPair(subject, std::move(device), std::move(folder), std::move(ledger)));
  WISP_RETURN_IF_ERROR(CheckGradient(pair->problem_));
  for (size_t m = 0; m < 2; ++m) {
    const Method method = m == 0 ? Method::kOrdinary : Method::kPhantom;
    const TrainingOptions options = Options(a, subject.batch, method, pair->device_.device, &pair->ledger_);
    if (m == 0) pair->ordinary_options_ = options;
    WISP_ASSIGN_OR_RETURN(pair->trainers_[m], Trainer::Create(pair->problem_.architecture, pair->problem_.weights,
                                                              pair->problem_.records, options));
    WISP_ASSIGN_OR_RETURN(const StepReport first, pair->trainers_[m]->Step());
    WISP_RETURN_IF_ERROR(CheckFirstLoss(pair->problem_, first));
  }
  return pair;
}

Result<double> StepPair::BytesOverOrdinaryAtEqualRecords() const {
  TrainingOptions ordinary = ordinary_options_;
  ordinary.rows_at_once = trainers_[1]->graph().max_records() * problem_.architecture.max_length;
  WISP_ASSIGN_OR_RETURN(const TrainingMemory plan,
                        PlanTrainingMemory(problem_.architecture, problem_.records.size(), ordinary));
  return static_cast<double>(trainers_[1]->planned_bytes()) / static_cast<double>(plan.total());
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
