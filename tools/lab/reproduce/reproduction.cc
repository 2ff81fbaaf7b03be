#include "tools/lab/reproduce/reproduction.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/core/hash.h"
#include "runtime/core/hex.h"
#include "tools/wisp/recipe/json_section.h"

namespace wisp::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "models/reproduce";

// Objects print their keys in sorted order, so equal recipes have equal text.
std::string RecipeHash(nlohmann::json recipe) {
  if (recipe.contains("training") && recipe["training"].is_object()) recipe["training"].erase("seed");
  const std::string text = recipe.dump();
  return ToHex(Hash64(std::as_bytes(std::span<const char>(text))));
}

Result<std::vector<uint64_t>> ReadSeeds(const std::string& where, const nlohmann::json* json) {
  std::vector<uint64_t> seeds;
  for (size_t i = 0; json != nullptr && json->is_array() && i < json->size(); ++i) {
    if ((*json)[i].is_number_unsigned()) seeds.push_back((*json)[i].get<uint64_t>());
  }
  std::vector<uint64_t> sorted = seeds;
  std::sort(sorted.begin(), sorted.end());
  const bool repeats = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (seeds.empty() || seeds.size() != json->size() || repeats) {
    return InvalidData(where, ".seeds is ", (json == nullptr ? "missing" : Dumped(*json)),
                       ", allowed is an array of different whole numbers");
  }
  return seeds;
}

Status CheckPublished(const std::string& where, const char* key, const nlohmann::json* json) {
  if (json == nullptr) return OkStatus();
  const bool good = json->is_object() && std::all_of(json->begin(), json->end(),
                                                     [](const nlohmann::json& value) { return value.is_number(); });
  return good ? OkStatus() : InvalidData(where, ".", key, " is ", Dumped(*json), ", allowed is an object of numbers");
}

Status ReadMeasured(JsonSection& s, ReproductionCell& cell) {
  const bool bench = cell.kind == ReproductionCell::Kind::kBench;
  const char* key = bench ? "bench" : "decode";
  const std::string where = s.where() + "." + key;
  const nlohmann::json* settings = s.Any(key);
  if (settings == nullptr) return InvalidData(where, " is missing, allowed is an object that says what is measured");
  if (bench) {
    WISP_ASSIGN_OR_RETURN(cell.bench, ReadBenchCell(where, *settings));
  } else {
    WISP_ASSIGN_OR_RETURN(cell.decode, ReadDecodeCell(where, *settings));
  }
  cell.recipe_hash = RecipeHash(*settings);
  return OkStatus();
}

Status CheckHoldsOut(const std::string& where, const ReproductionCell& cell) {
  const std::optional<TextSpec>& text = cell.recipe.text;
  if (text ? text->hold_out_share > 0 : cell.recipe.hold_out != HoldOut::kNothing) return OkStatus();
  return InvalidData(where, " (", cell.Name(), "): its recipe holds nothing out to be tested on");
}

Status ReadBaseline(JsonSection& s, const nlohmann::json& base, ReproductionCell& cell) {
  const nlohmann::json* name = s.Any("baseline");
  if (name == nullptr || (*name != "popularity" && *name != "transitions"))
    return InvalidData(s.where(), ".baseline is ", (name == nullptr ? "missing" : Dumped(*name)),
                       ", allowed are \"popularity\" and \"transitions\"");
  cell.transitions = *name == "transitions";
  WISP_ASSIGN_OR_RETURN(cell.recipe, ParseRecipe(s.where() + " (" + cell.Name() + ") base:", base));
  if (cell.recipe.text) return InvalidData(s.where(), " (", cell.Name(), "): its base is a recipe of texts, not items");
  cell.recipe_hash = RecipeHash({{"baseline", *name}, {"data", base.value("data", nlohmann::json::object())}});
  return CheckHoldsOut(s.where(), cell);
}

