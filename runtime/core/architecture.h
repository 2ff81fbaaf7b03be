// The shape of a model as data: what stands between an item and its score, and the parameters that follow from it.
//
// Shared by runtime/model (which checks a file's tensors against it) and runtime/layers (which runs it).
//
//   Architecture a = UniformArchitecture{.num_items = 3416, .max_length = 200};
//   WISP_RETURN_IF_ERROR(Validate(a));
//   for (const ParameterSpec& p : ParametersOf(a)) ...
#ifndef WISP_RUNTIME_CORE_ARCHITECTURE_H_
#define WISP_RUNTIME_CORE_ARCHITECTURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"

namespace wisp {

// kGelu is exact (erf), kGeluTanh its usual approximation; kSilu is x sigmoid(x).
enum class ActivationKind : uint8_t { kRelu = 0, kGelu = 1, kGeluTanh = 2, kSilu = 3 };
enum class NormPlacement : uint8_t { kPre = 0, kPost = 1 };
// kRms (Zhang and Sennrich 2019) takes no mean away and has no bias.
enum class NormKind : uint8_t { kLayer = 0, kRms = 1 };
// kGated (LiGR, Borisyuk et al. 2025): a branch is multiplied by sigmoid(W x + b) of the stream x before it is added.
enum class Residual : uint8_t { kPlain = 0, kGated = 1 };
// kNone: nothing is learned for a position; rotary positions or slopes say where an event stands.
enum class PositionTable : uint8_t { kLearned = 0, kNone = 1 };
enum class OutputTable : uint8_t { kTied = 0, kUntied = 1 };
// kFixed: set once (popularity), never trained.
enum class OutputBias : uint8_t { kNone = 0, kFixed = 1, kTrained = 2 };
// kEnd: the newest event is at max_length - 1.
enum class PositionAlignment : uint8_t { kStart = 0, kEnd = 1 };
enum class Attend : uint8_t { kCausal = 0, kAll = 1 };
// kOn: attention logits are corrected for the variance that training noise left in the weights (Ding et al. 2024,
// section 4). The variances are parameters of the model that no gradient trains: see ParametersOf.
enum class ReAttention : uint8_t { kOff = 0, kOn = 1 };
// kNextItem: scores of all items after each position. kClasses: of classes, for the whole sequence. kEmbedding: none;
// what the other would read of the whole sequence is the result.
enum class HeadKind : uint8_t { kNextItem = 0, kClasses = 1, kEmbedding = 2 };
// What a head reads of a whole sequence: the state at its first position, or the mean of all of them.
enum class Pooling : uint8_t { kFirst = 0, kMean = 1 };
// What stands between the pooled state and the head: f(W x + b), W [D, D]; or nothing.
enum class Pooler : uint8_t { kTanh = 0, kNone = 1, kRelu = 2 };
// Which linear layers of a block have a bias. kQkv: that of queries, keys and values alone (Qwen2).
enum class Biases : uint8_t { kAll = 0, kNone = 1, kQkv = 2 };

// Limits that a file is held to before anything is allocated.
inline constexpr uint32_t kMaxItems = 1u << 26;
inline constexpr uint32_t kMaxLength = 1u << 14;
inline constexpr uint32_t kMaxWidth = 1u << 13;
inline constexpr uint32_t kMaxBlocks = 256;
inline constexpr uint32_t kMaxClasses = 1u << 16;
inline constexpr uint32_t kMaxTokenTypes = 256;
// Their bytes are counted as size_t: on 32 bits half of what a process can address.
inline constexpr uint64_t kMaxParameters = sizeof(size_t) < 8 ? uint64_t{1} << 29 : uint64_t{1} << 34;

// Rotary positions (Su et al. 2021): in each head of queries and keys, pair i of entries turns by position *
// base^(-2 i / width).
struct RotarySpec {
  uint32_t width = 0;        // the first so many entries of a head, an even number; 0: none
  float base = 10000.0f;     // above 1
  bool interleaved = false;  // pairs (2 i, 2 i + 1); else (i, i + width / 2)
  bool operator==(const RotarySpec&) const = default;
};

struct AttentionSpec {
  uint32_t num_heads = 1;     // H: of queries
  uint32_t num_kv_heads = 1;  // of keys and values; divides num_heads, each serves as many heads of queries
  uint32_t head_width = 64;   // K
  // ALiBi (Press et al. 2022): attention logits fall by slope * distance, constants that nothing trains. This is the
  // slope of the first head, head h has slope * 2^(-8 h / H); 0: none.
  float slope = 0.0f;
  RotarySpec rotary;
  // A position attends itself and the window - 1 before it (Mistral); 0: all before it. With causal attention.
  uint32_t window = 0;
  uint32_t queries_width() const { return num_heads * head_width; }
  uint32_t keys_width() const { return num_kv_heads * head_width; }  // of the values too
  bool operator==(const AttentionSpec&) const = default;
};

struct FeedForwardSpec {
  uint32_t inner_width = 64;  // F
  ActivationKind activation = ActivationKind::kGelu;
  bool gated = false;  // out(activation(G x) * U x), G and U [F, D]: SwiGLU with kSilu, GEGLU with kGelu
  uint32_t in_rows() const { return gated ? 2 * inner_width : inner_width; }  // of the first matrix: G, then U
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

// What stands on the blocks.
struct HeadSpec {
  HeadKind kind = HeadKind::kNextItem;
  OutputTable output_table = OutputTable::kTied;  // of kNextItem, as the bias
  OutputBias output_bias = OutputBias::kNone;
  uint32_t num_classes = 0;  // of kClasses
  // Of kNextItem. Above 0: an item's score is the cosine of the hidden state and its row, divided by this; 0: their
  // product.
  float temperature = 0.0f;
  Pooling pooling = Pooling::kFirst;  // of kClasses and kEmbedding, as the pooler
  Pooler pooler = Pooler::kTanh;
  bool unit_length = false;  // of kEmbedding: the result is divided by its length
  bool operator==(const HeadSpec&) const = default;
};

// Which part of a text a token is in (BERT): the row of its type is added to its embedding. A token with n separators
// before it is of type min(n, count - 1).
struct TokenTypes {
  uint32_t count = 0;      // 0: none
  int32_t separator = -1;  // an item; -1: all are of type 0
  bool operator==(const TokenTypes&) const = default;
};

// Low-rank adapters (LoRA, Hu et al. 2021): beside a matrix W [n, k] of every block two that train instead of it,
// A [rank, k] and B [n, rank], B zero at first: y = (W + alpha / rank * B A) x.
struct AdapterSpec {
  enum Matrix : uint8_t { kQkv = 1, kAttentionOut = 2, kFeedForwardIn = 4, kFeedForwardOut = 8, kAll = 15 };
  uint32_t rank = 8;
  float alpha = 8;
  uint8_t matrices = kAll;  // of Matrix, those that have one
  bool has_head =
      false;  // the head of classes is the adapter's and trains with it: what it stands beside is an encoder
  float scale() const { return alpha / static_cast<float>(rank); }
  bool operator==(const AdapterSpec&) const = default;
};

// Embedding, blocks, final norm, head. What people call SASRec is a next-item head on causal blocks; a text classifier
// is a head of classes on blocks that attend to all positions.
struct Architecture {
  uint32_t num_items = 0;        // M: items, or tokens, 0 .. M - 1; padding is -1 and has no row
  uint32_t max_length = 200;     // L: positions
  uint32_t width = 64;           // D
  float embedding_scale = 1.0f;  // multiplies the item's row at the input (sqrt(D) in the literature; recipes choose)
  PositionAlignment positions = PositionAlignment::kStart;
  PositionTable position_table = PositionTable::kLearned;
  TokenTypes token_types;
  std::optional<float> embedding_norm_epsilon;  // of a layer norm before the first block; none: there is no such norm
  Attend attend = Attend::kCausal;
  ReAttention re_attention = ReAttention::kOff;
  std::vector<BlockSpec> blocks;
  std::optional<float> final_norm_epsilon;  // none: no norm between the last block and the head
  NormKind final_norm_kind = NormKind::kLayer;
  HeadSpec head;
  std::optional<AdapterSpec> adapter;  // with one, nothing else is trained, but for its head
  bool operator==(const Architecture&) const = default;
};

// An Architecture whose blocks are all alike, in one row of fields: recipes, files of formats 1 to 3, tests.
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
  NormPlacement norm = NormPlacement::kPre;  // kPre: with a final norm
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
  bool operator==(const UniformArchitecture&) const = default;
  operator Architecture() const;
};

// The same in one row of fields; none where blocks differ or are of a kind that such a row cannot say.
std::optional<UniformArchitecture> AsUniform(const Architecture& architecture);

// The same without an adapter: what it makes of its base.
Architecture WithoutAdapter(Architecture architecture);

// Whether the adapter of the one stands beside the other, a model without an adapter or with the same.
bool StandsBeside(const Architecture& adapted, const Architecture& base);

// The same blocks with a head of so many classes, which reads what an encoder's head reads.
Architecture WithClasses(Architecture architecture, uint32_t num_classes);

// A sentence for the first field that is out of range. Overflow-safe; call before ParametersOf. Of the uniform one:
// what the conversion would not keep, such as a width that its heads do not divide.
[[gnu::cold]] Status Validate(const Architecture& architecture);
[[gnu::cold]] Status Validate(const UniformArchitecture& architecture);

// What a parameter is for. Those from kAttentionNormGain to kFeedForwardResidualGateBias are of a block.
enum class ParameterRole : uint8_t {
  kItemTable,
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
  kAttentionResidualGateWeight,  // of a gated residual
  kAttentionResidualGateBias,
  kFeedForwardNormGain,
  kFeedForwardNormBias,
  kFeedForwardInWeight,  // rows: of a gated one those of the gate first
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
  kQkvDown,  // adapters, of a block: A and B
  kQkvUp,
  kAttentionOutDown,
  kAttentionOutUp,
  kFeedForwardInDown,
  kFeedForwardInUp,
  kFeedForwardOutDown,
  kFeedForwardOutUp,
  kItemVariance,       // Re-Attention: [1, M], what noise left in each row of the item table
  kParameterVariance,  // Re-Attention: one number for each parameter before these two
};

// Whether there is one such for every block, adapters among them.
bool IsOfBlock(ParameterRole role);

// Floats that a tensor takes in a flat buffer: every one starts on 64 bytes, a cache line, an AVX-512 register.
inline size_t AlignedSize(size_t num_floats) { return (num_floats + 15) / 16 * 16; }

enum class ParameterShape : uint8_t { kTable, kMatrix, kVector };

struct ParameterSpec {
  std::string name;  // "item_embedding", "block0.qkv.weight", ...: in files and messages; code asks for the role
  uint32_t rows;     // vectors: 1 row
  uint32_t cols;
  ParameterShape shape;
  bool trained;   // false for a fixed output bias and for variances
  size_t offset;  // in floats from the start of one flat buffer; every parameter starts on 64 bytes
  ParameterRole role;
  uint32_t block = 0;  // of the roles that blocks have
  size_t size() const { return size_t{rows} * cols; }
};

// In the order of the forward pass; names are stable, they are the names in the model file. A head of classes has a
// pooler [D, D] where it has any, and a matrix [num_classes, D]. With Re-Attention the two variances stand at the end,
// not trained, >= 0; of kParameterVariance the item table's own entry is not used.
std::vector<ParameterSpec> ParametersOf(const Architecture& architecture);

// Those that a model file of this architecture holds: with an adapter its own alone, and its head's; else all.
std::vector<ParameterSpec> StoredParameters(const Architecture& architecture);

// Index of the parameter; none where the architecture has no such.
std::optional<size_t> FindParameter(const std::vector<ParameterSpec>& parameters, ParameterRole role,
                                    uint32_t block = 0);
// The same of one that every architecture of this kind has.
size_t RequireParameter(const std::vector<ParameterSpec>& parameters, ParameterRole role, uint32_t block = 0);

// The adapter's A and B beside a matrix of a block; none for every other role.
struct AdapterRoles {
  ParameterRole down, up;
};
std::optional<AdapterRoles> AdapterRolesOf(ParameterRole matrix);

// Index of the table that a next-item head multiplies by; none for other heads.
std::optional<size_t> FindHeadTable(const Architecture& architecture, const std::vector<ParameterSpec>& parameters);

// The oldest format of model files that can say its switches: 7, 5, or 4 for those that blocks one by one can say.
uint32_t FormatOfSwitches(const Architecture& architecture);

// The slope of each head, [H]; empty where it is 0.
std::vector<float> AttentionSlopes(const AttentionSpec& attention);

// Floats of the flat buffer that holds all of them, gaps included.
size_t FlatSize(const std::vector<ParameterSpec>& parameters);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_ARCHITECTURE_H_
