// The half of the C interface that needs training and privacy: log, fine-tuning, statement.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "ports/c/anchor_c.h"
#include "ports/c/device_c.h"
#include "ports/c/log_c.h"
#include "ports/c/options_c.h"
#include "ports/c/status_c.h"
#include "ports/c/wisp_text.h"
#include "runtime/core/file.h"
#include "runtime/data/readers.h"
#include "runtime/data/texts.h"
#include "runtime/inference/session.h"
#include "runtime/inference/texts.h"
#include "runtime/model/catalogue.h"
#include "runtime/privacy/ledger_statement.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/language.h"
#include "runtime/train/run/records.h"

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::GiveText;
using wisp::ports::Guarded;
using wisp::ports::Text;
namespace data = wisp::data;
namespace privacy = wisp::privacy;

Status History(wisp_log* log, const wisp_model* model, const char* user, int32_t* items, size_t* count) {
  if (log == nullptr || model == nullptr || user == nullptr || items == nullptr || count == nullptr) {
    return InvalidArgument("wisp_log_history: no argument but error may be NULL");
  }
  // Events of items that the model does not know do not count: more may have to be read than are wanted.
  WISP_ASSIGN_OR_RETURN(const auto keys, log->log.History(user, std::numeric_limits<int32_t>::max()));
  std::vector<int32_t> known;
  for (const std::string& key : keys) {
    const auto item = wisp::ports::SessionOf(model).file().FindItem(key);
    if (item) known.push_back(static_cast<int32_t>(*item));
  }
  const size_t n = std::min(*count, known.size());
  std::copy(known.end() - static_cast<std::ptrdiff_t>(n), known.end(), items);
  *count = n;
  return OkStatus();
}

Status CheckOptions(const wisp_personalise_options& o) {
  if (o.model_path == nullptr || o.log_path == nullptr || o.output_path == nullptr || o.ledger_path == nullptr) {
    return InvalidArgument("wisp_personalise_options: model_path, log_path, output_path and ledger_path are required");
  }
  if (o.num_users_public == 0)
    return InvalidArgument(
        "wisp_personalise_options: num_users_public is required: a number of users that may be known to anybody");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckNumbers("wisp_personalise_options", {{"epochs", o.epochs},
                                                                              {"learning_rate", o.learning_rate},
                                                                              {"clipping_norm", o.clipping_norm},
                                                                              {"budget_epsilon", o.budget_epsilon}}));
  WISP_RETURN_IF_ERROR(privacy::EpsilonDelta::Create(o.epsilon, o.delta).status());
  return wisp::CheckPrivacyGoal({.epsilon = o.epsilon, .noise_multiplier = {}, .delta = o.delta}, o.num_users_public);
}

// The unit as the caller chose it; none where its struct is from before there was a choice.
Result<std::optional<privacy::PrivacyUnit>> UnitOf(const wisp_personalise_options& given) {
  if (given.size < offsetof(wisp_personalise_options, unit) + sizeof(given.unit))
    return std::optional<privacy::PrivacyUnit>();
  const int32_t number = wisp::ports::NumberOf(given.unit);
  if (const auto unit = wisp::ports::UnitOfNumber(number)) return unit;
  return InvalidArgument("wisp_personalise_options: unit is ", number,
                         "; required is what one record is: WISP_UNIT_USER, WISP_UNIT_SESSION or WISP_UNIT_DAY");
}

uint32_t ExpectedBatch(const wisp_personalise_options& o) {
  return std::min(o.expected_batch == 0 ? 64u : o.expected_batch, o.num_users_public);
}

Result<wisp::ModelFile> OpenBase(const wisp_personalise_options& o, wisp::Verify verify) {
  return wisp::ModelFile::OpenWithAdapter(o.model_path, Text(o.adapter_path), verify);
}

// The model's, with an adapter where one is to train.
Result<wisp::Architecture> TrainedArchitecture(const wisp_personalise_options& o, const wisp::ModelFile& base) {
  wisp::Architecture a = base.architecture();
  if (o.adapter_rank == 0) return a;
  if (a.adapter && a.adapter->rank != o.adapter_rank) {
    return InvalidArgument("wisp_personalise_options: adapter_rank is ", o.adapter_rank,
                           ", the adapter at adapter_path has ", a.adapter->rank, "; allowed are that and 0");
  }
  if (!a.adapter) a.adapter = wisp::AdapterSpec{.rank = o.adapter_rank, .alpha = static_cast<float>(o.adapter_rank)};
  WISP_RETURN_IF_ERROR(Validate(a));
  return a;
}

