// Implements `wisp evaluate` and `wisp inspect`.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/hash.h"
#include "runtime/core/hex.h"
#include "runtime/core/text.h"
#include "runtime/inference/batch_recommender.h"
#include "runtime/text/texts.h"
#include "runtime/model/model_file.h"
#include "runtime/train/run/baselines.h"
#include "runtime/train/run/records.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/deployment/check_options.h"
#include "tools/wisp/deployment/duration.h"
#include "tools/wisp/output.h"
#include "tools/wisp/padded.h"
#include "tools/wisp/recipe/recipe_section.h"

namespace wisp::tools {
namespace {

// If blocks differ, each one is written by itself in place of the common values. The words are those of a recipe,
// except for items, heads, blocks and each_block.
Json ArchitectureJson(const Architecture& a) {
  const Json of_first = AsUniform(WithoutAdapter(a)) ? Json::object() : WriteBlocks(a)[0];
  Json j = {{"items", a.num_items}, {"max_length", a.max_length}, {"width", a.width}};
  const Json written = WriteArchitecture(a);
  for (const auto& [key, value] : written.items()) {
    if (key == "num_blocks") {
      j["blocks"] = value;
    } else if (key == "blocks") {
      j["each_block"] = value;
    } else if (!of_first.contains(key)) {
      j[key == "num_heads" ? "heads" : key] = value;
    }
  }
  if (a.item_features > 0) j["item_features"] = a.item_features;
  if (a.head.kind == HeadKind::kEmbedding) j["encoder"] = true, j["unit_length"] = a.head.unit_length;
  if (a.adapter) j["adapter"] = WriteAdapter(*a.adapter);
  return j;
}

Json ProvenanceJson(const ProvenanceEntry& p) {
  const bool guaranteed = p.epsilon.has_value();
  return {{"description", p.description},
          {"dataset", p.dataset},
          {"date", p.date},
          {"steps", p.steps},
          {"sampling", p.sampling},
          {"mechanisms", p.mechanisms},
          {"epsilon", guaranteed ? Json(*p.epsilon) : Json()},
          {"delta", guaranteed ? Json(p.delta) : Json()},
          {"accountant", p.accountant},
          {"privacy_unit", p.privacy_unit},
          {"adjacency", p.adjacency},
          {"noise", p.noise == NoiseOrigin::kSecure         ? "secure"
                    : p.noise == NoiseOrigin::kReproducible ? "reproducible, no guarantee"
                                                            : "none"}};
}

const char* GetType(const ModelFile& m, size_t parameter) {
  const StoredTensor& t = m.tensors()[parameter];
  constexpr const char* kPanelBitsNames[] = {"int8", "int4", "f32 panels"};  // indexed by PanelBits
  if (t.panels.data != nullptr) return kPanelBitsNames[static_cast<size_t>(t.panels.bits)];
  return t.halves != nullptr ? "f16" : "f32";
}

std::span<const std::byte> GetBytes(const ModelFile& m, size_t parameter) {
  return GetBytes(m.parameters()[parameter], m.tensors()[parameter]);
}

// Hashes the stored bytes, in the order of the file.
uint64_t ComputeHash(const ModelFile& m, size_t parameter) { return Hash64(GetBytes(m, parameter)); }

Json InspectJson(const std::string& path, const ModelFile& m) {
  Json tensors = Json::array(), provenance = Json::array();
  for (size_t i = 0; i < m.parameters().size(); ++i) {
    const ParameterSpec& p = m.parameters()[i];
    tensors.push_back({{"name", p.name},
                       {"rows", p.rows},
                       {"columns", p.cols},
                       {"type", GetType(m, i)},
                       {"bytes", GetBytes(m, i).size()},
                       {"hash", ToHex(ComputeHash(m, i))}});
  }
  for (const ProvenanceEntry& p : m.provenance()) provenance.push_back(ProvenanceJson(p));
  return {{"file", path},
          {"bytes", m.size_bytes()},
          {"format_version", m.format_version()},
          {"oldest_reader", m.oldest_reader()},
          {"hash", ToHex(m.content_hash())},
          {"created_by", m.created_by()},
          {"description", m.description()},
          {"architecture", ArchitectureJson(m.architecture())},
          {"tensors", tensors},
          {"item_keys", m.has_item_keys()},
          {"item_names", m.has_item_names()},
          {"retired_items", m.retired().size()},
          {"untrained_items", m.untrained().size()},
          {"allow_seen", m.lists().allow_seen},
          {"successions", m.lists().successions.size()},
          {"provenance", provenance}};
}

Json ClassifierJson(const ModelFile& model) {
  const ClassifierDescription& c = model.classifier();
  const char* tokenizers[] = {"none", "whitespace", "whitespace, lower case"};
  return {{"classes", model.architecture().head.num_classes},
          {"class_names", c.class_names},
          {"norm_bound", c.norm_bound},
          {"tokenizer", tokenizers[static_cast<size_t>(c.tokenizer)]}};
}

// Describes the tokenizer of a model of texts: its size, and its special tokens.
Result<Json> TokenizerJson(const ModelFile& model) {
  WISP_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, wisp::FindTokenizer(model));
  Json j = {{"tokens", tokenizer.size()}, {"bytes", model.tokenizer().size()}};
  const text::SpecialIds ids = tokenizer.special_ids();
  for (const auto& [name, id] :
       {std::pair{"unk", ids.unk}, std::pair{"bos", ids.bos}, std::pair{"eos", ids.eos}, std::pair{"pad", ids.pad},
        std::pair{"cls", ids.cls}, std::pair{"sep", ids.sep}, std::pair{"mask", ids.mask}}) {
    if (id >= 0) j[name] = {{"id", id}, {"text", tokenizer.TokenText(id)}};
  }
  // Generation ends at these too; "eos" is the one that is written after texts.
  Json ends = Json::array();
  for (const int32_t id : tokenizer.other_ends()) ends.push_back({{"id", id}, {"text", tokenizer.TokenText(id)}});
  if (!ends.empty()) j["other_ends"] = ends;
  return j;
}

void PrintSection(const char* title, const Json& section) {
  PrintText("%s\n", title);
  for (const auto& [key, value] : section.items())
    PrintText("  %-16s %s\n", key.c_str(),
              (value.is_string() ? OneLine(value.get<std::string>()) : JsonText(value)).c_str());
}

void PrintInspected(const InspectArguments& a, const ModelFile& model, const Json& j, OutputFormat format) {
  if (format == OutputFormat::kJson) {
    PrintJson(j);
    return;
  }
  PrintText("%s: %llu bytes, format %u, read by format %u and newer, hash %s%s\n", OneLine(a.model).c_str(),
            static_cast<unsigned long long>(model.size_bytes()), model.format_version(), model.oldest_reader(),
            j["hash"].get<std::string>().c_str(), a.verify ? ", every checksum holds" : "");
  if (j.contains("base_hash"))
    PrintText("an adapter, of the model with the hash %s\n", j["base_hash"].get<std::string>().c_str());
  if (model.lists().allow_seen) PrintText("lists may hold items of the history\n");
  if (const size_t count = model.lists().successions.size(); count > 0)
    PrintText("scores rise by %s of items\n", Counted(count, "succession").c_str());
  PrintSection("architecture", j["architecture"]);
  for (const char* section : {"classifier", "tokenizer"}) {
    if (j.contains(section)) PrintSection(section, j[section]);
  }
  PrintText("tensors\n");
  for (size_t i = 0; i < model.parameters().size(); ++i) {
    const ParameterSpec& p = model.parameters()[i];
    PrintText("  %s %6u x %-6u %s %10zu bytes\n", Padded(OneLine(p.name), 34).c_str(), p.rows, p.cols,
              GetType(model, i), GetBytes(model, i).size());
  }
  PrintText("provenance%s\n", model.provenance().empty() ? ": none, untrained" : "");
  for (const ProvenanceEntry& p : model.provenance()) {
    const std::string cost =
        p.epsilon ? "epsilon " + Json(*p.epsilon).dump() + " at delta " + Json(p.delta).dump() : "no privacy guarantee";
    PrintText("  %s on %s, %s, %llu steps: %s\n", OneLine(p.description).c_str(), OneLine(p.dataset).c_str(),
              OneLine(p.date).c_str(), static_cast<unsigned long long>(p.steps), cost.c_str());
    for (const std::string& m : p.mechanisms) PrintText("    %s\n", OneLine(m).c_str());
  }
}

Json QualityJson(const RankingQuality& q) { return {{"ndcg@10", q.ndcg_at_10}, {"hit@10", q.hit_at_10}}; }

std::string InWords(const RankingQuality& q) {
  return "NDCG@10 " + Fixed(q.ndcg_at_10, 4) + ", HIT@10 " + Fixed(q.hit_at_10, 4);
}

void PrintBaselines(const RankingQuality& model, const BaselineQuality& b) {
  std::string better;
  for (const auto& [name, quality] : {std::pair{"popularity", b.popularity}, std::pair{"transitions", b.transitions}}) {
    PrintText("%s, without training: %s\n", name, InWords(quality).c_str());
    if (quality.ndcg_at_10 >= model.ndcg_at_10) better += (better.empty() ? "" : ", ") + std::string(name);
  }
  if (!better.empty()) PrintText("no better than what needs no training, by NDCG@10: %s\n", better.c_str());
}

}  // namespace

