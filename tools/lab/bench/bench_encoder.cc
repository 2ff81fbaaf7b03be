// Times a classifier's encoder of the size of sentence models, from 128 tokens (or --length) to the pooled first
// position. It runs on one thread and on several that share the text, in float32 and in int8, in turns. Before that,
// all results are compared with the reference kernels, and several threads must give the bits of one.
//
// tools/lab/bench/peers/encoder.py reads the weights, the tokens and the results, and compares other libraries with
// them.
#include "runtime/text/classifier_session.h"
#include "runtime/train/run/initialise.h"
#include "tools/convert/safetensors.h"
#include "tools/lab/bench/bench_checks.h"
#include "tools/lab/bench/bench_parts.h"
#include "tools/lab/bench/fma_peak.h"
#include "tools/wisp/device.h"

namespace wisp::tools {
namespace {

constexpr uint32_t kTokens = 128, kMostTokens = 4096;
constexpr double kFloatTolerance = 1e-4, kInt8Tolerance = 0.1;

// The shape of MiniLM-L6-H384 (Wang et al. 2020). Its vocabulary differs, which only changes how many rows lie unread.
Architecture Shape(uint32_t num_items, uint32_t num_tokens) {
  return UniformArchitecture{.num_items = num_items,
                             .max_length = num_tokens,
                             .width = 384,
                             .num_heads = 12,
                             .num_blocks = 6,
                             .inner_width = 1536,
                             .activation = ActivationKind::kGelu,
                             .norm = NormPlacement::kPost,
                             .attend = Attend::kAll,
                             .num_classes = 2};
}

// Counts the multiply-adds of one sequence as two operations each. Each position has four products of width by width
// and two of the feed-forward part; attention has two products of T x T.
double Flops(const Architecture& a) {
  const double t = a.max_length, d = a.width, f = a.blocks[0].feed_forward.inner_width;
  return 2 * t * (static_cast<double>(a.blocks.size()) * (4 * d * d + 2 * d * f + 2 * t * d)) + 2 * d * d;
}

// A classifier's session over weights in one buffer.
class Encoder {
 public:
  static Result<std::unique_ptr<Encoder>> Create(const Architecture& architecture, const std::vector<float>& weights,
                                                 const ClassifierOptions& options) {
    std::vector<StoredTensor> tensors;
    for (const ParameterSpec& p : ListParameters(architecture))
      tensors.push_back({.floats = weights.data() + p.offset});
    WISP_ASSIGN_OR_RETURN(auto session, ClassifierSession::Create(architecture, tensors, options));
    return std::unique_ptr<Encoder>(new Encoder(std::move(tensors), std::move(session)));
  }

  Result<std::vector<float>> Represented(std::span<const int32_t> tokens) {
    WISP_RETURN_IF_ERROR(session_->Represent(tokens, represented_));
    return represented_;
  }
  size_t bytes() const { return session_->bytes(); }
  size_t threads() const { return session_->num_threads(); }
  // Times one call. Check has shown before that the call succeeds.
  double Milliseconds(std::span<const int32_t> tokens) {
    return 1e3 * Seconds([&] { (void)session_->Represent(tokens, represented_); });
  }

 private:
  Encoder(std::vector<StoredTensor> tensors, std::unique_ptr<ClassifierSession> session)
      : tensors_(std::move(tensors)), session_(std::move(session)), represented_(session_->architecture().width) {}

  std::vector<StoredTensor> tensors_;
  std::unique_ptr<ClassifierSession> session_;
  std::vector<float> represented_;
};

// An executor without threads: the caller's thread runs the parts of each step one after the other and times them. On
// as many idle cores a step would take as long as its longest part, plus what is outside all parts. This estimate
// leaves out forks and joins (1 us each) and the contention of cores that share a memory.
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
  // Returns the estimate for `work`, which itself runs all of its parts on one thread.
  template <class Work>
  double Milliseconds(const Work& work) {
    others_ms_ = 0;
    const double all = 1e3 * Seconds(work);
    return all - others_ms_;
  }