// What the file at log_path held, as the result has it. Counted on the data: local only.
struct Counted {
  uint64_t num_events = 0, too_short = 0, unknown_events = 0, unknown_items = 0, bad_rows = 0;
  uint64_t num_users = 0;  // of events
};

// What a run came to, with what was read.
struct Personalised {
  wisp::JobResult job;
  Counted read;
};

// Texts, in place of events.
struct TextsToLearn {
  data::TextUnit unit;
  uint32_t max_length = 0;  // 0: as many positions as the model has
};

Result<TextsToLearn> TextsOf(const wisp_text_records* given) {
  if (given == nullptr) return InvalidArgument("wisp_text_train: records must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto r, wisp::ports::OptionsOf(given, "wisp_text_records"));
  const int32_t record = wisp::ports::NumberOf(r.record);
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
  return TextsToLearn{.unit = parsed, .max_length = r.max_length};
}

// One fine-tuning, from option struct to model file.
class Personalisation {
 public:
  Personalisation(const wisp_personalise_options& options, std::optional<privacy::PrivacyUnit> unit,
                  std::optional<TextsToLearn> texts)
      : o_(options), unit_(unit), texts_(texts) {}

  Result<Personalised> Run() {
    WISP_RETURN_IF_ERROR(CheckOptions(o_));
    data::Units units;
    if (!texts_) {
      WISP_ASSIGN_OR_RETURN(units,
                            wisp::UnitsOf(Unit(), o_.session_gap, o_.times_per_second == 0 ? 1 : o_.times_per_second));
    } else if (o_.session_gap != 0 || o_.times_per_second != 0) {
      return InvalidArgument("wisp_text_train: session_gap and times_per_second are of events, allowed is 0");
    }
    // Before anything is spent on it. It may be the model: replaced at the end.
    const std::string output = o_.output_path, log = o_.log_path, ledger_path = o_.ledger_path, model = o_.model_path,
                      adapter = Text(o_.adapter_path), checkpoint = Text(o_.checkpoint_path);
    WISP_RETURN_IF_ERROR(wisp::CheckOutput({"output_path", output}, {{"log_path", log}, {"ledger_path", ledger_path}}));
    WISP_RETURN_IF_ERROR(wisp::CheckOutput({"checkpoint_path", checkpoint}, {{"log_path", log},
                                                                             {"ledger_path", ledger_path},
                                                                             {"model_path", model},
                                                                             {"adapter_path", adapter},
                                                                             {"output_path", output}}));
    WISP_ASSIGN_OR_RETURN(const wisp::ModelFile base, OpenBase(o_, wisp::Verify::kFull));
    std::vector<float> widened;
    wisp::ModelContents contents = wisp::ContentsOf(base, widened);
    contents.created_by = std::string("wisp ") + wisp_version();
    WISP_ASSIGN_OR_RETURN(contents.architecture, TrainedArchitecture(o_, base));
    WISP_ASSIGN_OR_RETURN(device_, wisp::ports::DeviceOrProcessor(o_.device, wisp::DeviceUse::kTraining));
    if (texts_) WISP_RETURN_IF_ERROR(CheckDecoder(base));
    WISP_ASSIGN_OR_RETURN(wisp::FineTune fine_tune, Begin(base));
    wisp::TrainingJob job = MakeJob(contents);
    if (texts_) {
      WISP_RETURN_IF_ERROR(ReadTexts(base));
      job.records = records_;
      job.training.cut_to = texts_->max_length;
    } else {
      WISP_RETURN_IF_ERROR(ReadEvents(base, units));
      job.sequences = &events_;
    }
    if (o_.budget_epsilon > 0) {
      WISP_ASSIGN_OR_RETURN(job.new_limit, privacy::EpsilonDelta::Create(o_.budget_epsilon, o_.delta));
    }
    WISP_ASSIGN_OR_RETURN(
        wisp::JobResult result,
        fine_tune.Run(std::move(job), {.path = output, .contents = std::move(contents), .description = Description()}));
    if (!texts_) read_.too_short = read_.num_users - std::min(read_.num_users, result.num_records);
    return Personalised{std::move(result), read_};
  }

 private:
  privacy::PrivacyUnit Unit() const { return unit_.value_or(privacy::PrivacyUnit::kUser); }

  // As `wisp train` names a data set.
  std::string Dataset() const {
    const std::string_view path = o_.log_path;
    return std::string(o_.dataset != nullptr && o_.dataset[0] != '\0' ? std::string_view(o_.dataset)
                                                                      : path.substr(path.find_last_of('/') + 1));
  }

  static std::string RunName() {
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    return "personalise " + std::to_string(now.count());
  }

  Result<wisp::FineTune> Begin(const wisp::ModelFile& base) const {
    WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::AnchorOf(o_.anchor));
    return wisp::FineTune::Begin({.base = &base,
                                  .base_path = o_.model_path,
                                  .adapter_path = Text(o_.adapter_path),
                                  .dataset = Dataset(),
                                  .other_data = o_.other_data != 0,
                                  .run = RunName(),
                                  .record = texts_ ? data::InWords(texts_->unit) : "",
                                  .tuning = Text(o_.uncharged_tuning),
                                  .ledger = wisp::LedgerToTrain{.path = o_.ledger_path,
                                                                .anchor = std::move(anchor.kept),
                                                                .begin_anchor = anchor.begins,
                                                                .unit = Unit(),
                                                                .unit_chosen = unit_.has_value()}});
  }

  Status ReadEvents(const wisp::ModelFile& base, const data::Units& units) {
    WISP_ASSIGN_OR_RETURN(const data::ItemIndex index, data::ItemIndex::Make(o_.model_path, wisp::ItemKeysOf(base)));
    WISP_ASSIGN_OR_RETURN(data::ReadResult events,
                          data::ReadSequences(o_.log_path, data::Format::kSqlite,
                                              {.known_items = &index, .units = units, .private_run = true}));
    events_ = std::move(events.sequences);
    const data::ReadReport& r = events.report;
    read_ = {.num_events = r.num_read,
             .unknown_events = r.unknown_events,
             .unknown_items = r.unknown_items,
             .bad_rows = r.bad_rows,
             .num_users = r.num_users};
    return OkStatus();
  }

  // And how much of a record is read.
  Status CheckDecoder(const wisp::ModelFile& base) {
    WISP_RETURN_IF_ERROR(wisp::TokenizerOf(base).status());
    const wisp::Architecture& a = base.architecture();
    if (a.attend != wisp::Attend::kCausal)
      return wisp::Unsupported(o_.model_path, ": its positions see those behind them; texts are learned by a decoder");
    if (texts_->max_length > a.max_length)
      return InvalidArgument("wisp_text_train: max_length is ", texts_->max_length, ", allowed are 1 to ", a.max_length,
                             ", and 0 for all of them");
    if (texts_->max_length == 0) texts_->max_length = a.max_length;
    return OkStatus();
  }

  Status ReadTexts(const wisp::ModelFile& base) {
    WISP_ASSIGN_OR_RETURN(const wisp::text::Tokenizer tokenizer, wisp::TokenizerOf(base));
    WISP_ASSIGN_OR_RETURN(const data::Texts texts,
                          data::ReadTexts(o_.log_path, {.unit = texts_->unit, .private_run = true}));
    wisp::text::Scratch scratch;
    const auto end = texts_->unit.kind == data::TextUnit::Kind::kChunk ? wisp::TextEnd::kOpen : wisp::TextEnd::kMarked;
    const auto tokenise = [&](std::string_view text, std::vector<int32_t>& ids) -> Result<data::Tokenised> {
      WISP_ASSIGN_OR_RETURN(const bool was_cut,
                            wisp::AppendRecord(tokenizer, text, end, size_t{texts_->max_length} + 1, &scratch, ids));
      return data::Tokenised{.was_cut = was_cut};
    };
    WISP_ASSIGN_OR_RETURN(sequences_, data::EncodeTexts(texts, tokenise, /*drop_bad=*/true));
    records_ = wisp::RecordsOf(sequences_);
    read_ = {.num_events = texts.texts.size(), .too_short = sequences_.num_short, .bad_rows = sequences_.num_dropped};
    return OkStatus();
  }

  std::string Description() const {
    const std::string run = "personalised on the device";
    return texts_ ? run + ", one record: " + data::InWords(texts_->unit) : run;
  }

  wisp::TrainingJob MakeJob(const wisp::ModelContents& start) const {
    wisp::TrainingJob job;
    job.hold_out = wisp::HoldOut::kNothing;
    job.architecture = start.architecture;
    job.start_weights = start.weights;
    job.training.method = wisp::Method::kPhantom;
    job.training.sampling = wisp::Sampling::kPoisson;
    job.training.expected_batch = ExpectedBatch(o_);
    job.training.device = device_.device;
    job.planned_runs = std::max(1u, o_.planned_runs);
    job.training.num_records_public = o_.num_users_public;
    job.training.optimizer.learning_rate = static_cast<float>(o_.learning_rate == 0 ? 0.003 : o_.learning_rate);
    job.training.optimizer.decay = wisp::Decay::kLinear;
    job.training.num_threads = o_.num_threads;
    job.training.executor = wisp::ports::ExecutorOf(o_.run_tasks, o_.run_tasks_data);
    job.training.privacy.clipping_norm = o_.clipping_norm == 0 ? 1.0 : o_.clipping_norm;
    job.checkpoint_path = Text(o_.checkpoint_path);
    job.checkpoint_every = o_.checkpoint_every;
    job.epochs = o_.epochs == 0 ? 20 : o_.epochs;
    job.goal = {.epsilon = o_.epsilon, .noise_multiplier = {}, .delta = o_.delta};
    job.progress = [this, epsilon = std::nan("")](const wisp::JobProgress& p) mutable {
      if (o_.progress == nullptr) return true;
      epsilon = p.epsilon.value_or(epsilon);
      const wisp_progress progress{sizeof(wisp_progress), p.step, p.num_steps, p.mean_loss, epsilon};
      return o_.progress(&progress, o_.user_data) == 0;
    };
    return job;
  }

  const wisp_personalise_options& o_;
  std::optional<privacy::PrivacyUnit> unit_;
  std::optional<TextsToLearn> texts_;
  wisp::OpenedDevice device_;
  data::Sequences events_;
  data::TextSequences sequences_;
  std::vector<wisp::Record> records_;
  Counted read_;
};

