// The steps that every training run of this program shares: read the data, open the ledger, train. The data are events
// of users, or texts that a decoder learns.
//
//   TrainingRun run("train", arguments, recipe);   // the arguments' settings override the recipe's
//   WISP_ASSIGN_OR_RETURN(const JobResult result, run.Run());
//
// It shows progress on standard error; Ctrl-C cancels (kCancelled). A private run without arguments.ledger is refused.
#ifndef WISP_TOOLS_WISP_TRAINING_RUN_H_
#define WISP_TOOLS_WISP_TRAINING_RUN_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/devices.h"
#include "runtime/data/readers.h"
#include "runtime/model/model_file.h"
#include "runtime/train/run/fine_tune.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"
#include "tools/wisp/recipe/recipe.h"
#include "tools/wisp/text_quality.h"
#include "tools/wisp/text_records.h"

namespace wisp::tools {

// Reads the recipe that the arguments name; without one, returns TextDefaults for texts.
Result<RunSpec> ReadGivenRecipe(const TrainArguments& arguments);

// The first option given that only a private run has, such as "--delta"; null without one.
const char* FindPrivateOption(const TrainArguments& arguments);

// Refuses options that do not concern the method or contradict each other, rather than ignoring them.
Status CheckOptions(const TrainArguments& arguments, const RunSpec& recipe);

// Begins a run that learns `record`s. `base` may be null; `name` describes it in the ledger.
Result<FineTune> BeginRun(const TrainArguments& arguments, const RunSpec& recipe, const ModelFile* base,
                          const std::string& dataset, const std::string& name, const privacy::RecordSpec& record);

// Trains with progress on standard error, and says there what the ledger's owner should know. Ctrl-C cancels.
// `arguments` name the output, the checkpoint and the budget of `job`.
Result<JobResult> RunShown(const std::string& title, const TrainArguments& arguments, FineTune& run, TrainingJob job,
                           FineTuneOutput output);

class TrainingRun {
 public:
  // `title` stands before the progress. `arguments` must outlive this object.
  TrainingRun(std::string title, const TrainArguments& arguments, RunSpec recipe)
      : title_(std::move(title)), a_(arguments), recipe_(std::move(recipe)) {}
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Data with other numbers of users or items is refused; 0 takes any.
  uint32_t expected_users = 0, expected_items = 0;
  // Called when the model is written (FineTuneOutput); set it before Run.
  std::function<Status(const JobResult&)> written;
  // Called when the ledger is open, before the data are read. Only with a base, whose architecture recipe() then has.
  std::function<Status(FineTune&)> begun;

  // Call it once. Everything that can be refused is refused before the first charge. The model goes to arguments.out,
  // if that is not empty.
  Result<JobResult> Run();

  // Run for a search, which trains several times: Read once, RunOnce with settings of training that differ from
  // recipe()'s, and Write of one of the results. RunOnce writes nothing. `of_run` is the ledger that a private run
  // charges (FineTune::Run).
  Status Read();
  Result<JobResult> RunOnce(TrainingJob job, privacy::Ledger* of_run,
                            std::function<Status(const JobResult&, const ModelLists&)> scored);
  Status Write(const RunSpec& spec, const JobResult& result) const;

  // Valid after Run, or Read.
  bool is_private() const { return recipe_.training.method != Method::kOrdinary; }
  const RunSpec& recipe() const { return recipe_; }  // with the arguments applied
  const data::Sequences& sequences() const { return data_.sequences; }
  const privacy::RecordSpec& record() const { return *record_; }
  bool is_text() const { return recipe_.text.has_value(); }
  const TextRecords& texts() const { return texts_; }
  // Set if some texts were held out. Local only.
  const std::optional<TextQuality>& text_quality() const { return text_quality_; }
  const OpenedDevice& device() const { return device_; }
  const ModelFile* base() const { return base_ ? &*base_ : nullptr; }
  privacy::Ledger& ledger() { return *fine_tune_->ledger(); }  // only for a private run
  const std::string& Dataset() const { return dataset_; }

 private:
  Status ReadEvents();
  Status ReadTexts();
  Status CheckDecoder() const;
  Status ChooseModel();
  Status TakeFeatures();
  Status Measure(const JobResult& result);
  const std::string& DataPath() const { return a_.texts.empty() ? a_.data.path : a_.texts; }
  Status ChooseAdapter();
  Status CheckPublic() const;
  Status CheckSize() const;
  size_t NumRecords() const;
  std::string Description() const;
  std::string Name() const;
  Status Begin();
  bool SelectsRows() const { return NamesRows(recipe_.training.method); }
  Status ChooseRows();
  ModelContents Contents() const;

  std::string title_, dataset_;
  OpenedDevice device_;
  const TrainArguments& a_;
  RunSpec recipe_;
  std::optional<ModelFile> base_;
  std::optional<privacy::RecordSpec> record_;  // set by Begin
  std::optional<FineTune> fine_tune_;
  data::ReadResult data_;
  std::vector<std::byte> tokenizer_;  // for a decoder
  TextRecords texts_;
  std::optional<TextQuality> text_quality_;
  std::vector<std::string> item_keys_, item_names_;
  std::vector<float> item_features_;  // of --item-features, in the model's order
};

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_TRAINING_RUN_H_
