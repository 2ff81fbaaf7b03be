#include "runtime/train/run/fine_tune.h"

#include <algorithm>
#include <utility>

#include "runtime/core/date.h"
#include "runtime/core/text.h"
#include "runtime/model/lists_of.h"
#include "runtime/model/provenance.h"
#include "runtime/privacy/statement.h"
#include "runtime/train/method_table.h"
#include "runtime/train/run/check_start.h"
#include "runtime/train/run/untrained_items.h"

namespace wisp {
namespace {

// The source of an output bias that the run sets itself.
OutputBiasOrigin ChooseBiasOrigin(const TrainingJob& job) {
  if (job.spec.architecture.head.output_bias != OutputBias::kFixed) return OutputBiasOrigin::kNone;
  if (!IsPrivate(job.spec.training)) return OutputBiasOrigin::kExactCounts;
  return job.spec.goal.histogram_noise > 0 ? OutputBiasOrigin::kPrivateCounts : OutputBiasOrigin::kNone;
}

// The definition of one record: the unit, and more if the unit does not say everything. Guarantees for two kinds of
// records do not add up (decoding_need.h).
std::string ReadGivenUnit(const privacy::RecordSpec& record) {
  const std::string unit(privacy::ToText(record.unit()));
  const bool says_all = record == privacy::RecordSpec::OfEvents({.unit = record.unit()});
  return says_all ? unit : unit + ", " + record.InWords();
}

}  // namespace

std::span<const StoredTensor> BaseBeside(const ModelFile& base, const Architecture& trained,
                                         const TrainingOptions& options) {
  return base.tensors().first(std::min(base.tensors().size(), NumReadable(trained, options)));
}

StartBesideBase StartBeside(const ModelFile& base, const Architecture& trained, const TrainingOptions& options,
                            const InitialisationOptions& initialisation, uint64_t seed) {
  const std::vector<ParameterSpec> parameters = ListParameters(trained);
  const std::span<const StoredTensor> tensors = base.tensors();
  StartBesideBase start{.base = BaseBeside(base, trained, options)};
  const size_t first_held = parameters[start.base.size()].offset;
  start.held.resize(FlatSize(parameters) - first_held);
  auto random = privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(trained, initialisation, random, start.held, first_held);
  for (size_t i = start.base.size(); i < tensors.size(); ++i)
    CopyAsFloats(parameters[i], tensors[i], start.held.data() + (parameters[i].offset - first_held));
  return start;
}

namespace {

// Starts a job from the weights of its base. Weights that are converted, or follow the base's, lie in `held`.
void TakeStart(const ModelFile& base, TrainingJob& job, std::vector<float>& held) {
  RunSpec& s = job.spec;
  const std::span<const float> whole = base.flat_weights();
  if (whole.size() == FlatSize(ListParameters(s.architecture)) && NumReadable(s.architecture, s.training) == 0) {
    job.start_weights = whole;
    return;
  }
  StartBesideBase start = StartBeside(base, s.architecture, s.training, s.initialisation, s.training.seed);
  s.training.base = start.base;
  held = std::move(start.held);
  job.start_weights = held;
}

}  // namespace

Result<privacy::Ledger> OpenLedgerToTrain(const FineTuneStart& start) {
  const LedgerToTrain& l = *start.ledger;
  if (l.path.empty()) {
    return PrivacyRefused(
        "private training needs a ledger (`ledger_path`): the file that remembers what this data "
        "set's privacy was spent on");
  }
  WISP_RETURN_IF_ERROR(CheckDatasetName(start.dataset));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(l.path, {.dataset = start.dataset,
                                                                               .record = l.record,
                                                                               .unit_chosen = l.unit_chosen,
                                                                               .anchor = l.anchor,
                                                                               .begin_anchor = l.begin_anchor}));
  if (const Status other = ledger.CheckDataset(start.dataset); !other.ok()) {
    return PrivacyRefused(other.message(),
                          "; what else there is of the same people goes by that name too, and only other people's data "
                          "takes another ledger");
  }
  if (start.base == nullptr) return ledger;
  WISP_RETURN_IF_ERROR(CheckStart(*start.base, start.adapter_path.empty() ? start.base_path : start.adapter_path,
                                  {.dataset = start.dataset, .other_data = start.other_data}, ledger));
  return ledger;
}

