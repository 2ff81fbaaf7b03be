// What a device's life is to cost, fixed before the first look at its data: so many runs of training and so many
// judgings, whose noise follows from public numbers alone. All of it is a plan in the ledger, so it composes by PLD
// however the runs are spread and whatever they show (docs/algorithms.md, sections 10 and 11).
//
//   WISP_ASSIGN_OR_RETURN(const Lifetime life, PlanLifetime(architecture, {.num_records_public = 2000,
//       .epsilon = 4, .delta = 1e-5, .runs = 365, .steps_per_run = 4, .judgings = 12}));
//   WISP_RETURN_IF_ERROR(WriteLifetime(ledger, life, "plan"));             // before the first run
//   ... a year later
//   WISP_ASSIGN_OR_RETURN(const auto settings, SettingsOf(ledger));
//   WISP_ASSIGN_OR_RETURN(const LifetimeLeft left, LeftOf(ledger, *settings));
#ifndef WISP_RUNTIME_PERSONALISE_LIFETIME_H_
#define WISP_RUNTIME_PERSONALISE_LIFETIME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/judge.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/options.h"

namespace wisp {

// What a plan depends on of the base that it is made for.
struct PlannedBase {
  explicit PlannedBase(const ModelFile& base) : PlannedBase(base.architecture(), base.lists().allow_seen) {}
  PlannedBase(Architecture a, bool seen) : architecture(std::move(a)), allow_seen(seen) {}
  Architecture architecture;
  bool allow_seen;  // ModelLists::allow_seen
};

// Public constants, the same for every run of the life.
struct LifetimeSettings {
  uint32_t num_records_public = 0;  // of all parts together
  double epsilon = 0, delta = 0;    // of the whole life, for every record
  uint32_t runs = 0;                // of training
  uint64_t steps_per_run = 0;
  uint32_t expected_batch = 0;
  double clipping_norm = 1;
  double training_noise = 0;  // noise multipliers, found by PlanLifetime
  // None: no record judges, and all of them train.
  uint32_t judgings = 0;
  double judging_share = 0.2;
  double judging_noise = 0;
  // 1: judged without noise and without a charge. Whoever sees which model is served, or what it recommends, learns
  // something of the records that judge: for models that never leave the device.
  uint32_t judges_locally = 0;
  double gain_scale = 0.2, error = 0.05, decay = 0.7;  // JudgeOptions and JudgeRule
  uint32_t num_targets = 8;
  double learning_rate = 0.003;  // of Adam, constant
  double averaging = 0;          // TrainingOptions::ema_decay
  uint32_t num_negatives = 0;    // of a sampled softmax; 0: the full one
  uint32_t shrinks_rows = 0;     // 1: TrainingJob::shrink_rows
  // 1: the base that the plan was made for says that lists may hold items of the history (ModelFile::lists). Models are
  // judged by the lists that they say of themselves, so a night with a base that says otherwise is refused.
  uint32_t allow_seen = 0;
  // Above 0: events after this second since 1970 judge, and do not train, in all nights: for a log that does not grow.
  // 0: it follows from the ledger (TrainsUntil).
  int64_t trains_until = 0;
  // Of a plan that was changed (plan_change.h): steps of the one run that its nights share, those before the change
  // too, where that goes on; and judgings before the change, where it does not. 0: runs * steps_per_run, and none.
  uint64_t steps_in_all = 0;
  uint32_t judgings_before = 0;
  // So many records are there when the life begins, and from night to night as many more, up to num_records_public: how
  // people come is public, as that number is. Nights then share the steps by how many are there. 0: all of them are
  // there from the first night on.
  uint32_t num_records_at_start = 0;

