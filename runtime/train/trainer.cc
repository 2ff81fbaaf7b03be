#include "runtime/train/trainer.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "runtime/train/check_records.h"
#include "runtime/train/gradient_step.h"
#include "runtime/train/method_table.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

Status NoRoom(const Architecture& architecture, size_t num_records, const TrainingOptions& options) {
  const Result<TrainingMemory> plan = PlanTrainingMemory(architecture, num_records, options);
  return IoError(
      "there is no room on the device ", options.device.ops->name, ", or on the host, for the run, which takes ",
      plan.ok() ? plan->total() : 0,
      " bytes on both together; a smaller batch or fewer rows_at_once take less, and a limit of the device's "
      "memory may be raised");
}

// The run's streams: 0 samples; from 1 on they draw the workers' noise.
Result<std::vector<RandomStream>> MakeStreams(const TrainingOptions& o) {
  const bool secure = o.method != Method::kOrdinary && !o.privacy.reproducible_seed;
  const uint64_t seed = o.privacy.reproducible_seed.value_or(o.seed);
  std::vector<RandomStream> streams;
  streams.reserve(o.num_threads + 1);
  for (size_t i = 0; i <= o.num_threads; ++i) {
    if (secure) {
      WISP_ASSIGN_OR_RETURN(RandomStream stream, RandomStream::Secure());
      streams.push_back(std::move(stream));
    } else {
      streams.push_back(RandomStream::Reproducible(seed + (uint64_t{i} << 32),
                                                   i == 0 ? StreamPurpose::kSampling : StreamPurpose::kNoise));
    }
  }
  return streams;
}

}  // namespace

void StepStop::Ask() {
  constexpr std::chrono::milliseconds kBetween(50), kGrace(500);
  if (!wanted_) return;
  const Clock::time_point now = Clock::now();
  if (now - asked_ < kBetween) return;
  asked_ = now;
  if (!since_ && wanted_()) since_ = now;
  if (since_ && now - *since_ >= kGrace) now_ = true;
}

Result<std::unique_ptr<Trainer>> Trainer::Create(const Architecture& architecture, std::span<const float> weights,
                                                 std::span<const Record> records, const TrainingOptions& given) {
  TrainingOptions options = given;
  if (options.num_threads == 0) options.num_threads = DefaultThreads();
  if (options.method == Method::kDpFp) options.sampling = Sampling::kPoisson;
  WISP_RETURN_IF_ERROR(Check(architecture, weights, records, options));
  if (options.num_records_public == 0) options.num_records_public = static_cast<uint32_t>(records.size());
  // recorded in RunIdentity
  if (MultipliesIntegers(architecture, options)) options.privacy.norm_form = NormForm::kIntegers;
  WISP_ASSIGN_OR_RETURN(std::vector<RandomStream> streams, MakeStreams(options));
  std::unique_ptr<Trainer> trainer;
  const auto make = [&] { trainer.reset(new Trainer(architecture, weights, records, options, std::move(streams))); };
  if (options.device.memory.is_host()) {
    make();
  } else {
    try {
      make();
    } catch (const std::bad_alloc&) {
      return NoRoom(architecture, records.size(), options);
    }
    // Packing is a device's first work, so a device that cannot run fails here, before anything is charged.
    trainer->context_.Pack();
  }
  WISP_RETURN_IF_ERROR(trainer->weights_.WaitForDevice("the run was set up"));
  if (!IsPrivate(options)) return trainer;
  WISP_ASSIGN_OR_RETURN(PrivacyPlan plan, PrivacyPlan::Create(architecture, options));
  trainer->charges_.emplace(std::move(plan), trainer->options_.privacy);
  return trainer;
}

