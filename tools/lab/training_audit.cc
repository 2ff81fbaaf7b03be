#include "tools/lab/training_audit.h"

#include <algorithm>
#include <numeric>

#include "runtime/data/synth.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"

namespace wisp::tools {

Result<privacy::Ledger*> TemporaryLedger::Open() {
  WISP_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
  folder_.emplace(std::move(folder));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::Open(folder_->File("ledger"),
                                              {.dataset = "synthetic", .record = privacy::RecordSpec::OfEvents({})}));
  ledger_.emplace(std::move(ledger));
  return &*ledger_;
}

Status TrainingAudit::PrepareOptions() {
  recipe_.training.method = Method::kPhantom;
  recipe_.training.optimizer.learning_rate = 0.01f;
  recipe_.architecture = UniformArchitecture{
      .max_length = 16, .width = 16, .num_heads = 1, .num_blocks = 1, .inner_width = 16, .embedding_scale = 4.0f};
  recipe_.initialisation.table_deviation = 0.1f;
  if (!a_.recipe.empty()) {
    WISP_ASSIGN_OR_RETURN(recipe_, ReadRecipe(a_.recipe));
  }
  if (recipe_.text && !a_.data.path.empty())
    return Unsupported(a_.recipe,
                       ": it is a recipe of texts; audits read events, or make users up where --data is left out");
  WISP_RETURN_IF_ERROR(OverrideMethod(a_.method, recipe_.training));
  TrainingOptions& o = recipe_.training;
  if (o.method != Method::kOrdinary && a_.recipe.empty()) o.sampling = Sampling::kPoisson;
  if (a_.clipping_norm) o.privacy.clipping_norm = *a_.clipping_norm;
  if (a_.noise_multiplier) recipe_.goal = {.noise_multiplier = a_.noise_multiplier};
  if (a_.epsilon) recipe_.goal = {.epsilon = a_.epsilon};
  if (a_.num_records_public) o.num_records_public = *a_.num_records_public;
  if (a_.expected_batch) o.expected_batch = *a_.expected_batch;
  if (a_.steps) o.num_steps = *a_.steps;
  o.num_threads = a_.threads;
  o.privacy.reproducible_seed = a_.reproducible_noise_seed;
  o.privacy.run = "audit " + Timestamp();
  if (!a_.model.empty()) {
    WISP_ASSIGN_OR_RETURN(ModelFile model, ModelFile::Open(a_.model, Verify::kFull));
    base_.emplace(std::move(model));
    recipe_.architecture = base_->architecture();
  }
  if (!recipe_.adapter) return OkStatus();
  // The sampling equals that of training. Made-up records may stand beside fresh weights.
  if (!base_ && !a_.data.path.empty()) {
    return InvalidArgument(a_.recipe,
                           ": has an adapter, which trains beside the weights of a model: start from one (--model)");
  }
  recipe_.architecture.adapter = recipe_.adapter;
  return OkStatus();
}

