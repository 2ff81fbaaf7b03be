// Reparametrised gradient perturbation (docs/algorithms.md, section 4; Yu et al. 2021): what is released in place of a
// matrix's gradient, and the carriers that it is projected on.
//
// A projected matrix W [p, d] has carriers L [p, r] with orthonormal columns and R [r, d] with orthonormal rows. A
// record's gradient G is released as g_L = G R^T and g_R = L^T G: r (p + d) numbers. The update is G' = g_L R + L g_R -
// L L^T g_L R, the projection of G onto the matrices that share L's columns or R's rows. Carriers come from released
// weights and public randomness, never from the batch.
//
//   WISP_RETURN_IF_ERROR(Validate(options, architecture));
//   RgpCarriers carriers(ops, parameters, options);
//   carriers.Update(weights, start, step, random);          // once a step, before the batch is read
//   ... RgpGradients sums records in carriers.layout() ... noise ...
//   carriers.Gradient(released, parameter, first_row, num_rows, scratch, gradient);
#ifndef WISP_RUNTIME_METHODS_RGP_RGP_CARRIERS_H_
#define WISP_RUNTIME_METHODS_RGP_RGP_CARRIERS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "runtime/core/arena.h"
#include "runtime/core/trained_set.h"
#include "runtime/train/method_options.h"

namespace wisp {

// Refuses a rank that is 0, above kMaxWidth or above the smaller side of a projected matrix; projected vectors; and
// options that train nothing.
Status Validate(const RgpOptions& options, const std::vector<ParameterSpec>& parameters, const TrainedSet& trained);

// True if the options train a parameter of this shape and role.
bool Trains(const RgpOptions& options, const ParameterSpec& parameter);

// The number of values that a step releases.
uint64_t RgpReleaseSize(const RgpOptions& options, const std::vector<ParameterSpec>& parameters,
                        const TrainedSet& trained);

class RgpCarriers {
 public:
  struct Entry {
    RgpTrain train = RgpTrain::kFrozen;
    size_t left_offset = 0;   // in the release: g_L [p, r]; or all values of a parameter that is trained in full
    size_t right_offset = 0;  // g_R [r, d]
  };
  // Options must have passed Validate. `parameters` and `trained` must outlive this object.
  RgpCarriers(const kernels::Device& device, const std::vector<ParameterSpec>& parameters, const TrainedSet& trained,
              const RgpOptions& options);

  size_t release_size() const { return release_size_; }          // floats of the release, alignment gaps included
  uint64_t num_coordinates() const { return num_coordinates_; }  // released values, without gaps
  const Entry& entry(size_t parameter) const { return entries_[parameter]; }
  size_t rank() const { return options_.rank; }
  const float* left(size_t parameter) const { return left_[parameter].data(); }                          // L [p, r]
  const float* right(size_t parameter) const { return right_[parameter].data(); }                        // R [r, d]
  const float* right_transposed(size_t parameter) const { return right_transposed_[parameter].data(); }  // R^T [d, r]

  // Makes the carriers of a step, on the host. weights: flat, from offset `first_held` on; start: the trained set. Both
  // are in host memory. `normal` samples standard normal numbers. It is public randomness, so it needs no secrecy.
  void Update(std::span<const float> weights, std::span<const float> start, uint64_t step,
              const std::function<float()>& normal, size_t first_held = 0);

  // Call it once a step, when `released` [release_size] is final. Prepares what Gradient needs.
  void Prepare(std::span<const float> released);
  // gradient [num_rows, d] = rows [first_row, first_row + num_rows) of a projected parameter's G'. Thread-safe.
  void Gradient(std::span<const float> released, size_t parameter, size_t first_row, size_t num_rows,
                float* gradient) const;

  size_t size_bytes() const;

  // The sizes of carriers that were made with the same arguments. Allocates nothing.
  struct Plan {
    std::vector<Entry> entries;
    size_t release_size = 0;                // see release_size()
    size_t size_bytes = 0;                  // see size_bytes()
    size_t delta = 0, left = 0, right = 0;  // floats of scratch
  };
  static Plan GetPlan(const std::vector<ParameterSpec>& parameters, const TrainedSet& trained,
                      const RgpOptions& options, const kernels::Memory& memory);

 private:
  // Where a parameter's carriers are made: in place or, for a device, in host scratch.
  struct Carriers {
    float *left, *right, *right_transposed;
  };
  Carriers MadeAt(size_t parameter) const;
  void Iterate(const ParameterSpec& parameter, const float* delta, const std::function<float()>& normal,
               const Carriers& carriers);
  void CopyToDevice(size_t parameter);

  kernels::Device device_;
  const kernels::OpTable *ops_, *host_ops_;
  const std::vector<ParameterSpec>* parameters_;
  const TrainedSet* trained_;
  RgpOptions options_;
  std::vector<Entry> entries_;
  std::vector<AlignedArray<float>> left_, right_, right_transposed_;
  std::vector<AlignedArray<float>> remainder_;   // g_R - L^T g_L R  [r, d]
  AlignedArray<float> delta_, left_transposed_;  // host memory: W - W_0 and L^T of the largest projected matrix
  AlignedArray<float> made_left_, made_right_, made_right_transposed_;  // host memory, for a device: L, R, R^T
  AlignedArray<float> both_;                                            // scratch: L^T g_L  [r, r]
  size_t release_size_ = 0;
  uint64_t num_coordinates_ = 0;
};

// Makes the `n` vectors of `length` numbers in v [n, length] orthonormal (modified Gram-Schmidt, twice); n <= length. A
// vector that is zero or a combination of earlier ones is replaced by a random one, so the result is always
// orthonormal.
void Orthonormalise(float* v, size_t n, size_t length, const std::function<float()>& normal);

}  // namespace wisp

#endif  // WISP_RUNTIME_METHODS_RGP_RGP_CARRIERS_H_
