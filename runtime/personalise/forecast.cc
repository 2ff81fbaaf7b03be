#include "runtime/personalise/forecast.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string_view>
#include <utility>

#include "runtime/core/file_lock.h"
#include "runtime/core/platform.h"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/memory.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/run/job_releases.h"
#include "runtime/train/run/records.h"
#include "runtime/train/trainer.h"

namespace wisp {
namespace {

constexpr double kDeploymentPasses = 30, kStepsPerPass = 4;
// The best learning rates in the measurements of docs/gains.md.
constexpr double kSignalRate = 0.0018, kMostRate = 0.01;
// A large catalogue needs smaller steps: among more items, the noise of a step lifts more irrelevant ones past the
// relevant ones.
constexpr double kMaxRateItems = 480, kRatePower = 0.9, kLeastShare = 0.4;
// Shrinking changes helped at a noise to signal of 0.26 and above, and hurt at 0.13 (docs/papers/what-helps.md).
constexpr double kNoiseToShrink = 0.2;
// Fewer training records than that are not worth a release beside the steps. In long plans there is another one after
// so many runs, because tastes turn.
constexpr uint32_t kLeastForReleases = 200, kRunsPerRelease = 90, kMostReleases = 4;
// The share of the budget (plan_releases.h) for the weight of the output bias. One number needs little.
constexpr double kBiasWeightShare = 0.04;
// Successions are released if the records count at least that much for each item. Their share of the budget where steps
// teach much, too, and elsewhere.
constexpr double kCountedPerItem = 2.4, kShareBesideSteps = 0.45, kShareAlone = 0.75;
// Where steps teach little beside them, they should not take back what successions bring.
constexpr double kRateBesideSuccessions = 0.1;
constexpr uint32_t kLeastEvaluations = 2, kMostEvaluations = 12, kRecordsPerEvaluation = 400, kMostBatch = 4096;

double TrainedNumbers(const Architecture& a, const DeploymentSettings& s) {
  return static_cast<double>(TrainedBy(ListParameters(a), MakeTrainingOptions(s)).size());
}

double ComputeRateShare(const Architecture& a) {
  return std::clamp(std::pow(kMaxRateItems / a.num_items, kRatePower), kLeastShare, 1.0);
}

// The ledger with made-up charges is deleted again, so its record may be any.
privacy::RecordSpec MadeUpRecord() { return privacy::RecordSpec::OfEvents({}); }

Outlook::Kind KindByNoise(double noise_to_signal, double noise_of_an_item) {
  using Kind = Outlook::Kind;
  if (noise_to_signal > kNoGain) return Kind::kHopeless;
  if (noise_of_an_item > kNoItemGain) return Kind::kNewItems;
  return noise_to_signal > kSomeGain || noise_of_an_item > kSomeItemGain ? Kind::kSomeGain : Kind::kGain;
}

// A gain with new items says nothing of a base that has them.
Outlook::Kind KindByGain(const GainForecast& expected) {
  using Kind = Outlook::Kind;
  if (expected.highest() < kLeastGain) return Kind::kHopeless;
  bool with_new = false, without_new = false;
  for (const MeasuredGain& m : expected.measured)
    if (m.highest >= kLeastGain) (m.new_items ? with_new : without_new) = true;
  if (with_new && !without_new) return Kind::kNewItems;
  return expected.lowest() >= kClearGain && expected.found_better() ? Kind::kGain : Kind::kSomeGain;
}

void Advise(const DeploymentSettings& s, Outlook& o) {
  using Kind = Outlook::Kind;
  if (o.kind == Kind::kHopeless)
    o.advice.push_back("with so much noise beside so few records nothing is to be won: the base is the better model");
  if (o.kind == Kind::kNewItems)
    o.advice.push_back(
        "what people like cannot be learned item by item. A gain is to be expected only where the base lacks items "
        "that "
        "people choose; expect nothing of the rest, and the base to stay what is served");
  const uint64_t steps = s.num_steps();
  if (s.num_records_at_start > 0 && steps < 4ull * s.runs)
    o.advice.push_back(
        "with fewer runs (`runs`) the steps could follow the number of records: every run takes a step at least, and "
        "there are " +
        std::to_string(steps) + " for " + std::to_string(s.runs) + " runs");
  if (o.kind != Kind::kGain && s.expected_batch < s.num_records_public)
    o.advice.push_back("a larger batch (`expected_batch`) hides more under the same noise: up to " +
                       std::to_string(s.num_records_public) + ", and fewer steps (`steps_per_run`)");
  if (o.kind != Kind::kGain && s.steps_per_run == 1 && steps > 200)
    o.advice.push_back("fewer runs (`runs`) would have less noise each: every run takes a step at least, and " +
                       std::to_string(steps) + " steps share the epsilon");
  if (!o.power.empty() && !o.found)
    o.advice.push_back(
        "no evaluation of this plan can detect a gain of a realistic size, so the base stays the served model; "
        "evaluate fewer times (`evaluations`), or evaluate locally (`evaluation`)");
  if (s.runs == 1 && s.evaluations > 0 && s.trains_until == 0)
    o.advice.push_back(
        "a plan of one run evaluates by no event, and so serves the base: plan more runs (`runs`), or divide the "
        "log by a day (`trains_until`)");
}

}  // namespace

DeploymentSettings SuggestDeployment(const DeploymentRequest& r) {
  DeploymentSettings s;
  s.num_records_public = r.num_records_public;
  s.num_records_at_start = r.num_records_at_start;
  s.epsilon = r.epsilon;
  s.delta = r.delta;
  s.runs = r.runs;
  // Training lags behind by the time between two evaluations. Where that does not matter, few records have few of them,
  // with less noise each. At most one a run.
  const bool lags = r.trains_until == 0 || r.evaluates_locally;
  const uint32_t worth =
      lags ? kMostEvaluations
           : std::clamp(r.num_records_public / kRecordsPerEvaluation, kLeastEvaluations, kMostEvaluations);
  s.evaluations = std::min(r.runs, r.evaluations.value_or(worth));
  s.evaluates_locally = r.evaluates_locally ? 1 : 0;
  s.trains_until = r.trains_until;
  s.every = r.every;
  const uint32_t records = s.num_records_public;
  const double batch = std::max(64.0, records / kStepsPerPass);
  s.expected_batch = r.expected_batch > 0 ? r.expected_batch
                                          : std::min({records, kMostBatch, static_cast<uint32_t>(std::lround(batch))});
  const double steps = kDeploymentPasses * records / s.expected_batch;
  s.steps_per_run =
      r.steps_per_run > 0 ? r.steps_per_run : std::max<uint64_t>(1, std::llround(steps / std::max(1u, r.runs)));
  if (r.learning_rate != 0) s.learning_rate = r.learning_rate;
  return s;
}

Result<Deployment> PlanDeployment(const Architecture& a, const DeploymentRequest& r) {
  DeploymentSettings wanted = SuggestDeployment(r);
  WISP_ASSIGN_OR_RETURN(Deployment deployment, CalibrateDeployment(a, wanted));
  double rate_share = 1;
  ChooseReleases(a, deployment.settings, wanted);
  if (wanted.succession_releases + wanted.bias_weight_releases > 0) {
    WISP_ASSIGN_OR_RETURN(deployment, CalibrateDeployment(a, wanted));
    if (wanted.succession_share == kShareAlone) rate_share = kRateBesideSuccessions;
  }
  deployment.settings.shrinks_changes = NoiseToSignal(a, deployment.settings) > kNoiseToShrink ? 1 : 0;
  if (r.learning_rate == 0) deployment.settings.learning_rate = rate_share * SuggestRate(a, deployment.settings);
  return deployment;
}

namespace {

// Counts in all cells of a release of successions together, by public numbers.
double CountSuccessions(const Architecture& a, const DeploymentSettings& s, uint32_t events) {
  return s.share_present() * s.num_records_public * std::sqrt(std::clamp<uint32_t>(events, 1, a.max_length));
}

}  // namespace

void ChooseReleases(const Architecture& a, const DeploymentSettings& without, DeploymentSettings& s) {
  if (s.num_records_public < kLeastForReleases) return;
  const uint32_t releases = std::clamp(s.runs / kRunsPerRelease, 1u, kMostReleases);
  if (HasBiasToWeigh(a)) s.bias_weight_releases = releases, s.bias_weight_share = kBiasWeightShare;
  // Each of so many releases has the root of that number times the noise of a single one.
  const double affordable = CountSuccessions(a, s, kTypicalEvents) / (kCountedPerItem * a.num_items);
  s.succession_releases =
      std::min(releases, static_cast<uint32_t>(std::min<double>(affordable * affordable, UINT32_MAX)));
  const bool steps_teach =
      KindByNoise(NoiseToSignal(a, without), ComputeItemNoise(a, without, kTypicalEvents)) == Outlook::Kind::kGain;
  s.succession_share = steps_teach ? kShareBesideSteps : kShareAlone;
  if (s.succession_releases == 0) s.succession_share = 0;
}

double ComputeSuccessionSignal(const Architecture& a, const DeploymentSettings& s, uint32_t events) {
  if (s.succession_releases == 0) return 0;
  return CountSuccessions(a, s, events) / (a.num_items * s.succession_noise);
}

double SuggestRate(const Architecture& a, const DeploymentSettings& s) {
  return ComputeRateShare(a) * std::min(kMostRate, kSignalRate / std::sqrt(NoiseToSignal(a, s)));
}

double NoiseToSignal(const Architecture& a, const DeploymentSettings& s) {
  const auto steps = static_cast<double>(s.num_steps());
  return s.training_noise * std::sqrt(TrainedNumbers(a, s)) / (s.share_present() * s.expected_batch * std::sqrt(steps));
}

double ComputeItemNoise(const Architecture& a, const DeploymentSettings& s, uint32_t events) {
  const auto steps = static_cast<double>(s.num_steps());
  const double read = std::clamp<uint32_t>(events, 1, a.max_length);
  return s.training_noise * std::sqrt(a.width) * a.num_items /
         (s.share_present() * s.expected_batch * std::sqrt(steps) * std::sqrt(read));
}

PublicNumbers GetPublicNumbers(const Architecture& a, const DeploymentSettings& s) {
  return {.noise_to_signal = NoiseToSignal(a, s),
          .noise_of_an_item = ComputeItemNoise(a, s, kTypicalEvents),
          .succession_signal = ComputeSuccessionSignal(a, s, kTypicalEvents),
          .items = a.num_items,
          .people = s.num_records_public,
          .weighs_bias = s.bias_weight_releases > 0};
}

Outlook MakeOutlook(const Architecture& a, const DeploymentSettings& s, uint32_t typical_events,
                    privacy::PrivacyUnit unit) {
  Outlook o{.noise_to_signal = NoiseToSignal(a, s),
            .typical_events = std::min<uint32_t>(typical_events > 0 ? typical_events : kTypicalEvents, a.max_length)};
  o.noise_of_an_item = ComputeItemNoise(a, s, o.typical_events);
  o.succession_signal = ComputeSuccessionSignal(a, s, o.typical_events);
  o.expected = ForecastGain(GetPublicNumbers(a, s));
  o.kind = o.expected.is_near ? KindByGain(o.expected) : KindByNoise(o.noise_to_signal, o.noise_of_an_item);
  const bool evaluates_nothing = s.runs == 1 && s.trains_until == 0;  // no event comes after its only charge
  if (EvaluatesPrivately(s) && !evaluates_nothing) {
    // The most that gains of records were measured to deviate by, in the gain that counts as 1.
    constexpr double kDeviation = 0.4;
    const bool end = unit != privacy::PrivacyUnit::kUser && s.trains_until == 0;
    const auto evaluated_records =
        static_cast<uint32_t>(std::lround(s.share_present() * s.num_records_public / (end ? s.evaluations + 1 : 1)));
    for (const double share : {0.02, 0.05, 0.1, 0.2, 0.5, 1.0}) {
      const double gain = share * s.gain_scale;
      const ExpectedGain evaluated{.num_records = evaluated_records, .mean = share, .deviation = kDeviation};
      const auto power = [&](uint32_t evaluations) {
        return Power(s.rule(), evaluated, s.evaluation_noise, evaluations);
      };
      o.power.push_back({gain, power(1), power((s.evaluations + 1) / 2), power(s.evaluations)});
      const ExpectedGain weighed{
          .num_records = s.num_records_public, .mean = std::min(1.0, gain / kBiasGainScale), .deviation = kDeviation};
      if (s.bias_weight_releases > 0)
        o.power.back().by_weight = Power(s.weight_rule(), weighed, s.bias_weight_noise, 1);
      if (!o.found && o.power.back().after_all >= 0.8) o.found = gain;
    }
  }
  Advise(s, o);
  return o;
}

Result<size_t> CountRunMemory(const Architecture& a, const DeploymentSettings& s, uint32_t num_threads) {
  TrainingOptions options = MakeTrainingOptions(s);
  options.num_threads = num_threads;
  WISP_ASSIGN_OR_RETURN(const TrainingMemory memory, PlanTrainingMemory(a, s.num_records_public, options));
  return memory.total();
}

namespace {

struct Taken {
  double cpu = 0, wall = 0;
};

// Measures the time since its construction.
class Stopwatch {
 public:
  Taken Take() const {
    const double cpu = static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC;
    return {cpu, std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count()};
  }

