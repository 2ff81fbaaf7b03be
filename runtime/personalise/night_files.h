// The files of a life, beside the model that people are served, and which of them go with which. Each is replaced
// whole; what a power cut leaves between two of them the next night puts right.
//
//   mine.wisp             what is served: the base, or a candidate that was found better
//   mine.wisp.candidate   the newest personalised model
//   mine.wisp.checkpoint  from which its training goes on
//   mine.wisp.start       what training began with, where that is not the base
//   mine.wisp.local       what the nights saw, for the device's own report (night_figures.h)
//   mine.wisp.lock        held while a night runs
// All but the first are private like the log: they learned from it, and nobody found them better.
#ifndef WISP_RUNTIME_PERSONALISE_NIGHT_FILES_H_
#define WISP_RUNTIME_PERSONALISE_NIGHT_FILES_H_

#include <optional>
#include <span>
#include <string>

#include "runtime/core/file.h"
#include "runtime/core/status.h"
#include "runtime/model/model_file.h"

namespace wisp {

struct NightFiles {
  explicit NightFiles(const std::string& output)
      : served(output),
        candidate(output + ".candidate"),
        checkpoint(output + ".checkpoint"),
        start(output + ".start"),
        local(output + ".local"),
        lock(output + ".lock") {}
  std::string served, candidate, checkpoint, start, local, lock;

  // Takes checkpoint, start (unless it is to be kept) and candidate away, in this order: training begins anew with the
  // base, or with the start.
  Status ForgetCandidate(bool keep_start) const;
  Status ForgetCheckpoint() const;
  Status ForgetStart() const;
  Status ForgetCandidateAlone() const;
  // A candidate without its checkpoint is what training begins with from now on.
  Status BeginWithCandidate() const;
  // That none of them is one of `others`: what is no model there would be taken for a damaged one, and taken away.
  Status CheckDistinct(std::span<const NamedFile> others) const;
  // What killed nights left half written.
  void RemoveAbandoned() const;
  bool HasCandidate() const;
  bool HasCheckpoint() const;
  bool HasStart() const;
  // Whether anything of a life lies beside what is served.
  bool HasAny() const;
};

// `from` in the place of `to`, byte for byte, or nothing.
Status CopyFile(const std::string& from, const std::string& to);

// Opens start and candidate where they are there. kInvalidArgument: they were personalised from another model than
// `base`. kInvalidData: damaged.
struct NightModels {
  std::optional<ModelFile> start, candidate;
};
Result<NightModels> OpenNightModels(const NightFiles& files, const ModelFile& base);
// One of them, which was personalised from `origin`.
Result<std::optional<ModelFile>> OpenNightModel(const std::string& path, const ModelFile& origin);

// Whether what `model` learned was learned beginning with `base`: of all that both passed through, `base` is the last.
bool BeganWith(const ModelFile& model, const ModelFile& base);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_NIGHT_FILES_H_
