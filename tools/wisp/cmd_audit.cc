// wisp audit: step, run, membership, decoding
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/data/synth.h"
#include "runtime/decoding/audit_decoding.h"
#include "runtime/decoding/decoding_need.h"
#include "runtime/privacy/accounting/calibration.h"
#include "runtime/privacy/json.h"
#include "runtime/train/audit/audit_training.h"
#include "runtime/train/run/job.h"
#include "tools/wisp/audit_classifier.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/ledger_access.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"

namespace wisp::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kAuditedRecords = 10000;  // what the sampling probability of an audited step is a share of
constexpr size_t kCandidates = 8;            // canaries of which the strongest is taken

std::string General(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}
Json Figure(const std::optional<double>& value) {
  return !value ? Json() : std::isinf(*value) ? Json("infinity") : Json(*value);
}

// The verdict as an exit code: 4 where the claim is refuted.
Status Verdict(bool refuted, const std::string& what) {
  return refuted ? PrivacyRefused("REFUTED: ", what, " is worse than what is claimed for it") : OkStatus();
}
const char* Word(bool refuted) { return refuted ? "REFUTED" : "not refuted"; }

// A ledger for what is not private: made up data is charged too, but nobody needs to know. Gone with this object.
class TemporaryLedger {
 public:
  TemporaryLedger() = default;
  TemporaryLedger(const TemporaryLedger&) = delete;
  TemporaryLedger& operator=(const TemporaryLedger&) = delete;
  ~TemporaryLedger() {
    ledger_.reset();
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Result<privacy::Ledger*> Open() {
    std::error_code error;
    std::string pattern = (std::filesystem::temp_directory_path(error) / "wisp-audit-XXXXXX").string();
    if (error || mkdtemp(pattern.data()) == nullptr)
      return IoError("no temporary folder could be made for the audit's ledger");
    folder_ = pattern;
    WISP_ASSIGN_OR_RETURN(
        privacy::Ledger ledger,
        privacy::Ledger::Open(folder_ + "/ledger", {.dataset = "synthetic", .unit = privacy::PrivacyUnit::kUser}));
    ledger_.emplace(std::move(ledger));
    return &*ledger_;
  }

 private:
  std::string folder_;
  std::optional<privacy::Ledger> ledger_;
};

// What the audits of training have in common: options from recipe and arguments, a start, a ledger.
class TrainingAudit {
 public:
  explicit TrainingAudit(const AuditArguments& arguments) : a_(arguments) {}

  Status PrepareOptions() {
    recipe_.training.method = Method::kPhantom;
    recipe_.training.optimizer.learning_rate = 0.01f;
    recipe_.architecture = UniformArchitecture{
        .max_length = 16, .width = 16, .num_heads = 1, .num_blocks = 1, .inner_width = 16, .embedding_scale = 4.0f};
    recipe_.initialisation.table_deviation = 0.1f;
    if (!a_.recipe.empty()) {
      WISP_ASSIGN_OR_RETURN(recipe_, ReadRecipe(a_.recipe));
    }
    if (recipe_.adapter) {
      return Unsupported(a_.recipe,
                         ": has an adapter, whose training wisp audit does not attack yet: without its "
                         "section adapter the training of all weights is attacked");
    }
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
      std::vector<float> widened;
      const std::span<const float> weights = base_->AllWeights(widened);
      weights_.assign(weights.begin(), weights.end());
    }
    return OkStatus();
  }

