// A text classifier that is ready to use. It packs its weights once and keeps one set of buffers.
//
//   WISP_ASSIGN_OR_RETURN(auto classifier, ClassifierSession::Create(file.architecture(), file.tensors(), {}));
//   std::vector<float> z(classifier->architecture().head.num_classes);
//   WISP_RETURN_IF_ERROR(classifier->Logits(tokens, z));
//
// On a device, weights and activations lie in its memory. Tokens go in and the result comes out, with as few launches
// as the device allows. Results differ from the processor's by rounding. Not thread-safe: use one for each thread, or a
// lock.
#ifndef WISP_RUNTIME_TEXT_CLASSIFIER_SESSION_H_
#define WISP_RUNTIME_TEXT_CLASSIFIER_SESSION_H_

#include <memory>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/inference/device_wing.h"
#include "runtime/layers/classifier.h"
#include "runtime/layers/packed_weights.h"

namespace wisp {

struct ClassifierOptions {
  kernels::Device device = kernels::BestOps();
  // Threads for one text, the caller's included: at most kMaxThreads, of which Team::kMaxTasks are used. On a device
  // one.
  size_t num_threads = 1;
  Executor executor = {};
  double norm_bound = 0;                // representations are clipped to this norm before the head; 0: not clipped
  std::string name = "the classifier";  // the file's name, for messages
};

class ClassifierSession {
 public:
  // `tensors` are those of ListParameters(architecture), which has passed Validate. They must outlive this object. kIo:
  // the device has failed or has too little memory; nothing is left there.
  static Result<std::unique_ptr<ClassifierSession>> Create(const Architecture& architecture,
                                                           std::span<const StoredTensor> tensors,
                                                           const ClassifierOptions& options);
  ClassifierSession(const ClassifierSession&) = delete;
  ClassifierSession& operator=(const ClassifierSession&) = delete;

  // Writes z [num_classes] for a text of 1 to max_length tokens. kInvalidArgument: another number of tokens, or `z` has
  // another size. kInvalidData: a result is not finite. kIo: the device has failed.
  Status Logits(std::span<const int32_t> tokens, std::span<float> z);
  // Writes h [width], not clipped. Errors as for Logits.
  Status Represent(std::span<const int32_t> tokens, std::span<float> h_D);

  const Architecture& architecture() const { return graph_.architecture(); }
  size_t num_threads() const { return helpers_ == nullptr ? 1 : helpers_->team.size(); }
  // Bytes that it holds, on the device and on the host.
  size_t bytes() const;
  // The bytes() of a session on the host, and the part of it for packed matrices. Allocates nothing and reads no
  // weights. `tensors` are as the file stores them (ModelFile::tensors): integer blocks are not packed. No tensors:
  // floats are assumed. kInvalidArgument: Create would refuse this number of threads.
  struct Plan {
    size_t total = 0, packed_weights = 0;
  };
  static Result<Plan> PlanBytes(const Architecture& architecture, size_t num_threads,
                                std::span<const StoredTensor> tensors = {});

 private:
  ClassifierSession(const Architecture& architecture, std::span<const StoredTensor> tensors,
                    const ClassifierOptions& options);
  // Runs `compute` and copies its result to `to`.
  template <class Compute>
  Status Run(std::span<const int32_t> tokens, std::span<float> to, size_t size, const char* what,
             const Compute& compute);

  std::string name_;
  Classifier graph_;
  Buffers buffers_;
  CacheBlocks kept_;
  KeyValueCache cache_;
  std::unique_ptr<Helpers> helpers_;
  std::unique_ptr<DeviceWeights> tensors_;  // only on a device
  PackedWeights weights_;
  RecordContext context_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TEXT_CLASSIFIER_SESSION_H_