Result<FineTune> FineTune::Begin(FineTuneStart start) {
  WISP_RETURN_IF_ERROR(CheckDatasetName(start.dataset));
  FineTune run(std::move(start));
  if (run.start_.ledger) {
    WISP_ASSIGN_OR_RETURN(run.ledger_, OpenLedgerToTrain(run.start_));
  }
  return run;
}

Result<ProvenanceEntry> FineTune::Provenance(const TrainingJob& job, const std::string& description,
                                             const JobResult& r) const {
  ProvenanceEntry entry{.description = description,
                        .sampling = GetName(r.options.sampling),
                        .steps = r.num_steps,
                        .dataset = start_.dataset,
                        .date = Today(),
                        .base_model_hash = start_.base != nullptr ? start_.base->content_hash() : 0};
  if (r.options.method == Method::kDpFp)
    entry.description += ", DP-FP " + DescribeDpFp(job.spec.architecture, r.options, r.num_steps);
  if (!IsPrivate(r.options)) return entry;
  const std::string& tuning = job.spec.uncharged_tuning;
  if (!tuning.empty()) entry.description += "; chosen on the same data without a charge: " + tuning;
  for (const privacy::Mechanism& m : r.mechanisms) entry.mechanisms.push_back(m.Describe());
  entry.epsilon = r.epsilon;
  entry.delta = job.spec.goal.delta;
  entry.accountant = r.accountant;
  entry.privacy_unit = ReadGivenUnit(start_.ledger->record);
  entry.adjacency = "add_remove";
  entry.noise = r.options.privacy.reproducible_seed ? NoiseOrigin::kReproducible : NoiseOrigin::kSecure;
  static_assert(sizeof(privacy::ChainValue) == kReceiptBytes);
  WISP_ASSIGN_OR_RETURN(entry.receipt, ledger_->MakeReceipt(r.run));
  return entry;
}

ModelContents FineTune::Contents(const TrainingJob& job, FineTuneOutput& output) const {
  const ModelFile* base = start_.base;
  ModelContents contents = std::move(output.contents);
  contents.allow_seen =
      job.spec.allow_seen.value_or(base != nullptr && base->lists().allow_seen && !contents.classifier);
  contents.output_bias_origin = base != nullptr ? base->output_bias_origin() : ChooseBiasOrigin(job);
  if (base == nullptr) return contents;
  contents.provenance = JoinProvenance({base->provenance()});
  contents.retired.assign(base->retired().begin(), base->retired().end());
  contents.untrained.assign(base->untrained().begin(), base->untrained().end());
  const std::span<const Succession> successions = base->lists().successions;
  contents.successions.assign(successions.begin(), successions.end());
  if (contents.architecture.adapter)
    contents.base_hash = base->architecture().adapter ? base->base_hash() : base->content_hash();
  return contents;
}

// Checked before the run is paid for: an adapter must be one that can be opened beside the base.
Status FineTune::CheckAdapter(const Architecture& trained) const {
  if (!trained.adapter) return OkStatus();
  if (start_.base == nullptr) return InvalidArgument("an adapter trains beside the weights of a model: start from one");
  const Architecture& base = start_.base->architecture();
  if (StandsBeside(trained, base)) return OkStatus();
  return InvalidArgument(start_.base_path, ": is not the model that the adapter is to stand beside");
}

// Checked before the run is paid for: an adapter cannot change its base's rules for lists.
Status FineTune::CheckAllowSeen(const TrainingJob& job, const FineTuneOutput& output) const {
  if (!output.contents.architecture.adapter || !job.spec.allow_seen) return OkStatus();
  const bool base = start_.base->lists().allow_seen;
  if (*job.spec.allow_seen == base) return OkStatus();
  return InvalidArgument(start_.base_path, base ? ": its lists may" : ": its lists may not",
                         " hold items of the history, and an adapter beside it asks for the contrary (allow_seen); "
                         "allowed is what the base says");
}