  Status Initialise(uint32_t num_items) {
    if (base_) {
      ChooseRows();
      return OkStatus();
    }
    recipe_.architecture.num_items = num_items;
    WISP_RETURN_IF_ERROR(Validate(recipe_.architecture));
    weights_.resize(FlatSize(ParametersOf(recipe_.architecture)));
    auto random = privacy::RandomStream::Reproducible(recipe_.training.seed, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(recipe_.architecture, recipe_.initialisation, random, weights_);
    ChooseRows();
    return OkStatus();
  }

  // FEST and AdaFEST+ train some rows of the item table: here the first half of them, a choice that no data has part
  // in.
  void ChooseRows() {
    const Method method = recipe_.training.method;
    if (!NamesRows(method)) return;
    rows_.resize(std::max(1u, recipe_.architecture.num_items / 2));
    std::iota(rows_.begin(), rows_.end(), 0);
    recipe_.training.sparse.rows = rows_;
  }

  // At which delta a run is tested: that of --delta, of the recipe's privacy, or 1e-5.
  double RunDelta() const {
    return a_.run_delta.value_or(!a_.recipe.empty() && recipe_.goal.delta > 0 ? recipe_.goal.delta : a_.delta);
  }

  bool is_private() const { return recipe_.training.method != Method::kOrdinary; }

  // How long an ordinary run is follows from how many records there are.
  std::vector<std::string> NotPrivate(std::vector<std::string> names) const {
    if (!is_private()) names.emplace_back("steps");
    return names;
  }

  Status OpenTemporaryLedger() {
    WISP_ASSIGN_OR_RETURN(recipe_.training.privacy.ledger, temporary_.Open());
    return OkStatus();
  }

  // Records of the data, or of made-up users where none is given.
  Status ReadRecords() {
    if (a_.data.path.empty()) {
      WISP_ASSIGN_OR_RETURN(data::SynthData synthetic,
                            data::Synthesize({.seed = recipe_.training.seed, .num_users = a_.users}));
      data_.sequences = std::move(synthetic.sequences);
      if (base_ && base_->architecture().num_items < data_.sequences.item_keys.size()) {
        return InvalidArgument("the model knows fewer items than the synthetic log has: give --data");
      }
      WISP_RETURN_IF_ERROR(OpenTemporaryLedger());
    } else {
      if (is_private() && a_.ledger.empty()) {
        return PrivacyRefused(
            "an audit trains on the data and is charged like training: it needs --ledger, the data set's own");
      }
      if (is_private() && recipe_.min_item_events > 1) {
        return PrivacyRefused("a private run with data.min_item_events ", recipe_.min_item_events,
                              ": one user could decide whether others' events stay; allowed is 1");
      }
      WISP_ASSIGN_OR_RETURN(const data::Units units,
                            UnitsOf(recipe_.unit, recipe_.session_gap, recipe_.times_per_second));
      WISP_ASSIGN_OR_RETURN(data_,
                            ReadData(a_.data, {recipe_.min_user_events, recipe_.min_item_events, units, is_private()},
                                     base_ ? &*base_ : nullptr));
      if (is_private()) {
        const std::string name = a_.dataset.empty() ? FileName(a_.data.path) : a_.dataset;
        FineTuneStart start{.base = base_ ? &*base_ : nullptr, .base_path = a_.model, .dataset = name};
        WISP_ASSIGN_OR_RETURN(start.ledger, LedgerOf(a_.ledger, a_.anchor, recipe_.unit, /*unit_chosen=*/false));
        WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, OpenLedgerToTrain(start));
        ledger_.emplace(std::move(ledger));
        recipe_.training.privacy.ledger = &*ledger_;
      }
    }
    WISP_RETURN_IF_ERROR(Initialise(static_cast<uint32_t>(data_.sequences.item_keys.size())));
    set_ = MakeRecords(data_.sequences, recipe_.architecture.max_length, recipe_.hold_out);
    return OkStatus();
  }

  // Numbers of the run. `synthetic_records`: the declared number where the data is made up.
  Status PrepareRun(uint32_t synthetic_records) {
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
      WISP_ASSIGN_OR_RETURN(o.num_steps, StepsOfEpochs(recipe_.epochs, n, o.expected_batch));
    }
    if (o.num_steps == 0) o.num_steps = 60;
    if (!is_private()) return OkStatus();
    o.privacy.steps_per_charge = static_cast<uint32_t>(o.num_steps);
    if (!recipe_.goal.epsilon) {
      o.privacy.noise_multiplier = recipe_.goal.noise_multiplier.value_or(1.0);
      return OkStatus();
    }
    WISP_ASSIGN_OR_RETURN(const auto target, privacy::EpsilonDelta::Create(*recipe_.goal.epsilon, RunDelta()));
    WISP_ASSIGN_OR_RETURN(const auto c,
                          privacy::CalibrateNoise(
                              {.target = target, .sampling_probability = o.expected_batch / n, .steps = o.num_steps}));
    o.privacy.noise_multiplier = c.noise_multiplier;
    return OkStatus();
  }

  const AuditArguments& a_;
  Recipe recipe_;
  std::optional<ModelFile> base_;
  TemporaryLedger temporary_;
  std::optional<privacy::Ledger> ledger_;
  data::ReadResult data_;
  RecordSet set_;
  std::vector<float> weights_;
  std::vector<int32_t> rows_;
};

