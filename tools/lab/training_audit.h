// Steps that the audits of training share: options from recipe and arguments, a start, records, a ledger.
#ifndef WISP_TOOLS_LAB_TRAINING_AUDIT_H_
#define WISP_TOOLS_LAB_TRAINING_AUDIT_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"
#include "tools/lab/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/given_fields.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/temporary_folder.h"

namespace wisp::tools {

// A temporary ledger for made-up data, which is charged too although nobody needs to know. It is deleted with this
// object.
class TemporaryLedger {
 public:
  // This object owns the ledger.
  Result<privacy::Ledger*> Open();

 private:
  std::optional<TemporaryFolder> folder_;
  std::optional<privacy::Ledger> ledger_;  // closed before its folder is deleted
};

// Call PrepareOptions, then either Initialise and OpenTemporaryLedger, or ReadRecords and PrepareRun.
class TrainingAudit {
 public:
  explicit TrainingAudit(const AuditArguments& arguments) : a_(arguments) {}
  TrainingAudit(const TrainingAudit&) = delete;
  TrainingAudit& operator=(const TrainingAudit&) = delete;

  // Takes the recipe's options, or those of a small recommender, and applies the arguments. Opens the base model if one
  // is named.
  Status PrepareOptions();
  // Makes the weights to start from. `num_items` is read only without a base.
  Status Initialise(uint32_t num_items);
  Status OpenTemporaryLedger();
  // Reads records of the data, or makes them up if no data is given; then prepares weights and a ledger.
  Status ReadRecords();
  // Sets the numbers of the run. `synthetic_records` is the declared number if the data is made up.
  Status PrepareRun(uint32_t synthetic_records);

  // Returns the delta at which a run is tested: --delta, that of the recipe's privacy, or 1e-5.
  double RunDelta() const;
  bool is_private() const { return recipe_.training.method != Method::kOrdinary; }
  // Returns `names`, and the other figures of an ordinary run that were counted on the data.
  std::vector<std::string> NotPrivate(std::vector<std::string> names) const;

  // An audit of a smaller run changes these after PrepareOptions.
  RunSpec& recipe() { return recipe_; }
  TrainingOptions& training() { return recipe_.training; }
  const Architecture& architecture() const { return recipe_.architecture; }
  // Null without a base.
  const ModelFile* base() const { return base_ ? &*base_ : nullptr; }
  std::span<const float> weights() const { return weights_; }
  std::span<const Record> records() const { return set_.records; }
  // True if the data set's own ledger pays.
  bool charges_data() const { return ledger_.has_value(); }

 private:
  Status ReadPrivateLog();
  Status ReadSyntheticLog();
  void ChooseRows();

  const AuditArguments& a_;
  RunSpec recipe_;
  std::optional<ModelFile> base_;
  TemporaryLedger temporary_;
  std::optional<privacy::Ledger> ledger_;
  data::ReadResult data_;
  RecordSet set_;
  std::vector<float> weights_;
  std::vector<int32_t> rows_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_TRAINING_AUDIT_H_