 private:
  double others_ms_ = 0;  // the parts that are not the longest of their step
};

// One of the encoders that take turns, with its times. An encoder on several threads must give the results of the one
// on one thread.
struct Contender {
  static Result<std::unique_ptr<Contender>> Create(const char* suffix, const kernels::Device& device,
                                                   const Architecture& shape, const std::vector<float>& weights,
                                                   double tolerance) {
    auto c = std::make_unique<Contender>();
    c->suffix = suffix, c->device = device, c->tolerance = tolerance;
    WISP_ASSIGN_OR_RETURN(c->encoder, Encoder::Create(shape, weights, {.device = device}));
    return c;
  }
  static Result<std::unique_ptr<Contender>> OnThreads(Contender& on_one, const Architecture& shape,
                                                      const std::vector<float>& weights, size_t threads) {
    auto c = std::make_unique<Contender>();
    c->suffix = on_one.suffix, c->device = on_one.device, c->tolerance = on_one.tolerance, c->alone = &on_one;
    WISP_ASSIGN_OR_RETURN(c->encoder, Encoder::Create(shape, weights, {.device = c->device, .num_threads = threads}));
    WISP_ASSIGN_OR_RETURN(
        c->in_turn, Encoder::Create(shape, weights,
                                    {.device = c->device, .num_threads = threads, .executor = c->parts.executor()}));
    return c;
  }

  Status Check(std::span<const int32_t> tokens, const std::vector<float>& expected) {
    WISP_ASSIGN_OR_RETURN(const std::vector<float> represented, encoder->Represented(tokens));
    if (alone != nullptr) {
      WISP_ASSIGN_OR_RETURN(const std::vector<float> on_one, alone->encoder->Represented(tokens));
      if (represented != on_one)
        return InvalidData("the encoder's pooled position on several threads is not that of one");
    }
    return CheckNear(std::string("the encoder's pooled position") + suffix, represented, expected, tolerance);
  }
  void Sample(std::span<const int32_t> tokens) {
    ms.push_back(encoder->Milliseconds(tokens));
    if (alone == nullptr) return;
    over_one.push_back(alone->ms.back() / ms.back());
    at_best.push_back(alone->ms.back() / parts.Milliseconds([&] { (void)in_turn->Milliseconds(tokens); }));
  }
  void Report(Json& j) const {
    j[std::string("ms") + suffix] = ToJson(ComputeSpread(ms));
    j[std::string("planned_bytes") + suffix] = encoder->bytes();
    if (alone == nullptr) return;
    j["threads"] = encoder->threads();
    j[std::string("over_one_thread") + suffix] = ToJson(ComputeSpread(over_one));
    j[std::string("over_one_thread_on_cores_of_their_own") + suffix] = ToJson(ComputeSpread(at_best));
  }

  const char* suffix = "";
  kernels::Device device = kernels::BestOps();
  double tolerance = 0;
  Contender* alone = nullptr;
  PartsInTurn parts;
  std::unique_ptr<Encoder> encoder, in_turn;  // in_turn: only for several threads
  std::vector<double> ms, over_one, at_best;
};

Status WriteTensors(const std::string& path, const Architecture& c, const std::vector<float>& weights,
                    std::span<const int32_t> tokens, std::span<const float> represented) {
  std::vector<convert::TensorToWrite> tensors;
  for (const ParameterSpec& p : ListParameters(c)) {
    const std::vector<uint64_t> shape =
        p.shape == ParameterShape::kVector ? std::vector<uint64_t>{p.cols} : std::vector<uint64_t>{p.rows, p.cols};
    tensors.push_back({p.name, shape, {weights.data() + p.offset, p.size()}});
  }
  const std::vector<float> as_floats(tokens.begin(), tokens.end());  // exact: tokens are below 2^24
  tensors.push_back({"tokens", {as_floats.size()}, as_floats});
  tensors.push_back({"represented", {represented.size()}, represented});
  const Json shape = {{"heads", c.blocks[0].attention.num_heads},
                      {"blocks", c.blocks.size()},
                      {"norm_epsilon", c.blocks[0].norm_epsilon},
                      {"embedding_scale", c.embedding_scale}};
  return convert::WriteSafeTensors(path, tensors, {{"wisp.encoder", shape.dump()}});
}

// Makes the contenders of the processor: float32 and int8, each on one thread and on several.
Result<std::vector<std::unique_ptr<Contender>>> OnProcessor(const Architecture& shape,
                                                            const std::vector<float>& weights, size_t threads) {
  std::vector<std::unique_ptr<Contender>> all;
  WISP_ASSIGN_OR_RETURN(auto floats, Contender::Create("", kernels::BestOps(), shape, weights, kFloatTolerance));
  all.push_back(std::move(floats));
  if (kernels::Int8Ops() != nullptr) {
    WISP_ASSIGN_OR_RETURN(auto int8, Contender::Create("_int8", *kernels::Int8Ops(), shape, weights, kInt8Tolerance));
    all.push_back(std::move(int8));
  }
  for (size_t alone = all.size(), i = 0; threads > 1 && i < alone; ++i) {
    WISP_ASSIGN_OR_RETURN(auto several, Contender::OnThreads(*all[i], shape, weights, threads));
    all.push_back(std::move(several));
  }
  return all;
}

// Makes the contenders of a device: each of its arithmetics, from tokens on the host to the pooled position on the
// host.
Result<std::vector<std::unique_ptr<Contender>>> OnDevice(const DeviceArguments& device, const Architecture& shape,
                                                         const std::vector<float>& weights) {
  constexpr struct {
    const char *suffix, *arithmetic;
    double tolerance;
  } kAll[] = {{"", "float32", kFloatTolerance},
              {"_tf32", "tf32", 1e-2},
              {"_float16", "float16", 1e-2},
              {"_bfloat16", "bfloat16", 0.1},
              {"_int8", "int8", kInt8Tolerance}};
  std::vector<std::unique_ptr<Contender>> all;
  for (const auto& one : kAll) {
    DeviceArguments arguments = device;
    arguments.arithmetic = one.arithmetic;
    WISP_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(arguments));
    WISP_ASSIGN_OR_RETURN(auto contender, Contender::Create(one.suffix, opened.device, shape, weights, one.tolerance));
    all.push_back(std::move(contender));
  }
  return all;
}

}  // namespace

