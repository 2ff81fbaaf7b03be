#include "runtime/personalise/heal_plan.h"

#include <algorithm>
#include <optional>

#include "runtime/core/file.h"
#include "runtime/model/checkpoint.h"

namespace wisp {
namespace {

constexpr char kStartsOver[] = "training starts over from the base, with what the plan has left";
constexpr char kFromCandidate[] = "training resumes from the candidate, with a fresh optimizer";

bool IsDamage(const Status& status) { return status.code() == StatusCode::kInvalidData; }

void SayTakenAway(const SayDamage& say, const Status& damage, const std::string& what_goes_on) {
  say(damage.message() + ": the file was taken away, and " + what_goes_on);
}

Result<PlanModels> HealStart(const PlanFiles& files, const ModelFile& base, const Status& damage,
                             const SayDamage& say) {
  PlanModels models;
  Result<std::optional<ModelFile>> candidate = OpenPlanModel(files.candidate, base);
  if (candidate.ok() && *candidate) {
    // The checkpoint is deleted first: without its start it could not be resumed.
    WISP_RETURN_IF_ERROR(files.ForgetCheckpoint());
    WISP_RETURN_IF_ERROR(files.ForgetStart());
    SayTakenAway(say, damage, kFromCandidate);
    models.candidate = *std::move(candidate);
    return models;
  }
  if (!candidate.ok() && !IsDamage(candidate.status())) return candidate.status();
  WISP_RETURN_IF_ERROR(files.ForgetCandidate(/*keep_start=*/false));
  SayTakenAway(say, damage, kStartsOver);
  return models;
}

Status CheckSavedCheckpoint(const PlanFiles& files) {
  return files.HasCheckpoint() ? ReadCheckpoint(files.checkpoint).status() : OkStatus();
}

bool HasModelPrefix(const std::string& path) {
  constexpr std::string_view kBegins = "\x89WSP";
  const Result<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return false;
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  return bytes.empty() || bytes.starts_with(kBegins);
}

}  // namespace

Result<PlanModels> HealPlanModels(const PlanFiles& files, const ModelFile& base, const SayDamage& say) {
  PlanModels models;
  Result<std::optional<ModelFile>> start = OpenPlanModel(files.start, base);
  if (IsDamage(start.status())) return HealStart(files, base, start.status(), say);
  if (!start.ok()) return start.status();
  models.start = *std::move(start);
  Result<std::optional<ModelFile>> candidate = OpenPlanModel(files.candidate, models.start ? *models.start : base);
  if (!candidate.ok() && !IsDamage(candidate.status())) return candidate.status();
  const Status checkpoint = CheckSavedCheckpoint(files);
  if (!checkpoint.ok() && !IsDamage(checkpoint)) return checkpoint;
  const std::string without_both = models.start ? "training resumes from " + files.start : std::string(kStartsOver);
  if (!candidate.ok()) {
    WISP_RETURN_IF_ERROR(files.ForgetCandidateAlone());
    const bool goes_on = files.HasCheckpoint() && checkpoint.ok();
    SayTakenAway(say, candidate.status(),
                 goes_on ? "training, which resumes from the checkpoint, rewrites it" : without_both);
  } else {
    models.candidate = *std::move(candidate);
  }
  if (!checkpoint.ok()) {
    WISP_RETURN_IF_ERROR(files.ForgetCheckpoint());
    SayTakenAway(say, checkpoint, models.candidate ? kFromCandidate : without_both);
  }
  return models;
}

Result<PlanModels> OpenWholePlanModels(const PlanFiles& files, const ModelFile& base, const SayDamage& say) {
  PlanModels models;
  const auto open = [&](const std::string& path, const ModelFile& origin, std::optional<ModelFile>& model) -> Status {
    Result<std::optional<ModelFile>> opened = OpenPlanModel(path, origin);
    if (opened.ok()) {
      model = *std::move(opened);
      return OkStatus();
    }
    if (!IsDamage(opened.status())) return opened.status();
    say(opened.status().message() + ": what it had learned is lost");
    return OkStatus();
  };
  WISP_RETURN_IF_ERROR(open(files.start, base, models.start));
  WISP_RETURN_IF_ERROR(open(files.candidate, models.start ? *models.start : base, models.candidate));
  return models;
}

namespace {

Status CheckServedModel(const PlanFiles& files) {
  return ModelFile::Open(files.served, Verify::kFull, Accept::kAnyFile).status();
}

}  // namespace

bool IsServedDamaged(const PlanFiles& files) { return IsDamage(CheckServedModel(files)); }

Result<bool> HealServed(const PlanFiles& files, const std::string& base_path, const SayDamage& say) {
  const Status served = CheckServedModel(files);
  if (served.ok()) return false;
  if (!IsDamage(served) || !(files.HasAny() || HasModelPrefix(files.served))) return served;
  WISP_RETURN_IF_ERROR(CopyFile(base_path, files.served));
  say(served.message() + ": the base was put in its place, until a candidate is found better");
  return true;
}

}  // namespace wisp
