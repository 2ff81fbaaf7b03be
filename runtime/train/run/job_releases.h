// The releases of a run beside its steps (TrainingJob): the weight of the output bias, and successions. For
// runtime/train/run/job.cc, and for the forecast of what a release takes.
#ifndef WISP_RUNTIME_TRAIN_RUN_JOB_RELEASES_H_
#define WISP_RUNTIME_TRAIN_RUN_JOB_RELEASES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/train/bias_weight.h"
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

// Charges one release of gains (bias_weight.h) and returns the chosen weight of the fixed output bias in these weights.
Result<float> ReleaseBiasWeight(std::span<const Record> records, const Architecture& architecture,
                                std::span<const float> weights, const ModelLists& lists,
                                const BiasWeightOptions& options, Workers& workers, privacy::RandomStream& noise);

// kInvalidArgument for releases of a run that may make none.
Status CheckReleases(const TrainingJob& job, const TrainingOptions& options);

struct Released {
  bool any = false;  // something was charged
  std::optional<std::vector<Succession>> successions;
};

// Makes and charges the releases that are due at this step, and sets the output bias of the trainer. The ledger alone
// knows how many were made: one that was charged and then lost is not charged again.
Result<Released> ReleaseWhatIsDue(const TrainingJob& job, std::span<const Record> records,
                                  const TrainingOptions& options, Trainer& trainer);

// The releases that the ledger charged to this run.
Result<std::vector<privacy::Mechanism>> ReleaseMechanisms(const privacy::Ledger& ledger, const std::string& run);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_JOB_RELEASES_H_