// Names of figures that tell something of weights that nothing protects.
std::vector<std::string> NotPrivateOf(const ModelFile* model, std::vector<std::string> figures) {
  if (model == nullptr || NeedOf(*model).kind == DecodingNeed::Kind::kFree) figures.clear();
  return figures;
}

void PrintStep(const StepAuditOptions& o, const StepAuditResult& r, const ModelFile* model, OutputFormat format) {
  const std::vector<std::string> not_private = NotPrivateOf(model, {"reach", "mu", "epsilon", "refuted"});
  const double sigma = o.training.privacy.noise_multiplier,
               q = static_cast<double>(o.training.expected_batch) / o.training.num_records_public;
  if (format == OutputFormat::kJson) {
    Json j = {{"noise_multiplier", sigma},
              {"sampling_probability", q},
              {"observations", o.observations},
              {"reach", r.reach},
              {"mu", {{"claimed", r.claimed_mu}, {"bound", r.mu.mu}}}};
    for (const auto& at : r.at_delta)
      j["epsilon"].push_back({{"delta", at.delta}, {"claimed", Figure(at.claimed)}, {"bound", at.bound.epsilon}});
    j["confidence"] = o.confidence;
    j["refuted"] = r.refuted;
    j["not_private"] = not_private;
    std::printf("%s\n", j.dump(2).c_str());
    return;
  }
  std::printf(
      "audit of one step: noise multiplier %g, sampling probability %g, %llu releases with the canary and as many "
      "without\n",
      sigma, q, static_cast<unsigned long long>(o.observations));
  std::printf("  claimed mu      %8.4f                  bound %8.4f\n", r.claimed_mu, Down(r.mu.mu));
  for (const auto& at : r.at_delta) {
    std::printf("  claimed epsilon %8s  delta %-8s  bound %8.4f\n", privacy::EpsilonText(at.claimed).c_str(),
                privacy::DoubleText(at.delta).c_str(), Down(at.bound.epsilon));
  }
  if (r.reach > 1.001) {
    std::printf("  the canary adds %.3f clipping norms: clipping does not hold\n", r.reach);
  } else {
    std::printf("  the canary adds %.3f clipping norms: no bound on mu above %.3f can be expected\n", r.reach,
                r.reach / sigma);
  }
  std::printf("%s, with %g%% confidence in all bounds together\n", Word(r.refuted), 100 * o.confidence);
  if (!not_private.empty())
    std::printf("local only: these figures tell something of the model's weights, which have no guarantee\n");
}

}  // namespace

