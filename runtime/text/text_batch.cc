#include "runtime/text/text_batch.h"

#include <algorithm>

namespace wisp {
namespace {

// A text with this many new tokens fills the tiles of a product, so it passes alone and threads share its rows.
constexpr size_t kRowsAlone = 12;

}  // namespace

Result<std::unique_ptr<TextBatch>> TextBatch::Create(const Session& session, const TextBatchOptions& o) {
  const Architecture& a = session.architecture();
  const kernels::Device& device = session.graph().device();
  if (o.places == 0 || o.places > kMostPlaces)
    return InvalidArgument("a batch of ", o.places, " texts, allowed are 1 to ", kMostPlaces);
  if (o.positions > a.max_length)
    return InvalidArgument("texts of ", o.positions, " tokens, ", session.file().name(), " has ", a.max_length,
                           " positions");
  WISP_RETURN_IF_ERROR(CheckThreads(o.num_threads));
  if (!device.memory.is_host())
    return InvalidArgument("texts grow beside each other on the processor, and the session is on the device ",
                           device.ops->name);
  if (o.num_threads != 1 && device.ops->release_packed != nullptr)
    return Unsupported("texts on ", o.num_threads, " threads are not for XNNPACK, whose packed weights are for one");
  if (a.attend != Attend::kCausal)
    return InvalidArgument(session.file().name(), ": its positions see those behind them: its texts do not grow");
  GraphOptions graph = MakeInferenceOptions(device, a, session.file().tensors());
  graph.max_records = o.places;
  graph.max_rows = o.places * kRowsAlone;
  graph.max_length = static_cast<uint32_t>(o.positions);
  return std::unique_ptr<TextBatch>(new TextBatch(session, graph, o));
}

TextBatch::TextBatch(const Session& session, const GraphOptions& graph, const TextBatchOptions& o)
    : session_(session),
      positions_(o.positions == 0 ? session.architecture().max_length : o.positions),
      in_turn_(session.architecture().re_attention == ReAttention::kOn),
      graph_(MakeModelView(session.architecture(), session.graph().device(), graph)),
      buffers_(graph_->AllocateForInference()),
      helpers_(graph_->AllocateHelpers(o.num_threads == 0 ? DefaultThreads() : o.num_threads, o.executor)),
      places_(o.places) {
  records_.reserve(o.places);
  grown_.reserve(o.places);
}

Status TextBatch::Check(std::span<const Text> texts, std::span<const float> scores) const {
  const size_t num_items = session_.architecture().num_items;
  if (scores.size() != texts.size() * num_items)
    return InvalidArgument("room for ", scores.size(), " scores, ", texts.size(), " texts have ",
                           texts.size() * num_items);
  std::vector<bool> taken(places_.size());
  for (const Text& text : texts) {
    if (text.place >= places_.size() || taken[text.place])
      return InvalidArgument("a text is in place ", text.place, "; there are places 0 to ", places_.size() - 1,
                             ", each for one");
    taken[text.place] = true;
    if (text.tokens.empty() || text.tokens.size() > positions_)
      return InvalidArgument("a text of ", text.tokens.size(), " tokens, allowed are 1 to ", positions_);
    WISP_RETURN_IF_ERROR(session_.CheckItems("a text", text.tokens));
  }
  return OkStatus();
}

size_t TextBatch::Kept(const Text& text) {
  const std::vector<int32_t>& encoded = places_[text.place].encoded;
  if (!graph_->KeepsKeys(encoded.size(), text.tokens.size())) return 0;
  const auto differs = std::mismatch(encoded.begin(), encoded.end(), text.tokens.begin(), text.tokens.end() - 1).first;
  return static_cast<size_t>(differs - encoded.begin());
}

bool TextBatch::Alone(const Text& text) { return in_turn_ || text.tokens.size() - Kept(text) > kRowsAlone; }

void TextBatch::ScoreAlone(const Text& text, float* scores) {
  Place& place = places_[text.place];
  RecordContext context{.weights = session_.weights(),
                        .buffers = buffers_,
                        .cache = &place.cache,
                        .past = Kept(text),
                        .helpers = helpers_.get()};
  graph_->Score(context, text.tokens, scores);
  AddSuccessions(session_.file().lists().successions, text.tokens, {scores, graph_->num_items()});
  place.encoded.assign(text.tokens.begin(), text.tokens.end());
}

void TextBatch::ScoreSome(std::span<const Text> texts, float* scores) {
  if (texts.size() == 1) return ScoreAlone(texts[0], scores);
  records_.clear();
  grown_.clear();
  for (const Text& text : texts) {
    const size_t kept = Kept(text);
    records_.push_back({.inputs = text.tokens.subspan(kept), .targets = {}});
    grown_.push_back({.cache = &places_[text.place].cache, .past = kept});
  }
  RecordContext context{
      .weights = session_.weights(), .buffers = buffers_, .text_B = grown_.data(), .helpers = helpers_.get()};
  graph_->ScoreTogether(context, records_, scores);
  const size_t num_items = graph_->num_items();
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::span<const int32_t> tokens = texts[i].tokens;
    AddSuccessions(session_.file().lists().successions, tokens, {scores + i * num_items, num_items});
    places_[texts[i].place].encoded.assign(tokens.begin(), tokens.end());
  }
}

// Neighbouring texts with few new tokens pass together.
Status TextBatch::Score(std::span<const Text> texts, std::span<float> scores) {
  WISP_RETURN_IF_ERROR(Check(texts, scores));
  for (const Text& text : texts) {
    KeyValueCache& cache = places_[text.place].cache;
    if (cache.positions() == 0) cache = graph_->AllocateCache(CacheBlocks::kAll, positions_, session_.kept());
  }
  const size_t num_items = session_.architecture().num_items;
  for (size_t first = 0; first < texts.size();) {
    size_t end = first;
    while (end < texts.size() && !Alone(texts[end])) ++end;
    if (end == first) {
      ScoreAlone(texts[end++], scores.data() + first * num_items);
    } else {
      ScoreSome(texts.subspan(first, end - first), scores.data() + first * num_items);
    }
    first = end;
  }
  return OkStatus();
}

size_t TextBatch::bytes() const {
  const auto used = static_cast<size_t>(
      std::count_if(places_.begin(), places_.end(), [](const Place& p) { return p.cache.positions() > 0; }));
  return graph_->inference_bytes() + graph_->helper_bytes(helpers_ == nullptr ? 1 : helpers_->team.size()) +
         used * graph_->cache_bytes(CacheBlocks::kAll, positions_, session_.kept());
}

}  // namespace wisp
