// The encoder of a classifier, of the size that sentence models have: from 128 tokens to the pooled first position, on
// one thread, in float and in int8, in turns; both held to the reference kernels first.
//
// tools/bench/peers/encoder.py reads the weights, the tokens and what came of them, and holds others to that.
#include "runtime/layers/classifier.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/train/run/initialise.h"
#include "tools/exchange/safetensors.h"
#include "tools/wisp/bench/bench_checks.h"
#include "tools/wisp/bench/bench_parts.h"
#include "tools/wisp/bench/fma_peak.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kTokens = 128;

// MiniLM-L6-H384 (Wang et al. 2020), but for the size of its vocabulary, which only says how many rows lie unread.
Architecture Shape(uint32_t num_items) {
  return UniformArchitecture{.num_items = num_items,
                             .max_length = kTokens,
                             .width = 384,
                             .num_heads = 12,
                             .num_blocks = 6,
                             .inner_width = 1536,
                             .activation = ActivationKind::kGelu,
                             .norm = NormPlacement::kPost,
                             .attend = Attend::kAll,
                             .num_classes = 2};
}

// Multiply-adds of one sequence, two operations each: four products of width by width and two of the feed-forward at
// each position, and two of T x T in attention.
double Flops(const Architecture& a) {
  const double t = a.max_length, d = a.width, f = a.blocks[0].feed_forward.inner_width;
  return 2 * t * (static_cast<double>(a.blocks.size()) * (4 * d * d + 2 * d * f + 2 * t * d)) + 2 * d * d;
}

// A graph with its weights packed and its buffers: what a session is to a recommender.
class Encoder {
 public:
  Encoder(const Architecture& architecture, const kernels::OpTable& ops, const std::vector<float>& weights)
      : graph_(architecture, ops, {.use = GraphUse::kInference}),
        buffers_(graph_.AllocateForInference()),
        cache_(graph_.AllocateCache(KeptBlocks::kInTurn)),
        weights_(graph_, weights.data()),
        context_{.weights = weights_.view(), .buffers = buffers_, .cache = &cache_} {}
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  std::vector<float> Represented(std::span<const int32_t> tokens) {
    const auto represented = Represent(tokens);
    return {represented.begin(), represented.end()};
  }
  // Valid until the next call.
  std::span<const float> Represent(std::span<const int32_t> tokens) {
    return {graph_.Represent(context_, tokens), graph_.architecture().width};
  }
  size_t bytes() const {
    return graph_.inference_bytes() + graph_.cache_bytes(KeptBlocks::kInTurn) + weights_.allocated_bytes();
  }
  // Of one call.
  double Milliseconds(std::span<const int32_t> tokens) {
    return 1e3 * Seconds([&] { Represent(tokens); });
  }

 private:
  Classifier graph_;
  Buffers buffers_;
  KeyValueCache cache_;
  PackedWeights weights_;
  RecordContext context_;
};

Status WriteTensors(const std::string& path, const Architecture& c, const std::vector<float>& weights,
                    std::span<const int32_t> tokens, std::span<const float> represented) {
  std::vector<exchange::TensorToWrite> tensors;
  for (const ParameterSpec& p : ParametersOf(c)) {
    const std::vector<uint64_t> shape =
        p.shape == ParameterShape::kVector ? std::vector<uint64_t>{p.cols} : std::vector<uint64_t>{p.rows, p.cols};
    tensors.push_back({p.name, shape, {weights.data() + p.offset, p.size()}});
  }
  const std::vector<float> as_floats(tokens.begin(), tokens.end());  // exact: there are fewer than 2^24
  tensors.push_back({"tokens", {as_floats.size()}, as_floats});
  tensors.push_back({"represented", {represented.size()}, represented});
  const Json shape = {{"heads", c.blocks[0].attention.num_heads},
                      {"blocks", c.blocks.size()},
                      {"norm_epsilon", c.blocks[0].norm_epsilon},
                      {"embedding_scale", c.embedding_scale}};
  return exchange::WriteSafeTensors(path, tensors, {{"wisp.encoder", shape.dump()}});
}

}  // namespace

Status BenchEncoder(const BenchArguments& a, Json& result) {
  if (a.items > 1u << 20) return InvalidArgument("--items is ", a.items, ", allowed are 2 to 1048576 for the encoder");
  const Architecture shape = Shape(a.items);
  WISP_RETURN_IF_ERROR(Validate(shape));
  std::vector<float> weights(FlatSize(ParametersOf(shape)));
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(shape, {}, random, weights);
  std::vector<int32_t> tokens(kTokens);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.UniformBelow(a.items));

  Encoder encoder(shape, kernels::BestOps(), weights);
  std::optional<Encoder> int8;
  if (kernels::Int8Ops() != nullptr) int8.emplace(shape, *kernels::Int8Ops(), weights);
  const auto represented = encoder.Represent(tokens);
  if (!a.tensors.empty()) WISP_RETURN_IF_ERROR(WriteTensors(a.tensors, shape, weights, tokens, represented));
  const auto expected = Encoder(shape, kernels::ReferenceOps(), weights).Represented(tokens);
  WISP_RETURN_IF_ERROR(CheckNear("the encoder's pooled position", represented, expected, 1e-4));
  if (int8)
    WISP_RETURN_IF_ERROR(CheckNear("the encoder's pooled position in int8", int8->Represent(tokens), expected, 0.1));
  std::vector<double> ms, int8_ms, percents;
  const double flops = Flops(shape);
  for (uint32_t i = 0; i < a.repeats; ++i) {
    double peak = 0;
    for (int probe = 0; probe < 20; ++probe) peak = std::max(peak, FmaProbe());
    ms.push_back(encoder.Milliseconds(tokens));
    percents.push_back(100 * flops / (1e6 * ms.back()) / peak);
    if (int8) int8_ms.push_back(int8->Milliseconds(tokens));
  }
  Json j = {{"tokens", kTokens},
            {"threads", 1},
            {"gflops", flops / 1e9},
            {"ms", ToJson(SpreadOf(ms))},
            {"percent_of_peak", ToJson(SpreadOf(percents))},
            {"planned_bytes", encoder.bytes()}};
  if (int8) {
    j["ms_int8"] = ToJson(SpreadOf(int8_ms));
    j["planned_bytes_int8"] = int8->bytes();
  }
  result["encoder"] = j;
  return OkStatus();
}

}  // namespace wisp::tools