 private:
  std::clock_t cpu_ = std::clock();
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

data::Sequences MadeUp(uint32_t num_items, size_t records, size_t events) {
  data::Sequences made;
  std::mt19937 random(1);
  for (size_t u = 0; u < records; ++u) {
    for (size_t t = 0; t < events; ++t) made.items.push_back(static_cast<int32_t>(random() % num_items));
    made.offsets.push_back(made.items.size());
    made.user_keys.push_back(std::to_string(u));
  }
  return made;
}

class Measuring {
 public:
  Measuring(const Architecture& architecture, std::span<const float> weights, const Deployment& deployment,
            const MeasureOptions& options, privacy::Ledger& ledger, std::string plan_path)
      : a_(architecture),
        weights_(weights),
        deployment_(deployment),
        s_(deployment.settings),
        o_(options),
        ledger_(ledger),
        plan_path_(std::move(plan_path)) {}

  Result<DeploymentTime> Run() {
    // The time of a step is a constant plus a share for each record.
    WISP_ASSIGN_OR_RETURN(const Taken one, OfStep(1, 0.1 * o_.seconds));
    WISP_ASSIGN_OR_RETURN(const Taken few, OfStep(kFew, 0.1 * o_.seconds));
    const double fits = kFew * 0.4 * o_.seconds / std::max(few.wall, 1e-6);
    const auto many = static_cast<uint32_t>(std::clamp<double>(fits, 2 * kFew, 4096));
    WISP_ASSIGN_OR_RETURN(const Taken full, OfStep(many, 0.3 * o_.seconds));
    const auto of_run = [&](double of_one, double of_many) {
      const double record = (of_many - of_one) / (many - 1);
      return static_cast<double>(s_.steps_per_run) * (of_one + record * (s_.expected_batch - 1.0));
    };
    WISP_ASSIGN_OR_RETURN(const Taken accounting, TimeAccounting());
    WISP_ASSIGN_OR_RETURN(const Taken successions, TimeSuccessions(many));
    WISP_ASSIGN_OR_RETURN(const Taken weighing, TimeBiasWeight(std::max<uint32_t>(4, many / 8)));
    const Taken evaluated = MeasureEvaluation(std::max<uint32_t>(4, many / 8));
    const double evaluates = s_.num_records_public;
    return DeploymentTime{.cpu_of_run = of_run(one.cpu, full.cpu) + accounting.cpu + successions.cpu + weighing.cpu,
                          .wall_of_run =
                              of_run(one.wall, full.wall) + accounting.wall + successions.wall + weighing.wall,
                          .cpu_of_evaluation = evaluates * evaluated.cpu,
                          .wall_of_evaluation = evaluates * evaluated.wall};
  }

