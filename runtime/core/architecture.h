// The shape of a model as data: the layers between an item and its score, and the parameters that follow from them.
//
// runtime/model checks a file's tensors against it; runtime/layers runs it.
//
//   Architecture a = UniformArchitecture{.num_items = 3416, .max_length = 200};
//   WISP_RETURN_IF_ERROR(Validate(a));
//   for (const ParameterSpec& p : ListParameters(a)) ...
#ifndef WISP_RUNTIME_CORE_ARCHITECTURE_H_
#define WISP_RUNTIME_CORE_ARCHITECTURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

// In the enums below kLast is the last value: Validate allows no higher one.

// kGelu is exact (erf), kGeluTanh its usual approximation; kSilu is x sigmoid(x).
enum class ActivationKind : uint8_t { kRelu = 0, kGelu = 1, kGeluTanh = 2, kSilu = 3, kLast = kSilu };
enum class NormPlacement : uint8_t { kPre = 0, kPost = 1, kLast = kPost };
// kRms (Zhang and Sennrich 2019) subtracts no mean and has no bias.
enum class NormKind : uint8_t { kLayer = 0, kRms = 1, kLast = kRms };
// kGated (LiGR, Borisyuk et al. 2025): before a branch is added to the stream x, it is multiplied by sigmoid(W x + b).
enum class Residual : uint8_t { kPlain = 0, kGated = 1, kLast = kGated };
// kNone: no position is learned. Rotary positions or ALiBi slopes encode an event's position instead.
enum class PositionTable : uint8_t { kLearned = 0, kNone = 1, kLast = kNone };
enum class OutputTable : uint8_t { kTied = 0, kUntied = 1, kLast = kUntied };
// kFixed: set once from popularity, never trained.
enum class OutputBias : uint8_t { kNone = 0, kFixed = 1, kTrained = 2, kLast = kTrained };
// kEnd: the newest event is at max_length - 1.
enum class PositionAlignment : uint8_t { kStart = 0, kEnd = 1, kLast = kEnd };
enum class Attend : uint8_t { kCausal = 0, kAll = 1, kLast = kAll };
// kOn: attention logits are corrected for the variance that training noise left in the weights (Ding et al. 2024,
// section 4). The variances are parameters of the model, but not trained: see ListParameters.
enum class ReAttention : uint8_t { kOff = 0, kOn = 1, kLast = kOn };
// kNextItem: after each position, a score for every item. kClasses: a score for every class, once for the sequence.
// kEmbedding: no scores; the pooled state is the result.
enum class HeadKind : uint8_t { kNextItem = 0, kClasses = 1, kEmbedding = 2, kLast = kEmbedding };
// How a head summarises a whole sequence: by the state at its first position, or by the mean of all states.
enum class Pooling : uint8_t { kFirst = 0, kMean = 1, kLast = kMean };
// The layer between the pooled state and the head: f(W x + b), W [D, D]. kNone: no such layer.
enum class Pooler : uint8_t { kTanh = 0, kNone = 1, kRelu = 2, kLast = kRelu };
// The linear layers of a block that have a bias. kQkv: only queries, keys and values have one (Qwen2).
enum class Biases : uint8_t { kAll = 0, kNone = 1, kQkv = 2, kLast = kQkv };

// A file is checked against these limits before anything is allocated.
inline constexpr uint32_t kMaxItems = 1u << 26;
inline constexpr uint32_t kMaxLength = 1u << 14;
inline constexpr uint32_t kMaxWidth = 1u << 13;
inline constexpr uint32_t kMaxBlocks = 256;
inline constexpr uint32_t kMaxClasses = 1u << 16;
inline constexpr uint32_t kMaxTokenTypes = 256;
inline constexpr uint32_t kMaxItemFeatures = 1u << 13;
// Bytes of parameters are counted as size_t. On 32-bit systems this limit is half of the address space.
inline constexpr uint64_t kMaxParameters = sizeof(size_t) < 8 ? uint64_t{1} << 29 : uint64_t{1} << 34;

