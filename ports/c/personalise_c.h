// A private run of the C interface, from the option struct to the model file. ToLearn differs for events and texts: it
// reads the file and selects the weights that train.
#ifndef WISP_PORTS_C_PERSONALISE_C_H_
#define WISP_PORTS_C_PERSONALISE_C_H_

#include <optional>
#include <string>

#include "ports/c/status_c.h"
#include "runtime/model/model_file.h"
#include "runtime/train/run/job.h"

namespace wisp::ports {

// Counts of the file at log_path, for the result. Counted on the data: local only.
struct Counted {
  uint64_t num_events = 0, too_short = 0, unknown_events = 0, unknown_items = 0, bad_rows = 0;
};

// All functions but TooShort are called before anything is charged: the checks first, Read last.
class ToLearn {
 public:
  virtual ~ToLearn() = default;

  // Checks the options that depend on what is learned.
  virtual Status CheckKind(const wisp_personalise_options& options, privacy::PrivacyUnit unit) = 0;
  // The names of the units that are allowed, for messages.
  virtual const char* units() const = 0;
  // The kinds of models that training can start from.
  virtual Accept accepts() const { return Accept::kRecommender; }
  virtual Status CheckBase(const ModelFile& base, bool with_new_adapter);
  // The output model without weights. `new_adapter` is the adapter that is written beside it, if any.
  virtual Result<ModelContents> Contents(const ModelFile& base, const std::optional<AdapterSpec>& new_adapter) const;
  // Selects the weights that train.
  virtual void Set(RunSpec& spec) const;
  // Returns what one record is. Call CheckKind first.
  virtual privacy::RecordSpec Record(privacy::PrivacyUnit unit) const = 0;
  // Gives the job its records, which live as long as this object. A malformed record is left out and counted.
  virtual Result<Counted> Read(const wisp_personalise_options& options, const ModelFile& base, TrainingJob& job) = 0;
  // The number of records left out for being short. If the run itself forms the records, it is known only at its end.
  virtual uint64_t TooShort(const Counted& read, const JobResult& result) const;
};

// Runs wisp_personalise, wisp_text_train and wisp_classifier_train. `options` may be NULL, which is refused.
Status Personalise(const wisp_personalise_options* options, ToLearn& what, wisp_personalise_result* result);

// wisp_personalise_plan_memory, for a model that learns from a log.
Status PlanPersonalise(const wisp_personalise_options* options, wisp_personalise_memory* memory);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_PERSONALISE_C_H_