  privacy::RecordPart training_part() const {
    return judgings > 0 ? privacy::RecordPart::kTraining : privacy::RecordPart::kAll;
  }
  JudgeRule rule() const { return {.error = error, .num_judgings = judgings, .decay = decay}; }
  uint64_t num_steps() const { return steps_in_all > 0 ? steps_in_all : steps_per_run * runs; }
  // The mean share of all records that is there when a step is taken: 1, or less where they come over time.
  double share_present() const;
  // So many records train, and judge, as far as anybody may know; never fewer than one.
  uint32_t num_training_public() const;
  uint32_t num_judging_public() const;
  bool operator==(const LifetimeSettings&) const = default;
};

// kInvalidArgument: settings out of range, and which.
Status CheckSettings(const LifetimeSettings& settings);
// kInvalidArgument: the plan of that ledger was made for a base that says otherwise of its lists. To judge by lists
// that nobody is shown would break the plan's promise.
Status CheckBaseOfPlan(const LifetimeSettings& settings, const ModelFile& base, const privacy::Ledger& ledger);
// The same with so many items as a catalogue may grow to under a plan.
Architecture Grown(Architecture architecture);

// What every run trains with: all steps of the life are one job, which pauses after those of each run.
TrainingOptions TrainingOf(const LifetimeSettings& settings);

// "num_records_public=2000 epsilon=4 ...", and back; kInvalidData for anything else.
std::string ToText(const LifetimeSettings& settings);
Result<LifetimeSettings> LifetimeSettingsFromText(const std::string& text);

struct Lifetime {
  LifetimeSettings settings;
  std::vector<privacy::ChargeRequest> training, judging;  // all that will ever be charged
};

// Finds the noise. kInvalidArgument for settings out of range, kPrivacyRefused for a delta that is none with so
// many records, or an epsilon that no noise meets.
Result<Lifetime> PlanLifetime(const Architecture& architecture, const LifetimeSettings& settings);

// Writes the limit, the split and the plans into a ledger without charges, all of them or nothing. A limit that
// somebody else set stays. kPrivacyRefused where something was charged, or written after `newest_row`
// (Ledger::NewestRow), up to which the caller read; none: it read nothing. MakePlan (make_plan.h) is for apps.
Status WriteLifetime(privacy::Ledger& ledger, const Lifetime& life, const std::string& run,
                     std::optional<uint64_t> newest_row = {});

// Those of the plan that is in force, a changed one too; nothing where there is none.
Result<std::optional<LifetimeSettings>> SettingsOf(const privacy::Ledger& ledger);
// Of a ledger that must have a plan: kPrivacyRefused says how to make one, or that it is too late.
Result<LifetimeSettings> RequireSettings(const privacy::Ledger& ledger);
// Those of the plan that was in force before the row `seq` of the ledger was written.
Result<std::optional<LifetimeSettings>> SettingsBefore(const privacy::Ledger& ledger, uint64_t seq);

// What is left of the plan: it costs nothing beyond the plan's epsilon.
struct LifetimeLeft {
  uint64_t steps = 0, runs = 0, judgings = 0;  // whole runs
  uint64_t steps_of_next = 0;                  // of the next run
  // Of the limit, beside the plan: what is left of it when all of the plan is used. 0 where there is no limit.
  double epsilon = 0;
  bool by_filter = false;  // its steps are of a changed plan, and go through the filter
};
Result<LifetimeLeft> LeftOf(const privacy::Ledger& ledger, const LifetimeSettings& settings);

// Steps of training that were charged under the plan and those that it was changed from.
Result<uint64_t> StepsTrained(const privacy::Ledger& ledger);

// Up to which second since 1970 events train; later ones judge. Public: the plan's, or of the charge with which the
// newest of the plan's judgings became due. So training lags behind by one judging's time, and what it does not see yet
// judges it: no event comes after this moment that a candidate has learned from. Before the first of them it is the
// newest charge of training, and `now` where there was none. Where nobody judges, all events train.
Result<int64_t> TrainsUntil(const privacy::Ledger& ledger, const LifetimeSettings& settings, int64_t now);

// Up to `most` steps of training a model of this shape that the plan pays for. Fewer than it has left only where the
// model releases many times the coordinates of the one it was planned for; or, of steps that go through the filter,
// where somebody else was charged beside the plan.
Result<uint64_t> StepsThatPlanCovers(const privacy::Ledger& ledger, const LifetimeSettings& settings,
                                     const LifetimeLeft& left, const Architecture& architecture, uint64_t most);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_LIFETIME_H_