// Rotary positions (Su et al. 2021): in each head of queries and keys, pair i of entries turns by position *
// base^(-2 i / width).
struct RotarySpec {
  uint32_t width = 0;        // The first `width` entries of a head are rotated; even. 0: none
  float base = 10000.0f;     // above 1
  bool interleaved = false;  // rotates pairs (2 i, 2 i + 1); otherwise (i, i + width / 2)
  bool operator==(const RotarySpec&) const = default;
};

struct AttentionSpec {
  uint32_t num_heads = 1;  // H: heads of queries
  // heads of keys and values; divides num_heads; each serves num_heads / num_kv_heads query heads
  uint32_t num_kv_heads = 1;
  uint32_t head_width = 64;  // K
  // The first head's ALiBi slope (Press et al. 2022); 0 for none. Attention logits fall by slope * distance. Head h has
  // slope * 2^(-8 h / H). Slopes are constants.
  float slope = 0.0f;
  RotarySpec rotary;
  // A position attends to itself and to the window - 1 positions before it (Mistral). 0: to all before it. Needs causal
  // attention.
  uint32_t window = 0;
  uint32_t queries_width() const { return num_heads * head_width; }
  uint32_t keys_width() const { return num_kv_heads * head_width; }  // width of the keys; the values have the same
  bool operator==(const AttentionSpec&) const = default;
};

struct FeedForwardSpec {
  uint32_t inner_width = 64;  // F
  ActivationKind activation = ActivationKind::kGelu;
  bool gated = false;  // out(activation(G x) * U x), G and U [F, D]: SwiGLU with kSilu, GEGLU with kGelu
  uint32_t in_rows() const { return gated ? 2 * inner_width : inner_width; }  // rows of the first matrix: G, then U
  bool operator==(const FeedForwardSpec&) const = default;
};

// One Transformer block.
struct BlockSpec {
  NormPlacement norm = NormPlacement::kPre;
  NormKind norm_kind = NormKind::kLayer;
  float norm_epsilon = 1e-5f;
  Residual residual = Residual::kPlain;
  Biases biases = Biases::kAll;
  AttentionSpec attention;
  FeedForwardSpec feed_forward;
  bool operator==(const BlockSpec&) const = default;
};

// The layers after the last block.
struct HeadSpec {
  HeadKind kind = HeadKind::kNextItem;
  OutputTable output_table = OutputTable::kTied;  // next-item head only, as is output_bias
  OutputBias output_bias = OutputBias::kNone;
  uint32_t num_classes = 0;  // classes head only
  // Next-item head only. Above 0: the score is the cosine of hidden state and item row, divided by this temperature. 0:
  // the score is their dot product.
  float temperature = 0.0f;
  Pooling pooling = Pooling::kFirst;  // classes and embedding heads only, as is the pooler
  Pooler pooler = Pooler::kTanh;
  bool unit_length = false;  // embedding head only: the result is divided by its length
  bool operator==(const HeadSpec&) const = default;
};

// The segment of a text that a token is in (BERT). The row of the token's type is added to its embedding. A token with
// n separators before it has type min(n, count - 1).
struct TokenTypes {
  uint32_t count = 0;      // 0: none
  int32_t separator = -1;  // the id of the separator token; -1: every token has type 0
  bool operator==(const TokenTypes&) const = default;
};

// Low-rank adapters (LoRA, Hu et al. 2021). Each adapted matrix W [n, k] of a block stays frozen and gets two trained
// matrices, A [rank, k] and B [n, rank]: y = (W + alpha / rank * B A) x. B starts at zero.
struct AdapterSpec {
  enum Matrix : uint8_t { kQkv = 1, kAttentionOut = 2, kFeedForwardIn = 4, kFeedForwardOut = 8, kAll = 15 };
  uint32_t rank = 8;
  float alpha = 8;
  uint8_t matrices = kAll;  // bits of Matrix: the matrices that have an adapter
  bool has_head = false;    // the classes head belongs to the adapter and trains with it; the base model is an encoder
  float scale() const { return alpha / static_cast<float>(rank); }
  bool operator==(const AdapterSpec&) const = default;
};