Status TrainingAudit::Initialise(uint32_t num_items) {
  if (!base_) recipe_.architecture.num_items = num_items;
  WISP_RETURN_IF_ERROR(Validate(recipe_.architecture));
  weights_.resize(FlatSize(ListParameters(recipe_.architecture)));
  // With a base, these weights are those of the adapter alone.
  auto random = privacy::RandomStream::Reproducible(recipe_.training.seed, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(recipe_.architecture, recipe_.initialisation, random, weights_);
  if (base_) {
    std::vector<float> dequantised;
    const std::span<const float> of_base = base_->AllWeights(dequantised);
    std::copy(of_base.begin(), of_base.end(), weights_.begin());
  }
  ChooseRows();
  return OkStatus();
}

// FEST and AdaFEST+ train some rows of the item table. Here they are the first half, a choice that does not depend on
// data.
void TrainingAudit::ChooseRows() {
  if (!NamesRows(recipe_.training.method)) return;
  rows_.resize(std::max(1u, recipe_.architecture.num_items / 2));
  std::iota(rows_.begin(), rows_.end(), 0);
  recipe_.training.sparse.rows = rows_;
}

double TrainingAudit::RunDelta() const {
  return a_.run_delta.value_or(!a_.recipe.empty() && recipe_.goal.delta > 0 ? recipe_.goal.delta : a_.delta);
}

// The number of records determines the length of an ordinary run.
std::vector<std::string> TrainingAudit::NotPrivate(std::vector<std::string> names) const {
  if (!is_private()) names.emplace_back("steps");
  return names;
}

Status TrainingAudit::OpenTemporaryLedger() {
  WISP_ASSIGN_OR_RETURN(recipe_.training.privacy.ledger, temporary_.Open());
  return OkStatus();
}

Status TrainingAudit::ReadRecords() {
  WISP_RETURN_IF_ERROR(a_.data.path.empty() ? ReadSyntheticLog() : ReadPrivateLog());
  WISP_RETURN_IF_ERROR(Initialise(static_cast<uint32_t>(data_.sequences.item_keys.size())));
  set_ = MakeRecords(data_.sequences, recipe_.architecture.max_length, recipe_.hold_out);
  return OkStatus();
}

Status TrainingAudit::ReadSyntheticLog() {
  WISP_ASSIGN_OR_RETURN(data::SynthData synthetic,
                        data::Synthesize({.seed = recipe_.training.seed, .num_users = a_.users}));
  data_.sequences = std::move(synthetic.sequences);
  if (base_ && base_->architecture().num_items < data_.sequences.item_keys.size())
    return InvalidArgument("the model knows fewer items than the synthetic log has: give --data");
  return OpenTemporaryLedger();
}

Status TrainingAudit::ReadPrivateLog() {
  if (is_private() && a_.ledger.empty()) {
    return PrivacyRefused(
        "an audit trains on the data and is charged like training: it needs --ledger, the data set's own");
  }
  if (is_private() && recipe_.min_item_events > 1) {
    return PrivacyRefused("a private run with data.min_item_events ", recipe_.min_item_events,
                          ": one user could decide whether others' events stay; allowed is 1");
  }
  WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec record, MakeRecordSpec(recipe_, a_.data));
  WISP_ASSIGN_OR_RETURN(const data::Units units, MakeUnits(record.events()));
  WISP_ASSIGN_OR_RETURN(data_,
                        ReadData(a_.data, {recipe_.min_user_events, recipe_.min_item_events, units, is_private()},
                                 base_ ? &*base_ : nullptr));
  if (!is_private()) return OkStatus();
  const std::string name = a_.dataset.empty() ? FileName(a_.data.path) : a_.dataset;
  FineTuneStart start{.base = base(), .base_path = a_.model, .dataset = name};
  WISP_ASSIGN_OR_RETURN(start.ledger, OpenRunLedger(a_.ledger, a_.anchor, record, /*unit_chosen=*/false));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, OpenLedgerToTrain(start));
  ledger_.emplace(std::move(ledger));
  recipe_.training.privacy.ledger = &*ledger_;
  return OkStatus();
}

Status TrainingAudit::PrepareRun(uint32_t synthetic_records) {
  TrainingOptions& o = recipe_.training;
  if (o.num_records_public == 0 && a_.data.path.empty()) {
    o.num_records_public = synthetic_records;
    if (a_.recipe.empty() && !a_.expected_batch) o.expected_batch = std::max(1u, synthetic_records / 4);
  }
  if (!is_private()) o.num_records_public = 0;
  if (is_private() && o.num_records_public == 0) {
    return PrivacyRefused(
        "a private run needs --num-records-public: the sampling probability must not be counted from the data");
  }
  const double n = is_private() ? o.num_records_public : synthetic_records;
  o.expected_batch = std::min(o.expected_batch, static_cast<uint32_t>(n));
  if (a_.epochs) o.num_steps = 0, recipe_.epochs = *a_.epochs;
  if (o.num_steps == 0) {
    WISP_ASSIGN_OR_RETURN(o.num_steps, EpochsToSteps(recipe_.epochs, n, o.expected_batch));
  }
  if (o.num_steps == 0) o.num_steps = 60;
  if (!is_private()) return OkStatus();
  o.privacy.steps_per_charge = static_cast<uint32_t>(o.num_steps);
  PrivacyGoal goal = recipe_.goal;
  if (!goal.epsilon && !goal.noise_multiplier) goal.noise_multiplier = 1.0;
  if (goal.epsilon) goal.noise_multiplier.reset();
  goal.delta = RunDelta();
  goal.histogram_noise = 0;
  return Budget::Calibrate(recipe_.architecture, goal, o);
}

}  // namespace wisp::tools
