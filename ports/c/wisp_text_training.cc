// Training on texts over the C interface: decoders learn to continue texts, classifiers learn their labels.
#include <vector>

#include "ports/c/personalise_c.h"
#include "ports/c/status_c.h"
#include "ports/c/wisp_text.h"
#include "runtime/data/labelled.h"
#include "runtime/data/texts.h"
#include "runtime/text/texts.h"
#include "runtime/train/run/classification.h"
#include "runtime/train/run/classifier_start.h"
#include "runtime/train/run/language.h"

namespace {

using wisp::InvalidArgument;
using wisp::ModelContents;
using wisp::ModelFile;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::TrainingJob;
using wisp::ports::Counted;
using wisp::ports::Guarded;
using wisp::ports::Text;
namespace data = wisp::data;
namespace privacy = wisp::privacy;

constexpr char kTextUnits[] = "WISP_UNIT_INTERACTION or, where each text is all that one user wrote, WISP_UNIT_USER";

// Refuses options that texts do not have, and requires a unit that somebody chose.
Status CheckTextTraining(const char* called, const wisp_personalise_options& o, privacy::PrivacyUnit unit) {
  if (o.session_gap != 0 || o.times_per_second != 0)
    return InvalidArgument(called, ": session_gap and times_per_second are of events, allowed is 0");
  if (unit == privacy::PrivacyUnit::kInteraction || unit == privacy::PrivacyUnit::kUser) return OkStatus();
  return InvalidArgument(called, ": unit is ", privacy::ToText(unit), "; required is ", kTextUnits);
}

// Texts that a decoder learns.
class Texts final : public wisp::ports::ToLearn {
 public:
  Texts(data::TextUnit unit, uint32_t max_length) : unit_(unit), max_length_(max_length) {}

  Status CheckKind(const wisp_personalise_options& o, privacy::PrivacyUnit unit) override {
    return CheckTextTraining("wisp_text_train", o, unit);
  }

  Status CheckBase(const ModelFile& base, bool) override {
    WISP_RETURN_IF_ERROR(wisp::FindTokenizer(base).status());
    const wisp::Architecture& a = base.architecture();
    if (a.attend != wisp::Attend::kCausal)
      return wisp::Unsupported(base.name(), ": its positions see those behind them; texts are learned by a decoder");
    if (max_length_ > a.max_length)
      return InvalidArgument("wisp_text_train: max_length is ", max_length_, ", allowed are 1 to ", a.max_length,
                             ", and 0 for all of them");
    if (max_length_ == 0) max_length_ = a.max_length;
    return OkStatus();
  }

  const char* units() const override { return kTextUnits; }
  void Set(wisp::RunSpec& spec) const override { spec.training.cut_to = max_length_; }
  privacy::RecordSpec Record(privacy::PrivacyUnit unit) const override {
    return privacy::RecordSpec::OfTexts(unit, data::ToText(unit_));
  }

  Result<Counted> Read(const wisp_personalise_options& o, const ModelFile& base, TrainingJob& job) override {
    WISP_ASSIGN_OR_RETURN(const wisp::text::Tokenizer tokenizer, wisp::FindTokenizer(base));
    WISP_ASSIGN_OR_RETURN(const data::Texts texts, data::ReadTexts(o.log_path, {.unit = unit_, .private_run = true}));
    wisp::text::Scratch scratch;
    const auto end = unit_.kind == data::TextUnit::Kind::kChunk ? wisp::TextEnd::kOpen : wisp::TextEnd::kMarked;
    const auto tokenise = [&](std::string_view text, std::vector<int32_t>& ids) -> Result<data::Tokenised> {
      WISP_ASSIGN_OR_RETURN(const bool was_cut,
                            wisp::AppendRecord(tokenizer, text, end, size_t{max_length_} + 1, &scratch, ids));
      return data::Tokenised{.was_cut = was_cut};
    };
    WISP_ASSIGN_OR_RETURN(sequences_, data::EncodeTexts(texts, tokenise, /*drop_bad=*/true));
    records_ = wisp::ViewRecords(sequences_);
    job.records = records_;
    return Counted{
        .num_events = texts.texts.size(), .too_short = sequences_.num_short, .bad_rows = sequences_.num_dropped};
  }