// Embedding, blocks, final norm, head. SASRec is a next-item head on causal blocks. A text classifier is a classes head
// on blocks that attend to all positions.
struct Architecture {
  uint32_t num_items = 0;     // M: items, or tokens, 0 .. M - 1; padding is -1 and has no row
  uint32_t max_length = 200;  // L: positions
  uint32_t width = 64;        // D
  // F: public numbers that are known of each item. Above 0 the model has two towers: an item's row is its features
  // times a trained matrix [F, D], so an item without any event has a row too. 0: each item's row is trained.
  uint32_t item_features = 0;
  float embedding_scale = 1.0f;  // multiplies the item's row at the input (sqrt(D) in the literature; recipes choose)
  PositionAlignment positions = PositionAlignment::kStart;
  PositionTable position_table = PositionTable::kLearned;
  TokenTypes token_types;
  std::optional<float> embedding_norm_epsilon;  // layer norm before the first block; nullopt: no such norm
  Attend attend = Attend::kCausal;
  ReAttention re_attention = ReAttention::kOff;
  std::vector<BlockSpec> blocks;
  std::optional<float> final_norm_epsilon;  // nullopt: no norm between the last block and the head
  NormKind final_norm_kind = NormKind::kLayer;
  HeadSpec head;
  std::optional<AdapterSpec> adapter;  // with an adapter, only the adapter and its head are trained
  bool operator==(const Architecture&) const = default;
};

// An Architecture whose blocks are all equal, as one flat list of fields. Recipes and tests use it.
struct UniformArchitecture {
  uint32_t num_items = 0;
  uint32_t max_length = 200;
  uint32_t width = 64;
  uint32_t num_heads = 1;     // divides the width
  uint32_t num_kv_heads = 0;  // 0: num_heads
  uint32_t num_blocks = 2;
  uint32_t inner_width = 64;
  float embedding_scale = 1.0f;
  float norm_epsilon = 1e-5f;
  ActivationKind activation = ActivationKind::kGelu;
  NormPlacement norm = NormPlacement::kPre;  // kPre also adds a final norm
  OutputTable output_table = OutputTable::kTied;
  OutputBias output_bias = OutputBias::kNone;
  PositionAlignment positions = PositionAlignment::kStart;
  Attend attend = Attend::kCausal;
  ReAttention re_attention = ReAttention::kOff;
  float attention_slope = 0.0f;
  RotarySpec rotary;
  NormKind norm_kind = NormKind::kLayer;
  Residual residual = Residual::kPlain;
  Biases biases = Biases::kAll;
  bool gated = false;
  PositionTable position_table = PositionTable::kLearned;
  float temperature = 0.0f;
  uint32_t num_classes = 0;  // 0: a next-item head
  uint32_t item_features = 0;
  bool operator==(const UniformArchitecture&) const = default;
  operator Architecture() const;
};

// Converts to a UniformArchitecture. Returns nullopt where blocks differ or a field cannot be expressed in it.
std::optional<UniformArchitecture> AsUniform(const Architecture& architecture);

// The base model's architecture: `architecture` without its adapter.
Architecture WithoutAdapter(Architecture architecture);

// True if the adapter of `adapted` can be applied to `base`. `base` has no adapter, or an adapter of the same shape.
bool StandsBeside(const Architecture& adapted, const Architecture& base);

// The encoder with a classes head. That head pools as the encoder's head does.
Architecture WithClasses(Architecture architecture, uint32_t num_classes);

// Refuses the first field that is out of range, with a message. Cannot overflow; call it before ListParameters. The
// overload for UniformArchitecture also refuses what the conversion would lose, such as a width that the heads do not
// divide.
[[gnu::cold]] Status Validate(const Architecture& architecture);
[[gnu::cold]] Status Validate(const UniformArchitecture& architecture);