Status Personalise(const wisp_personalise_options* given, std::optional<TextsToLearn> texts,
                   wisp_personalise_result* out) {
  if (given == nullptr) return InvalidArgument("wisp_personalise_options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto options, wisp::ports::OptionsOf(given, "wisp_personalise_options"));
  WISP_ASSIGN_OR_RETURN(const auto unit, UnitOf(*given));
  // Before anything is spent on what could not be told.
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_personalise_result"));
  WISP_ASSIGN_OR_RETURN(const Personalised p, Personalisation(options, unit, texts).Run());
  if (out == nullptr) return OkStatus();
  const wisp::JobResult& job = p.job;
  const wisp_personalise_result filled{.size = sizeof(wisp_personalise_result),
                                       .num_steps = job.num_steps,
                                       .epsilon = job.epsilon.value_or(HUGE_VAL),
                                       .noise_multiplier = job.noise_multiplier,
                                       .num_records = job.num_records,
                                       .records_too_short = p.read.too_short,
                                       .gradients_dropped = job.num_dropped,
                                       .num_events = p.read.num_events,
                                       .unknown_events = p.read.unknown_events,
                                       .unknown_items = p.read.unknown_items,
                                       .planned_steps = job.planned_steps,
                                       .resumed_from = job.resumed_from,
                                       .bad_rows = p.read.bad_rows,
                                       .checkpoint_failed = job.save_failure.empty() ? 0 : 1,
                                       .on_device = job.options.device.memory.is_host() ? 0 : 1};
  return wisp::ports::FillResult(filled, out, "wisp_personalise_result");
}

Status PlanPersonalise(const wisp_personalise_options* given, wisp_personalise_memory* out) {
  if (given == nullptr || out == nullptr)
    return InvalidArgument("wisp_personalise_plan_memory: options and memory must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::OptionsOf(given, "wisp_personalise_options"));
  if (o.model_path == nullptr || o.num_users_public == 0) {
    return InvalidArgument("wisp_personalise_plan_memory: model_path and num_users_public are required");
  }
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile base, OpenBase(o, wisp::Verify::kStructure));
  WISP_ASSIGN_OR_RETURN(const wisp::Architecture architecture, TrainedArchitecture(o, base));
  WISP_ASSIGN_OR_RETURN(const wisp::OpenedDevice device,
                        wisp::ports::DeviceOrProcessor(o.device, wisp::DeviceUse::kTraining));
  const wisp::TrainingOptions options = {.method = wisp::Method::kPhantom,
                                         .expected_batch = ExpectedBatch(o),
                                         .num_threads = o.num_threads,
                                         .device = device.device};
  WISP_ASSIGN_OR_RETURN(const wisp::TrainingMemory plan,
                        wisp::PlanTrainingMemory(architecture, o.num_users_public, options));
  const size_t widened =
      base.flat_weights().empty() ? wisp::FlatSize(wisp::ParametersOf(base.architecture())) * sizeof(float) : 0;
  const wisp_personalise_memory m{sizeof(wisp_personalise_memory),
                                  plan.weights + widened,
                                  plan.packed_weights,
                                  plan.optimizer_state,
                                  plan.gradient_sums,
                                  plan.activations,
                                  plan.record_gradients,
                                  plan.lists,
                                  plan.total() + widened};
  return wisp::ports::FillResult(m, out, "wisp_personalise_memory");
}

// `format`: wisp_statement_format, as a number.
Status Statement(const char* path, const wisp_anchor* given, double delta, int32_t format, char* text, size_t capacity,
                 size_t* needed) {
  if (path == nullptr || needed == nullptr || (text == nullptr && capacity > 0)) {
    return InvalidArgument("wisp_privacy_statement: ledger_path and needed must not be NULL, nor text with a capacity");
  }
  if (format != WISP_STATEMENT_TEXT && format != WISP_STATEMENT_JSON)
    return InvalidArgument("wisp_privacy_statement: there is no format ", format);
  WISP_ASSIGN_OR_RETURN(const privacy::Delta at, privacy::Delta::Create(delta));
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::AnchorOf(given));
  WISP_ASSIGN_OR_RETURN(const privacy::Ledger ledger,
                        privacy::Ledger::OpenExisting(path, std::move(anchor.kept), anchor.begins));
  WISP_ASSIGN_OR_RETURN(privacy::PrivacyStatement statement, privacy::StatementOf(ledger, path, at));
  statement.created_by = std::string("wisp ") + wisp_version();
  GiveText(format == WISP_STATEMENT_JSON ? privacy::ToJson(statement) : privacy::ToText(statement), text, capacity,
           needed);
  return OkStatus();
}