Status Evaluate(const EvaluateArguments& a, OutputFormat format) {
  if (!a.labelled.empty()) return EvaluateLabelled(a, format);
  if (!a.text_column.empty() || !a.label_column.empty())
    return InvalidArgument(a.text_column.empty() ? "--label-column" : "--text-column",
                           " is for labelled texts: give them with --labelled");
  if (!a.texts.empty()) return EvaluateTexts(a, format);
  if (a.data.path.empty())
    return InvalidArgument("--data is required, or --texts of a decoder, or --labelled texts of a classifier");
  if (a.split != "test" && a.split != "validation")
    return InvalidArgument("--split is '", a.split, "', allowed are test and validation");
  if (a.backend != "simd" && a.backend != "int8") {
    const bool other = a.backend == "xnnpack";
    return InvalidArgument("--backend is '", a.backend, "', allowed are simd and int8",
                           (other ? "; XNNPACK's packed weights belong to one thread each, wisp recommend, which has "
                                    "one, takes it where it is built in"
                                  : ""));
  }
  WISP_ASSIGN_OR_RETURN(const kernels::OpTable* const ops,
                        GetOps(a.backend == "int8" ? Backend::kInt8 : Backend::kSimd));
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::OpenWithAdapter(a.model, a.adapter, Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const privacy::PrivacyUnit unit, privacy::PrivacyUnitFromText(a.unit.value_or("user")));
  WISP_ASSIGN_OR_RETURN(const data::Units units, CheckedUnits(unit, a.session_gap, a.times_per_second));
  data::Moment until{.times_per_second = a.times_per_second};
  if (!a.trains_until.empty()) {
    WISP_ASSIGN_OR_RETURN(until.second, ParseMoment("--trains-until", a.trains_until));
    if (a.split != "test")
      return InvalidArgument("--split is '", a.split, "', allowed with --trains-until is test: it tests later events");
  }
  const bool by_time = until.second > 0;
  WISP_ASSIGN_OR_RETURN(const data::ReadResult data,
                        ReadData(a.data, {.units = units, .needs_times = by_time}, &model));
  WarnIfRepeatsAreMisses(a.data, data.report, model.lists().allow_seen);
  const std::string record(privacy::ToText(unit));
  const size_t from_end = a.split == "test" ? 1 : 2;
  // A user needs two more events to train on; a session or a day is tested wherever it is evaluated.
  const size_t needed = from_end + (unit == privacy::PrivacyUnit::kUser ? 2 : 1);
  const std::string later = "an event after " + OneLine(a.trains_until) + " that has one before it,";
  Workers workers(a.threads == 0 ? DefaultThreads() : a.threads);
  const DividedLog log = by_time ? DivideAt(data.sequences, until) : DivideFromEnd(data.sequences, from_end, needed);
  const RankingQuality q = EvaluateModel(model, log.cases, workers, *ops);
  if (q.num_users == 0)
    return InvalidData(a.data.path, ": no ", record, " has ",
                       by_time ? later : "enough events to be tested: " + std::to_string(needed),
                       " of items that the model knows");
  const uint64_t skipped = data.sequences.num_users() - q.num_users;
  std::optional<BaselineQuality> baselines;
  if (a.baselines) baselines = EvaluateBaselines(model.num_items(), log.train, log.cases, workers, model.lists());
  if (format == OutputFormat::kJson) {
    Json j = QualityJson(q);
    j["users"] = q.num_users;
    j["users_skipped"] = skipped;
    j["unknown_events"] = data.report.unknown_events;
    j["unknown_items"] = data.report.unknown_items;
    if (baselines)
      j["baselines"] = {{"popularity", QualityJson(baselines->popularity)},
                        {"transitions", QualityJson(baselines->transitions)}};
    j["not_private"] = ListFigureNames(j);
    PrintJson(j, kOneLine);
    return OkStatus();
  }
  PrintText("%s over %llu %ss\n", InWords(q).c_str(), static_cast<unsigned long long>(q.num_users), record.c_str());
  if (baselines) PrintBaselines(q, *baselines);
  if (skipped > 0)
    PrintText("skipped: %llu %ss %s of items that the model knows\n", static_cast<unsigned long long>(skipped),
              record.c_str(),
              (by_time ? "without " + later : "with fewer than " + std::to_string(needed) + " events").c_str());
  PrintText("%s\n", kLocalOnly);
  return OkStatus();
}

Status Inspect(const InspectArguments& a, OutputFormat format) {
  if (a.memory) return InspectMemory(a, format);
  const Verify verify = a.verify ? Verify::kFull : Verify::kStructure;
  WISP_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(a.model, verify, Accept::kAnyFile));
  Json j = InspectJson(a.model, model);
  if (model.base_hash() != 0) j["base_hash"] = ToHex(model.base_hash());
  if (model.is_classifier()) j["classifier"] = ClassifierJson(model);
  if (!model.tokenizer().empty()) {
    WISP_ASSIGN_OR_RETURN(j["tokenizer"], TokenizerJson(model));
  }
  PrintInspected(a, model, j, format);
  return OkStatus();
}

}  // namespace wisp::tools