// The purpose of a parameter. Roles from kAttentionNormGain to kFeedForwardResidualGateBias belong to a block.
enum class ParameterRole : uint8_t {
  kItemTower,     // two towers: [F, D]
  kItemFeatures,  // two towers: [M, F], public, not trained
  kItemTable,     // two towers: the features times the tower; it follows from these and is not trained itself
  kPositionTable,
  kTypeTable,
  kEmbeddingNormGain,
  kEmbeddingNormBias,
  kAttentionNormGain,
  kAttentionNormBias,
  kQkvWeight,  // rows: queries of all heads, keys, values
  kQkvBias,
  kAttentionOutWeight,
  kAttentionOutBias,
  kAttentionResidualGateWeight,  // gated residuals only
  kAttentionResidualGateBias,
  kFeedForwardNormGain,
  kFeedForwardNormBias,
  kFeedForwardInWeight,  // rows of a gated layer: first the gate's, then the others
  kFeedForwardInBias,
  kFeedForwardOutWeight,
  kFeedForwardOutBias,
  kFeedForwardResidualGateWeight,
  kFeedForwardResidualGateBias,
  kFinalNormGain,
  kFinalNormBias,
  kOutputTable,
  kOutputBias,
  kPoolerWeight,
  kPoolerBias,
  kClassWeight,
  kClassBias,
  kQkvDown,  // adapters of a block: A and B
  kQkvUp,
  kAttentionOutDown,
  kAttentionOutUp,
  kFeedForwardInDown,
  kFeedForwardInUp,
  kFeedForwardOutDown,
  kFeedForwardOutUp,
  kItemVariance,       // Re-Attention: [1, M], the noise variance of each row of the item table
  kParameterVariance,  // Re-Attention: the noise variance of each parameter before these two, one number each
};

// True if every block has a parameter of this role. Adapters count.
bool IsBlockRole(ParameterRole role);

// Floats that a tensor occupies in a flat buffer. Every tensor starts on 64 bytes: a cache line, an AVX-512 register.
inline size_t AlignedSize(size_t num_floats) { return (num_floats + 15) / 16 * 16; }

enum class ParameterShape : uint8_t { kTable, kMatrix, kVector };

struct ParameterSpec {
  std::string name;  // "item_embedding", "block0.qkv.weight", ...: for files and messages; code uses the role
  uint32_t rows;     // a vector has 1 row
  uint32_t cols;
  ParameterShape shape;
  bool trained;   // false for a fixed output bias, for variances, and for features and rows of two towers
  size_t offset;  // in floats from the start of one flat buffer; every parameter starts on 64 bytes
  ParameterRole role;
  uint32_t block = 0;  // the block's index, for roles that belong to a block
  size_t size() const { return size_t{rows} * cols; }
};

// Lists all parameters in the order of the forward pass. Names are stable: model files use them. A classes head has a
// pooler [D, D], if there is one, and a matrix [num_classes, D]. With Re-Attention the two variances come last; they
// are >= 0 and not trained. The item table's own entry in kParameterVariance is unused.
std::vector<ParameterSpec> ListParameters(const Architecture& architecture);

// Lists the parameters that a model file stores. With an adapter these are the adapter's and its head's; otherwise all.
std::vector<ParameterSpec> StoredParameters(const Architecture& architecture);

// Index of the parameter; nullopt if the architecture has none of this role.
std::optional<size_t> FindParameter(const std::vector<ParameterSpec>& parameters, ParameterRole role,
                                    uint32_t block = 0);
// Index of a parameter that every architecture of this kind has.
size_t RequireParameter(const std::vector<ParameterSpec>& parameters, ParameterRole role, uint32_t block = 0);

// The roles of A and B for a matrix of a block; nullopt for any other role.
struct AdapterRoles {
  ParameterRole down, up;
};
std::optional<AdapterRoles> FindAdapterRoles(ParameterRole matrix);

// Index of the output table of a next-item head; nullopt for other heads.
std::optional<size_t> FindHeadTable(const Architecture& architecture, const std::vector<ParameterSpec>& parameters);

// The ALiBi slope of each head, [H]. Empty if the slope is 0.
std::vector<float> AttentionSlopes(const AttentionSpec& attention);

// Floats in the flat buffer of all parameters, alignment gaps included.
size_t FlatSize(const std::vector<ParameterSpec>& parameters);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_ARCHITECTURE_H_