Status AuditStepCommand(const AuditArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const bool of_classifier, IsClassifyRecipe(a.recipe));
  if (of_classifier) return AuditClassifierStep(a, format);
  TrainingAudit audit(a);
  WISP_RETURN_IF_ERROR(audit.PrepareOptions());
  if (!audit.base_ && a.recipe.empty()) {
    // Small, with weights far from 0: a canary's gradient then passes the clipping norm, and many releases take
    // seconds.
    audit.recipe_.architecture = UniformArchitecture{.num_items = 12,
                                                     .max_length = 4,
                                                     .width = 8,
                                                     .num_heads = 2,
                                                     .num_blocks = 1,
                                                     .inner_width = 8,
                                                     .embedding_scale = 2.0f};
    audit.recipe_.initialisation = {.table_deviation = 0.5f, .position_deviation = 0.5f};
  }
  WISP_RETURN_IF_ERROR(audit.Initialise(std::max(12u, audit.recipe_.architecture.num_items)));
  WISP_RETURN_IF_ERROR(audit.OpenTemporaryLedger());
  TrainingOptions& o = audit.recipe_.training;
  if (!(a.sampling_probability > 0 && a.sampling_probability <= 1)) {
    return InvalidArgument("--q is ", General(a.sampling_probability), ", allowed is 0 < q <= 1");
  }
  o.num_records_public = kAuditedRecords;
  o.expected_batch = std::max(1u, static_cast<uint32_t>(std::lround(a.sampling_probability * kAuditedRecords)));
  o.privacy.noise_multiplier = audit.recipe_.goal.noise_multiplier.value_or(1.0);
  if (!(o.privacy.noise_multiplier > 0)) {
    return InvalidArgument("--noise-multiplier is ", General(o.privacy.noise_multiplier),
                           ", allowed is above 0: without noise there is no claim to audit");
  }
  StepAuditOptions options{.architecture = audit.recipe_.architecture, .weights = audit.weights_, .training = o};
  options.observations = a.observations;
  options.confidence = a.confidence;
  options.deltas = {a.delta, 1e-2, 1e-1};
  if (a.through != "release" && a.through != "trainer")
    return InvalidArgument("--through is '", a.through, "', allowed are release and trainer");
  options.through = a.through == "release" ? StepAuditOptions::Through::kRelease : StepAuditOptions::Through::kTrainer;
  auto random = privacy::RandomStream::Reproducible(o.seed, privacy::StreamPurpose::kSampling);
  const size_t length = std::min<size_t>(8, options.architecture.max_length);
  const SyntheticRecords candidates = RandomRecords(kCandidates, length, options.architecture.num_items, random);
  const SyntheticRecords others = RandomRecords(2, length, options.architecture.num_items, random);
  options.others = others.records;
  WISP_ASSIGN_OR_RETURN(const size_t strongest, StrongestCanary(options, candidates.records));
  options.canary = candidates.records[strongest];
  WISP_ASSIGN_OR_RETURN(const StepAuditResult result, AuditStep(options));
  PrintStep(options, result, audit.base_ ? &*audit.base_ : nullptr, format);
  return Verdict(result.refuted, "the step");
}

Status AuditRunCommand(const AuditArguments& a, OutputFormat format) {
  TrainingAudit audit(a);
  WISP_RETURN_IF_ERROR(audit.PrepareOptions());
  WISP_RETURN_IF_ERROR(audit.ReadRecords());
  WISP_RETURN_IF_ERROR(audit.PrepareRun(static_cast<uint32_t>(audit.set_.records.size() + a.canaries / 2)));
  RunAuditOptions options{.architecture = audit.recipe_.architecture,
                          .weights = audit.weights_,
                          .records = audit.set_.records,
                          .training = audit.recipe_.training,
                          .canaries = a.canaries};
  const double delta = audit.RunDelta();
  options.level = {.delta = delta, .confidence = a.confidence};
  options.claimed_epsilon = a.claim;
  WISP_ASSIGN_OR_RETURN(const RunAuditResult r, AuditRun(options));
  const TrainingOptions& o = options.training;
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", Json({{"steps", o.num_steps},
                              {"records", audit.set_.records.size()},
                              {"canaries", a.canaries},
                              {"included", r.included},
                              {"guesses", r.bound.outcome.guesses},
                              {"correct", r.bound.outcome.correct},
                              {"mean_drop_included", r.mean_drop_included},
                              {"mean_drop_excluded", r.mean_drop_excluded},
                              {"noise_multiplier", audit.is_private() ? Json(o.privacy.noise_multiplier) : Json()},
                              {"delta", delta},
                              {"claimed", Figure(r.claimed)},
                              {"bound", r.bound.epsilon},
                              {"confidence", a.confidence},
                              {"refuted", r.refuted},
                              {"charged_to", audit.ledger_ ? Json(a.ledger) : Json()},
                              {"not_private",
                               a.data.path.empty()
                                   ? Json::array()
                                   : Json(audit.NotPrivate({"records", "guesses", "mean_drop_included",
                                                            "mean_drop_excluded", "correct", "bound", "refuted"}))}})
                            .dump(2)
                            .c_str());
  } else {
    std::printf("audit of one run: %llu steps, %zu records, %u canaries of which %llu took part\n",
                static_cast<unsigned long long>(o.num_steps), audit.set_.records.size(), a.canaries,
                static_cast<unsigned long long>(r.included));
    std::printf(
        "  loss of the canaries fell by %.3f in the data, by %.3f outside of it; %llu of %llu guesses were right\n",
        r.mean_drop_included, r.mean_drop_excluded, static_cast<unsigned long long>(r.bound.outcome.correct),
        static_cast<unsigned long long>(r.bound.outcome.guesses));
    std::printf("  claimed epsilon %s  bound %.4f  at delta %s\n",
                r.claimed ? privacy::EpsilonText(*r.claimed).c_str() : "none", Down(r.bound.epsilon),
                privacy::DoubleText(delta).c_str());
    if (r.claimed) std::printf("%s, with %g%% confidence\n", Word(r.refuted), 100 * a.confidence);
    if (!r.claimed) {
      std::printf(
          "nothing was tested: this run trains without a guarantee (method ordinary) and claims no epsilon; --claim "
          "tests one, --method phantom a private run\n");
    }
    if (audit.ledger_)
      std::printf("charged to %s like training: %llu steps\n", a.ledger.c_str(),
                  static_cast<unsigned long long>(o.num_steps));
    if (!a.data.path.empty()) std::printf("%s\n", kLocalOnly);
  }
  return Verdict(r.refuted, "the run");
}

