// A life goes on where one of its files is damaged: on a device that nobody looks at, no night would ever run again.
// Damaged is what cannot be read as what it should be (kInvalidData). Such a file is taken away or replaced, with a
// sentence that says what was found and what was done. After an error of the disk nothing is taken away, and a file of
// another life or of a newer version stays an error.
//
//   damaged      what goes on
//   checkpoint   training, from the candidate, with a fresh optimizer; without a candidate from the start or the base
//   candidate    training, from the checkpoint, and it writes the candidate anew; without one as above
//   start        training, from the candidate, with a fresh optimizer; without one it begins anew with the base
//   served       the base is served, and then what the judgements say
#ifndef WISP_RUNTIME_PERSONALISE_NIGHT_HEAL_H_
#define WISP_RUNTIME_PERSONALISE_NIGHT_HEAL_H_

#include <functional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"
#include "runtime/personalise/night_files.h"

namespace wisp {

using SayDamage = std::function<void(const std::string& sentence)>;

// Start and candidate, as OpenNightModels, of files that are whole from now on. May be stopped anywhere and done again.
Result<NightModels> HealNightModels(const NightFiles& files, const ModelFile& base, const SayDamage& say);

// The same without taking anything away: what there is that is whole.
Result<NightModels> OpenWholeNightModels(const NightFiles& files, const ModelFile& base, const SayDamage& say);

// Whether the served model is damaged: not one that is whole and of another kind.
bool IsServedDamaged(const NightFiles& files);
// Puts the base in the place of a served model that is damaged; true: it did. After HealNightModels, which refuses
// files of another life. kInvalidData where the file may be no model of anybody's: nothing of a life lies beside it,
// and it does not begin like a model.
Result<bool> HealServed(const NightFiles& files, const std::string& base_path, const SayDamage& say);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_NIGHT_HEAL_H_
