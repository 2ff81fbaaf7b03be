// wisp new, wisp train
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe.h"

namespace wisp::tools {
namespace {

volatile std::sig_atomic_t interrupted = 0;

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

void Override(const TrainArguments& a, Recipe& r) {
  if (a.epsilon) r.goal.epsilon = a.epsilon, r.goal.noise_multiplier.reset();
  if (a.noise_multiplier) r.goal.noise_multiplier = a.noise_multiplier, r.goal.epsilon.reset();
  if (a.delta) r.goal.delta = *a.delta;
  if (a.epochs) r.epochs = *a.epochs, r.training.num_steps = 0;
  if (a.seed) r.training.seed = *a.seed;
  if (a.expected_batch) r.training.expected_batch = *a.expected_batch;
  if (a.num_records_public) r.training.num_records_public = *a.num_records_public;
  if (a.learning_rate) r.training.optimizer.learning_rate = static_cast<float>(*a.learning_rate);
  if (a.allow_large_delta == "yes") r.goal.allow_delta_of_one_record = true;
  r.training.num_threads = a.threads;
  r.training.privacy.reproducible_seed = a.reproducible_noise_seed;
}

Status OverrideMethod(const std::string& method, TrainingOptions& o) {
  if (method.empty()) return OkStatus();
  for (const auto& [name, value] : {std::pair{"ordinary", Method::kOrdinary}, std::pair{"phantom", Method::kPhantom}, std::pair{"rgp", Method::kRgp}}) {
    if (method != name) continue;
    o.method = value;
    if (o.method != Method::kOrdinary) o.sampling = Sampling::kPoisson;
    return OkStatus();
  }
  return InvalidArgument("--method is '" + method + "', allowed are ordinary, phantom and rgp");
}

// One training command from start to end.
class TrainCommand {
 public:
  TrainCommand(const TrainArguments& arguments, OutputFormat format) : a_(arguments), format_(format) {}

  Status Run() {
    WISP_RETURN_IF_ERROR(Read());
    WISP_RETURN_IF_ERROR(OpenLedger());
    TrainingJob job = MakeJob();
    Progress progress("train");
    std::signal(SIGINT, [](int) { interrupted = 1; });
    std::optional<double> epsilon;
    job.progress = [&](const JobProgress& p) {
      if (p.epsilon) epsilon = p.epsilon;
      std::string suffix = "loss " + Fixed(p.mean_loss, 3);
      if (epsilon) suffix += ", epsilon " + Fixed(*epsilon, 2);
      progress.Update(p.step, p.num_steps, suffix);
      return interrupted == 0;
    };
    WISP_ASSIGN_OR_RETURN(const JobResult result, RunTrainingJob(job));
    WISP_RETURN_IF_ERROR(Write(result));
    WISP_RETURN_IF_ERROR(WriteStatement(result));
    Print(result);
    return OkStatus();
  }

 private:
  bool is_private() const { return recipe_.training.method != Method::kOrdinary; }

  Status Read() {
    WISP_ASSIGN_OR_RETURN(recipe_, ReadRecipe(a_.recipe));
    Override(a_, recipe_);
    WISP_RETURN_IF_ERROR(OverrideMethod(a_.method, recipe_.training));
    if (!a_.model.empty()) {
      WISP_ASSIGN_OR_RETURN(ModelFile model, ModelFile::Open(a_.model, Verify::kFull));
      base_.emplace(std::move(model));
      if (base_->flat_weights().empty()) return Unsupported(a_.model + ": its weights are laid out in another order than this build trains");
    }
    if (is_private()) WISP_RETURN_IF_ERROR(CheckPublic());
    WISP_ASSIGN_OR_RETURN(data_, ReadData(a_.data, {recipe_.min_user_events, recipe_.min_item_events}, base_ ? &*base_ : nullptr));
    if (base_) {
      const ReAttention asked = a_.re_attention ? ReAttention::kOn : recipe_.architecture.re_attention;
      recipe_.architecture = base_->architecture();
      start_weights_.assign(base_->flat_weights().begin(), base_->flat_weights().end());
      // Re-Attention's variances stand behind all other parameters: a model without them starts with none left by noise.
      if (asked == ReAttention::kOn) recipe_.architecture.re_attention = asked;
      start_weights_.resize(FlatSize(ParametersOf(recipe_.architecture)), 0.0f);
    } else {
      if (a_.re_attention) recipe_.architecture.re_attention = ReAttention::kOn;
      recipe_.architecture.num_items = static_cast<uint32_t>(data_.sequences.item_keys.size());
    }
    item_keys_ = base_ ? ItemKeys(*base_) : data_.sequences.item_keys;
    WISP_ASSIGN_OR_RETURN(item_names_, ReadItemNames(a_.item_names, item_keys_));
    for (size_t i = 0; base_ && item_names_.empty() && base_->has_item_names() && i < item_keys_.size(); ++i) base_names_.emplace_back(base_->item_name(i));
    return OkStatus();
  }