Status DescribeDevice(const wisp_device* given, char* text, size_t capacity, size_t* needed) {
  if (given == nullptr || needed == nullptr || (text == nullptr && capacity > 0))
    return InvalidArgument("wisp_device_describe: device and needed must not be NULL, nor text with a capacity");
  WISP_ASSIGN_OR_RETURN(const wisp::DeviceOptions options,
                        wisp::ports::DeviceOptionsOf(*given, wisp::DeviceUse::kInference));
  WISP_ASSIGN_OR_RETURN(const wisp::OpenedDevice device, wisp::OpenDevice(options));
  GiveText(device.description, text, capacity, needed);
  return OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_log_open(const char* path, wisp_log** log, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (path == nullptr || log == nullptr) return InvalidArgument("wisp_log_open: path and log must not be NULL");
    WISP_ASSIGN_OR_RETURN(data::EventLog opened, data::EventLog::Open(path));
    *log = new wisp_log{std::move(opened)};
    return OkStatus();
  });
}

void wisp_log_close(wisp_log* log) { delete log; }

wisp_code wisp_log_append(wisp_log* log, const char* user, const char* item_key, int64_t time, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (log == nullptr || user == nullptr || item_key == nullptr)
      return InvalidArgument("wisp_log_append: log, user and item_key must not be NULL");
    return log->log.Append({.user = user, .item = item_key, .time = time});
  });
}

