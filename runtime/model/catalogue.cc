#include "runtime/model/catalogue.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "runtime/core/text.h"

namespace wisp {
namespace {

// Weighted rows of existing items, with weights that add up to 1. A new row is their weighted sum.
struct RowMixture {
  std::vector<std::pair<uint32_t, double>> rows;
  RowOrigin origin;
};

std::set<std::string> GetWords(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text) {
    if (IsAsciiLetter(c) || IsAsciiDigit(c) || static_cast<unsigned char>(c) >= 0x80) {
      word += AsciiLower(c);
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.insert(word);
  return words;
}

std::string_view GetName(const ModelFile& model, size_t item) {
  return model.has_item_names() ? model.item_name(item) : model.item_key(item);
}

class Rows {
 public:
  explicit Rows(const ModelFile& base) : base_(base) {
    for (uint32_t i = 0; i < base.num_items(); ++i) {
      for (const std::string& word : GetWords(GetName(base, i))) items_of_[word].push_back(i);
    }
  }

  Result<RowMixture> Of(const NewItem& item) const {
    if (!item.like.empty()) {
      const auto like = base_.FindItem(item.like);
      if (!like)
        return InvalidArgument(base_.name(), ": item '", OneLine(item.key), "' is to be like '", OneLine(item.like),
                               "', which its items do not have");
      return RowMixture{{{*like, 1.0}}, RowOrigin::kNeighbour};
    }
    std::map<uint32_t, double> weights;
    const double items = base_.num_items();
    double sum = 0;
    for (const std::string& word : GetWords(item.name.empty() ? item.key : item.name)) {
      const auto found = items_of_.find(word);
      if (found == items_of_.end()) continue;
      const auto count = static_cast<double>(found->second.size());
      const double weight = std::log1p(items / count);
      for (const uint32_t i : found->second) weights[i] += weight / count;
      sum += weight;
    }
    RowMixture mixture{{}, RowOrigin::kWords};
    for (const auto& [i, weight] : weights) mixture.rows.emplace_back(i, weight / sum);
    if (!mixture.rows.empty()) return mixture;
    mixture.origin = RowOrigin::kMean;
    for (uint32_t i = 0; i < base_.num_items(); ++i) mixture.rows.emplace_back(i, 1 / items);
    return mixture;
  }

 private:
  const ModelFile& base_;
  std::map<std::string, std::vector<uint32_t>> items_of_;
};

// The rows of new features stay 0 here, as do those that follow from them.
void CopyParameter(const ParameterSpec& from, const ParameterSpec& to, std::span<const float> old,
                   const std::vector<RowMixture>& mixtures, std::vector<float>& weights) {
  std::copy_n(old.data() + from.offset, from.size(), weights.data() + to.offset);
  const bool from_features =
      from.role == ParameterRole::kItemFeatures || (from.role == ParameterRole::kItemTable && !from.trained);
  const size_t n = from_features ? 0 : CountItemNumbers(from);
  for (size_t m = 0; n > 0 && m < mixtures.size(); ++m) {
    for (size_t c = 0; c < n; ++c) {
      double sum = 0;
      for (const auto& [row, weight] : mixtures[m].rows) sum += weight * old[from.offset + row * n + c];
      weights[to.offset + from.size() + m * n + c] = static_cast<float>(sum);
    }
  }
}

Status CheckBase(const ModelFile& base) {
  if (base.is_classifier() || base.architecture().adapter)
    return InvalidArgument(base.name(), ": items are added to recommenders and retired from them, adapters aside");
  if (base.has_item_keys()) return OkStatus();
  return InvalidArgument(base.name(), ": it has no item keys, by which items are added and retired");
}

Status Check(const ModelFile& base, std::span<const NewItem> items) {
  WISP_RETURN_IF_ERROR(CheckBase(base));
  std::unordered_set<std::string> keys;
  for (const NewItem& item : items) {
    if (item.key.empty()) return InvalidArgument("a new item has no key");
    if (base.FindItem(item.key) || !keys.insert(item.key).second)
      return InvalidArgument(base.name(), ": item '", OneLine(item.key), "' is there already");
    if (const size_t features = base.architecture().item_features; item.features.size() != features)
      return InvalidArgument(base.name(), ": item '", OneLine(item.key), "' has ", item.features.size(),
                             " features; each item of the model has ", features);
  }
  return OkStatus();
}

}  // namespace

size_t CountItemNumbers(const ParameterSpec& p) {
  switch (p.role) {
    case ParameterRole::kItemFeatures:
    case ParameterRole::kItemTable:
    case ParameterRole::kOutputTable:
      return p.cols;
    case ParameterRole::kOutputBias:
    case ParameterRole::kItemVariance:
      return 1;
    default:
      return 0;
  }
}

void RowsFromFeatures(const Architecture& a, size_t first, std::span<float> weights) {
  const std::vector<ParameterSpec> parameters = ListParameters(a);
  const auto at = [&](ParameterRole role) {
    return weights.data() + parameters[RequireParameter(parameters, role)].offset;
  };
  const float *tower = at(ParameterRole::kItemTower), *features = at(ParameterRole::kItemFeatures);
  float* rows = at(ParameterRole::kItemTable);
  std::vector<double> row(a.width);
  for (size_t item = first; item < a.num_items; ++item) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t f = 0; f < a.item_features; ++f) {
      const double x = features[item * a.item_features + f];
      for (size_t c = 0; c < a.width; ++c) row[c] += x * double{tower[f * a.width + c]};
    }
    for (size_t c = 0; c < a.width; ++c) rows[item * a.width + c] = static_cast<float>(row[c]);
  }
}

