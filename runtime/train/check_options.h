// The checks of Trainer::Check, for one group of options each.
#ifndef WISP_RUNTIME_TRAIN_CHECK_OPTIONS_H_
#define WISP_RUNTIME_TRAIN_CHECK_OPTIONS_H_

#include "runtime/core/architecture.h"
#include "runtime/train/options.h"

namespace wisp {

Status ValidateBatch(const TrainingOptions& options, uint64_t num_records);
Status ValidateTrains(const Architecture& architecture, const TrainingOptions& options);
Status ValidateRecompute(const Architecture& architecture, const TrainingOptions& options);
Status ValidateBase(const Architecture& architecture, const TrainingOptions& options);
Status ValidateAverage(const TrainingOptions& options);
Status ValidateDevice(const TrainingOptions& options);
Status ValidateNegatives(const Architecture& architecture, const TrainingOptions& options);
Status ValidateTowers(const Architecture& architecture, const TrainingOptions& options);
Status ValidateFeatures(const Architecture& architecture, const TrainingOptions& options);
// The checks of the method's own (MethodEntry::check).
Status CheckMethod(const Architecture& architecture, const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_CHECK_OPTIONS_H_