Status AuditMembershipCommand(const AuditArguments& a, OutputFormat format) {
  TrainingAudit audit(a);
  WISP_RETURN_IF_ERROR(audit.PrepareOptions());
  WISP_RETURN_IF_ERROR(audit.ReadRecords());
  WISP_RETURN_IF_ERROR(audit.PrepareRun(static_cast<uint32_t>(audit.set_.records.size() / 2)));
  MembershipAuditOptions options{.architecture = audit.recipe_.architecture,
                                 .weights = audit.weights_,
                                 .records = audit.set_.records,
                                 .training = audit.recipe_.training,
                                 .confidence = a.confidence};
  WISP_ASSIGN_OR_RETURN(const MembershipAuditResult r, AuditMembership(options));
  const privacy::MembershipReport& m = r.report;
  if (format == OutputFormat::kJson) {
    const auto rate = [](const privacy::ThresholdAttack& t) {
      return Json({{"true_positive_rate", t.true_positives.rate()}, {"false_positive_rate", t.false_positives.rate()}});
    };
    std::printf("%s\n",
                Json({{"members", r.members},
                      {"non_members", r.non_members},
                      {"steps", options.training.num_steps},
                      {"mean_loss_members", r.mean_loss_members},
                      {"mean_loss_non_members", r.mean_loss_non_members},
                      {"accuracy", m.accuracy},
                      {"accuracy_interval", {m.accuracy_interval.low, m.accuracy_interval.high}},
                      {"auc", m.auc},
                      {"auc_interval", {m.auc_interval.low, m.auc_interval.high}},
                      {"at_fpr_1_percent", rate(m.at_fpr_1_percent)},
                      {"at_fpr_0.1_percent", rate(m.at_fpr_01_percent)},
                      {"confidence", a.confidence},
                      {"not_private",
                       a.data.path.empty()
                           ? Json::array()
                           : Json(audit.NotPrivate({"members", "non_members", "mean_loss_members",
                                                    "mean_loss_non_members", "accuracy", "accuracy_interval", "auc",
                                                    "auc_interval", "at_fpr_1_percent", "at_fpr_0.1_percent"}))}})
                    .dump(2)
                    .c_str());
    return OkStatus();
  }
  std::printf("membership inference by loss: %llu members, %llu others, %llu steps\n",
              static_cast<unsigned long long>(r.members), static_cast<unsigned long long>(r.non_members),
              static_cast<unsigned long long>(options.training.num_steps));
  std::printf("  loss per position %.3f of members, %.3f of others\n", r.mean_loss_members, r.mean_loss_non_members);
  std::printf("  accuracy %.3f [%.3f, %.3f], 0.5 is guessing; area under the curve %.3f [%.3f, %.3f]\n", m.accuracy,
              m.accuracy_interval.low, m.accuracy_interval.high, m.auc, m.auc_interval.low, m.auc_interval.high);
  std::printf("  at 1%% false positives %.3f true ones, at 0.1%% %.3f\n", m.at_fpr_1_percent.true_positives.rate(),
              m.at_fpr_01_percent.true_positives.rate());
  std::printf("an attack, not a bound on epsilon: a stronger one may do better; each interval has %g%% confidence%s\n",
              100 * a.confidence, a.data.path.empty() ? "" : (std::string("\n") + kLocalOnly).c_str());
  return OkStatus();
}

