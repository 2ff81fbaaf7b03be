#include "ports/c/personalise_c.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

#include "ports/c/anchor_c.h"
#include "ports/c/device_c.h"
#include "ports/c/options_c.h"
#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/run_spec.h"

namespace wisp::ports {

Status ToLearn::CheckBase(const ModelFile&, bool) { return OkStatus(); }

Result<ModelContents> ToLearn::Contents(const ModelFile& base, const std::optional<AdapterSpec>& new_adapter) const {
  ModelContents contents = ContentsWithoutWeights(base);
  if (new_adapter) contents.architecture.adapter = new_adapter;
  WISP_RETURN_IF_ERROR(Validate(contents.architecture));
  return contents;
}

void ToLearn::Set(RunSpec&) const {}

uint64_t ToLearn::TooShort(const Counted& read, const JobResult&) const { return read.too_short; }

namespace {

Status CheckOptions(const wisp_personalise_options& o) {
  WISP_RETURN_IF_ERROR(CheckGiven("wisp_personalise_options", "model_path, log_path, output_path and ledger_path",
                                  {o.model_path, o.log_path, o.output_path, o.ledger_path}));
  if (o.num_records_public == 0)
    return InvalidArgument(
        "wisp_personalise_options: num_records_public is required: a number of records that anybody may know");
  WISP_RETURN_IF_ERROR(CheckNumbers("wisp_personalise_options", {{"epochs", o.epochs},
                                                                 {"learning_rate", o.learning_rate},
                                                                 {"clipping_norm", o.clipping_norm},
                                                                 {"budget_epsilon", o.budget_epsilon}}));
  if (o.learning_rate > 1)  // larger steps would ruin the weights after everything was paid for
    return InvalidArgument("wisp_personalise_options: learning_rate is ", o.learning_rate, ", allowed is up to 1");
  WISP_RETURN_IF_ERROR(privacy::EpsilonDelta::Create(o.epsilon, o.delta).status());
  return CheckPrivacyGoal({.epsilon = o.epsilon, .noise_multiplier = {}, .delta = o.delta}, o.num_records_public);
}

// The unit that the caller chose. It has no default: a struct that ends before it is refused.
Result<privacy::PrivacyUnit> ReadGivenUnit(const wisp_personalise_options& options, const char* units) {
  const int32_t number = GetNumber(options.unit);
  if (const auto unit = UnitFromNumber(number)) return *unit;
  return InvalidArgument("wisp_personalise_options: unit is ", number, "; required is what one record is: ", units);
}

// The run that the options describe. A field that is 0 has its default.
RunSpec MakeRunSpec(const wisp_personalise_options& o) {
  RunSpec spec = DefaultsFor(RunKind::kDevice);
  TrainingOptions& t = spec.training;
  if (o.epochs != 0) spec.epochs = o.epochs;
  if (o.expected_batch != 0) t.expected_batch = o.expected_batch;
  if (o.learning_rate != 0) t.optimizer.learning_rate = static_cast<float>(o.learning_rate);
  if (o.clipping_norm != 0) t.privacy.clipping_norm = o.clipping_norm;
  t.expected_batch = std::min(t.expected_batch, o.num_records_public);
  t.num_records_public = o.num_records_public;
  t.num_threads = o.num_threads;
  t.executor = MakeExecutor(o.run_tasks, o.run_tasks_data);
  spec.goal = {.epsilon = o.epsilon, .noise_multiplier = {}, .delta = o.delta};
  spec.goal.planned_runs = std::max(1u, o.planned_runs);
  spec.uncharged_tuning = Text(o.uncharged_tuning);
  return spec;
}

// The adapter to create; empty if the model has its own, or if all weights train.
Result<std::optional<AdapterSpec>> NewAdapter(const wisp_personalise_options& o, const ModelFile& base) {
  const std::optional<AdapterSpec>& own = base.architecture().adapter;
  if (own && o.adapter_rank != 0 && own->rank != o.adapter_rank) {
    return InvalidArgument("wisp_personalise_options: adapter_rank is ", o.adapter_rank,
                           ", the adapter at adapter_path has ", own->rank, "; allowed are that and 0");
  }
  if (own || o.adapter_rank == 0) return std::optional<AdapterSpec>();
  return std::optional(AdapterSpec{.rank = o.adapter_rank, .alpha = static_cast<float>(o.adapter_rank)});
}

// The result of a run, with the counts of what it read.
struct Personalised {
  JobResult job;
  Counted read;
};

// One fine-tuning run.
class Personalisation {
 public:
  Personalisation(const wisp_personalise_options& options, privacy::PrivacyUnit unit, ToLearn& what)
      : o_(options), unit_(unit), what_(what) {}

