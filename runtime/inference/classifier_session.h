// A classifier of texts ready to use: packs its weights once, keeps one set of buffers.
//
//   WISP_ASSIGN_OR_RETURN(auto classifier, ClassifierSession::Create(file.architecture(), file.tensors(), {}));
//   std::vector<float> z(classifier->architecture().head.num_classes);
//   WISP_RETURN_IF_ERROR(classifier->Logits(tokens, z));
//
// On a device weights and what is computed lie in its memory: tokens go in and the result comes out, by as few launches
// as the device allows. Results differ from the processor's in rounding.
// Not thread-safe: one for each thread, or one lock.
#ifndef WISP_RUNTIME_INFERENCE_CLASSIFIER_SESSION_H_
#define WISP_RUNTIME_INFERENCE_CLASSIFIER_SESSION_H_

#include <memory>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/inference/device_weights.h"
#include "runtime/layers/classifier.h"
#include "runtime/layers/packed_weights.h"

namespace wisp {

struct ClassifierOptions {
  kernels::Device device = kernels::BestOps();
  // For one text, the caller's among them: at most kMaxThreads, of which Team::kMaxTasks are used. On a device one.
  size_t num_threads = 1;
  Executor executor = {};
  double norm_bound = 0;                // what representations are clipped to before the head; 0: to nothing
  std::string name = "the classifier";  // of its file, for errors
};

class ClassifierSession {
 public:
  // `tensors`: of ParametersOf(architecture), which has passed Validate; they must outlive this. kIo where the device
  // has failed or has no room: then nothing is left there.
  static Result<std::unique_ptr<ClassifierSession>> Create(const Architecture& architecture,
                                                           std::span<const StoredTensor> tensors,
                                                           const ClassifierOptions& options);
  ClassifierSession(const ClassifierSession&) = delete;
  ClassifierSession& operator=(const ClassifierSession&) = delete;

  // z [num_classes] of a text of 1 to max_length tokens; kInvalidArgument of any other, or where there is other room
  // than for that. kInvalidData where one of them is no finite number. kIo where the device has failed.
  Status Logits(std::span<const int32_t> tokens, std::span<float> z);
  // h [width], unclipped; likewise.
  Status Represent(std::span<const int32_t> tokens, std::span<float> h_D);

  const Architecture& architecture() const { return graph_.architecture(); }
  size_t num_threads() const { return helpers_ == nullptr ? 1 : helpers_->team.size(); }
  // What it holds, on the device and here.
  size_t bytes() const;
  // What bytes() will be on the host, and of that the packed matrices. Allocates none of it and reads no weights.
  // `tensors`: as the file stores them (ModelFile::tensors), of which blocks of integers are not packed; none: floats.
  // kInvalidArgument of a number of threads that Create would refuse.
  struct Plan {
    size_t total = 0, packed_weights = 0;
  };
  static Result<Plan> PlanBytes(const Architecture& architecture, size_t num_threads,
                                std::span<const StoredTensor> tensors = {});

 private:
  ClassifierSession(const Architecture& architecture, std::span<const StoredTensor> tensors,
                    const ClassifierOptions& options);
  // Runs `compute`, whose result goes to `to`.
  template <class Compute>
  Status Run(std::span<const int32_t> tokens, std::span<float> to, size_t size, const char* what,
             const Compute& compute);

  std::string name_;
  Classifier graph_;
  Buffers buffers_;
  KeptBlocks kept_;
  KeyValueCache cache_;
  std::unique_ptr<Helpers> helpers_;
  std::unique_ptr<DeviceWeights> tensors_;  // on a device
  PackedWeights weights_;
  RecordContext context_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_INFERENCE_CLASSIFIER_SESSION_H_
