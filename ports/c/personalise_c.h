// A private run of the C interface, from option struct to model file. What is learned, events or texts, says how a file
// is read and what of the model learns it (ToLearn).
#ifndef WISP_PORTS_C_PERSONALISE_C_H_
#define WISP_PORTS_C_PERSONALISE_C_H_

#include <optional>
#include <string>

#include "ports/c/status_c.h"
#include "runtime/model/model_file.h"
#include "runtime/train/run/job.h"

namespace wisp::ports {

// What the file at log_path held, as the result has it. Counted on the data: local only.
struct Counted {
  uint64_t num_events = 0, too_short = 0, unknown_events = 0, unknown_items = 0, bad_rows = 0;
};

// All but TooShort is called before anything is charged: the checks first, Read last.
class ToLearn {
 public:
  virtual ~ToLearn() = default;

  // Options that not every run has, by what is learned. No unit: the caller's struct is from before there was a choice.
  virtual Status CheckKind(const wisp_personalise_options& options, std::optional<privacy::PrivacyUnit> unit) = 0;
  // The names of those that a record can be.
  virtual const char* units() const = 0;
  // Which files are a start.
  virtual Accept accepts() const { return Accept::kRecommender; }
  virtual Status CheckBase(const ModelFile& base, bool with_new_adapter);
  // What is written, without weights. `new_adapter` is beside it, where there is one.
  virtual Result<ModelContents> Contents(const ModelFile& base, const std::optional<AdapterSpec>& new_adapter) const;
  // Which part of the model learns.
  virtual void Set(TrainingOptions& options) const;
  // Returns what one record is. Call CheckKind first.
  virtual privacy::RecordSpec Record(privacy::PrivacyUnit unit) const = 0;
  // Gives the job its records, which live as long as this. A malformed one is left out and counted.
  virtual Result<Counted> Read(const wisp_personalise_options& options, const ModelFile& base, TrainingJob& job) = 0;
  // How many were left out for being short: known at the end where records are made by the run.
  virtual uint64_t TooShort(const Counted& read, const JobResult& result) const;
};

// wisp_personalise, wisp_text_train and wisp_classifier_train. `options` may be NULL: refused.
Status Personalise(const wisp_personalise_options* options, ToLearn& what, wisp_personalise_result* result);

// wisp_personalise_plan_memory, of what learns from a log.
Status PlanPersonalise(const wisp_personalise_options* options, wisp_personalise_memory* memory);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_PERSONALISE_C_H_
