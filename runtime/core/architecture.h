// The shape of a model as data: the switches of one Transformer graph and the parameters that follow from them.
//
// Shared by runtime/model (which checks a file's tensors against it) and runtime/layers (which runs it).
//
//   Architecture a{.num_items = 3416, .max_length = 200};
//   WISP_RETURN_IF_ERROR(Validate(a));
//   for (const ParameterSpec& p : ParametersOf(a)) ...
#ifndef WISP_RUNTIME_CORE_ARCHITECTURE_H_
#define WISP_RUNTIME_CORE_ARCHITECTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

enum class ActivationKind : uint8_t { kRelu = 0, kGelu = 1 };
enum class NormPlacement : uint8_t { kPre = 0, kPost = 1 };
enum class OutputTable : uint8_t { kTied = 0, kUntied = 1 };
// KFixed: set once (popularity), never trained.
enum class OutputBias : uint8_t { kNone = 0, kFixed = 1, kTrained = 2 };
// KEnd: the newest event is at max_length - 1.
enum class PositionAlignment : uint8_t { kStart = 0, kEnd = 1 };
enum class Attend : uint8_t { kCausal = 0, kAll = 1 };
// kOn: attention logits are corrected for the variance that training noise left in the weights (Ding et al. 2024,
// section 4). The variances are parameters of the model that no gradient trains: see ParametersOf.
enum class ReAttention : uint8_t { kOff = 0, kOn = 1 };

// Limits that a file is held to before anything is allocated.
inline constexpr uint32_t kMaxItems = 1u << 26;
inline constexpr uint32_t kMaxLength = 1u << 14;
inline constexpr uint32_t kMaxWidth = 1u << 13;
inline constexpr uint32_t kMaxBlocks = 256;
inline constexpr uint64_t kMaxParameters = 1ull << 34;

// The recommender (what people call SASRec): embedding, `num_blocks` blocks of attention and feed-forward, next-item
// head.
struct Architecture {
  uint32_t num_items = 0;     // M: items 0 .. M - 1; padding is -1 and has no row
  uint32_t max_length = 200;  // L: positions
  uint32_t width = 64;        // D
  uint32_t num_heads = 1;     // H, divides D
  uint32_t num_blocks = 2;
  uint32_t inner_width = 64;     // F
  float embedding_scale = 1.0f;  // multiplies the item's row at the input (sqrt(D) in the literature; recipes choose)
  float norm_epsilon = 1e-5f;
  ActivationKind activation = ActivationKind::kGelu;
  NormPlacement norm = NormPlacement::kPre;
  OutputTable output_table = OutputTable::kTied;
  OutputBias output_bias = OutputBias::kNone;
  PositionAlignment positions = PositionAlignment::kStart;
  Attend attend = Attend::kCausal;
  ReAttention re_attention = ReAttention::kOff;
  // ALiBi (Press et al. 2022): attention logits fall by slope * distance, constants that nothing trains. This is the
  // slope of the first head, head h has attention_slope * 2^(-8 h / H); 0: none.
  float attention_slope = 0.0f;
  bool operator==(const Architecture&) const = default;
};

enum class ParameterRole : uint8_t { kTable, kMatrix, kVector };

struct ParameterSpec {
  std::string name;  // "item_embedding", "block0.qkv.weight", ...
  uint32_t rows;     // vectors: 1 row
  uint32_t cols;
  ParameterRole role;
  bool trained;   // false for a fixed output bias
  size_t offset;  // in floats from the start of one flat buffer; every parameter starts on 64 bytes
  size_t size() const { return size_t{rows} * cols; }
};

// A sentence for the first field that is out of range. Overflow-safe; call before ParametersOf.
Status Validate(const Architecture& architecture);

inline constexpr char kItemVariance[] = "item_embedding.variance";
inline constexpr char kParameterVariance[] = "parameter_variance";

// In the order of the forward pass; names are stable, they are the names in the model file. With Re-Attention two more
// at the end, not trained, >= 0: kItemVariance [1, M], what noise left in each row of the item table, and
// kParameterVariance, one number for each parameter before those two (the item table's own entry is not used).
std::vector<ParameterSpec> ParametersOf(const Architecture& architecture);

// The slope of each head, [H]; empty where attention_slope is 0.
std::vector<float> AttentionSlopes(const Architecture& architecture);

// Floats of the flat buffer that holds all of them, gaps included.
size_t FlatSize(const std::vector<ParameterSpec>& parameters);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_ARCHITECTURE_H_