Status AuditDecodingCommand(const AuditArguments& a, OutputFormat format) {
  DecodingAuditOptions o{.num_items = a.items,
                         .draws = a.draws,
                         .lambda = a.lambda,
                         .clip = a.clip,
                         .temperature = a.temperature,
                         .delta = a.delta};
  // uniform, non-uniform and base-anchored are older words for the same.
  const bool anchored = a.mode == "anchored" || a.mode == "base-anchored";
  if (a.mode == "non-uniform" || (a.mode == "mixed" && !a.mixing.empty())) {
    o.mode = DecodingMode::kNonUniform;
    for (const std::string& u : SplitCommas(a.mixing)) o.mixing.push_back(std::strtod(u.c_str(), nullptr));
  } else if (anchored) {
    o.mode = DecodingMode::kBaseAnchored;
  } else if (a.mode != "mixed" && a.mode != "uniform") {
    return InvalidArgument("--mode is '", a.mode, "', allowed are mixed and anchored");
  }
  const char* mode = anchored ? "anchored" : "mixed";
  TemporaryLedger ledger;
  o.claimed_epsilon = a.claim;
  o.observations = a.observations;
  o.confidence = a.confidence;
  o.reproducible_seed = a.reproducible_noise_seed;
  if (o.observations > 0) {
    WISP_ASSIGN_OR_RETURN(o.ledger, ledger.Open());
  }
  WISP_ASSIGN_OR_RETURN(const DecodingAuditResult r, AuditDecoding(o));
  if (format == OutputFormat::kJson) {
    std::printf("%s\n", Json({{"mode", mode},
                              {"models", r.models},
                              {"draws", o.draws},
                              {"items", o.num_items},
                              {"claimed", Figure(r.claimed)},
                              {"exact", Figure(r.exact)},
                              {"delta", o.delta},
                              {"claimed_at_delta", Figure(r.claimed_at_delta)},
                              {"exact_at_delta", Figure(r.exact_at_delta)},
                              {"sampled", Figure(r.sampled)},
                              {"refuted", r.refuted}})
                            .dump(2)
                            .c_str());
  } else {
    std::printf("audit of decoding (%s): %u of %u items, all outcomes under all pairs of %llu models\n", mode, o.draws,
                o.num_items, static_cast<unsigned long long>(r.models));
    const auto up = [](double epsilon) { return privacy::EpsilonText(epsilon, 5); };
    std::printf("  claimed epsilon %8s                  exact %8s\n", up(r.claimed).c_str(), up(r.exact).c_str());
    if (r.claimed_at_delta) {
      std::printf("  claimed epsilon %8s  delta %-8s  exact %8s\n", up(*r.claimed_at_delta).c_str(),
                  privacy::DoubleText(o.delta).c_str(), up(*r.exact_at_delta).c_str());
    }
    if (r.sampled) {
      std::printf("  the sampler itself, %llu times under each of two models: bound %.4f, with %g%% confidence\n",
                  static_cast<unsigned long long>(o.observations), Down(*r.sampled), 100 * o.confidence);
    }
    std::printf("%s\n", Word(r.refuted));
  }
  return Verdict(r.refuted, "decoding");
}

}  // namespace wisp::tools