 private:
  static constexpr uint32_t kFew = 16;

  // Longer records are cut to this, and cost no more.
  size_t Events() const {
    const size_t most = a_.max_length + 1;
    return o_.typical_events > 1 ? std::min<size_t>(o_.typical_events, most) : most;
  }

  // Measures for `seconds` how long a step with this many records takes. The first step is not counted.
  Result<Taken> OfStep(uint32_t records, double seconds) {
    const data::Sequences made = MadeUp(a_.num_items, records, Events());
    const RecordSet set = MakeRecords(made, a_.max_length, HoldOut::kNothing);
    TrainingOptions options = MakeTrainingOptions(s_);
    options.num_steps = 1'000'000;
    options.num_threads = o_.num_threads;
    options.expected_batch = options.num_records_public = records;
    options.privacy.reproducible_seed = 1;
    options.privacy.noise_multiplier = 1;
    options.privacy.steps_per_charge = 1'000'000;
    options.privacy.ledger = &ledger_;
    options.privacy.run = "measuring " + std::to_string(records);
    WISP_ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(a_, weights_, set.records, options));
    WISP_RETURN_IF_ERROR(trainer->Step().status());
    const Stopwatch watch;
    double steps = 0;
    do {
      WISP_RETURN_IF_ERROR(trainer->Step().status());
      ++steps;
    } while (watch.Take().wall < seconds);
    const Taken taken = watch.Take();
    return Taken{taken.cpu / steps, taken.wall / steps};
  }

