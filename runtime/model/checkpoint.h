// Checkpoints: the state that a training run needs to resume in another process. Same container as model files
// (container.h).
//
//   WISP_RETURN_IF_ERROR(WriteCheckpoint("run.ckpt", checkpoint));
//   WISP_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint("run.ckpt"));
//
// A checkpoint never contains two things. The ledger, or the number of steps it has been charged for: restoring an old
// checkpoint must not restore budget, so the trainer charges again. The key of a secure generator: noise would repeat.
#ifndef WISP_RUNTIME_MODEL_CHECKPOINT_H_
#define WISP_RUNTIME_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp {

inline constexpr uint32_t kCheckpointFormatVersion = 1;

enum class RandomSource : uint8_t {
  kReproducible = 0,
  kSecure = 1,  // `streams` must be empty, because a later process draws fresh randomness
};

struct StreamPosition {
  std::string name;  // unique within the checkpoint
  uint64_t position = 0;
  bool operator==(const StreamPosition&) const = default;
};

struct Checkpoint {
  Architecture architecture;
  // Laid out by ListParameters, FlatSize floats. For an adapter, the parameters it trains (TrainedSet). For a run that
  // leaves its base in a file, only what the run holds (FirstHeld). Everything but `weights` may be empty.
  std::vector<float> weights;
  std::vector<float> first_moment;   // Adam m or momentum, for the trained parameters (TrainedSet)
  std::vector<float> second_moment;  // Adam v
  std::vector<float> average;        // the weight average
  std::vector<uint32_t> order;       // the epoch's order in shuffled sampling; otherwise empty
  std::vector<uint32_t> item_rows;   // rows of the item table that a sparse method trains, ascending; otherwise empty
  std::vector<uint32_t> head_releases;  // state of a classifier's head (HeadReleases::State); otherwise empty
  // Successions that the run released (ModelLists), three words each: from, to, the bits of the score.
  std::vector<uint32_t> successions;
  uint64_t order_next = 0;  // next entry of `order`; at most its size
  uint64_t step = 0;        // steps done
  uint64_t epoch = 0;
  uint64_t seed = 0;  // for shuffling and dropout; never a key
  RandomSource random = RandomSource::kReproducible;
  std::vector<StreamPosition> streams;
  std::string run_id;
  std::string config;  // the run's options as UTF-8 text; the trainer compares it
  std::string created_by;
  uint64_t base_model_hash = 0;  // ModelFile::content_hash() of the model that training began with; 0: none
  // The receipt of the ledger that paid for a private run (privacy::Receipt), kReceiptBytes. Empty: nothing was
  // charged.
  std::string receipt = {};
  bool operator==(const Checkpoint&) const = default;
};

// Writes the file whole or not at all, like WriteModel; only its owner can read it. kInvalidArgument: ReadCheckpoint
// would refuse the contents. `reserved`, if given, was begun at `path`; it is used up even on an error.
Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint, FileReplacement* reserved = nullptr);

// Verifies all hashes and that every number is finite. Errors are those of ModelFile::Open.
Result<Checkpoint> ReadCheckpoint(const std::string& path);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_CHECKPOINT_H_