  Result<Personalised> Run() {
    WISP_RETURN_IF_ERROR(CheckOptions(o_));
    WISP_RETURN_IF_ERROR(what_.CheckKind(o_, unit_));
    WISP_RETURN_IF_ERROR(CheckOutputs());
    WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::OpenWithAdapter(o_.model_path, Text(o_.adapter_path),
                                                                           Verify::kFull, what_.accepts()));
    WISP_ASSIGN_OR_RETURN(const auto new_adapter, NewAdapter(o_, base));
    WISP_RETURN_IF_ERROR(what_.CheckBase(base, new_adapter.has_value()));
    WISP_ASSIGN_OR_RETURN(ModelContents contents, what_.Contents(base, new_adapter));
    contents.created_by = std::string("wisp ") + wisp_version();
    WISP_ASSIGN_OR_RETURN(device_, DeviceOrProcessor(o_.device, DeviceUse::kTraining));
    WISP_ASSIGN_OR_RETURN(FineTune fine_tune, Begin(base));
    TrainingJob job = MakeJob(contents.architecture);
    WISP_ASSIGN_OR_RETURN(Counted read, what_.Read(o_, base, job));
    if (o_.budget_epsilon > 0) {
      WISP_ASSIGN_OR_RETURN(job.spec.goal.new_limit, privacy::EpsilonDelta::Create(o_.budget_epsilon, o_.delta));
    }
    WISP_ASSIGN_OR_RETURN(JobResult result, fine_tune.Run(std::move(job), {.path = o_.output_path,
                                                                           .contents = std::move(contents),
                                                                           .description = Description()}));
    read.too_short = what_.TooShort(read, result);
    return Personalised{std::move(result), read};
  }

 private:
  // Called before anything is charged. The output may be the model's file, which is replaced at the end.
  Status CheckOutputs() const {
    const std::string output = o_.output_path, log = o_.log_path, ledger = o_.ledger_path, model = o_.model_path,
                      adapter = Text(o_.adapter_path), checkpoint = Text(o_.checkpoint_path);
    WISP_RETURN_IF_ERROR(CheckApart({"ledger_path", ledger}, {"log_path", log}));
    WISP_RETURN_IF_ERROR(CheckOutput({"output_path", output}, {{"log_path", log}, {"ledger_path", ledger}}));
    return CheckOutput({"checkpoint_path", checkpoint}, {{"log_path", log},
                                                         {"ledger_path", ledger},
                                                         {"model_path", model},
                                                         {"adapter_path", adapter},
                                                         {"output_path", output}});
  }

  // The data set's name, by the rule of `wisp train`.
  std::string Dataset() const {
    const std::string_view path = o_.log_path;
    return std::string(o_.dataset != nullptr && o_.dataset[0] != '\0' ? std::string_view(o_.dataset)
                                                                      : path.substr(platform::FindName(path)));
  }

  static std::string RunName() {
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    return "personalise " + std::to_string(now.count());
  }

  Result<FineTune> Begin(const ModelFile& base) const {
    WISP_ASSIGN_OR_RETURN(auto anchor, OpenAnchor(o_.anchor));
    return FineTune::Begin({.base = &base,
                            .base_path = o_.model_path,
                            .adapter_path = Text(o_.adapter_path),
                            .dataset = Dataset(),
                            .other_data = o_.other_data != 0,
                            .run = RunName(),
                            .ledger = LedgerToTrain{.path = o_.ledger_path,
                                                    .anchor = std::move(anchor.kept),
                                                    .begin_anchor = anchor.begins,
                                                    .record = what_.Record(unit_),
                                                    .unit_chosen = true}});
  }

  std::string Description() const {
    const std::string run = "personalised on the device";
    const privacy::RecordSpec record = what_.Record(unit_);
    return record.is_of_texts() ? run + ", one record: " + record.InWords() : run;
  }