std::vector<std::string> GetItemKeys(const ModelFile& model) {
  std::vector<std::string> keys;
  for (size_t i = 0; model.has_item_keys() && i < model.num_items(); ++i) keys.emplace_back(model.item_key(i));
  return keys;
}

Result<GrownModel> AddItems(const ModelFile& base, std::span<const NewItem> items) {
  WISP_RETURN_IF_ERROR(Check(base, items));
  const Rows rows(base);
  std::vector<RowMixture> mixtures;
  GrownModel grown;
  for (const NewItem& item : items) {
    WISP_ASSIGN_OR_RETURN(RowMixture mixture, rows.Of(item));
    grown.origins.push_back(mixture.origin);
    mixtures.push_back(std::move(mixture));
  }
  std::vector<float> room;
  const std::span<const float> old = base.AllWeights(room);
  grown.contents = ContentsWithoutWeights(base);
  grown.contents.storage = base.storage();
  grown.contents.architecture.num_items += static_cast<uint32_t>(items.size());
  WISP_RETURN_IF_ERROR(Validate(grown.contents.architecture));
  const auto from = ListParameters(base.architecture()), to = ListParameters(grown.contents.architecture);
  grown.weights.resize(FlatSize(to));
  for (size_t i = 0; i < from.size(); ++i) CopyParameter(from[i], to[i], old, mixtures, grown.weights);
  const bool has_features = base.architecture().item_features > 0;
  for (const NewItem& item : items) {
    grown.contents.item_keys.push_back(item.key);
    if (base.has_item_names()) grown.contents.item_names.push_back(item.name.empty() ? item.key : item.name);
    if (!has_features) grown.contents.untrained.push_back(static_cast<int32_t>(grown.contents.item_keys.size()) - 1);
  }
  if (has_features) {
    float* next = grown.weights.data() + to[RequireParameter(to, ParameterRole::kItemFeatures)].offset +
                  size_t{base.num_items()} * base.architecture().item_features;
    for (const NewItem& item : items) next = std::copy(item.features.begin(), item.features.end(), next);
    RowsFromFeatures(grown.contents.architecture, base.num_items(), grown.weights);
    std::fill(grown.origins.begin(), grown.origins.end(), RowOrigin::kFeatures);
  }
  grown.contents.weights = grown.weights;
  return grown;
}

Result<ModelContents> ChangeOffer(const ModelFile& base, std::span<const std::string> keys, Offer offer,
                                  std::vector<float>& room) {
  WISP_RETURN_IF_ERROR(CheckBase(base));
  std::set<int32_t> retired(base.retired().begin(), base.retired().end());
  for (const std::string& key : keys) {
    const auto item = base.FindItem(key);
    if (!item) return InvalidArgument(base.name(), ": there is no item '", OneLine(key), "' in it");
    if (offer == Offer::kRetired) {
      retired.insert(static_cast<int32_t>(*item));
    } else {
      retired.erase(static_cast<int32_t>(*item));
    }
  }
  std::set<int32_t> withheld = retired;
  withheld.insert(base.untrained().begin(), base.untrained().end());
  if (withheld.size() == base.num_items())
    return InvalidArgument(base.name(), ": all its items would be retired",
                           base.untrained().empty() ? "" : " or have not learned yet",
                           "; one at least must be left to recommend");
  ModelContents contents = GetContents(base, room);
  contents.storage = base.storage();
  contents.retired.assign(retired.begin(), retired.end());
  return contents;
}

}  // namespace wisp
