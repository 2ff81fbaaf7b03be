// Implements `wisp catalogue`.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>

#include "runtime/core/file.h"
#include "runtime/core/native_path.h"
#include "runtime/core/reason.h"
#include "runtime/core/text.h"
#include "runtime/data/columns.h"
#include "runtime/data/marked_keys.h"
#include "runtime/model/catalogue.h"
#include "runtime/personalise/rebase.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
namespace {

// True if the line is the header of a CSV or TSV file of events.
bool NamesEvents(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream rest(line);
  for (std::string column; std::getline(rest, column, line.find('\t') == std::string::npos ? ',' : '\t');)
    columns.push_back(column);
  return data::ChooseColumns("", columns, {}).ok();
}

// Each line of the file names an item.
struct ItemLines {
  const char* what;     // names the file in the error about one that cannot be opened
  const char* allowed;  // ends the error about a file without an item
};

Result<std::vector<NewItem>> ReadItems(const std::string& path, const ItemLines& lines) {
  std::ifstream file(NativePath(path));
  if (!file) return IoError(path, ": ", lines.what, " cannot be opened: ", Reason(errno));
  std::vector<NewItem> items;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (items.empty() && NamesEvents(line))
      return InvalidData(path, ": its first line is '", OneLine(line), "', so it holds events; allowed are ",
                         lines.allowed);
    const size_t first = line.find('\t'), second = first == std::string::npos ? first : line.find('\t', first + 1);
    NewItem item{.key = line.substr(0, first)};
    if (first != std::string::npos) item.name = line.substr(first + 1, second - first - 1);
    if (second != std::string::npos) item.like = line.substr(second + 1);
    items.push_back(std::move(item));
  }
  if (items.empty()) return InvalidData(path, ": there is no item in it; allowed are ", lines.allowed);
  return items;
}

Result<std::vector<NewItem>> ReadNewItems(const std::string& path) {
  return ReadItems(path, {.what = "the new items", .allowed = "lines of key<TAB>name"});
}

// Reads one key from each line, up to a tab.
Result<std::vector<std::string>> ReadKeys(const std::string& path, Offer offer) {
  WISP_ASSIGN_OR_RETURN(const std::vector<NewItem> items,
                        ReadItems(path, {.what = offer == Offer::kRetired ? "the keys of the items to retire"
                                                                          : "the keys of the items to restore",
                                         .allowed = "lines of one key"}));
  std::vector<std::string> keys;
  for (const NewItem& item : items) keys.push_back(item.key);
  return keys;
}

// Gives each item its features. Items without a line keep none, which AddItems refuses where features are needed.
Status TakeFeatures(const std::string& path, std::vector<NewItem>& items) {
  if (path.empty()) return OkStatus();
  WISP_ASSIGN_OR_RETURN(const ItemFeatures features, ReadItemFeatures(path));
  std::unordered_map<std::string_view, const float*> of_key;
  for (size_t i = 0; i < features.keys.size(); ++i)
    of_key[features.keys[i]] = features.values.data() + i * features.count;
  for (NewItem& item : items) {
    const auto found = of_key.find(item.key);
    if (found == of_key.end()) return InvalidData(path, ": there is no line of item '", OneLine(item.key), "'");
    item.features.assign(found->second, found->second + features.count);
  }
  return OkStatus();
}

const char* GetName(RowOrigin origin) {
  switch (origin) {
    case RowOrigin::kNeighbour:
      return "neighbour";
    case RowOrigin::kWords:
      return "words";
    case RowOrigin::kMean:
      return "mean";
    case RowOrigin::kFeatures:
      return "features";
  }
  return "";
}

}  // namespace

Status RebaseCommand(const RebaseArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kModel, {"--out", a.out}));
  if (!a.adapter.empty()) {
    WISP_RETURN_IF_ERROR(RebaseAdapter(
        {.from = a.from, .adapter = a.adapter, .to = a.to, .output = a.out, .created_by = "wisp " + Version()}));
    if (format == OutputFormat::kJson) {
      PrintJson(Json({{"adapter", a.out}, {"model", a.to}, {"carried", true}}));
    } else {
      PrintText("%s: the adapter beside %s. Nothing was charged, and it was not evaluated\n", OneLine(a.out).c_str(),
                a.to.c_str());
    }
    return OkStatus();
  }
  if (a.ledger.empty()) return InvalidArgument("--ledger is missing: name the ledger of the plan");
  WISP_ASSIGN_OR_RETURN(const RebaseResult r, Rebase({.from = a.from,
                                                      .to = a.to,
                                                      .output = a.out,
                                                      .ledger = a.ledger,
                                                      .start_over = a.start_over,
                                                      .created_by = "wisp " + Version()}));
  if (!r.damaged.empty()) std::fprintf(stderr, "wisp: warning: %s\n", Printable(r.damaged).c_str());
  if (format == OutputFormat::kJson) {
    PrintJson(Json({{"model", a.out},
                    {"carried", r.carried},
                    {"why_not", r.why_not},
                    {"shared_items", r.shared_items},
                    {"lost_items", r.lost_items}}));
    return OkStatus();
  }
  PrintText("%s: serves the new base%s\n", OneLine(a.out).c_str(),
            r.carried ? "; what was learned is carried over, and is served once an evaluation finds it better"
                      : (": " + r.why_not).c_str());
  PrintText("%s items are in both, %s of the old base are gone. Nothing was charged; what was spent stays spent\n",
            Thousands(r.shared_items).c_str(), Thousands(r.lost_items).c_str());
  return OkStatus();
}