wisp_code wisp_log_history(wisp_log* log, const wisp_model* model, const char* user, int32_t* items, size_t* count,
                           wisp_error* error) {
  return Guarded(error, [&] { return History(log, model, user, items, count); });
}

wisp_code wisp_device_describe(const wisp_device* device, char* text, size_t capacity, size_t* needed,
                               wisp_error* error) {
  return Guarded(error, [&] { return DescribeDevice(device, text, capacity, needed); });
}

wisp_code wisp_personalise(const wisp_personalise_options* options, wisp_personalise_result* result,
                           wisp_error* error) {
  return Guarded(error, [&] { return Personalise(options, std::nullopt, result); });
}

wisp_code wisp_text_train(const wisp_personalise_options* options, const wisp_text_records* records,
                          wisp_personalise_result* result, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    WISP_ASSIGN_OR_RETURN(const TextsToLearn texts, TextsOf(records));
    return Personalise(options, texts, result);
  });
}

wisp_code wisp_personalise_plan_memory(const wisp_personalise_options* options, wisp_personalise_memory* memory,
                                       wisp_error* error) {
  return Guarded(error, [&] { return PlanPersonalise(options, memory); });
}

wisp_code wisp_privacy_statement(const char* ledger_path, double delta, wisp_statement_format format, char* text,
                                 size_t capacity, size_t* needed, wisp_error* error) {
  return Guarded(error, [&] {
    return Statement(ledger_path, nullptr, delta, wisp::ports::NumberOf(format), text, capacity, needed);
  });
}

wisp_code wisp_privacy_statement_anchored(const char* ledger_path, const wisp_anchor* anchor, double delta,
                                          wisp_statement_format format, char* text, size_t capacity, size_t* needed,
                                          wisp_error* error) {
  return Guarded(error, [&] {
    return Statement(ledger_path, anchor, delta, wisp::ports::NumberOf(format), text, capacity, needed);
  });
}

}  // extern "C"
