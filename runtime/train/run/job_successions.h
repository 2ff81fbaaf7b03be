// The releases of successions of a run (SuccessionReleases): for runtime/train/run/job.cc, and for the forecast of what
// a release takes.
#ifndef WISP_RUNTIME_TRAIN_RUN_JOB_SUCCESSIONS_H_
#define WISP_RUNTIME_TRAIN_RUN_JOB_SUCCESSIONS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/train/run/job.h"
#include "runtime/train/successions.h"

namespace wisp {

// Successions as a checkpoint holds them (Checkpoint::successions).
std::vector<uint32_t> PackSuccessions(std::span<const Succession> successions);
std::vector<Succession> UnpackSuccessions(std::span<const uint32_t> words);

// Charges one release of successions, and scores its pairs for the model with these weights.
Result<std::vector<Succession>> ReleaseSuccessions(std::span<const Record> records, const Architecture& architecture,
                                                   std::span<const float> weights, const ModelLists& lists,
                                                   const SuccessionOptions& options, privacy::RandomStream& noise);

// Releases successions and charges them if they are due at this step; otherwise nullopt. The ledger alone knows how
// many were released: one that was charged and then lost is not charged again.
Result<std::optional<std::vector<Succession>>> ReleaseSuccessionsIfDue(const TrainingJob& job,
                                                                       std::span<const Record> records,
                                                                       const TrainingOptions& options,
                                                                       const Trainer& trainer);

// The releases that the ledger charged to this run.
Result<std::vector<privacy::Mechanism>> SuccessionMechanisms(const privacy::Ledger& ledger, const std::string& run);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_JOB_SUCCESSIONS_H_
