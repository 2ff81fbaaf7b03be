// Lets training continue although one of its files is damaged. Otherwise a device that nobody looks at would never
// train again. A file is damaged if it cannot be read as what it should be (kInvalidData). It is deleted or replaced,
// and a sentence says what was found and what was done. After an error of the disk nothing is deleted. A file of
// another plan or of a newer version stays an error.
//
//   damaged      how training continues
//   checkpoint   from the candidate, with a fresh optimizer; without a candidate from the start or the base
//   candidate    from the checkpoint, and it rewrites the candidate; without a checkpoint as above
//   start        from the candidate, with a fresh optimizer; without a candidate it starts over from the base
//   served       as usual; the base is served until a candidate is found better
#ifndef WISP_RUNTIME_PERSONALISE_HEAL_PLAN_H_
#define WISP_RUNTIME_PERSONALISE_HEAL_PLAN_H_

#include <functional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/plan_files.h"

namespace wisp {

using SayDamage = std::function<void(const std::string& sentence)>;

// Opens start and candidate like OpenPlanModels, and repairs the files first. It may be stopped anywhere and repeated.
Result<PlanModels> HealPlanModels(const PlanFiles& files, const ModelFile& base, const SayDamage& say);

// OpenPlanModels that changes no file: opens what is not damaged.
Result<PlanModels> OpenWholePlanModels(const PlanFiles& files, const ModelFile& base, const SayDamage& say);

// True if the served model is damaged; false for a readable file of another kind.
bool IsServedDamaged(const PlanFiles& files);
// Replaces a damaged served model by the base and returns true if it did. Call it after HealPlanModels, which refuses
// files of another plan. kInvalidData if the file may not be a model at all: no file of a plan lies beside it, and it
// does not begin like a model.
Result<bool> HealServed(const PlanFiles& files, const std::string& base_path, const SayDamage& say);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_HEAL_PLAN_H_