Status ReadCell(JsonSection& s, const nlohmann::json& base, ReproductionCell& cell) {
  using Kind = ReproductionCell::Kind;
  s.Text("row", cell.row);
  s.Text("column", cell.column);
  s.Choice<Kind>(
      "kind", cell.kind,
      {{"train", Kind::kTrain}, {"bench", Kind::kBench}, {"decode", Kind::kDecode}, {"baseline", Kind::kBaseline}});
  for (const auto& name : {cell.row, cell.column}) {
    if (name.empty() || name.find('/') != std::string::npos)
      return InvalidData(s.where(), ": row and column need a name without '/'");
  }
  for (const char* key : {"published", "published_deviation"})
    WISP_RETURN_IF_ERROR(CheckPublished(s.where(), key, s.Any(key)));
  if (cell.kind == Kind::kBaseline) return ReadBaseline(s, base, cell);
  if (cell.kind != Kind::kTrain) return ReadMeasured(s, cell);
  const nlohmann::json* overrides = s.Any("overrides");
  const nlohmann::json* seeds = s.Any("seeds");
  WISP_ASSIGN_OR_RETURN(cell.seeds, ReadSeeds(s.where(), seeds));
  nlohmann::json merged = base;
  if (overrides != nullptr) merged.merge_patch(*overrides);
  WISP_ASSIGN_OR_RETURN(cell.recipe, ParseRecipe(s.where() + " (" + cell.Name() + ") recipe:", merged));
  cell.recipe_hash = RecipeHash(std::move(merged));
  return CheckHoldsOut(s.where(), cell);
}

Status CheckUnique(const std::string& path, const std::vector<ReproductionCell>& cells) {
  std::set<std::string> names;
  for (const ReproductionCell& cell : cells) {
    if (!names.insert(cell.Name()).second) return InvalidData(path, ": the cell ", cell.Name(), " is there twice");
  }
  return cells.empty() ? InvalidData(path, ": there are no cells") : OkStatus();
}

Result<std::string> FindTable(const std::string& table) {
  if (table.ends_with(".json")) return table;
  const std::string path = std::string(kFolder) + "/" + table + ".json";
  std::error_code error;
  if (fs::exists(path, error)) return path;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  std::string allowed;
  for (const std::string& name : names) allowed += (allowed.empty() ? "" : ", ") + name;
  const bool elsewhere = allowed.empty();
  return InvalidArgument((table.empty() ? "the name of a table is needed" : "there is no table '" + table + "'"),
                         ": tables are looked for in ./", kFolder, (elsewhere ? ", which is not here" : ": " + allowed),
                         (elsewhere ? "; run this where the tables are, or give a path that ends in .json"
                                    : "; a path that ends in .json is allowed too"));
}

}  // namespace

Result<Reproduction> ReadReproduction(const std::string& table) {
  WISP_ASSIGN_OR_RETURN(const std::string path, FindTable(table));
  WISP_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  Reproduction r;
  std::string base_path;
  JsonSection s(path + ":", json);
  s.Text("name", r.name);
  s.Text("title", r.title);
  s.Text("base", base_path);
  s.Object("data", [&](JsonSection& inner) {
    inner.Text("label", r.data_label);
    inner.Text("format", r.data_format);
    inner.Number("users", r.users, 1, 4e9);
    inner.Number("items", r.items, 1, 4e9);
    inner.Flag("public", r.says_public);
  });
  for (const char* drawn : {"reference", "row_title", "column_title", "metrics", "plot", "notes"}) s.Any(drawn);
  nlohmann::json base = nlohmann::json::object();
  if (!base_path.empty()) {
    WISP_ASSIGN_OR_RETURN(base, ReadJson((fs::path(path).parent_path() / base_path).lexically_normal().string()));
  }
  s.Objects("cells", [&](JsonSection& inner) {
    ReproductionCell cell;
    inner.Fail(ReadCell(inner, base, cell));
    r.cells.push_back(std::move(cell));
  });
  WISP_RETURN_IF_ERROR(s.Finish());
  if (r.name.empty() || r.data_label.empty()) return InvalidData(path, ": it needs a name, and data with a label");
  WISP_RETURN_IF_ERROR(CheckUnique(path, r.cells));
  return r;
}

Result<std::vector<const ReproductionCell*>> SelectCells(const Reproduction& table, const std::string& name) {
  std::vector<const ReproductionCell*> cells;
  std::string allowed;
  for (const ReproductionCell& cell : table.cells) {
    if (name.empty() || cell.Name() == name) cells.push_back(&cell);
    allowed += (allowed.empty() ? "" : ", ") + cell.Name();
  }
  if (cells.empty()) return InvalidArgument(table.name, " has no cell '", name, "', allowed are ", allowed);
  return cells;
}

}  // namespace wisp::tools