Status BenchEncoder(const BenchArguments& a, Json& result) {
  if (a.items > 1u << 20) return InvalidArgument("--items is ", a.items, ", allowed are 2 to 1048576 for the encoder");
  const uint32_t num_tokens = IsGiven(a, "--length") ? a.length : kTokens;
  if (num_tokens > kMostTokens)
    return InvalidArgument("--length is ", a.length, ", allowed are 1 to ", kMostTokens, " for the encoder");
  const Architecture shape = Shape(a.items, num_tokens);
  WISP_RETURN_IF_ERROR(Validate(shape));
  std::vector<float> weights(FlatSize(ListParameters(shape)));
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(shape, {}, random, weights);
  std::vector<int32_t> tokens(num_tokens);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.UniformBelow(a.items));

  const bool on_processor = a.device.name == "cpu";
  if (a.device.arithmetic != "float32")
    return InvalidArgument("--device-arithmetic is not of --what encoder, which takes each in turn");
  WISP_ASSIGN_OR_RETURN(const auto contenders,
                        on_processor ? OnProcessor(shape, weights, a.threads == 0 ? DefaultThreads() : a.threads)
                                     : OnDevice(a.device, shape, weights));
  if (!a.tensors.empty()) {
    WISP_ASSIGN_OR_RETURN(const auto represented, contenders[0]->encoder->Represented(tokens));
    WISP_RETURN_IF_ERROR(WriteTensors(a.tensors, shape, weights, tokens, represented));
  }
  // The reference is slow, but it shares nothing with the code that it checks.
  WISP_ASSIGN_OR_RETURN(const auto reference, Encoder::Create(shape, weights, {.device = kernels::ReferenceOps()}));
  WISP_ASSIGN_OR_RETURN(const auto expected, reference->Represented(tokens));
  for (const auto& c : contenders) WISP_RETURN_IF_ERROR(c->Check(tokens, expected));
  std::vector<double> percents;
  const double flops = Flops(shape);
  for (uint32_t i = 0; i < a.repeats; ++i) {
    double peak = 0;
    for (int probe = 0; probe < 20 && on_processor; ++probe) peak = std::max(peak, FmaProbe());
    for (const auto& c : contenders) c->Sample(tokens);
    if (on_processor) percents.push_back(100 * flops / (1e6 * contenders[0]->ms.back()) / peak);
  }
  Json j = {{"tokens", num_tokens}, {"threads", 1}, {"gflops", flops / 1e9}};
  if (on_processor) j["percent_of_peak"] = ToJson(ComputeSpread(percents));
  for (const auto& c : contenders) c->Report(c->alone == nullptr ? j : j["several_threads"]);
  result["encoder"] = j;
  return OkStatus();
}

}  // namespace wisp::tools
