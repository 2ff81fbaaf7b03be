#include "runtime/personalise/plan_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "runtime/core/file.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"

namespace wisp {
namespace {

bool IsThere(const std::string& path) { return platform::IsThere(path); }

Status Failed(const std::string& path, const char* doing) { return IoError(path, ": ", doing, ": ", Reason(errno)); }

}  // namespace

Status PlanFiles::ForgetCandidate(bool keep_start) const {
  for (const std::string* path : {&checkpoint, &start, &candidate}) {
    if (!keep_start || path != &start) WISP_RETURN_IF_ERROR(RemoveFile(*path));
  }
  return OkStatus();
}

Status PlanFiles::ForgetCheckpoint() const { return RemoveFile(checkpoint); }
Status PlanFiles::ForgetStart() const { return RemoveFile(start); }
Status PlanFiles::ForgetWeighed() const { return RemoveFile(weighed); }
Status PlanFiles::ForgetCandidateAlone() const { return RemoveFile(candidate); }

Status PlanFiles::BeginWithCandidate() const {
  if (platform::Rename(candidate, start) != 0) return Failed(candidate, "it cannot be renamed");
  return OkStatus();
}

Status PlanFiles::CheckDistinct(std::span<const NamedFile> others) const {
  WISP_RETURN_IF_ERROR(wisp::CheckDistinct({"the output", served}, others));
  for (const std::string* path : {&candidate, &checkpoint, &start, &weighed, &local, &lock})
    WISP_RETURN_IF_ERROR(wisp::CheckDistinct({"a file beside the output", *path}, others));
  return OkStatus();
}

void PlanFiles::RemoveAbandoned() const {
  for (const std::string* path : {&served, &candidate, &checkpoint, &start, &weighed, &local})
    wisp::RemoveAbandoned(*path);
}

bool PlanFiles::HasCandidate() const { return IsThere(candidate); }
bool PlanFiles::HasCheckpoint() const { return IsThere(checkpoint); }
bool PlanFiles::HasStart() const { return IsThere(start); }
bool PlanFiles::HasAny() const {
  return HasCandidate() || HasCheckpoint() || HasStart() || IsThere(weighed) || IsThere(local);
}

Status CopyFile(const std::string& from, const std::string& to) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(from));
  WISP_ASSIGN_OR_RETURN(FileReplacement copy, FileReplacement::Begin(to));
  WISP_RETURN_IF_ERROR(copy.Reserve(file.bytes().size()));
  WISP_RETURN_IF_ERROR(copy.Write(file.bytes()));
  return copy.Commit();
}

bool BeganWith(const ModelFile& model, const ModelFile& base) {
  const auto of_model = model.provenance(), of_base = base.provenance();
  return model.architecture() == base.architecture() && of_model.size() > of_base.size() &&
         std::equal(of_base.begin(), of_base.end(), of_model.begin()) &&
         of_model[of_base.size()].base_model_hash == base.content_hash();
}

Result<std::optional<ModelFile>> OpenPlanModel(const std::string& path, const ModelFile& origin) {
  if (!IsThere(path)) return std::optional<ModelFile>();
  WISP_ASSIGN_OR_RETURN(ModelFile model, ModelFile::Open(path, Verify::kFull));
  if (BeganWith(model, origin)) return std::optional(std::move(model));
  return InvalidArgument(path, ": it was personalised from another model than ", origin.name(),
                         ": carry it over to that one with `wisp catalogue rebase`, or delete it and start over");
}

Result<PlanModels> OpenPlanModels(const PlanFiles& files, const ModelFile& base) {
  PlanModels models;
  WISP_ASSIGN_OR_RETURN(models.start, OpenPlanModel(files.start, base));
  WISP_ASSIGN_OR_RETURN(models.candidate, OpenPlanModel(files.candidate, models.start ? *models.start : base));
  return models;
}

}  // namespace wisp