  // What would let one user decide over others' records, or over the shape of the model, outside of the clipping norm.
  Status CheckPublic() const {
    if (recipe_.min_item_events > 1) {
      return PrivacyRefused("private training with data.min_item_events " + std::to_string(recipe_.min_item_events) +
                            ": one user could decide whether others' events stay; allowed is 1");
    }
    if (!base_ && recipe_.catalogue != Recipe::Catalogue::kPublic) {
      return PrivacyRefused("private training takes the catalogue from the data: declare it public (\"catalogue\": \"public\" under data), "
                            "or start from a model with --model");
    }
    return OkStatus();
  }

  std::string Dataset() const { return a_.dataset.empty() ? FileName(a_.data.path) : a_.dataset; }

  Status OpenLedger() {
    if (!is_private()) return OkStatus();
    if (a_.ledger.empty()) return PrivacyRefused("private training needs --ledger: the file that remembers what this data set's privacy was spent on");
    WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, privacy::Ledger::Open(a_.ledger, {.dataset = Dataset(), .unit = recipe_.unit}));
    ledger_.emplace(std::move(ledger));
    if (!a_.budget) return OkStatus();
    WISP_ASSIGN_OR_RETURN(const auto limit, privacy::EpsilonDelta::Create(*a_.budget, recipe_.goal.delta));
    return ledger_->SetLimit(limit);
  }

  TrainingJob MakeJob() {
    TrainingJob job;
    job.sequences = &data_.sequences;
    job.hold_out = recipe_.hold_out;
    job.architecture = recipe_.architecture;
    job.start_weights = start_weights_;
    job.initialisation = recipe_.initialisation;
    job.training = recipe_.training;
    job.epochs = recipe_.epochs;
    job.goal = recipe_.goal;
    job.checkpoint_path = a_.checkpoint;
    if (!is_private()) return job;
    // The bias of a model that comes with one is kept.
    const bool sets_bias = !base_ && recipe_.architecture.output_bias == OutputBias::kFixed;
    const bool needs_frequencies = recipe_.architecture.re_attention == ReAttention::kOn &&
                                   recipe_.training.re_attention.source == ReAttentionOptions::Source::kPrinted;
    job.histogram_noise = sets_bias || needs_frequencies ? recipe_.histogram_noise : 0;
    job.training.privacy.ledger = &*ledger_;
    job.training.privacy.run = RunName();
    return job;
  }

  // Unique on this device: a second run of the same recipe has a cost of its own.
  std::string RunName() const { return (recipe_.name.empty() ? FileName(a_.recipe) : recipe_.name) + " " + run_id_; }

  ProvenanceEntry Provenance(const JobResult& r) const {
    ProvenanceEntry entry;
    entry.description = (base_ ? "fine-tuned by " : "trained by ") + (recipe_.name.empty() ? FileName(a_.recipe) : recipe_.name);
    entry.steps = r.num_steps;
    entry.dataset = Dataset();
    entry.date = Today();
    entry.base_model_hash = base_ ? base_->content_hash() : 0;
    entry.sampling = recipe_.training.sampling == Sampling::kPoisson ? "poisson" : "shuffled";
    if (!is_private()) return entry;
    for (const auto& m : r.mechanisms) entry.mechanisms.push_back(m.Describe());
    entry.epsilon = r.epsilon;
    entry.delta = recipe_.goal.delta;
    entry.accountant = "PLD";
    entry.privacy_unit = privacy::ToText(recipe_.unit);
    entry.adjacency = "add_remove";
    entry.noise = a_.reproducible_noise_seed ? NoiseOrigin::kReproducible : NoiseOrigin::kSecure;
    return entry;
  }

  Status Write(const JobResult& r) const {
    ModelContents contents;
    contents.architecture = recipe_.architecture;
    contents.weights = r.weights;
    contents.item_keys = item_keys_;
    contents.item_names = item_names_.empty() ? base_names_ : item_names_;
    for (size_t i = 0; base_ && i < base_->provenance().size(); ++i) contents.provenance.push_back(base_->provenance()[i]);
    contents.provenance.push_back(Provenance(r));
    contents.description = recipe_.name;
    contents.created_by = "wisp " + Version();
    if (base_) {
      contents.output_bias_origin = base_->output_bias_origin();
    } else if (recipe_.architecture.output_bias == OutputBias::kFixed) {
      contents.output_bias_origin = !is_private() ? OutputBiasOrigin::kExactCounts
                                    : recipe_.histogram_noise > 0 ? OutputBiasOrigin::kPrivateCounts : OutputBiasOrigin::kNone;
    }
    return WriteModel(a_.out, contents);
  }