  TrainingJob MakeJob(const Architecture& trained) const {
    TrainingJob job{.spec = MakeRunSpec(o_)};
    job.spec.architecture = trained;
    job.spec.training.device = device_.device;
    what_.Set(job.spec);
    job.checkpoint_path = Text(o_.checkpoint_path);
    job.checkpoint_every = o_.checkpoint_every;
    job.cancelled = [this] { return o_.cancelled != nullptr && o_.cancelled(o_.user_data) != 0; };
    job.progress = [this, epsilon = std::nan("")](const JobProgress& p) mutable {
      if (o_.progress == nullptr) return true;
      epsilon = p.epsilon.value_or(epsilon);
      const wisp_progress progress{sizeof(wisp_progress), p.step, p.num_steps, p.mean_loss, epsilon};
      return o_.progress(&progress, o_.user_data) == 0;
    };
    return job;
  }

  const wisp_personalise_options& o_;
  const privacy::PrivacyUnit unit_;
  ToLearn& what_;
  OpenedDevice device_;
};

}  // namespace

Status Personalise(const wisp_personalise_options* given, ToLearn& what, wisp_personalise_result* out) {
  if (given == nullptr) return InvalidArgument("wisp_personalise_options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto options, MakeOptions(given, "wisp_personalise_options"));
  WISP_ASSIGN_OR_RETURN(const auto unit, ReadGivenUnit(options, what.units()));
  // Checked before anything is charged: a result that cannot be returned would be paid for.
  if (out != nullptr) WISP_RETURN_IF_ERROR(CheckSize(out->size, "wisp_personalise_result"));
  WISP_ASSIGN_OR_RETURN(const Personalised p, Personalisation(options, unit, what).Run());
  if (out == nullptr) return OkStatus();
  const JobResult& job = p.job;
  const wisp_personalise_result filled{.size = sizeof(wisp_personalise_result),
                                       .num_steps = job.num_steps,
                                       .epsilon = job.epsilon.value_or(HUGE_VAL),
                                       .noise_multiplier = job.noise_multiplier,
                                       .num_records = job.num_records,
                                       .records_too_short = p.read.too_short,
                                       .gradients_dropped = job.num_dropped,
                                       .num_events = p.read.num_events,
                                       .unknown_events = p.read.unknown_events,
                                       .unknown_items = p.read.unknown_items,
                                       .planned_steps = job.planned_steps,
                                       .resumed_from = job.resumed_from,
                                       .bad_rows = p.read.bad_rows,
                                       .checkpoint_failed = job.save_failure.empty() ? 0 : 1,
                                       .on_device = job.options.device.memory.is_host() ? 0 : 1};
  return FillResult(filled, out, "wisp_personalise_result");
}

Status PlanPersonalise(const wisp_personalise_options* given, wisp_personalise_memory* out) {
  if (given == nullptr || out == nullptr)
    return InvalidArgument("wisp_personalise_plan_memory: options and memory must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, MakeOptions(given, "wisp_personalise_options"));
  if (o.model_path == nullptr || o.num_records_public == 0) {
    return InvalidArgument("wisp_personalise_plan_memory: model_path and num_records_public are required");
  }
  WISP_ASSIGN_OR_RETURN(const ModelFile base,
                        ModelFile::OpenWithAdapter(o.model_path, Text(o.adapter_path), Verify::kStructure));
  WISP_ASSIGN_OR_RETURN(const auto new_adapter, NewAdapter(o, base));
  Architecture trained = base.architecture();
  if (new_adapter) trained.adapter = new_adapter;
  WISP_RETURN_IF_ERROR(Validate(trained));
  WISP_ASSIGN_OR_RETURN(const OpenedDevice device, DeviceOrProcessor(o.device, DeviceUse::kTraining));
  TrainingOptions options = MakeOptions(MakeRunSpec(o));
  options.device = device.device;
  options.base = BaseBeside(base, trained, options);
  WISP_ASSIGN_OR_RETURN(const TrainingMemory plan, PlanTrainingMemory(trained, o.num_records_public, options));
  const wisp_personalise_memory m{sizeof(wisp_personalise_memory),
                                  plan.weights,
                                  plan.packed_weights,
                                  plan.optimizer_state,
                                  plan.gradient_sums,
                                  plan.activations,
                                  plan.record_gradients,
                                  plan.lists,
                                  plan.total()};
  return FillResult(m, out, "wisp_personalise_memory");
}

}  // namespace wisp::ports
