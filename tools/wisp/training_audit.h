// What the audits of training have in common: options from recipe and arguments, a start, records, a ledger.
#ifndef WISP_TOOLS_WISP_TRAINING_AUDIT_H_
#define WISP_TOOLS_WISP_TRAINING_AUDIT_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {

// A ledger for what is not private: made up data is charged too, but nobody needs to know. Gone with this object.
class TemporaryLedger {
 public:
  // Owned by this object.
  Result<privacy::Ledger*> Open();

 private:
  std::optional<TemporaryFolder> folder_;
  std::optional<privacy::Ledger> ledger_;  // closed before its folder goes
};

// Call PrepareOptions, then either Initialise and OpenTemporaryLedger, or ReadRecords and PrepareRun.
class TrainingAudit {
 public:
  explicit TrainingAudit(const AuditArguments& arguments) : a_(arguments) {}
  TrainingAudit(const TrainingAudit&) = delete;
  TrainingAudit& operator=(const TrainingAudit&) = delete;

  // The recipe's options, or those of a small recommender, with what the arguments say; the base model where one is
  // named.
  Status PrepareOptions();
  // The weights to start from. `num_items` is read where there is no base.
  Status Initialise(uint32_t num_items);
  Status OpenTemporaryLedger();
  // Records of the data, or of made-up users where none is given; then weights and a ledger.
  Status ReadRecords();
  // Numbers of the run. `synthetic_records`: the declared number where the data is made up.
  Status PrepareRun(uint32_t synthetic_records);

  // At which delta a run is tested: that of --delta, of the recipe's privacy, or 1e-5.
  double RunDelta() const;
  bool is_private() const { return recipe_.training.method != Method::kOrdinary; }
  // Those of `names`, and what else of an ordinary run was counted on the data.
  std::vector<std::string> NotPrivate(std::vector<std::string> names) const;

  // After PrepareOptions, for who audits something smaller.
  Recipe& recipe() { return recipe_; }
  TrainingOptions& training() { return recipe_.training; }
  const Architecture& architecture() const { return recipe_.architecture; }
  // Null where there is none.
  const ModelFile* base() const { return base_ ? &*base_ : nullptr; }
  std::span<const float> weights() const { return weights_; }
  std::span<const Record> records() const { return set_.records; }
  // Whether the ledger that pays is the data set's own.
  bool charges_data() const { return ledger_.has_value(); }

 private:
  Status ReadPrivateLog();
  Status ReadSyntheticLog();
  void ChooseRows();
  Status CalibrateNoise(double records);

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

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TRAINING_AUDIT_H_