  // The time of a run's queries to a ledger with this plan: one for itself and one for its training.
  Result<Taken> TimeAccounting() const {
    {
      WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                            privacy::Ledger::Open(plan_path_, {.dataset = "made up", .record = MadeUpRecord()}));
      Deployment deployment = deployment_;
      if (deployment.charges.empty()) {  // a plan that was read has no charges
        WISP_ASSIGN_OR_RETURN(deployment, CalibrateDeployment(a_, s_));
      }
      WISP_RETURN_IF_ERROR(WriteDeployment(ledger, deployment, "measuring"));
      WISP_RETURN_IF_ERROR(ledger.Charge(deployment.charges.front()).status());
    }
    const Stopwatch watch;
    for (int times = 0; times < 2; ++times) {
      WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger, privacy::Ledger::OpenExisting(plan_path_));
      WISP_RETURN_IF_ERROR(ComputeLeft(ledger, s_).status());
    }
    return watch.Take();
  }

  // The time of a release of successions; 0 if the plan has none. It hardly depends on the number of records: every
  // pair of items has its noise.
  Result<Taken> TimeSuccessions(uint32_t records) {
    if (s_.succession_releases == 0) return Taken{};
    const data::Sequences made = MadeUp(a_.num_items, records, Events());
    const RecordSet set = MakeRecords(made, a_.max_length, HoldOut::kNothing);
    auto noise = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kNoise);
    const Stopwatch watch;
    WISP_RETURN_IF_ERROR(
        ReleaseSuccessions(set.records, a_, weights_, {.allow_seen = s_.allow_seen != 0},
                           {.noise_multiplier = s_.succession_noise, .ledger = &ledger_, .run = "measuring a release"},
                           noise)
            .status());
    return watch.Take();
  }

  // The time of a release of the bias's weight, which looks at the lists of each record that trains; 0 if the plan has
  // none.
  Result<Taken> TimeBiasWeight(uint32_t records) {
    if (s_.bias_weight_releases == 0) return Taken{};
    const data::Sequences made = MadeUp(a_.num_items, records, Events());
    const RecordSet set = MakeRecords(made, a_.max_length, HoldOut::kNothing);
    const ModelLists lists = {.allow_seen = s_.allow_seen != 0};
    auto noise = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kNoise);
    Workers workers(o_.num_threads);
    const Stopwatch watch;
    WISP_RETURN_IF_ERROR(
        ReleaseBiasWeight(set.records, a_, weights_, lists,
                          {.noise_multiplier = s_.bias_weight_noise, .ledger = &ledger_, .run = "measuring a weight"},
                          workers, noise)
            .status());
    const Taken taken = watch.Take();
    const double times = s_.num_records_public / static_cast<double>(records);
    return Taken{times * taken.cpu, times * taken.wall};
  }

  // Measures the time of an evaluation of this many made-up records.
  Taken MeasureEvaluation(uint32_t records) const {
    const data::Sequences made = MadeUp(a_.num_items, records, Events());
    const ModelLists lists = {.allow_seen = s_.allow_seen != 0};
    const EvaluationOptions options{.gain_scale = s_.gain_scale,
                                    .num_targets = s_.num_targets,
                                    .lists_of_base = lists,
                                    .lists_of_candidate = lists,
                                    .num_threads = o_.num_threads};
    const Stopwatch watch;
    Gains(a_, weights_.data(), weights_.data(), made, options);
    const Taken taken = watch.Take();
    return {taken.cpu / records, taken.wall / records};
  }

  const Architecture& a_;
  const std::span<const float> weights_;
  const Deployment& deployment_;
  const DeploymentSettings& s_;
  const MeasureOptions& o_;
  privacy::Ledger& ledger_;
  const std::string plan_path_;
};

