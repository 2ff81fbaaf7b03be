// The encoder of a classifier, of the size that sentence models have: from 128 tokens to the pooled first position, on
// one thread and on several that share the text, in float and in int8, in turns; all held to the reference kernels
// first, and several threads to the bits of one.
//
// tools/bench/peers/encoder.py reads the weights, the tokens and what came of them, and holds others to that.
#include <deque>

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
constexpr double kFloatTolerance = 1e-4, kInt8Tolerance = 0.1;

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
  Encoder(const Architecture& architecture, const kernels::OpTable& ops, const std::vector<float>& weights,
          size_t threads = 1, Executor executor = {})
      : graph_(architecture, ops, {.use = GraphUse::kInference}),
        buffers_(graph_.AllocateForInference()),
        kept_(threads > 1 ? KeptBlocks::kTwoInTurn : KeptBlocks::kInTurn),
        cache_(graph_.AllocateCache(kept_)),
        helpers_(graph_.AllocateHelpers(threads, std::move(executor))),
        weights_(graph_, weights.data()),
        context_{.weights = weights_.view(), .buffers = buffers_, .cache = &cache_, .helpers = helpers_.get()} {}
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
    return graph_.inference_bytes() + graph_.helper_bytes(threads()) + graph_.cache_bytes(kept_) +
           weights_.allocated_bytes();
  }
  size_t threads() const { return helpers_ == nullptr ? 1 : helpers_->team.size(); }
  // Of one call.
  double Milliseconds(std::span<const int32_t> tokens) {
    return 1e3 * Seconds([&] { Represent(tokens); });
  }

 private:
  Classifier graph_;
  Buffers buffers_;
  KeptBlocks kept_;
  KeyValueCache cache_;
  std::unique_ptr<Helpers> helpers_;
  PackedWeights weights_;
  RecordContext context_;
};

// Threads that are none: the parts of each step one after the other on the caller's thread, and their times. What as
// many cores would take that have nothing else to do is the longest part of each step, with what is in no part. That
// leaves out the forks and joins, 1 us each, and what cores that share a memory take from each other.
class PartsInTurn {
 public:
  Executor executor() {
    return [this](size_t num_tasks, const std::function<void(size_t)>& task) {
      double longest = 0;
      for (size_t i = 0; i < num_tasks; ++i) {
        const double ms = 1e3 * Seconds([&] { task(i); });
        longest = std::max(longest, ms);
        others_ms_ += ms;
      }
      others_ms_ -= longest;
    };
  }
  // Of one call, which takes so long on one thread with all its parts.
  template <class Work>
  double Milliseconds(const Work& work) {
    others_ms_ = 0;
    const double all = 1e3 * Seconds(work);
    return all - others_ms_;
  }

 private:
  double others_ms_ = 0;  // of parts that are not the longest of their step
};

// What takes its turn: an encoder, and its times. One on several threads is held to the one on one.
struct Contender {
  Contender(const char* suffix_of_names, const kernels::OpTable& table, const Architecture& shape,
            const std::vector<float>& weights, size_t threads, double largest_error)
      : suffix(suffix_of_names), ops(table), tolerance(largest_error), encoder(shape, table, weights, threads) {}
  Contender(Contender& on_one, const Architecture& shape, const std::vector<float>& weights, size_t threads)
      : Contender(on_one.suffix, on_one.ops, shape, weights, threads, on_one.tolerance) {
    alone = &on_one;
    in_turn = std::make_unique<Encoder>(shape, ops, weights, threads, parts.executor());
  }

  Status Check(std::span<const int32_t> tokens, const std::vector<float>& expected) {
    const auto represented = encoder.Represented(tokens);
    if (alone != nullptr && represented != alone->encoder.Represented(tokens))
      return InvalidData("the encoder's pooled position on several threads is not that of one");
    return CheckNear(std::string("the encoder's pooled position") + suffix, represented, expected, tolerance);
  }
  void Sample(std::span<const int32_t> tokens) {
    ms.push_back(encoder.Milliseconds(tokens));
    if (alone == nullptr) return;
    over_one.push_back(alone->ms.back() / ms.back());
    at_best.push_back(alone->ms.back() / parts.Milliseconds([&] { in_turn->Represent(tokens); }));
  }
  void Report(Json& j) const {
    j[std::string("ms") + suffix] = ToJson(SpreadOf(ms));
    j[std::string("planned_bytes") + suffix] = encoder.bytes();
    if (alone == nullptr) return;
    j["threads"] = encoder.threads();
    j[std::string("over_one_thread") + suffix] = ToJson(SpreadOf(over_one));
    j[std::string("over_one_thread_on_cores_of_their_own") + suffix] = ToJson(SpreadOf(at_best));
  }

  const char* suffix;
  const kernels::OpTable& ops;
  double tolerance;
  Contender* alone = nullptr;
  Encoder encoder;
  PartsInTurn parts;
  std::unique_ptr<Encoder> in_turn;  // of several threads
  std::vector<double> ms, over_one, at_best;
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

  const size_t threads = a.threads == 0 ? DefaultThreads() : a.threads;
  std::deque<Contender> contenders;
  contenders.emplace_back("", kernels::BestOps(), shape, weights, 1, kFloatTolerance);
  if (kernels::Int8Ops() != nullptr)
    contenders.emplace_back("_int8", *kernels::Int8Ops(), shape, weights, 1, kInt8Tolerance);
  for (size_t alone = contenders.size(), i = 0; threads > 1 && i < alone; ++i)
    contenders.emplace_back(contenders[i], shape, weights, threads);
  const auto represented = contenders[0].encoder.Represented(tokens);
  if (!a.tensors.empty()) WISP_RETURN_IF_ERROR(WriteTensors(a.tensors, shape, weights, tokens, represented));
  const auto expected = Encoder(shape, kernels::ReferenceOps(), weights).Represented(tokens);
  for (Contender& c : contenders) WISP_RETURN_IF_ERROR(c.Check(tokens, expected));
  std::vector<double> percents;
  const double flops = Flops(shape);
  for (uint32_t i = 0; i < a.repeats; ++i) {
    double peak = 0;
    for (int probe = 0; probe < 20; ++probe) peak = std::max(peak, FmaProbe());
    for (Contender& c : contenders) c.Sample(tokens);
    percents.push_back(100 * flops / (1e6 * contenders[0].ms.back()) / peak);
  }
  Json j = {{"tokens", kTokens}, {"threads", 1}, {"gflops", flops / 1e9}};
  j["percent_of_peak"] = ToJson(SpreadOf(percents));
  for (const Contender& c : contenders) c.Report(c.alone == nullptr ? j : j["several_threads"]);
  result["encoder"] = j;
  return OkStatus();
}

}  // namespace wisp::tools
