#include "tools/lab/reproduce/measured_cell.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/wisp/recipe/json_section.h"

namespace wisp::tools {
namespace {

// Reads "all" or "base:K".
Status ReadSupport(const std::string& where, const std::string& text, uint32_t& base_top) {
  if (text == "all") return OkStatus();
  const std::string number = text.starts_with("base:") ? text.substr(5) : "";
  if (!number.empty() && number.size() <= 9 && number.find_first_not_of("0123456789") == std::string::npos)
    base_top = static_cast<uint32_t>(std::stoul(number));
  if (base_top > 1) return OkStatus();
  return InvalidData(where, ".support is '", text,
                     "', allowed are all and base:K, the K best of the base model, K 2 or more");
}

Status CheckTarget(const std::string& where, const DecodeCell& c) {
  if (c.mode == DecodingMode::kPlain) {
    if (c.epsilon == 0 && c.delta == 0 && c.samples == 0) return OkStatus();
    return InvalidData(where,
                       ": the modes plain and base are without a target, they take no epsilon, delta or samples");
  }
  if (c.epsilon == 0 || c.samples == 0)
    return InvalidData(where, ": it needs an epsilon and the number of samples that it is for");
  if (c.composition == DecodeCell::Composition::kPld && c.delta == 0)
    return InvalidData(where, ": the composition pld needs a delta");
  if (c.composition == DecodeCell::Composition::kPure && c.delta != 0)
    return InvalidData(where, ": the composition pure is at delta 0, it takes no delta");
  return OkStatus();
}

}  // namespace

Result<BenchCell> ReadBenchCell(const std::string& where, const nlohmann::json& json) {
  BenchCell cell;
  BenchArguments& a = cell.arguments;
  JsonSection s(where, json);
  s.Text("what", a.what);
  s.Text("method", cell.method);
  s.Number("items", a.items, 2, 1e8);
  s.Number("batch", a.batch, 1, 1e6);
  s.Number("length", a.length, 1, 1e5);
  s.Number("repeats", a.repeats, 1, 1e4);
  WISP_RETURN_IF_ERROR(s.Finish());
  const bool clipping = a.what == "clipping";
  if (!clipping && a.what != "sparse")
    return InvalidData(where, ".what is '", a.what, "', allowed are clipping and sparse");
  const std::vector<std::string> methods = clipping ? std::vector<std::string>{"ordinary", "phantom", "ghost"}
                                                    : std::vector<std::string>{"adafest", "dense"};
  if (std::find(methods.begin(), methods.end(), cell.method) == methods.end()) {
    return InvalidData(where, ".method is '", cell.method, "', allowed are ",
                       (clipping ? "ordinary, phantom and ghost" : "adafest and dense"));
  }
  if (!clipping && json.contains("length"))
    return InvalidData(where, ": sparse steps have 8 positions, it takes no length");
  if (!clipping && a.items < 512)
    return InvalidData(where, ": sparse steps have 256 negatives, which takes 512 items or more");
  nlohmann::json rest = json;
  rest.erase("method");
  cell.together = rest.dump();
  return cell;
}

Result<DecodeCell> ReadDecodeCell(const std::string& where, const nlohmann::json& json) {
  using Composition = DecodeCell::Composition;
  DecodeCell cell;
  std::string support = "all";
  JsonSection s(where, json);
  std::pair<DecodingMode, bool> mode(cell.mode, false);  // second: true for the base
  s.Choice<std::pair<DecodingMode, bool>>("mode", mode,
                                          {{"uniform", {DecodingMode::kUniform, false}},
                                           {"anchored", {DecodingMode::kBaseAnchored, false}},
                                           {"plain", {DecodingMode::kPlain, false}},
                                           {"base", {DecodingMode::kPlain, true}}});
  std::tie(cell.mode, cell.of_base) = mode;
  s.Choice<Composition>("composition", cell.composition, {{"pure", Composition::kPure}, {"pld", Composition::kPld}});
  s.Number("epsilon", cell.epsilon, 1e-9, 1e6);
  s.Number("delta", cell.delta, 1e-300, 0.5);
  s.Number("temperature", cell.temperature, 1e-3, 1e3);
  s.Number("samples", cell.samples, 1, 1e9);
  s.Text("support", support);
  WISP_RETURN_IF_ERROR(s.Finish());
  if (!json.contains("mode")) return InvalidData(where, ": it needs a mode: uniform, anchored, plain or base");
  WISP_RETURN_IF_ERROR(ReadSupport(where, support, cell.base_top));
  WISP_RETURN_IF_ERROR(CheckTarget(where, cell));
  return cell;
}

}  // namespace wisp::tools
