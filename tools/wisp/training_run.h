// What every run of training by this program shares, whatever becomes of its result: read the data, open the ledger,
// train.
//
//   TrainingRun run("train", arguments, recipe);   // the arguments' settings override the recipe's
//   WISP_ASSIGN_OR_RETURN(const JobResult result, run.Run());
//
// Shows progress on standard error; Ctrl-C cancels (kCancelled). A private run without arguments.ledger is refused.
#ifndef WISP_TOOLS_WISP_TRAINING_RUN_H_
#define WISP_TOOLS_WISP_TRAINING_RUN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/readers.h"
#include "runtime/model/model_file.h"
#include "runtime/privacy/statement.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe.h"

namespace wisp::tools {

// Options that say nothing to the method, or contradict each other, are refused rather than ignored.
Status CheckOptions(const TrainArguments& arguments, const Recipe& recipe);

class TrainingRun {
 public:
  // `title` stands before the progress. `arguments` must outlive this object.
  TrainingRun(std::string title, const TrainArguments& arguments, Recipe recipe)
      : title_(std::move(title)), a_(arguments), recipe_(std::move(recipe)) {}
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Data with other numbers of users or items is refused; 0 takes any.
  uint32_t expected_users = 0, expected_items = 0;
  // Set before Run: what is to be done once all is read, before anything is charged; and what writes the model
  // (TrainingJob::write).
  std::function<Status()> before;
  std::function<Status(const JobResult&)> write;

  // Once. Everything that can be refused is refused before the first charge.
  Result<JobResult> Run();

  // After Run.
  bool is_private() const { return recipe_.training.method != Method::kOrdinary; }
  const Recipe& recipe() const { return recipe_; }  // as it was run
  const data::Sequences& sequences() const { return data_.sequences; }
  const std::vector<std::string>& item_keys() const { return item_keys_; }
  const std::vector<std::string>& item_names() const { return item_names_; }  // empty, or one per key
  const ModelFile* base() const { return base_ ? &*base_ : nullptr; }
  privacy::Ledger& ledger() { return *ledger_; }  // of a private run
  const std::string& Dataset() const { return dataset_; }
  // Unique on this device: a second run of the same recipe has a cost of its own.
  std::string RunName() const {
    return privacy::WithTuning((recipe_.name.empty() ? FileName(a_.recipe) : recipe_.name) + " " + run_id_,
                               recipe_.uncharged_tuning);
  }

 private:
  Status Read();
  Status CheckPublic() const;
  Status CheckSize() const;
  Status OpenLedger();
  bool SelectsRows() const {
    return recipe_.training.method == Method::kFest || recipe_.training.method == Method::kAdaFestPlus;
  }
  Status ChooseRows(TrainingJob& job);
  Result<TrainingJob> MakeJob();

  std::string title_, dataset_;
  const TrainArguments& a_;
  Recipe recipe_;
  std::string run_id_;
  std::optional<ModelFile> base_;
  std::optional<privacy::Ledger> ledger_;
  std::optional<privacy::EpsilonDelta> limit_before_;
  std::vector<float> start_weights_;  // the base model's; empty without one
  data::ReadResult data_;
  std::vector<std::string> item_keys_, item_names_;
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TRAINING_RUN_H_