 private:
  data::TextUnit unit_;
  uint32_t max_length_;  // 0 before CheckBase: as many positions as the model has
  data::TextSequences sequences_;
  std::vector<wisp::Record> records_;
};

Result<Texts> GetTexts(const wisp_text_records* given) {
  if (given == nullptr) return InvalidArgument("wisp_text_train: records must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto r, wisp::ports::MakeOptions(given, "wisp_text_records"));
  const int32_t record = wisp::ports::GetNumber(r.record);
  if (record < WISP_TEXT_LINE || record > WISP_TEXT_CHUNK)
    return InvalidArgument("wisp_text_train: record is ", record,
                           "; required is WISP_TEXT_LINE, WISP_TEXT_PARAGRAPH or WISP_TEXT_CHUNK");
  if (record != WISP_TEXT_CHUNK && r.chunk_bytes != 0)
    return InvalidArgument("wisp_text_train: chunk_bytes is ", r.chunk_bytes,
                           ", allowed is 0 unless record is a chunk");
  const std::string unit = record == WISP_TEXT_LINE        ? "line"
                           : record == WISP_TEXT_PARAGRAPH ? "paragraph"
                                                           : "chunk:" + std::to_string(r.chunk_bytes);
  WISP_ASSIGN_OR_RETURN(const data::TextUnit parsed, data::ParseTextUnit("wisp_text_train: the record", unit));
  return Texts(parsed, r.max_length);
}

struct LabelledChoice {
  std::vector<std::string> classes;
  data::LabelledOptions read;
  wisp::TrainedPart part = wisp::TrainedPart::kAll;
  bool part_is_chosen = false;
  uint32_t max_length = 0;  // 0: as many tokens as the model reads
};

// Labelled texts that a classifier learns.
class LabelledTexts final : public wisp::ports::ToLearn {
 public:
  explicit LabelledTexts(LabelledChoice choice) : choice_(std::move(choice)) {}

  Status CheckKind(const wisp_personalise_options& o, privacy::PrivacyUnit unit) override {
    WISP_RETURN_IF_ERROR(CheckTextTraining("wisp_classifier_train", o, unit));
    const bool has_adapter = o.adapter_rank != 0 || !Text(o.adapter_path).empty();
    if (has_adapter && choice_.part_is_chosen)
      return InvalidArgument(
          "wisp_classifier_train: trains is set, allowed is 0 with an adapter: the adapter trains, and its head");
    if (has_adapter || choice_.part_is_chosen) return OkStatus();
    return InvalidArgument(
        "wisp_classifier_train: trains is 0; required is WISP_TRAINS_HEAD, WISP_TRAINS_BLOCKS or WISP_TRAINS_ALL, or "
        "an adapter (adapter_rank, adapter_path)");
  }

  privacy::RecordSpec Record(privacy::PrivacyUnit unit) const override {
    return privacy::RecordSpec::OfTexts(unit, privacy::RecordSpec::kLabelledText);
  }

  wisp::Accept accepts() const override { return wisp::Accept::kAny; }

  Status CheckBase(const ModelFile& base, bool with_new_adapter) override {
    WISP_RETURN_IF_ERROR(wisp::CheckClassifierBase(base, choice_.classes, with_new_adapter));
    WISP_ASSIGN_OR_RETURN(const wisp::text::Tokenizer tokenizer, wisp::FindTokenizer(base));
    const uint32_t most = base.architecture().max_length;
    if (choice_.max_length == 0) choice_.max_length = most;
    return wisp::CheckTextRoom(tokenizer, "wisp_classifier_train: max_length", choice_.max_length, most);
  }

  Result<ModelContents> Contents(const ModelFile& base,
                                 const std::optional<wisp::AdapterSpec>& new_adapter) const override {
    WISP_ASSIGN_OR_RETURN(const wisp::Architecture trained,
                          wisp::ClassifierOver(base, static_cast<uint32_t>(choice_.classes.size()), new_adapter));
    ModelContents contents = wisp::ClassifierContents(base, trained, choice_.classes);
    contents.description = base.description();
    return contents;
  }

  const char* units() const override { return kTextUnits; }
  void Set(wisp::RunSpec& spec) const override {
    spec.training.trained_part = choice_.part;
    spec.training.cut_to = choice_.max_length;
    spec.classes = choice_.classes;
  }

  Result<Counted> Read(const wisp_personalise_options& o, const ModelFile& base, TrainingJob& job) override {
    WISP_ASSIGN_OR_RETURN(const wisp::text::Tokenizer tokenizer, wisp::FindTokenizer(base));
    WISP_ASSIGN_OR_RETURN(const data::LabelledTexts texts, data::ReadLabelled(o.log_path, choice_.read));
    wisp::text::Scratch scratch;
    const auto tokenise = [&](std::string_view text, std::vector<int32_t>& ids) -> Result<data::Tokenised> {
      WISP_ASSIGN_OR_RETURN(const bool was_cut, wisp::AppendText(tokenizer, text, choice_.max_length, &scratch, ids));
      return data::Tokenised{.was_cut = was_cut};
    };
    WISP_ASSIGN_OR_RETURN(sequences_,
                          data::EncodeWith(texts, tokenise, {.classes = choice_.classes, .drop_bad = true}));
    records_ = wisp::ViewRecords(sequences_);
    job.records = records_;
    return Counted{.num_events = sequences_.size() + sequences_.num_dropped, .bad_rows = sequences_.num_dropped};
  }

 private:
  LabelledChoice choice_;
  data::LabelledSequences sequences_;
  std::vector<wisp::Record> records_;
};

Result<LabelledTexts> MakeLabelledTexts(const wisp_labelled_texts* given) {
  if (given == nullptr) return InvalidArgument("wisp_classifier_train: texts must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto t, wisp::ports::MakeOptions(given, "wisp_labelled_texts"));
  LabelledChoice choice{.max_length = t.max_length};
  if (t.classes == nullptr && t.num_classes > 0)
    return InvalidArgument("wisp_classifier_train: classes is NULL, num_classes is ", t.num_classes);
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_classifier_train", t.classes, t.num_classes));
  for (size_t i = 0; i < t.num_classes; ++i) {
    if (t.classes[i] == nullptr) return InvalidArgument("wisp_classifier_train: class ", i, " is NULL");
    choice.classes.emplace_back(t.classes[i]);
  }
  if (const Status names = wisp::CheckClassNames("wisp_classifier_train", choice.classes); !names.ok())
    return InvalidArgument(names.message());
  const int32_t format = wisp::ports::GetNumber(t.format), part = wisp::ports::GetNumber(t.trains);
  if (format < WISP_LABELLED_LINES || format > WISP_LABELLED_CSV)
    return InvalidArgument("wisp_classifier_train: format is ", format,
                           "; required is WISP_LABELLED_LINES, WISP_LABELLED_TSV or WISP_LABELLED_CSV");
  if (part < 0 || part > WISP_TRAINS_ALL)
    return InvalidArgument("wisp_classifier_train: trains is ", part,
                           ", allowed are WISP_TRAINS_HEAD, WISP_TRAINS_BLOCKS and WISP_TRAINS_ALL, and 0 with an "
                           "adapter");
  const bool has_header = format != WISP_LABELLED_LINES;
  if (!has_header && (t.text_column != nullptr || t.label_column != nullptr))
    return InvalidArgument(
        "wisp_classifier_train: text_column and label_column are of files with a header, allowed "
        "is NULL with WISP_LABELLED_LINES");
  choice.read = {.format = format == WISP_LABELLED_LINES ? data::LabelledFormat::kLines
                           : format == WISP_LABELLED_TSV ? data::LabelledFormat::kTsv
                                                         : data::LabelledFormat::kCsv,
                 .text_column = Text(t.text_column),
                 .label_column = Text(t.label_column),
                 .drop_bad = true};
  choice.part_is_chosen = part != 0;
  if (part == WISP_TRAINS_HEAD) choice.part = wisp::TrainedPart::kHead;
  if (part == WISP_TRAINS_BLOCKS) choice.part = wisp::TrainedPart::kBlocks;
  return LabelledTexts(std::move(choice));
}

}  // namespace

extern "C" {

wisp_code wisp_text_train(const wisp_personalise_options* options, const wisp_text_records* records,
                          wisp_personalise_result* result, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    WISP_ASSIGN_OR_RETURN(Texts texts, GetTexts(records));
    return wisp::ports::Personalise(options, texts, result);
  });
}

wisp_code wisp_classifier_train(const wisp_personalise_options* options, const wisp_labelled_texts* texts,
                                wisp_personalise_result* result, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    WISP_ASSIGN_OR_RETURN(LabelledTexts labelled, MakeLabelledTexts(texts));
    return wisp::ports::Personalise(options, labelled, result);
  });
}

}  // extern "C"
