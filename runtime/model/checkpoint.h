// Checkpoints: what a training run needs to go on in another process. Same container as model files (container.h).
//
//   WISP_RETURN_IF_ERROR(WriteCheckpoint("run.ckpt", checkpoint));
//   WISP_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint("run.ckpt"));
//
// Never in it: the ledger, or how many steps it has been charged for (an old checkpoint that is restored must not
// restore budget: the trainer charges anew), and the key of a secure generator (noise would repeat).
#ifndef WISP_RUNTIME_MODEL_CHECKPOINT_H_
#define WISP_RUNTIME_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/core/file.h"
#include "runtime/core/status.h"

namespace wisp {

// 2: attention_slope; 3: num_classes, head_releases; 4: blocks that differ, adapters, moments of what is trained only
inline constexpr uint32_t kCheckpointFormatVersion = 10;

enum class RandomSource : uint8_t {
  kReproducible = 0,
  kSecure = 1,  // `streams` must be empty: a later process draws fresh randomness
};

struct StreamPosition {
  std::string name;  // unique within the checkpoint
  uint64_t position = 0;
  bool operator==(const StreamPosition&) const = default;
};

struct Checkpoint {
  Architecture architecture;
  // Laid out by ParametersOf, FlatSize floats; of an adapter what it trains (TrainedSet), and of a run that leaves a
  // base in its file only what it holds (FirstHeld). All but `weights` may be empty.
  std::vector<float> weights;
  std::vector<float> first_moment;      // of what was trained (TrainedSet): Adam m, or momentum
  std::vector<float> second_moment;     // Adam v
  std::vector<float> average;           // weight averaging
  std::vector<uint32_t> order;          // the epoch's shuffled order (shuffled sampling), else empty
  std::vector<uint32_t> item_rows;      // rows of the item table that a sparse method trains, ascending; else empty
  std::vector<uint32_t> head_releases;  // what a classifier's head is made of (HeadReleases::State), else empty
  uint64_t order_next = 0;              // next entry of `order`; at most its size
  uint64_t step = 0;                    // steps done
  uint64_t epoch = 0;
  uint64_t seed = 0;  // of shuffling and dropout; never a key
  RandomSource random = RandomSource::kReproducible;
  std::vector<StreamPosition> streams;
  std::string run_id;
  std::string config;  // the run's options as text, UTF-8; the trainer compares it
  std::string created_by;
  uint64_t base_model_hash = 0;  // ModelFile::content_hash() of the start, 0: none
  // Of a private run, which ledger paid for all that this holds (privacy::Receipt), kReceiptBytes; empty: nothing was
  // charged, or the file is older than receipts.
  std::string receipt = {};
  bool operator==(const Checkpoint&) const = default;
};

// Whole or not at all, like WriteModel; readable by the owner alone. kInvalidArgument: contents that ReadCheckpoint
// would refuse. `reserved`, where given, was begun at `path` and is used up, whatever comes of it.
Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint, FileReplacement* reserved = nullptr);

// All hashes are verified, and that every number is finite. Errors as in ModelFile::Open.
Result<Checkpoint> ReadCheckpoint(const std::string& path);

}  // namespace wisp

#endif  // WISP_RUNTIME_MODEL_CHECKPOINT_H_
