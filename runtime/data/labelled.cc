#include "runtime/data/labelled.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "runtime/core/file.h"
#include "runtime/core/text.h"
#include "runtime/data/delimited_records.h"
#include "runtime/data/lines.h"
#include "runtime/data/sequences.h"

namespace wisp::data {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";
constexpr size_t kMaxTexts = std::numeric_limits<int32_t>::max();

Status ErrorAt(const std::string& name, uint64_t line, const std::string& sentence) {
  return InvalidData(name, ", line ", line, ": ", sentence);
}

// Calls `use` with each token of the text until it returns false. Converts A-Z to lower case in `buffer` if requested.
template <class Use>
void ForEachToken(std::string_view text, LetterCase letters, std::string& buffer, Use&& use) {
  while (true) {
    const size_t start = text.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return;
    text.remove_prefix(start);
    const size_t end = std::min(text.find_first_of(kBlanks), text.size());
    buffer.assign(text.substr(0, end));
    if (letters == LetterCase::kLower) {
      for (char& c : buffer) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    if (!use(std::string_view(buffer))) return;
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> SplitTabs(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t end = line.find('\t');
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

struct TextColumns {
  size_t text = 0, label = 0;
};

// The columns in a header; nullopt if it lacks one, or has one twice.
std::optional<TextColumns> FindColumns(const std::vector<std::string_view>& header, const LabelledOptions& options) {
  const auto find = [&](std::string_view name) {
    const auto at = std::find(header.begin(), header.end(), name);
    const bool once = at != header.end() && std::find(at + 1, header.end(), name) == header.end();
    return once ? std::optional<size_t>(at - header.begin()) : std::nullopt;
  };
  std::optional<size_t> text = find(options.text_column.empty() ? "sentence" : options.text_column);
  if (!text && options.text_column.empty()) text = find("text");
  const std::optional<size_t> label = find(options.label_column.empty() ? "label" : options.label_column);
  if (!text || !label || *text == *label) return std::nullopt;
  return TextColumns{*text, *label};
}

// Collects the texts of one file.
class Collector {
 public:
  Collector(std::string name, const LabelledOptions& options) : options_(options) { texts_.name = std::move(name); }

  Status Header(uint64_t line, const std::vector<std::string_view>& header) {
    const auto columns = FindColumns(header, options_);
    if (!columns) {
      return ErrorAt(texts_.name, line,
                     "the header does not name one column " +
                         (options_.label_column.empty() ? "label" : Shown(options_.label_column)) + " and one column " +
                         (options_.text_column.empty() ? "sentence or text" : Shown(options_.text_column)) +
                         "; `label_column` and `text_column` say which they are");
    }
    columns_ = *columns;
    width_ = header.size();
    return OkStatus();
  }

  Status Row(uint64_t line, const std::vector<std::string_view>& fields) {
    if (fields.size() == width_) return Add(line, fields[columns_.label], fields[columns_.text]);
    return Bad(
        ErrorAt(texts_.name, line,
                Counted(fields.size(), "field") + "; allowed are " + std::to_string(width_) + ", as in the header"));
  }

  // Handles a malformed record.
  Status Bad(const Status& fault) {
    if (!options_.drop_bad) return fault;
    if (texts_.num_dropped++ == 0) texts_.first_dropped = fault.message();
    return OkStatus();
  }

  Status Add(uint64_t line, std::string_view label, std::string_view text) {
    if (texts_.texts.size() >= kMaxTexts)
      return ErrorAt(texts_.name, line, "more than " + std::to_string(kMaxTexts) + " texts; that is the most allowed");
    texts_.texts.emplace_back(text);
    texts_.labels.emplace_back(label);
    texts_.lines.push_back(line);
    return OkStatus();
  }

  LabelledTexts Take() { return std::move(texts_); }

 private:
  const LabelledOptions& options_;
  LabelledTexts texts_;
  TextColumns columns_;
  size_t width_ = 0;
};

Status ReadCsv(const std::string& name, std::string_view text, bool lines_alone, Collector& collector) {
  Records records(name, text, ',', lines_alone);
  for (bool header = true; records.Next(); header = false) {
    if (!records.fault().ok()) {
      WISP_RETURN_IF_ERROR(header ? records.fault() : collector.Bad(records.fault()));
    } else {
      WISP_RETURN_IF_ERROR(header ? collector.Header(records.line(), records.fields())
                                  : collector.Row(records.line(), records.fields()));
    }
  }
  return records.status();
}

Status ReadTabbed(const std::string& name, std::string_view text, LabelledFormat format, const LabelledOptions& options,
                  Collector& collector) {
  Lines lines(text);
  for (bool first = true; lines.Next(); first = false) {
    if (lines.line().size() > kMaxLineBytes) {
      const Status fault = ErrorAt(name, lines.number(), TooLong(lines.line().size()));
      WISP_RETURN_IF_ERROR(first && format == LabelledFormat::kTsv ? fault : collector.Bad(fault));
      continue;
    }
    const std::vector<std::string_view> fields = SplitTabs(lines.line());
    if (first && format == LabelledFormat::kAuto)
      format = FindColumns(fields, options) ? LabelledFormat::kTsv : LabelledFormat::kLines;
    if (format == LabelledFormat::kTsv) {
      WISP_RETURN_IF_ERROR(first ? collector.Header(lines.number(), fields) : collector.Row(lines.number(), fields));
    } else if (fields.size() != 2) {
      WISP_RETURN_IF_ERROR(collector.Bad(
          ErrorAt(name, lines.number(),
                  Counted(fields.size(), "field") + "; allowed is a label, a tab and a text without a tab")));
    } else {
      WISP_RETURN_IF_ERROR(collector.Add(lines.number(), fields[0], fields[1]));
    }
  }
  return OkStatus();
}

// The format by a file's name: .csv and .tsv always have a header. A private run goes by the name alone, because the
// first line may be a record, and would decide how all others are read.
Result<LabelledFormat> ChooseFormat(const std::string& name, const LabelledOptions& options) {
  if (options.format != LabelledFormat::kAuto) return options.format;
  if (name.ends_with(".csv")) return LabelledFormat::kCsv;
  if (name.ends_with(".tsv")) return LabelledFormat::kTsv;
  if (!options.drop_bad) return LabelledFormat::kAuto;
  if (name.ends_with(".txt")) return LabelledFormat::kLines;
  return InvalidArgument(
      name,
      ": its name does not say which format it has, and a private run does not look at the lines for that; "
      "allowed are names that end in .csv, .tsv (both with a header) or .txt (lines), or a format that is given");
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// True if labels may also be class numbers: not if a class is called by another class's number.
bool NumbersArePlaces(std::span<const std::string> classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    if (IsNumber(classes[i]) && classes[i] != std::to_string(i)) return false;
  }
  return true;
}

// The class of a label: by name or, if no class is called by another class's number, by its own number.
std::optional<int32_t> MatchClass(std::string_view label, std::span<const std::string> classes) {
  const auto named = std::find(classes.begin(), classes.end(), label);
  if (named != classes.end()) return static_cast<int32_t>(named - classes.begin());
  if (!NumbersArePlaces(classes)) return std::nullopt;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  if (error != std::errc() || end != label.data() + label.size() || number >= classes.size()) return std::nullopt;
  return static_cast<int32_t>(number);
}

// KeyFault, and the control characters U+0080 to U+009F, which model files refuse too.
std::string TokenFault(std::string_view token) {
  if (std::string fault = KeyFault(token); !fault.empty()) return fault;
  for (size_t i = 0, length = 0; i < token.size(); i += length) {
    length = Utf8Length(token.substr(i));
    if (IsC1Control(token.substr(i), length))
      return "is " + Shown(token) + "; allowed is UTF-8 without control characters";
  }
  return {};
}

}  // namespace

Result<LabelledFormat> ParseLabelledFormat(std::string_view name) {
  for (const auto& [text, format] :
       {std::pair{"auto", LabelledFormat::kAuto}, std::pair{"lines", LabelledFormat::kLines},
        std::pair{"tsv", LabelledFormat::kTsv}, std::pair{"csv", LabelledFormat::kCsv}}) {
    if (name == text) return format;
  }
  return InvalidArgument("the format is ", Shown(name), ", allowed are auto, lines, tsv and csv");
}

Result<LabelledTexts> ParseLabelled(const std::string& name, std::string_view text, const LabelledOptions& options) {
  Collector collector(name, options);
  WISP_ASSIGN_OR_RETURN(const LabelledFormat format, ChooseFormat(name, options));
  WISP_RETURN_IF_ERROR(format == LabelledFormat::kCsv ? ReadCsv(name, text, options.drop_bad, collector)
                                                      : ReadTabbed(name, text, format, options, collector));
  LabelledTexts texts = collector.Take();
  if (texts.texts.empty() && !options.drop_bad) return InvalidData(name, ": it has no labelled text");
  return texts;
}

Result<LabelledTexts> ReadLabelled(const std::string& path, const LabelledOptions& options) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ParseLabelled(path, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, options);
}

Result<Vocabulary> Vocabulary::Create(const std::string& name, std::span<const std::string> tokens) {
  if (tokens.size() > kMaxTexts)
    return InvalidData(name, ": ", tokens.size(), " tokens; allowed are at most ", kMaxTexts);
  Vocabulary vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (const std::string fault = TokenFault(tokens[i]); !fault.empty())
      return InvalidData(name, ": token ", i, " ", fault);
    const KeyTable::Added added = vocabulary.table_.Add(tokens[i]);
    if (!added.added) {
      return InvalidData(name, ": tokens ", added.id, " and ", i, " are both ", Shown(tokens[i]));
    }
  }
  for (const auto& [token, id] :
       {std::pair{kFirstToken, &vocabulary.first_}, std::pair{kUnknownToken, &vocabulary.unknown_}}) {
    const uint32_t found = vocabulary.table_.Find(token);
    if (found == KeyTable::kNone) return InvalidData(name, ": the vocabulary has no token ", token);
    *id = static_cast<int32_t>(found);
  }
  return vocabulary;
}

int32_t Vocabulary::Find(std::string_view token) const {
  const uint32_t found = table_.Find(token);
  return found == KeyTable::kNone ? unknown_ : static_cast<int32_t>(found);
}

Result<std::vector<std::string>> ReadTokens(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  std::vector<std::string> tokens;
  Lines lines({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  while (lines.Next()) {
    if (lines.line().find_first_of(kBlanks) != std::string_view::npos) {
      return ErrorAt(path, lines.number(), Shown(lines.line()) + " has a blank in it; allowed is one token a line");
    }
    tokens.emplace_back(lines.line());
  }
  std::vector<std::string> special;
  for (const std::string_view token : {kFirstToken, kUnknownToken}) {
    if (std::find(tokens.begin(), tokens.end(), token) == tokens.end()) special.emplace_back(token);
  }
  tokens.insert(tokens.begin(), special.begin(), special.end());
  return tokens;
}

std::vector<std::string> GetTokens(const LabelledTexts& texts, LetterCase letters, bool drop_bad) {
  KeyTable seen;
  std::string buffer;
  for (const std::string& text : texts.texts) {
    ForEachToken(text, letters, buffer, [&](std::string_view token) {
      const bool reserved = token == kFirstToken || token == kUnknownToken;
      if (!reserved && !(drop_bad && !TokenFault(token).empty())) seen.Add(token);
      return true;
    });
  }
  std::vector<std::string> tokens = seen.keys();
  std::sort(tokens.begin(), tokens.end());
  tokens.insert(tokens.begin(), {std::string(kFirstToken), std::string(kUnknownToken)});
  return tokens;
}

namespace {

Status NoClass(const LabelledTexts& texts, size_t i, std::span<const std::string> classes) {
  std::string allowed;
  for (size_t c = 0; c < std::min<size_t>(classes.size(), 8); ++c) allowed += (c == 0 ? "" : ", ") + Shown(classes[c]);
  return ErrorAt(texts.name, texts.lines[i],
                 "the label is " + Shown(texts.labels[i]) + "; allowed are the classes " + allowed +
                     (classes.size() > 8 ? ", ..." : "") +
                     (NumbersArePlaces(classes) ? " and their numbers, from 0" : ", by name"));
}

}  // namespace

void AppendTokens(std::string_view text, const Vocabulary& vocabulary, LetterCase letters, uint32_t max_length,
                  std::vector<int32_t>& tokens) {
  std::string buffer;
  const size_t end = tokens.size() + max_length;
  tokens.push_back(vocabulary.first());
  ForEachToken(text, letters, buffer, [&](std::string_view token) {
    if (tokens.size() == end) return false;
    tokens.push_back(vocabulary.Find(token));
    return true;
  });
}

Result<LabelledSequences> EncodeWith(const LabelledTexts& texts, const Tokenise& tokenise,
                                     const EncodeOptions& options) {
  LabelledSequences out{.num_dropped = texts.num_dropped, .first_dropped = texts.first_dropped};
  const auto add = [&](size_t i) -> Status {
    const auto label = MatchClass(texts.labels[i], options.classes);
    if (!label) return NoClass(texts, i, options.classes);
    const Result<Tokenised> tokenised = tokenise(texts.texts[i], out.tokens);
    if (!tokenised.ok()) return ErrorAt(texts.name, texts.lines[i], tokenised.status().message());
    out.num_cut += tokenised->was_cut ? 1 : 0;
    out.num_unknown += tokenised->num_unknown;
    out.begin.push_back(out.tokens.size());
    out.labels.push_back(*label);
    return OkStatus();
  };
  for (size_t i = 0; i < texts.texts.size(); ++i) {
    const Status fault = add(i);
    if (fault.ok()) continue;
    if (!options.drop_bad) return fault;
    out.tokens.resize(out.begin.back());
    if (out.num_dropped++ == 0) out.first_dropped = fault.message();
  }
  if (HasAnotherForm(out.num_dropped, out.size()))
    return AnotherForm(texts.name, out.num_dropped, out.size(), "texts", out.first_dropped);
  return out;
}

Result<LabelledSequences> Encode(const LabelledTexts& texts, const Vocabulary& vocabulary,
                                 const EncodeOptions& options) {
  std::string buffer;
  const auto words = [&](std::string_view text, std::vector<int32_t>& tokens) -> Result<Tokenised> {
    const size_t first = tokens.size();
    AppendTokens(text, vocabulary, options.letters, options.max_length, tokens);
    size_t length = 1;
    ForEachToken(text, options.letters, buffer, [&](std::string_view) { return ++length <= options.max_length; });
    const auto unknown =
        std::count(tokens.begin() + static_cast<ptrdiff_t>(first) + 1, tokens.end(), vocabulary.unknown());
    return Tokenised{.was_cut = length > options.max_length, .num_unknown = static_cast<uint64_t>(unknown)};
  };
  return EncodeWith(texts, words, options);
}

}  // namespace wisp::data