  Status WriteStatement(const JobResult& r) const {
    if (!is_private() || a_.privacy_json.empty()) return OkStatus();
    privacy::PrivacyStatement s;
    s.dataset = ledger_->dataset();
    s.run = RunName();
    s.unit = recipe_.unit;
    s.mechanisms = r.mechanisms;
    s.num_steps = r.num_steps;
    s.noise = a_.reproducible_noise_seed ? privacy::NoiseKind::kReproducible : privacy::NoiseKind::kSecure;
    s.delta = recipe_.goal.delta;
    s.epsilon = r.epsilon;
    s.ledger_path = FileName(a_.ledger);
    WISP_ASSIGN_OR_RETURN(s.limit, ledger_->Limit());
    WISP_ASSIGN_OR_RETURN(const auto delta, privacy::Delta::Create(recipe_.goal.delta));
    WISP_ASSIGN_OR_RETURN(s.ledger_epsilon, ledger_->Spent(delta));
    WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(a_.privacy_json, FileAccess::kShared));
    const std::string text = privacy::ToJson(s);
    WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(text))));
    return file.Commit();
  }

  void Print(const JobResult& r) const {
    nlohmann::ordered_json j = {{"model", a_.out}, {"records", r.num_records}, {"steps", r.num_steps}, {"seconds", r.seconds},
                                {"planned_bytes", r.planned_bytes}};
    if (is_private()) {
      j["noise_multiplier"] = r.noise_multiplier;
      j["epsilon"] = r.epsilon ? nlohmann::ordered_json(*r.epsilon) : nlohmann::ordered_json();
      j["delta"] = recipe_.goal.delta;
      j["records_dropped"] = r.num_dropped;
    }
    for (const auto& [name, quality] : {std::pair{"validation", r.validation}, std::pair{"test", r.test}}) {
      if (quality) j[name] = {{"ndcg@10", quality->ndcg_at_10}, {"hit@10", quality->hit_at_10}, {"users", quality->num_users}};
    }
    if (format_ == OutputFormat::kJson) {
      std::printf("%s\n", j.dump(2).c_str());
      return;
    }
    std::printf("%s: %llu steps over %llu records in %.1f s\n", a_.out.c_str(), static_cast<unsigned long long>(r.num_steps),
                static_cast<unsigned long long>(r.num_records), r.seconds);
    if (is_private()) {
      std::printf("privacy: %s\n", r.epsilon ? ("epsilon " + Fixed(*r.epsilon, 3) + " at delta " + j["delta"].dump() + ", noise multiplier " +
                                                Fixed(r.noise_multiplier, 3)).c_str() : "noise: reproducible, no guarantee");
    }
    if (r.test) {
      std::printf("test: NDCG@10 %.4f, HIT@10 %.4f over %llu users%s\n", r.test->ndcg_at_10, r.test->hit_at_10,
                  static_cast<unsigned long long>(r.test->num_users), is_private() ? " (like the loss, not private: keep it on this device)" : "");
    }
  }

  const TrainArguments& a_;
  OutputFormat format_;
  Recipe recipe_;
  std::string run_id_ = Timestamp();
  std::optional<ModelFile> base_;
  std::optional<privacy::Ledger> ledger_;
  std::vector<float> start_weights_;  // the base model's; empty without one
  data::ReadResult data_;
  std::vector<std::string> item_keys_, item_names_, base_names_;
};

}  // namespace

Status Train(const TrainArguments& arguments, OutputFormat format) { return TrainCommand(arguments, format).Run(); }

Status New(const NewArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(Recipe recipe, ReadRecipe(a.recipe));
  ModelContents contents;
  if (!a.data.path.empty()) {
    WISP_ASSIGN_OR_RETURN(data::ReadResult data, ReadData(a.data, {recipe.min_user_events, recipe.min_item_events}, nullptr));
    contents.item_keys = std::move(data.sequences.item_keys);
    recipe.architecture.num_items = static_cast<uint32_t>(contents.item_keys.size());
  } else {
    recipe.architecture.num_items = a.num_items;
  }
  WISP_RETURN_IF_ERROR(Validate(recipe.architecture));
  WISP_ASSIGN_OR_RETURN(contents.item_names, ReadItemNames(a.item_names, contents.item_keys));
  std::vector<float> weights(FlatSize(ParametersOf(recipe.architecture)));
  auto random = privacy::RandomStream::Reproducible(recipe.training.seed, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(recipe.architecture, recipe.initialisation, random, weights);
  contents.architecture = recipe.architecture;
  contents.weights = weights;
  contents.description = recipe.name;
  contents.created_by = "wisp " + Version();
  WISP_RETURN_IF_ERROR(WriteModel(a.out, contents));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", nlohmann::ordered_json({{"model", a.out}, {"items", recipe.architecture.num_items}, {"floats", weights.size()}}).dump(2).c_str());
  } else {
    std::printf("%s: untrained, %u items, %zu weights\n", a.out.c_str(), recipe.architecture.num_items, weights.size());
  }
  return OkStatus();
}

}  // namespace wisp::tools
