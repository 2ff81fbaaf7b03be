#include "runtime/train/options.h"

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "runtime/core/hash.h"
#include "runtime/train/checkpoint_parts.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/method_table.h"

namespace wisp {
namespace {

// Builds a text of words and numbers that read back equal.
class Identity {
 public:
  Identity& Word(const char* word) {
    text_ += (text_.empty() ? "" : " ") + std::string(word);
    return *this;
  }
  template <class T>
  Identity& Number(T value) {
    if constexpr (std::is_enum_v<T>) {
      text_ += " " + std::to_string(static_cast<int>(value));
    } else if constexpr (std::is_integral_v<T>) {
      text_ += " " + std::to_string(value);
    } else {
      text_ += " " + checkpoint_parts::Text(value);
    }
    return *this;
  }
  template <class T>
  Identity& Numbers(std::initializer_list<T> values) {
    for (T value : values) Number(value);
    return *this;
  }
  template <class T>
  Identity& Named(const char* word, T value) {
    return Word(word).Number(value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void Visit(const OptimizerOptions& p, Identity& id) {
  id.Named("optimizer", p.kind);
  id.Numbers({p.learning_rate, p.beta1, p.beta2, p.epsilon, p.momentum, p.weight_decay, p.final_fraction,
              static_cast<float>(p.warmup_steps), static_cast<float>(p.decay)});
}

void VisitDpFp(const TrainingOptions& o, Identity& id) {
  const DpFpOptions& d = o.dp_fp;
  id.Word("dp-fp").Named("mode", d.mode).Named("steps", o.num_steps).Named("batch", o.expected_batch);
  id.Named("in", d.micro_batches).Named("of", o.num_records_public).Named("threads", o.num_threads);
  id.Named("clip", d.clipping_norm).Named("noise", d.noise_multiplier).Named("releases", d.release_decay);
  id.Number(d.effective_dimensions);
  for (double p : d.class_prior) id.Number(p);
  if (d.mode == DpFpMode::kClipped)
    id.Named("encoder", o.privacy.noise_multiplier).Number(o.privacy.clipping_norm).Number(o.privacy.clipping);
  if (HasGradients(o)) Visit(o.optimizer, id);
  if (o.privacy.norm_form == NormForm::kIntegers) id.Word("integers");
}

void VisitPrivacy(const TrainingOptions& o, bool re_attention, Identity& id) {
  id.Named("noise", o.privacy.noise_multiplier)
      .Named("clip", o.privacy.clipping_norm)
      .Named("kind", o.privacy.clipping);
  if (o.privacy.noise_schedule != NoiseSchedule::kConstant) id.Named("noise-schedule", o.privacy.noise_schedule);
  if (o.privacy.noise_lambda > 0) id.Named("noise-lambda", o.privacy.noise_lambda);
  if (o.privacy.norm_form == NormForm::kIntegers) id.Word("integers");
  if (IsSparse(o.method)) {
    id.Word("map").Numbers({o.sparse.map_clipping_norm, o.sparse.map_threshold, o.sparse.map_noise_ratio});
  }
  if (o.method == Method::kRgp) {
    const RgpOptions& r = o.rgp;
    id.Numbers({r.rank, r.power_iterations, r.warmup_steps})
        .Numbers({r.item_tables, r.positions, r.matrices, r.vectors});
  }
  if (re_attention) id.Named("re-attention", o.re_attention.source).Named("scale", o.re_attention.scale);
}

}  // namespace

const char* GetName(Method method) {
  for (const auto& [name, named] : kMethodNames) {
    if (named == method) return name;
  }
  return "dp-fp";
}

std::string ListMethods(bool (*listed)(Method), const char* before_last) {
  std::string list, last;
  for (const auto& [name, method] : kMethodNames) {
    if (!listed(method)) continue;
    if (!last.empty()) list += (list.empty() ? "" : ", ") + last;
    last = name;
  }
  return list.empty() ? last : list + before_last + last;
}

const char* GetName(Sampling sampling) {
  for (const auto& [name, named] : kSamplingNames) {
    if (named == sampling) return name;
  }
  return "poisson";
}

bool NamesRows(Method method) { return method == Method::kFest || method == Method::kAdaFestPlus; }
bool IsSparse(Method method) { return method == Method::kFest || IsAdaptive(method); }
bool IsAdaptive(Method method) { return method == Method::kAdaFest || method == Method::kAdaFestPlus; }

bool IsPaper(const TrainingOptions& o) { return o.method == Method::kDpFp && o.dp_fp.mode == DpFpMode::kPaper; }
bool IsPrivate(const TrainingOptions& o) { return o.method != Method::kOrdinary && !IsPaper(o); }
bool ReleasesHead(const TrainingOptions& o) { return o.method == Method::kDpFp && !IsPaper(o); }
bool HasGradients(const TrainingOptions& o) {
  return o.method != Method::kDpFp || o.dp_fp.mode != DpFpMode::kAggregate;
}

namespace {

// Products with many rows read the matrices less often, which pays if a core's cache does not hold them. Measured on
// texts of 9 tokens, one thread of Sapphire Rapids, 2026-11-22: 1.45 times as fast with four blocks of width 256 (12 MB
// of matrices), 1.05 with two of 128 (1.5 MB), equal with one of 64. Otherwise more rows only take memory.
size_t BestRows(const Architecture& a) {
  constexpr size_t kCached = size_t{1} << 20, kRows = 256;
  size_t bytes = 0;
  for (const ParameterSpec& p : ListParameters(a))
    bytes += p.shape == ParameterShape::kMatrix ? p.size() * sizeof(float) : 0;
  return bytes > kCached ? kRows : 1;
}

// The number of floats of a record's gradient on a device.
size_t RowFloats(const Architecture& a, const TrainingOptions& o) {
  const MethodEntry& method = GetEntry(o);
  return method.row_floats != nullptr ? method.row_floats(a, o) : TrainedBy(ListParameters(a), o).size();
}

// A device takes enough records to occupy its processors, but no more than a step has: with 128 rows for each, the
// narrowest products, of 64 columns, have two tiles for each. Their written-out gradients may take 2 MB for each
// processor. If none are written out, their activations may take as much: some eight per position and block.
size_t BestRecords(const Architecture& a, const TrainingOptions& o) {
  const size_t processors = std::max<size_t>(o.device.ops->processors, 1);
  const size_t most_bytes = processors * (size_t{2} << 20), rows = processors * 128;
  size_t bytes = RowFloats(a, o) * sizeof(float);
  if (!IsPrivate(o) || !HasGradients(o))
    bytes = std::min(bytes, size_t{8} * a.max_length * a.width * std::max<size_t>(a.blocks.size(), 1) * sizeof(float));
  const size_t records = std::min(rows / a.max_length, most_bytes / std::max<size_t>(bytes, 1));
  return std::clamp<size_t>(records, 1, kMostOnDevice);
}

size_t RecordsOnDevice(const Architecture& a, const TrainingOptions& o) {
  const size_t most = std::clamp<size_t>(o.expected_batch, 1, kMostOnDevice);
  return o.rows_at_once == 0 ? std::min(BestRecords(a, o), most)
                             : std::clamp<size_t>(o.rows_at_once / a.max_length, 1, most);
}

}  // namespace

uint32_t LongestRecord(const Architecture& a, uint32_t cut_to) {
  return cut_to > 0 ? std::min(cut_to, a.max_length) : a.max_length;
}

size_t FirstHeld(const std::vector<ParameterSpec>& parameters, const TrainingOptions& o) {
  return o.base.empty() ? 0 : parameters[o.base.size()].offset;
}

std::vector<StoredTensor> LocateTensors(const std::vector<ParameterSpec>& parameters,
                                        std::span<const StoredTensor> base, const float* held) {
  std::vector<StoredTensor> tensors(base.begin(), base.end());
  tensors.reserve(parameters.size());
  const size_t first = base.size() < parameters.size() ? parameters[base.size()].offset : 0;
  for (size_t i = base.size(); i < parameters.size(); ++i)
    tensors.push_back({.floats = held + (parameters[i].offset - first)});
  return tensors;
}

size_t NumReadable(const Architecture& a, const TrainingOptions& o) {
  if (!o.device.memory.is_host() || a.re_attention == ReAttention::kOn || o.num_negatives > 0 ||
      o.method == Method::kDpFp || IsSparse(o.method))
    return 0;
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const TrainedSet trained = TrainedBy(parameters, o);
  return trained.parameters().empty() ? 0 : trained.parameters().front();
}

namespace {

// A table that is not float32 is converted tile by tile, unless its rows are first normalised to length 1, which
// happens while it is packed.
HeadPacking MakeHead(const Architecture& a, std::span<const StoredTensor> base) {
  if (base.empty() || a.head.temperature > 0) return HeadPacking::kTiles;
  const std::optional<size_t> table = FindHeadTable(a, ListParameters(a));
  return table && *table < base.size() && base[*table].floats == nullptr ? HeadPacking::kNone : HeadPacking::kTiles;
}

}  // namespace

GraphOptions GraphFor(const Architecture& a, const TrainingOptions& o) {
  if (!o.device.memory.is_host()) return {.num_negatives = o.num_negatives, .max_records = RecordsOnDevice(a, o)};
  const size_t rows = o.rows_at_once == 0 ? BestRows(a) : o.rows_at_once;
  Architecture cut = a;
  cut.max_length = LongestRecord(a, o.cut_to);
  // Most texts are far shorter than the longest, so as many pass together as fill the rows.
  constexpr size_t kTexts = 32;
  if (o.recompute_blocks)
    return {.num_negatives = o.num_negatives,
            .head = MakeHead(a, o.base),
            .stored = o.base,
            .recompute_blocks = true,
            .max_length = cut.max_length};
  if (a.head.kind == HeadKind::kClasses && o.rows_at_once == 0 && rows > 1)
    return {.stored = o.base, .max_records = kTexts, .max_rows = rows, .max_length = cut.max_length};
  return {.num_negatives = o.num_negatives,
          .head = MakeHead(a, o.base),
          .stored = o.base,
          .max_records = CountRecords(cut, o.num_negatives, rows),
          .max_length = cut.max_length};
}

std::string RunIdentity(const TrainingOptions& o, size_t num_records, bool re_attention) {
  Identity id;
  if (o.method == Method::kDpFp) {
    VisitDpFp(o, id);
    if (o.classes_hash != 0) id.Named("classes", o.classes_hash);
    return id.Take();
  }
  id.Named("method", o.method).Named("sampling", o.sampling).Named("loss", o.loss).Named("steps", o.num_steps);
  id.Named("batch", o.expected_batch).Named("of", o.num_records_public);
  // The number of records is a private run's secret, and a checkpoint is a file that may be copied.
  if (!IsPrivate(o)) id.Named("records", num_records);
  id.Named("threads", o.num_threads).Named("ema", o.ema_decay);
  Visit(o.optimizer, id);
  id.Numbers({o.dropout.embedding, o.dropout.attention, o.dropout.residual});
  if (o.num_negatives > 0) id.Named("negatives", o.num_negatives);
  if (const ItemFeatureOptions& f = o.item_features; !f.values.empty())
    id.Named("item features", Hash64(std::as_bytes(f.values))).Numbers({static_cast<float>(f.count), f.rate});
  if (o.trained_part != TrainedPart::kAll) id.Named("trains", o.trained_part);
  if (o.last_blocks > 0) id.Named("last blocks", o.last_blocks);
  if (o.cut_to > 0) id.Named("cut to", o.cut_to);
  if (o.classes_hash != 0) id.Named("classes", o.classes_hash);
  if (IsPrivate(o)) VisitPrivacy(o, re_attention, id);
  return id.Take();
}

}  // namespace wisp
