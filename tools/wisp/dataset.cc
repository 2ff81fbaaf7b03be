#include "tools/wisp/dataset.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "runtime/core/date.h"
#include "runtime/core/decimal.h"
#include "runtime/core/native_path.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"
#include "runtime/core/text.h"
#include "runtime/private_sampling/decoding_need.h"
#include "runtime/privacy/json.h"
#include "tools/wisp/option_names.h"

namespace wisp::tools {

std::string Version() { return WISP_VERSION; }

std::string Timestamp() { return UtcTime(std::time(nullptr)) + "Z-" + std::to_string(platform::GetProcess()); }

std::vector<std::string> ItemKeys(const ModelFile& model) {
  std::vector<std::string> keys;
  for (size_t i = 0; model.has_item_keys() && i < model.num_items(); ++i) keys.emplace_back(model.item_key(i));
  return keys;
}

Status CheckLabels(const std::vector<std::string>& public_datasets, std::initializer_list<const ModelFile*> models) {
  std::vector<std::string> known;
  std::string listed;
  for (const ModelFile* model : models) {
    for (size_t i = 0; model != nullptr && i < model->provenance().size(); ++i) {
      const std::string& name = model->provenance()[i].dataset;
      if (name.empty() || name == kUnknownDataset || std::find(known.begin(), known.end(), name) != known.end())
        continue;
      known.push_back(name);
      listed += (listed.empty() ? "'" : ", '") + name + "'";
    }
  }
  for (const std::string& label : public_datasets) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    return InvalidArgument("--public-dataset is '", label, "', which no provenance here names: ",
                           (known.empty() ? "there is no data set in it" : "its data sets are " + listed));
  }
  return OkStatus();
}

std::string StartInWords(const ModelFile* base, const std::string& dataset,
                         const std::vector<std::string>& public_datasets) {
  if (base == nullptr) return "";
  const DecodingNeed need = FindNeed(*base, {.public_datasets = public_datasets});
  std::string alone =
      need.kind == DecodingNeed::Kind::kFree
          ? ""
          : "epsilon is of this run alone; of the weights it began with: " + InProgramWords(need.reason);
  // Guarantees on data with other names. Only the user knows whose data that is.
  std::string others;
  for (const ProvenanceEntry& e : base->provenance()) {
    const bool is_public =
        std::find(public_datasets.begin(), public_datasets.end(), e.dataset) != public_datasets.end();
    if (!e.epsilon || *e.epsilon <= 0 || e.dataset == dataset || is_public) continue;
    others += (others.empty() ? "epsilon " : ", ") + privacy::EpsilonText(*e.epsilon) + " at delta " +
              privacy::DoubleText(e.delta) + " on '" + e.dataset + "'";
  }
  if (others.empty()) return alone;
  return alone + (alone.empty() ? "" : "; ") + "the weights it began with carry " + others +
         " besides: where both are data of the same people, add the two";
}

Result<data::ReadResult> ReadData(const DataArguments& a, const ReadLimits& limits, const ModelFile* model) {
  data::ReadOptions options{.min_user_events = limits.min_user_events,
                            .min_item_events = limits.min_item_events,
                            .units = limits.units,
                            .private_run = limits.private_run,
                            .keep_times = limits.needs_times,
                            .needs_times = limits.needs_times};
  std::optional<data::ItemIndex> index;
  if (model != nullptr) {
    if (!model->has_item_keys())
      return InvalidData("the model carries no item keys: events cannot be matched to its items");
    const std::vector<std::string> keys = ItemKeys(*model);
    WISP_ASSIGN_OR_RETURN(index, data::ItemIndex::Make("the model", keys));
    options.known_items = &*index;
  }
  return ReadData(a, options);
}

static void SetColumns(const DataArguments& a, data::ReadOptions& options) {
  options.user_column = a.user_column;
  options.item_column = a.item_column;
  options.time_column = a.time_column;
  options.table = a.table;
}

Result<std::vector<data::Event>> ReadGivenEvents(const DataArguments& a, const data::Units& units) {
  data::ReadOptions options{.units = units};
  SetColumns(a, options);
  WISP_ASSIGN_OR_RETURN(const data::Format format, data::ParseFormat(a.format));
  return data::ReadEvents(a.path, format, options);
}

