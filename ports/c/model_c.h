// The handle of an open model, and how it is opened, for the files of the C interface. Not part of it.
#ifndef WISP_PORTS_C_MODEL_C_H_
#define WISP_PORTS_C_MODEL_C_H_

#include <memory>
#include <string>
#include <vector>

#include "ports/c/status_c.h"
#include "ports/c/wisp_embed.h"
#include "runtime/inference/batch_recommender.h"
#include "runtime/model/item_texts.h"

struct wisp_model {
  // null: the system's allocator; declared first because it outlives the members below
  std::unique_ptr<wisp::kernels::HostAllocator> allocator;
  std::unique_ptr<wisp::Session> session;
  wisp::ItemTexts texts;
  std::unique_ptr<wisp::BatchRecommender> batch;  // null before the first batch
  wisp_batch_options batch_how = {};              // the options that `batch` was made with
  std::vector<std::span<const int32_t>> histories;
  std::vector<wisp::Recommendation> best;
  std::vector<size_t> found;
  std::vector<std::string> mechanisms;  // one text per provenance entry, a sentence a line; filled on request
};

namespace wisp::ports {

struct OpenChoice {
  Backend backend;
  int32_t verify;  // wisp_verify
  wisp_verified* verified;
  std::string adapter;  // path of the adapter, or empty
  size_t num_threads;
  Executor executor;
  kernels::CacheType kept;
  kernels::Device device;
  OneHistory one_history;
  uint64_t max_bytes;                                 // limit on what the model holds beside its file; 0: no limit
  std::unique_ptr<kernels::HostAllocator> allocator;  // used by `device`; null: the system's allocator

  SessionOptions session() const {
    return {.backend = backend,
            .num_threads = num_threads,
            .executor = executor,
            .kept = kept,
            .device = device,
            .one_history = one_history};
  }
  // The verification of a file that is opened for the first time. Products over 8-bit integers need verified weights.
  Verify verifies() const {
    return backend == Backend::kInt8 || verify != WISP_VERIFY_NEVER ? Verify::kFull : Verify::kStructure;
  }
};

// `given` may be null.
Result<OpenChoice> ParseChoice(const wisp_open_options* given);

// The app's allocator; null where none is given.
Result<std::unique_ptr<kernels::HostAllocator>> MakeAllocator(const wisp_allocator* given);

// Opens the file, with its adapter, and verifies it as `choice` says. Fills `*choice.verified` with WISP_VERIFY_ONCE.
Result<ModelFile> OpenFile(const char* path, const OpenChoice& choice, Accept accept = Accept::kRecommender);

// The bytes that a session of that file will hold, names included.
Result<wisp_model_memory> GetPlan(const ModelFile& file, const OpenChoice& choice);

// The last step of opening. Refuses a model above choice.max_bytes before it allocates anything but a copy of the file.
Status Finish(ModelFile file, OpenChoice choice, wisp_model** out);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_MODEL_C_H_
