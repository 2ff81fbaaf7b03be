#include "tools/convert/hugging_face/tensors.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "tools/convert/hugging_face/left_out.h"

namespace wisp::convert::hugging_face {
namespace {

using Names = std::map<std::string, FoundTensor, std::less<>>;

// Older files of BERT have these names for the two vectors of a norm.
std::string NewName(std::string name) {
  for (const auto& [old, now] : {std::pair{".gamma", ".weight"}, std::pair{".beta", ".bias"}}) {
    if (name.ends_with(old)) name.replace(name.size() - std::string_view(old).size(), std::string::npos, now);
  }
  return name;
}

// Returns the tensors by their names without a prefix, as in the table.
Result<Names> PlainNames(const Folder& folder, const std::string& prefix) {
  Names names;
  for (const auto& [name, tensor] : folder.tensors()) {
    const bool inside = !prefix.empty() && name.starts_with(prefix);
    const std::string plain = NewName(inside ? name.substr(prefix.size()) : name);
    if (!names.emplace(plain, tensor).second)
      return InvalidData(folder.path(), ": tensor ", Shown(plain), " is there twice, once as ", Shown(name));
  }
  return names;
}

// Returns the shape that a tensor must have to become those rows of the parameter.
std::vector<uint64_t> MakeShape(const Match& match, uint32_t rows, uint32_t num_positions) {
  const ParameterSpec& p = match.parameter;
  if (p.shape == ParameterShape::kVector) return {rows};
  if (match.how == How::kPositions) return {num_positions, p.cols};
  if (match.how == How::kTransposed) return {p.cols, rows};
  return {rows, p.cols};
}

Status CheckSource(const Folder& folder, const FoundTensor& found, const std::vector<uint64_t>& needed) {
  const SafeTensor& tensor = *found.tensor;
  if (!IsWeight(tensor.type))
    return InvalidData(folder.path(), ": tensor ", Shown(tensor.name), " has the dtype ", TypeName(tensor.type),
                       ", allowed are F32, F16 and BF16");
  if (tensor.shape == needed) return OkStatus();
  return InvalidData(folder.path(), ": tensor ", Shown(tensor.name), " has the shape ", ShapeInWords(tensor.shape),
                     ", config.json needs ", ShapeInWords(needed));
}

// Finds the tensors of one parameter, and checks them against the configuration.
Result<Match> MatchOne(const Folder& folder, const Description& d, const Names& names, const Row& row,
                       const ParameterSpec& p) {
  Match match{.parameter = p, .how = row.how};
  for (const char* pattern : row.names) {
    if (pattern == nullptr) break;
    const std::string name = NameInBlock(pattern, p.block);
    const auto found = names.find(name);
    if (found == names.end())
      return InvalidData(folder.path(), ": there is no tensor '", name, "', which config.json asks for");
    match.sources.push_back(found->second);
  }
  const std::vector<uint32_t> parts = SplitRows(p, d.architecture, match.sources.size());
  for (size_t i = 0; i < match.sources.size(); ++i)
    WISP_RETURN_IF_ERROR(CheckSource(folder, match.sources[i], MakeShape(match, parts[i], d.num_positions)));
  return match;
}

// Returns `count` rows of a tensor, from `first` on.
SafeTensor RowsFrom(const SafeTensor& tensor, size_t first, size_t count, size_t cols) {
  SafeTensor rows = tensor;
  const size_t row_bytes = cols * ElementBytes(tensor.type);
  rows.bytes = tensor.bytes.subspan(first * row_bytes, count * row_bytes);
  return rows;
}

void Copy(const Description& d, const Match& match, const FoundTensor& source, uint32_t rows, std::span<float> to) {
  const ParameterSpec& p = match.parameter;
  if (match.how == How::kPositions) return RowsFrom(*source.tensor, d.first_position, rows, p.cols).CopyTo(to);
  if (match.how != How::kTransposed) return source.tensor->CopyTo(to);
  std::vector<float> untransposed(to.size());
  source.tensor->CopyTo(untransposed);
  Transpose(untransposed, p.cols, rows, to);
}

Status CheckFinite(const Folder& folder, const FoundTensor& source, std::span<const float> values) {
  const auto wrong = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
  if (wrong == values.end()) return OkStatus();
  return InvalidData(folder.path(), ": tensor ", Shown(source.tensor->name), " holds ", *wrong,
                     ", allowed are finite numbers");
}

}  // namespace

std::vector<uint32_t> SplitRows(const ParameterSpec& p, const Architecture& a, size_t count) {
  if (count == 1) return {p.shape == ParameterShape::kVector ? p.cols : p.rows};
  const BlockSpec& block = a.blocks[p.block];
  if (count == 2) return {block.feed_forward.inner_width, block.feed_forward.inner_width};
  const uint32_t keys = block.attention.keys_width();
  return {block.attention.queries_width(), keys, keys};
}

void Transpose(std::span<const float> from, size_t rows, size_t cols, std::span<float> to) {
  constexpr size_t kTile = 32;  // so that the lines of its rows and columns fit the first cache together
  for (size_t r0 = 0; r0 < rows; r0 += kTile) {
    for (size_t c0 = 0; c0 < cols; c0 += kTile) {
      const size_t r1 = std::min(rows, r0 + kTile), c1 = std::min(cols, c0 + kTile);
      for (size_t c = c0; c < c1; ++c) {
        for (size_t r = r0; r < r1; ++r) to[c * rows + r] = from[r * cols + c];
      }
    }
  }
}

Result<Matching> MatchTensors(const Folder& folder, const Description& d) {
  WISP_ASSIGN_OR_RETURN(const std::string prefix, FindPrefix(folder, *d.family));
  WISP_ASSIGN_OR_RETURN(const Names names, PlainNames(folder, prefix));
  const std::vector<Row> rows = GetRows(*d.family, d.architecture.head.kind);
  Matching matching;
  std::set<const SafeTensor*> used;
  for (const ParameterSpec& p : ListParameters(d.architecture)) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.role == p.role; });
    if (row == rows.end())
      return Unsupported(folder.path(), ": ", d.family->name, " models have no tensor for ", p.name);
    WISP_ASSIGN_OR_RETURN(Match match, MatchOne(folder, d, names, *row, p));
    for (const FoundTensor& source : match.sources) used.insert(source.tensor);
    matching.matches.push_back(std::move(match));
  }
  for (const auto& [plain, found] : names) {
    if (used.contains(found.tensor)) continue;
    WISP_ASSIGN_OR_RETURN(std::string reason, ReasonToLeaveOut(folder, d, plain, found));
    matching.left_out.push_back({found, std::move(reason)});
  }
  return matching;
}

Result<Weights> ReadWeights(const Folder& folder, const Description& d, const Matching& matching) {
  Weights weights(FlatSize(ListParameters(d.architecture)));
  for (const Match& match : matching.matches) {
    const ParameterSpec& p = match.parameter;
    const std::vector<uint32_t> parts = SplitRows(p, d.architecture, match.sources.size());
    size_t at = p.offset;
    for (size_t i = 0; i < parts.size(); ++i) {
      const size_t size = p.shape == ParameterShape::kVector ? parts[i] : size_t{parts[i]} * p.cols;
      const std::span<float> values = weights.values().subspan(at, size);
      Copy(d, match, match.sources[i], parts[i], values);
      WISP_RETURN_IF_ERROR(CheckFinite(folder, match.sources[i], values));
      at += size;
    }
  }
  return weights;
}

}  // namespace wisp::convert::hugging_face