Result<data::ReadResult> ReadData(const DataArguments& a, data::ReadOptions options) {
  SetColumns(a, options);
  WISP_ASSIGN_OR_RETURN(const data::Format format, data::ParseFormat(a.format));
  WISP_ASSIGN_OR_RETURN(data::ReadResult result, data::ReadSequences(a.path, format, options));
  for (const std::string& warning : data::Warnings(result.report))
    std::fprintf(stderr, "wisp: %s: %s (local only)\n", OneLine(a.path).c_str(), OneLine(warning).c_str());
  return result;
}

void WarnIfRepeatsAreMisses(const DataArguments& a, const data::ReadReport& report, bool allow_seen) {
  if (allow_seen || report.repeats == 0) return;
  std::fprintf(stderr,
               "wisp: %s: %s of an item that the user had before: no list shows these, and they count as misses; "
               "\"allow_seen\": true in the recipe lets lists hold them (local only)\n",
               OneLine(a.path).c_str(), Counted(report.repeats, "event").c_str());
}

Result<std::vector<std::string>> ReadItemNames(const std::string& path, const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  if (path.empty()) return names;
  std::ifstream file(NativePath(path));
  if (!file) return IoError(path, ": the item names cannot be opened: ", Reason(errno));
  std::unordered_map<std::string, std::string> by_key;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    if (tab == std::string::npos)
      return InvalidData(path, ", line ", number, ": there is no tab; allowed is key<TAB>name");
    // More columns may follow the name.
    by_key[line.substr(0, tab)] = line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1);
  }
  for (const std::string& key : keys) {
    const auto it = by_key.find(key);
    names.push_back(it != by_key.end() && !it->second.empty() ? it->second : key);
  }
  return names;
}

namespace {

// Appends the numbers of a line. False if something is not a finite number.
bool AppendNumbers(std::string_view text, std::vector<float>& values) {
  const char *at = text.data(), *end = at + text.size();
  const auto separates = [](char c) { return c == '\t' || c == ',' || c == ' '; };
  while (at != end) {
    if (separates(*at)) {
      ++at;
      continue;
    }
    double number = 0;
    const auto [next, error] = ReadDecimal(at, end, number);
    if (error != std::errc() || !(std::abs(number) <= double{std::numeric_limits<float>::max()})) return false;
    if (next != end && !separates(*next)) return false;
    values.push_back(static_cast<float>(number));
    at = next;
  }
  return true;
}

}  // namespace

Result<ItemFeatures> ReadItemFeatures(const std::string& path) {
  std::ifstream file(NativePath(path));
  if (!file) return IoError(path, ": the item features cannot be opened: ", Reason(errno));
  ItemFeatures items;
  std::unordered_set<std::string> keys;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const size_t tab = line.find('\t'), before = items.values.size();
    const std::string key = line.substr(0, tab);
    if (key.empty() || tab == std::string::npos)
      return InvalidData(path, ", line ", number, ": there is no key before a tab; allowed is key<TAB>numbers");
    if (!keys.insert(key).second)
      return InvalidData(path, ", line ", number, ": item '", OneLine(key), "' comes again");
    if (!AppendNumbers(std::string_view(line).substr(tab + 1), items.values))
      return InvalidData(path, ", line ", number, ": not every feature is a finite number");
    const size_t count = items.values.size() - before;
    if (items.keys.empty()) items.count = static_cast<uint32_t>(std::min<size_t>(count, kMaxItemFeatures + 1));
    if (count != items.count || count == 0 || count > kMaxItemFeatures)
      return InvalidData(path, ", line ", number, ": has ", count, " features; allowed are ",
                         items.keys.empty() ? 1 : items.count,
                         items.keys.empty() ? " to 8192" : ", as in the first line");
    items.keys.push_back(key);
  }
  if (items.keys.empty()) return InvalidData(path, ": there is no item in it; allowed are lines of key<TAB>numbers");
  return items;
}

Result<std::vector<float>> SelectFeatures(const std::string& path, const ItemFeatures& features,
                                          const std::vector<std::string>& keys) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < features.keys.size(); ++i) places[features.keys[i]] = i;
  std::vector<float> selected;
  selected.reserve(keys.size() * features.count);
  for (const std::string& key : keys) {
    const auto found = places.find(key);
    if (found == places.end()) return InvalidData(path, ": there is no line of item '", OneLine(key), "'");
    const auto first = features.values.begin() + static_cast<ptrdiff_t>(found->second * features.count);
    selected.insert(selected.end(), first, first + features.count);
  }
  return selected;
}

std::string ShownItem(const ModelFile& model, size_t item) {
  if (model.has_item_names()) return std::string(model.item_name(item));
  if (model.has_item_keys()) return std::string(model.item_key(item));
  return std::to_string(item);
}

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace wisp::tools
