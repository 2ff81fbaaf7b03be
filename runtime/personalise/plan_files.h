// The files of a plan, beside the model that people are served, and how they belong together. Each is replaced
// atomically; the next run repairs what a power cut leaves between two of them.
//
//   mine.wisp             what is served: the base, or a candidate that was found better
//   mine.wisp.candidate   the newest personalised model
//   mine.wisp.checkpoint  the state from which training resumes
//   mine.wisp.start       the model that training began with, if that is not the base
//   mine.wisp.weighed     the base with the weight of its bias that people chose, if there is one (weighed_base.h)
//   mine.wisp.local       figures of the runs, for the device's own report (run_figures.h)
//   mine.wisp.lock        locked during a run
// All but the first and the weighed base are private like the log: they learned from it, and nothing has released them.
#ifndef WISP_RUNTIME_PERSONALISE_PLAN_FILES_H_
#define WISP_RUNTIME_PERSONALISE_PLAN_FILES_H_

#include <optional>
#include <span>
#include <string>

#include "runtime/core/file.h"
#include "runtime/core/status.h"
#include "runtime/model/model_file.h"

namespace wisp {

struct PlanFiles {
  explicit PlanFiles(const std::string& output)
      : served(output),
        candidate(output + ".candidate"),
        checkpoint(output + ".checkpoint"),
        start(output + ".start"),
        weighed(output + ".weighed"),
        local(output + ".local"),
        lock(output + ".lock") {}
  std::string served, candidate, checkpoint, start, weighed, local, lock;

  // Deletes checkpoint, start (unless it is to be kept) and candidate, in this order. Training then starts from the
  // base, or from the start.
  Status ForgetCandidate(bool keep_start) const;
  Status ForgetCheckpoint() const;
  Status ForgetStart() const;
  Status ForgetWeighed() const;
  Status ForgetCandidateAlone() const;
  // Makes a candidate without its checkpoint the start of training from now on.
  Status BeginWithCandidate() const;
  // Checks that none of these files is one of `others`, which would be taken for a damaged model and deleted.
  Status CheckDistinct(std::span<const NamedFile> others) const;
  // Deletes files that killed runs left half written.
  void RemoveAbandoned() const;
  bool HasCandidate() const;
  bool HasCheckpoint() const;
  bool HasStart() const;
  // True if any file of a plan lies beside the served model.
  bool HasAny() const;
};

// Copies `from` over `to`, byte for byte, or changes nothing.
Status CopyFile(const std::string& from, const std::string& to);

// Opens start and candidate if they exist. kInvalidArgument: they were personalised from another model than `base`.
// kInvalidData: damaged.
struct PlanModels {
  std::optional<ModelFile> start, candidate;
};
Result<PlanModels> OpenPlanModels(const PlanFiles& files, const ModelFile& base);
// Opens one of them, which must have been personalised from `origin`.
Result<std::optional<ModelFile>> OpenPlanModel(const std::string& path, const ModelFile& origin);

// True if `model` was trained from `base`: behind the base's own provenance, its next entry names `base` as its start.
bool BeganWith(const ModelFile& model, const ModelFile& base);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_PLAN_FILES_H_