std::string FineTune::RunName(const std::string& uncharged_tuning) const {
  return privacy::WithTuning(start_.run, uncharged_tuning);
}

// This alone decides which items have learned, both for the figures and for what is written.
void FineTune::TakeFrom(const JobResult& result, ModelContents& contents) const {
  if (start_.base != nullptr) contents.untrained = StillUntrained(*start_.base, contents.architecture, result);
  if (result.successions) contents.successions = *result.successions;
}

// Writes a model whose `reserved` is set.
Status FineTune::WriteContents(const TrainingJob& job, const FineTuneOutput& output, const JobResult& result,
                               ModelContents& contents) const {
  contents.weights = result.weights;
  contents.first_weight = result.first_weight;
  contents.before = job.spec.training.base;
  WISP_ASSIGN_OR_RETURN(ProvenanceEntry run, Provenance(job, output.description, result));
  contents.provenance.push_back(std::move(run));
  TakeFrom(result, contents);
  // An adapter without a head leaves the base's description as it is.
  const std::optional<AdapterSpec>& adapter = contents.architecture.adapter;
  if (contents.classifier && (!adapter || adapter->has_head)) contents.classifier->norm_bound = result.norm_bound;
  return WriteModel(output.path, contents);
}

Status FineTune::Write(TrainingJob job, FineTuneOutput output, const JobResult& result) const {
  std::vector<float> held;
  if (start_.base != nullptr) TakeStart(*start_.base, job, held);
  ModelContents contents = Contents(job, output);
  WISP_ASSIGN_OR_RETURN(FileReplacement room, ReserveModel(output.path, contents));
  contents.reserved = &room;
  return WriteContents(job, output, result, contents);
}

Result<JobResult> FineTune::Run(TrainingJob job, FineTuneOutput output, privacy::Ledger* of_run) {
  const std::string& tuning = job.spec.uncharged_tuning;
  WISP_RETURN_IF_ERROR(privacy::CheckTuning("the tuning that is declared (`uncharged_tuning`)", tuning));
  WISP_RETURN_IF_ERROR(CheckAdapter(output.contents.architecture));
  WISP_RETURN_IF_ERROR(CheckAllowSeen(job, output));
  job.spec.training.privacy.ledger = of_run != nullptr ? of_run : ledger();
  job.spec.training.privacy.run = RunName(tuning);
  job.spec.training.base_model_hash = start_.base != nullptr ? start_.base->content_hash() : 0;
  if (start_.base != nullptr) job.start_lists = start_.base->lists();
  std::vector<float> held;
  if (start_.base != nullptr && job.start_weights.empty()) {
    TakeStart(*start_.base, job, held);
    job.started = [&held] { held = std::vector<float>(); };
  }
  ModelContents contents = Contents(job, output);
  std::vector<int32_t> withheld;
  job.lists = [&](const JobResult& result) {
    TakeFrom(result, contents);
    return MakeLists(contents, withheld);
  };
  // An adapter must not replace its base, which it needs.
  if (contents.architecture.adapter)
    WISP_RETURN_IF_ERROR(CheckOutput({"the file of the adapter", output.path}, {{"its base", start_.base_path}}));
  // Reserves disk space for the model before anything is spent on it.
  std::optional<FileReplacement> room;
  if (!output.path.empty()) {
    Result<FileReplacement> kept = ReserveModel(output.path, contents);
    if (!kept.ok()) return Status(kept.status().code(), kept.status().message() + "; nothing was charged");
    room.emplace(*std::move(kept));
  }
  // The checkpoint stays until the model is written.
  job.write = [&](const JobResult& result) -> Status {
    if (output.scored) WISP_RETURN_IF_ERROR(output.scored(result, job.lists(result)));
    if (room) {
      contents.reserved = &*room;
      WISP_RETURN_IF_ERROR(WriteContents(job, output, result, contents));
    }
    return output.written ? output.written(result) : OkStatus();
  };
  return RunTrainingJob(job);
}

}  // namespace wisp