Trainer::Trainer(const Architecture& architecture, std::span<const float> weights, std::span<const Record> records,
                 const TrainingOptions& options, std::vector<RandomStream> streams)
    : options_(options),
      schedule_{options.num_steps, 0, options.num_steps},
      graph_(MakeGraph(architecture, options.device, GraphFor(architecture, options))),
      trained_(TrainedBy(graph_->parameters(), options)),
      workers_(options.num_threads, options.executor),
      weights_(*graph_, trained_, weights, Changes(), options),
      sampling_(std::move(streams[0])),
      context_{.graph = *graph_,
               .trained = trained_,
               .options = options_,
               .records = Trainable(records),
               .workers = workers_,
               .weights = weights_,
               .num_callers = NumCallers(options)} {
  context_.of_workers.reserve(workers_.size());
  for (size_t w = 0; w < workers_.size(); ++w) {
    context_.of_workers.push_back(
        {w < context_.num_callers ? graph_->AllocateForTraining() : Buffers(), std::move(streams[w + 1])});
  }
  const size_t num_records = context_.records.size();
  if (StateCache::IsUsedFor(architecture, num_records, options_))
    context_.states = std::make_unique<StateCache>(*graph_, context_.records, options_);
  if (std::unique_ptr<StepPart> head = MakeHeadStep(context_)) parts_.push_back(std::move(head));
  if (HasGradients(options_)) parts_.push_back(std::make_unique<GradientStep>(context_, weights));
  options_.re_attention.item_frequencies = {};
  sparse_rows_.assign(options.sparse.rows.begin(), options.sparse.rows.end());
  options_.sparse.rows = sparse_rows_;
}

std::span<const Record> Trainer::Trainable(std::span<const Record> records) {
  const auto trainable = [this](const Record& record) {
    return IsTrainable(graph_->architecture(), record, LongestRecord(graph_->architecture(), options_.cut_to));
  };
  if (!is_private() || std::all_of(records.begin(), records.end(), trainable)) return records;
  std::copy_if(records.begin(), records.end(), std::back_inserter(trainable_), trainable);
  num_left_out_ = records.size() - trainable_.size();
  return trainable_;
}

std::vector<uint8_t> Trainer::Changes() const {
  std::vector<uint8_t> changes;
  changes.reserve(graph_->parameters().size());
  for (size_t i = 0; i < graph_->parameters().size(); ++i) {
    const bool fitted = ReleasesHead(options_) && IsHeadRole(graph_->parameters()[i].role);
    const bool follows = i == graph_->derived(trained_);
    changes.push_back(fitted || follows || (HasGradients(options_) && trained_.contains(i)) ? 1 : 0);
  }
  return changes;
}

std::optional<uint32_t> Trainer::class_of_all_means() const {
  return parts_.empty() ? std::nullopt : parts_.front()->class_of_all_means();
}

void Trainer::EndSteps() {
  for (const auto& part : parts_) part->EndSteps();
}

TrainingMemory Trainer::memory() const {
  TrainingMemory m{.weights = weights_.size_bytes(),
                   .packed_weights = weights_.packed_bytes(),
                   .activations = context_.num_callers * graph_->training_bytes(),
                   .states = context_.states ? context_.states->size_bytes() : 0,
                   .lists = sparse_rows_.capacity() * sizeof(int32_t)};
  for (const auto& part : parts_) part->AddMemory(m);
  return m;
}

void Trainer::Draw() {
  sampling_.Freshen();  // two machines restored from one snapshot then draw different noise
  for (StepContext::Worker& worker : context_.of_workers) worker.noise.Freshen();
  for (const auto& part : parts_) part->Draw(sampling_);
}

Result<StepReport> Trainer::Step() {
  if (context_.records.empty() && !is_private()) return InvalidData("there is no record to train on");
  WISP_RETURN_IF_ERROR(CheckDevice());
  if (charges_) WISP_RETURN_IF_ERROR(charges_->Pay(step(), std::min(schedule_.end, pause_), schedule_.end));
  Draw();
  StepReport report{.step = step()};
  report.learning_rate = context_.rate =
      LearningRate(options_.optimizer, schedule_.Position(step()), schedule_.planned);
  context_.Pack();
  if (context_.states) PassFrozenLayers();
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (i > 0) context_.Pack();  // an earlier part has changed weights
    WISP_RETURN_IF_ERROR(parts_[i]->Run(report));
  }
  context_.Derive();
  WISP_RETURN_IF_ERROR(weights_.WaitForDevice("a step changed the weights"));
  ++context_.step;
  return report;
}

void Trainer::PassFrozenLayers() {
  for (const auto& part : parts_) part->WantStates(*context_.states);
  context_.ForParts([this](size_t w) {
    RecordContext context{.weights = weights_.view(), .buffers = context_.of_workers[w].buffers};
    context_.states->Fill(w, context);
  });
  context_.states->Filled();
}

}  // namespace wisp