// A new folder beside a ledger, for two ledgers with made-up charges. It is deleted with them. Its owner holds a
// lock in it, so a folder whose lock is free was left by a process that was killed.
class MadeUpFolder {
 public:
  // Also removes folders that killed processes left.
  static Result<MadeUpFolder> Make(const std::string& ledger_path) {
    RemoveAbandoned(ledger_path);
    const std::string begin = ledger_path + std::string(kMeasuring);
    std::string path = platform::MakeNewFolder(begin);
    if (path.empty()) return IoError(begin, "...: the folder to measure in cannot be made");
    return Take(std::move(path));
  }
  MadeUpFolder(MadeUpFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, {})) {}
  MadeUpFolder& operator=(MadeUpFolder&&) = delete;
  ~MadeUpFolder() {
    if (path_.empty()) return;
    for (const std::string& ledger : {steps(), plan()}) {
      for (const char* suffix : {"", "-journal", "-wal", "-shm", "-turn"}) platform::Remove(ledger + suffix);
    }
    lock_.reset();
    platform::RemoveFolder(path_);
  }
  std::string steps() const { return path_ + "/steps"; }
  std::string plan() const { return path_ + "/plan"; }

 private:
  static constexpr std::string_view kMeasuring = ".measuring-";

  MadeUpFolder(std::string path, FileLock lock)
      : path_(std::move(path)), lock_(std::make_unique<FileLock>(std::move(lock))) {}

  static std::string LockIn(const std::string& path) { return path + "/lock"; }

  // Takes over a folder whose lock is free, with its content.
  static Result<MadeUpFolder> Take(std::string path) {
    WISP_ASSIGN_OR_RETURN(FileLock lock, FileLock::Take(LockIn(path), path + ": another process measures in it"));
    return MadeUpFolder(std::move(path), std::move(lock));
  }

  static void RemoveAbandoned(const std::string& ledger_path) {
    const size_t name_at = platform::FindName(ledger_path);  // 0 without a folder
    const std::string folder = ledger_path.substr(0, name_at);
    const std::string begin = ledger_path.substr(name_at) + std::string(kMeasuring);
    std::vector<std::string> abandoned;
    platform::ForEachName(folder.empty() ? "." : folder, [&](const std::string& name) {
      const std::string path = folder + name;
      platform::FileInfo info;
      if (name.size() == begin.size() + platform::kNewFolderEnd && name.starts_with(begin) &&
          platform::GetLinkInfo(path, info) == 0 && info.type == platform::FileType::kFolder &&
          platform::GetLinkInfo(LockIn(path), info) == 0)
        abandoned.push_back(path);
    });
    for (const std::string& path : abandoned) (void)Take(path);
  }

  std::string path_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace

Result<DeploymentTime> MeasureDeployment(const Architecture& architecture, std::span<const float> weights,
                                         const Deployment& deployment, const MeasureOptions& options) {
  WISP_ASSIGN_OR_RETURN(const MadeUpFolder folder, MadeUpFolder::Make(options.ledger_path));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::Open(folder.steps(), {.dataset = "made up", .record = MadeUpRecord()}));
  return Measuring(architecture, weights, deployment, options, ledger, folder.plan()).Run();
}

}  // namespace wisp