Status CatalogueAdd(const CatalogueArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(
      CheckOutputFile(FileKind::kModel, {"--out", a.out},
                      {{"--model", a.model}, {"--items", a.items}, {"--item-features", a.item_features}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(a.model, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(std::vector<NewItem> items, ReadNewItems(a.items));
  WISP_RETURN_IF_ERROR(TakeFeatures(a.item_features, items));
  WISP_ASSIGN_OR_RETURN(GrownModel grown, AddItems(base, items));
  data::MarkedKeys marked;
  for (const NewItem& item : items) marked.Look(item.key);
  if (marked.count > 0) Warn(a.items + ": " + marked.Warning());
  grown.contents.created_by = "wisp " + Version();
  WISP_RETURN_IF_ERROR(WriteModel(a.out, grown.contents));
  size_t counts[4] = {};
  for (const RowOrigin origin : grown.origins) ++counts[static_cast<size_t>(origin)];
  Json j = {{"model", a.out}, {"items", grown.contents.architecture.num_items}, {"added", items.size()}};
  std::string ways;
  for (const RowOrigin origin : {RowOrigin::kNeighbour, RowOrigin::kWords, RowOrigin::kMean, RowOrigin::kFeatures}) {
    const size_t count = counts[static_cast<size_t>(origin)];
    if (origin == RowOrigin::kFeatures && count == 0) continue;
    j["rows_from"][GetName(origin)] = count;
    if (count > 0) ways += (ways.empty() ? "" : ", ") + std::to_string(count) + " from " + GetName(origin);
  }
  if (format == OutputFormat::kJson) {
    PrintJson(j);
  } else {
    PrintText("%s: %s items, of which %zu are new; rows: %s\n", OneLine(a.out).c_str(),
              Thousands(grown.contents.architecture.num_items).c_str(), items.size(), ways.c_str());
    PrintText("%s\n",
              counts[static_cast<size_t>(RowOrigin::kFeatures)] > 0
                  ? "A new item is recommended and read at once, by its features"
                  : "People are served as before: a new item is recommended and read once a run has trained it. A run "
                    "that trains an adapter does not");
  }
  return OkStatus();
}

Status CatalogueOffer(const CatalogueArguments& a, Offer offer, OutputFormat format) {
  WISP_RETURN_IF_ERROR(
      CheckOutputFile(FileKind::kModel, {"--out", a.out}, {{"--model", a.model}, {"--items", a.items}}));
  WISP_ASSIGN_OR_RETURN(const ModelFile base, ModelFile::Open(a.model, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const std::vector<std::string> keys, ReadKeys(a.items, offer));
  std::vector<float> room;
  WISP_ASSIGN_OR_RETURN(ModelContents contents, ChangeOffer(base, keys, offer, room));
  contents.created_by = "wisp " + Version();
  WISP_RETURN_IF_ERROR(WriteModel(a.out, contents));
  if (format == OutputFormat::kJson) {
    PrintJson(
        Json({{"model", a.out}, {"items", contents.architecture.num_items}, {"retired", contents.retired.size()}}));
  } else {
    PrintText("%s: %s items, of which %zu are retired and never recommended\n", OneLine(a.out).c_str(),
              Thousands(contents.architecture.num_items).c_str(), contents.retired.size());
  }
  return OkStatus();
}

Status CatalogueRetire(const CatalogueArguments& a, OutputFormat format) {
  return CatalogueOffer(a, Offer::kRetired, format);
}
Status CatalogueRestore(const CatalogueArguments& a, OutputFormat format) {
  return CatalogueOffer(a, Offer::kRestored, format);
}

Status CatalogueList(const CatalogueArguments& a, OutputFormat format) {
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(a.model));
  Json j = {{"model", a.model}, {"items", Json::array()}};
  for (size_t i = 0; i < model.num_items(); ++i) {
    const std::string key(model.has_item_keys() ? model.item_key(i) : ""), name = ShownItem(model, i);
    const auto is_in = [i](std::span<const int32_t> ids) {
      return std::binary_search(ids.begin(), ids.end(), static_cast<int32_t>(i));
    };
    const bool retired = is_in(model.retired()), untrained = is_in(model.untrained());
    if (format == OutputFormat::kJson) {
      j["items"].push_back({{"key", key}, {"name", name}, {"retired", retired}, {"untrained", untrained}});
    } else {
      PrintText("%s\t%s%s%s\n", OneLine(key).c_str(), OneLine(name).c_str(), retired ? "\tretired" : "",
                untrained ? "\tuntrained" : "");
    }
  }
  if (format == OutputFormat::kJson) PrintJson(j);
  return OkStatus();
}

}  // namespace wisp::tools
