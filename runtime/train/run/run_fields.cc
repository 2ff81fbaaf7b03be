// The table of fields (run_spec.h).
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "runtime/privacy/accounting/calibration.h"
#include "runtime/train/run/run_spec.h"

namespace wisp {
namespace {

constexpr uint8_t kRecommenders = static_cast<uint8_t>(RunKind::kEvents) | static_cast<uint8_t>(RunKind::kTexts) |
                                  static_cast<uint8_t>(RunKind::kDevice);
constexpr uint8_t kClassifiers = static_cast<uint8_t>(RunKind::kClasses);
constexpr uint8_t kAll = kRecommenders | kClassifiers;

// ---- Words of choices -----------------------------------------------------------------------------------------------

template <class E>
constexpr ChoiceWord To(const char* word, E value) {
  static_assert(sizeof(E) == sizeof(int));
  return {word, static_cast<int>(value)};
}

template <class E, size_t count>
constexpr std::array<ChoiceWord, count> To(const std::pair<const char*, E> (&names)[count]) {
  std::array<ChoiceWord, count> words{};
  for (size_t i = 0; i < count; ++i) words[i] = To(names[i].first, names[i].second);
  return words;
}

constexpr auto kMethods = To(kMethodNames);
constexpr ChoiceWord kClassifierMethods[] = {To("dp-fp", Method::kDpFp), To("phantom", Method::kPhantom),
                                             To("rgp", Method::kRgp), To("ordinary", Method::kOrdinary)};
constexpr auto kSamplings = To(kSamplingNames);
constexpr ChoiceWord kSchedules[] = {To("constant", NoiseSchedule::kConstant),
                                     To("learning_rate", NoiseSchedule::kLearningRate)};
constexpr ChoiceWord kLosses[] = {To("record_mean", LossWeighting::kRecordMean),
                                  To("position_mean", LossWeighting::kPositionMean)};
constexpr ChoiceWord kOptimizers[] = {To("adam", OptimizerKind::kAdam), To("adamw", OptimizerKind::kAdamW),
                                      To("sgd", OptimizerKind::kSgd)};
constexpr ChoiceWord kDecays[] = {To("constant", Decay::kConstant), To("linear", Decay::kLinear)};
constexpr ChoiceWord kRowSources[] = {To("private", RowSelection::Source::kPrivate),
                                      To("public", RowSelection::Source::kPublic)};
constexpr ChoiceWord kRgpReleases[] = {To("frozen", RgpTrain::kFrozen), To("projected", RgpTrain::kProjected),
                                       To("full", RgpTrain::kFull)};
constexpr ChoiceWord kVectorRgpWords[] = {To("frozen", RgpTrain::kFrozen), To("full", RgpTrain::kFull)};
constexpr ChoiceWord kDeviations[] = {To("optimizer", ReAttentionOptions::Source::kOptimizer),
                                      To("printed", ReAttentionOptions::Source::kPrinted)};
constexpr ChoiceWord kTrainedParts[] = {To("all", TrainedPart::kAll), To("blocks", TrainedPart::kBlocks),
                                        To("head", TrainedPart::kHead)};
constexpr auto kPartsOfRecommenders = std::span(kTrainedParts).first(2);
constexpr ChoiceWord kModes[] = {To("aggregate", DpFpMode::kAggregate), To("clipped", DpFpMode::kClipped),
                                 To("paper", DpFpMode::kPaper)};
constexpr ChoiceWord kClippings[] = {To("flat", ClipKind::kFlat), To("automatic", ClipKind::kAutomatic)};
constexpr ChoiceWord kNormForms[] = {To("automatic", NormForm::kAutomatic), To("formed", NormForm::kFormed),
                                     To("gram", NormForm::kGram), To("integers", NormForm::kIntegers)};
constexpr ChoiceWord kUnits[] = {To("user", privacy::PrivacyUnit::kUser), To("session", privacy::PrivacyUnit::kSession),
                                 To("day", privacy::PrivacyUnit::kDay),
                                 To("interaction", privacy::PrivacyUnit::kInteraction)};
constexpr ChoiceWord kTextUnits[] = {To("user", privacy::PrivacyUnit::kUser),
                                     To("interaction", privacy::PrivacyUnit::kInteraction)};
constexpr ChoiceWord kPublic[] = {To("public", RunSpec::Catalogue::kPublic)};
constexpr ChoiceWord kHoldOuts[] = {To("nothing", HoldOut::kNothing), To("test", HoldOut::kTest),
                                    To("validation_and_test", HoldOut::kValidationAndTest)};
constexpr ChoiceWord kLetters[] = {To("lower", data::LetterCase::kLower), To("keep", data::LetterCase::kKeep)};
constexpr ChoiceWord kTokenizers[] = {{"bytes", 0}};

// ---- The table ------------------------------------------------------------------------------------------------------

template <class T>
FieldSlot SlotAt(T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return {.type = FieldType::kFlag, .at = &value};
  } else if constexpr (std::is_enum_v<T>) {
    return {.type = FieldType::kChoice, .at = &value};
  } else if constexpr (std::is_integral_v<T>) {
    return {.type = FieldType::kWhole, .bytes = sizeof(T), .at = &value};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {.type = FieldType::kNumber, .bytes = sizeof(T), .at = &value};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {.type = FieldType::kText, .at = &value};
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return {.type = FieldType::kTexts, .at = &value};
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    return {.type = FieldType::kNumbers, .at = &value};
  } else if constexpr (std::is_same_v<T, std::optional<bool>>) {
    return {.type = FieldType::kFlag, .is_optional = true, .at = &value};
  } else {
    static_assert(std::is_same_v<T, std::optional<double>>);
    return {.type = FieldType::kNumber, .bytes = sizeof(double), .is_optional = true, .at = &value};
  }
}

// A section with keys of its own: architecture_section.cc of the program reads them.
FieldSlot kSection(RunSpec&) { return {.type = FieldType::kObject}; }

#define WISP_AT(member) [](RunSpec& s) { return SlotAt(s.member); }

using GetSlot = FieldSlot (*)(RunSpec&);

// The names that most fields lack.
struct More {
  const char *unit = "", *option = "", *port = "";
};

constexpr Field Other(const char* path, uint8_t kinds, GetSlot slot, const char* sentence, More more = {}) {
  return {.path = path,
          .kinds = kinds,
          .unit = more.unit,
          .option = more.option,
          .port = more.port,
          .sentence = sentence,
          .slot = slot};
}

constexpr Field Number(const char* path, uint8_t kinds, double low, double high, GetSlot slot, const char* sentence,
                       More more = {}) {
  Field field = Other(path, kinds, slot, sentence, more);
  field.low = low;
  field.high = high;
  return field;
}

constexpr Field Choice(const char* path, uint8_t kinds, std::span<const ChoiceWord> words, GetSlot slot,
                       const char* sentence, More more = {}) {
  Field field = Other(path, kinds, slot, sentence, more);
  field.words = words;
  return field;
}

constexpr Field kFields[] = {
    Other("name", kAll, WISP_AT(name), "the recipe's name, in the model file"),
    Other("architecture", kAll, kSection,
          "the shape of the model; with a model to start from that one's own, except re_attention"),
    Number("initialisation.table_deviation", kAll, 0, 100, WISP_AT(initialisation.table_deviation),
           "standard deviation of item vectors"),
    Number("initialisation.position_deviation", kAll, 0, 100, WISP_AT(initialisation.position_deviation),
           "of position vectors; 0: they begin at zero"),
    Number("initialisation.matrix_gain", kAll, 0, 100, WISP_AT(initialisation.matrix_gain), "times Xavier's bound"),
    Choice("training.method", kRecommenders, kMethods, WISP_AT(training.method),
           "how gradients are made; every one but ordinary is private", {.option = "method"}),
    Choice("training.method", kClassifiers, kClassifierMethods, WISP_AT(training.method),
           "how it trains; every one but ordinary is private", {.option = "method"}),
    Choice("training.sampling", kRecommenders, kSamplings, WISP_AT(training.sampling),
           "how a step samples its records; private methods need poisson, allocation or cyclic"),
    Choice("training.loss", kRecommenders, kLosses, WISP_AT(training.loss),
           "each record weighs the same, or each position; private methods need record_mean"),
    Number("training.epochs", kAll, 0, 1e6, WISP_AT(epochs), "how often each record is seen on average; or set steps",
           {.unit = "passes", .option = "epochs", .port = "epochs"}),
    Number("training.steps", kAll, 0, 1e12, WISP_AT(training.num_steps), "number of steps; 0: by epochs",
           {.unit = "steps", .option = "steps"}),
    Number("training.expected_batch", kAll, 1, 4e9, WISP_AT(training.expected_batch),
           "records of a step, on average; under privacy as large as time allows",
           {.unit = "records", .option = "batch", .port = "expected_batch"}),
    Number("training.num_records_public", kAll, 1, 4e9, WISP_AT(training.num_records_public),
           "how many records (users or texts) there are, as anybody may know; never counted from private data; private "
           "methods need it",
           {.unit = "records", .option = "num-records-public", .port = "num_records_public"}),
    Number("training.seed", kRecommenders, 0, 1.8e19, WISP_AT(training.seed),
           "seed of weights, shuffling and dropout; never of secure noise", {.option = "seed"}),
    Number("training.seed", kClassifiers, 0, 1.8e19, WISP_AT(training.seed), "seed of fresh weights",
           {.option = "seed"}),
    Number("training.ema_decay", kRecommenders, 0, 0.999999, WISP_AT(training.ema_decay),
           "averages the weights over steps; 0: the last ones"),
    Choice("training.optimizer.kind", kAll, kOptimizers, WISP_AT(training.optimizer.kind),
           "how a gradient becomes a step"),
    Number("training.optimizer.learning_rate", kAll, 1e-12, 1e3, WISP_AT(training.optimizer.learning_rate),
           "the highest learning rate", {.option = "learning-rate", .port = "learning_rate"}),
    Number("training.optimizer.beta1", kAll, 0, 0.999999, WISP_AT(training.optimizer.beta1),
           "adam, adamw: memory of the mean"),
    Number("training.optimizer.beta2", kAll, 0, 0.999999, WISP_AT(training.optimizer.beta2),
           "adam, adamw: memory of the square"),
    Number("training.optimizer.epsilon", kAll, 1e-20, 0.1, WISP_AT(training.optimizer.epsilon),
           "adam, adamw: added to the root; no matter of privacy"),
    Number("training.optimizer.momentum", kAll, 0, 0.999999, WISP_AT(training.optimizer.momentum), "sgd"),
    Number("training.optimizer.weight_decay", kAll, 0, 0.999999, WISP_AT(training.optimizer.weight_decay),
           "adamw, sgd: of tables and matrices"),
    Number("training.optimizer.warmup_steps", kAll, 0, 1e9, WISP_AT(training.optimizer.warmup_steps),
           "steps in which the rate rises", {.unit = "steps"}),
    Choice("training.optimizer.decay", kAll, kDecays, WISP_AT(training.optimizer.decay), "of the rate after that"),
    Number("training.optimizer.final_fraction", kAll, 0, 1, WISP_AT(training.optimizer.final_fraction),
           "of the rate, at the last step of a linear decay"),
    Number(
        "training.feature_rate", kRecommenders, 0, 100, WISP_AT(training.item_features.rate),
        "where item features are given: share of the learning rate for what items with equal features learn together"),
    Number("training.num_negatives", kRecommenders, 0, kMaxItems, WISP_AT(training.num_negatives),
           "items of a sampled softmax; 0: all items are scored", {.unit = "items"}),
    Number("training.rows_at_once", kAll, 0, 1 << 20, WISP_AT(training.rows_at_once),
           "rows that short records share in one pass of a thread. Faster for large models, more memory, same bits "
           "(ordinary: to rounding). 0: 256 where matrices take more than 1 MB, else one record",
           {.unit = "rows"}),
    Other("training.recompute_blocks", kAll, WISP_AT(training.recompute_blocks),
          "keeps only each block's input and computes it again: less memory, more time; the same bits as with "
          "norm_form formed",
          {.option = "recompute-blocks"}),
    Number("training.cache_at_most", kClassifiers, 0, 1e12, WISP_AT(training.cache_at_most),
           "bytes; up to this size, what frozen layers make of each text is kept; no bit changes", {.unit = "bytes"}),
    Choice("training.sparse.rows_from", kRecommenders, kRowSources, WISP_AT(rows.source),
           "fest, adafest+: rows by the charged histogram, or by public scores"),
    Number("training.sparse.rows", kRecommenders, 1, kMaxItems, WISP_AT(rows.count),
           "rows of the item table that are trained (fest, adafest+)", {.unit = "rows", .option = "rows"}),
    Number("training.sparse.map_clipping_norm", kRecommenders, 1e-6, 1e6, WISP_AT(training.sparse.map_clipping_norm),
           "adafest, adafest+: of what a record adds to the map of touched rows"),
    Number("training.sparse.map_threshold", kRecommenders, 1e-9, 1e9, WISP_AT(training.sparse.map_threshold),
           "adafest, adafest+: a row is trained where its noisy entry of the map is above"),
    Number("training.sparse.map_noise_ratio", kRecommenders, 1e-3, 1e3, WISP_AT(training.sparse.map_noise_ratio),
           "adafest, adafest+: noise of the map over noise of the gradient"),
    Number("training.rgp.rank", kAll, 1, kMaxWidth, WISP_AT(training.rgp.rank), "carriers of each matrix",
           {.option = "rank"}),
    Number("training.rgp.power_iterations", kAll, 1, 100, WISP_AT(training.rgp.power_iterations),
           "a step, for the carriers"),
    Number("training.rgp.warmup_steps", kAll, 0, 1e9, WISP_AT(training.rgp.warmup_steps),
           "steps in which carriers follow the weights, not what training changed", {.unit = "steps"}),
    Choice("training.rgp.item_tables", kAll, kRgpReleases, WISP_AT(training.rgp.item_tables),
           "what is released of the item tables"),
    Choice("training.rgp.positions", kAll, kRgpReleases, WISP_AT(training.rgp.positions),
           "of the position vectors; token types are full where these are projected, and so is a head of classes where "
           "matrices are"),
    Choice("training.rgp.matrices", kAll, kRgpReleases, WISP_AT(training.rgp.matrices), "of the matrices"),
    Choice("training.rgp.vectors", kAll, kVectorRgpWords, WISP_AT(training.rgp.vectors), "of biases and gains"),
    Choice("training.re_attention.deviations", kRecommenders, kDeviations, WISP_AT(training.re_attention.source),
           "noise of a weight: by the optimizer's moments, or as the paper prints it (needs histogram_noise)"),
    Number("training.re_attention.scale", kRecommenders, 0, 1e6, WISP_AT(training.re_attention.scale),
           "multiplies the deviations"),
    Number("training.dropout.embedding", kAll, 0, 0.99, WISP_AT(training.dropout.embedding),
           "share of the input that is left out"),
    Number("training.dropout.attention", kAll, 0, 0.99, WISP_AT(training.dropout.attention),
           "of the weights of attention"),
    Number("training.dropout.residual", kAll, 0, 0.99, WISP_AT(training.dropout.residual), "of what each part adds"),
    Choice("training.trains", kRecommenders, kPartsOfRecommenders, WISP_AT(training.trained_part),
           "which parameters train: all, or all but tables", {.option = "trains"}),
    Choice("training.trains", kClassifiers, kTrainedParts, WISP_AT(training.trained_part),
           "which parameters train: all, all but tables, or the pooler and the head; of dp-fp all",
           {.option = "trains"}),
    Number("training.last_blocks", kClassifiers, 0, kMaxBlocks, WISP_AT(training.last_blocks),
           "with trains blocks: only this many of the last blocks train, or an adapter beside them; 0: all",
           {.option = "last-blocks"}),
    Other("adapter", kAll, kSection, "low-rank matrices that train beside those of the model to start from"),
    Choice("dp_fp.mode", kClassifiers, kModes, WISP_AT(training.dp_fp.mode),
           "encoder frozen, encoder trained too, or the paper's own, which has no guarantee", {.option = "mode"}),
    Number("dp_fp.micro_batches", kClassifiers, 1, 1e6, WISP_AT(training.dp_fp.micro_batches), "of a step"),
    Number("dp_fp.clipping_norm", kClassifiers, 1e-9, 1e9, WISP_AT(training.dp_fp.clipping_norm),
           "of a representation"),
    Number("dp_fp.release_decay", kClassifiers, 0, 1, WISP_AT(training.dp_fp.release_decay),
           "what a release weighs one step later: below 1 where the encoder moves"),
    Number("dp_fp.effective_dimensions", kClassifiers, 1, kMaxWidth, WISP_AT(training.dp_fp.effective_dimensions),
           "in how many directions the class means are taken to differ"),
    Other("dp_fp.class_prior", kClassifiers, WISP_AT(training.dp_fp.class_prior),
          "shares of the classes, a public statement; none: equal"),
    Number("dp_fp.head_share", kClassifiers, 1e-3, 0.999, WISP_AT(goal.head_share),
           "mode clipped: what part of epsilon the head's releases would cost alone"),
    Choice("dp_fp.encoder.clipping", kClassifiers, kClippings, WISP_AT(training.privacy.clipping),
           "as privacy.clipping of a recommender"),
    Number("dp_fp.encoder.clipping_norm", kClassifiers, 1e-9, 1e9, WISP_AT(training.privacy.clipping_norm),
           "bound of a record's gradient"),
    Choice("dp_fp.encoder.norm_form", kClassifiers, kNormForms, WISP_AT(training.privacy.norm_form),
           "as privacy.norm_form of a recommender"),
    Number("dp_fp.encoder.noise_multiplier", kClassifiers, 1e-6, 1e5, WISP_AT(training.privacy.noise_multiplier),
           "of the encoder's gradients, where privacy.noise_multiplier stands instead of a target"),
    Number("dp_fp.paper.noise_multiplier", kClassifiers, 1e-6, 1e5, WISP_AT(training.dp_fp.noise_multiplier),
           "noise of a representation over its clipping norm"),
    Number("privacy.epsilon", kAll, privacy::kSmallestTarget, privacy::kLargestTarget, WISP_AT(goal.epsilon),
           "target epsilon of this run, all releases included; the noise is calibrated to it",
           {.option = "epsilon", .port = "epsilon"}),
    Number("privacy.noise_multiplier", kRecommenders, 1e-6, 1e6, WISP_AT(goal.noise_multiplier),
           "this noise instead, whatever it costs; exactly one of the two", {.option = "noise-multiplier"}),
    Number("privacy.noise_multiplier", kClassifiers, 1e-6, 1e5, WISP_AT(goal.noise_multiplier),
           "this noise of the head's releases instead; exactly one of the two", {.option = "noise-multiplier"}),
    Number("privacy.delta", kAll, 1e-300, 0.5, WISP_AT(goal.delta),
           "delta of the guarantee; private methods need it stated", {.option = "delta", .port = "delta"}),
    Other("privacy.allow_delta_of_one_record", kAll, WISP_AT(goal.allow_delta_of_one_record),
          "accept a delta above 0.001, up to 1 / num_records_public, as in papers; not with ten records or fewer"),
    Choice("privacy.clipping", kAll, kClippings, WISP_AT(training.privacy.clipping),
           "gradients above the norm are cut, or all are scaled to just below it"),
    Number("privacy.clipping_norm", kAll, 1e-9, 1e9, WISP_AT(training.privacy.clipping_norm),
           "bound of a record's gradient", {.option = "clipping-norm", .port = "clipping_norm"}),
    Choice("privacy.noise_schedule", kRecommenders, kSchedules, WISP_AT(training.privacy.noise_schedule),
           "the same noise in every step, or more of it where the learning rate is low"),
    Number("privacy.noise_lambda", kRecommenders, 0, 0.999999, WISP_AT(training.privacy.noise_lambda),
           "share of a step's noise that the next step takes back; above 0 with cyclic sampling"),
    Choice("privacy.norm_form", kAll, kNormForms, WISP_AT(training.privacy.norm_form),
           "speed and memory of norms and sums. Formed and gram give the same numbers, integers those of another "
           "rounding. Automatic takes integers where it can and more than 2^20 numbers train; else formed up to 64 MB "
           "a thread, then gram. With a temperature always formed"),
    Number("privacy.histogram_noise", kRecommenders, 0, 1e5, WISP_AT(goal.histogram_noise),
           "standard deviation, in records, of the charged popularity histogram; 0: no histogram is released",
           {.unit = "records", .option = "histogram-noise"}),
    Number("privacy.steps_per_charge", kAll, 1, 1e9, WISP_AT(training.privacy.steps_per_charge),
           "steps charged at a time; a stopped run has spent what was charged", {.unit = "steps"}),
    Other("privacy.uncharged_tuning", kAll, WISP_AT(uncharged_tuning),
          "what was chosen by looking at the same data without a charge; goes into ledger, statement and model",
          {.option = "uncharged-tuning", .port = "uncharged_tuning"}),
    Choice("privacy.unit", kRecommenders, kUnits, WISP_AT(unit),
           "what one record is: all events of a user, or of one of their sessions or days (UTC); sessions and days "
           "need times. interaction is refused for events, and the default for texts",
           {.port = "unit"}),
    Choice("privacy.unit", kClassifiers, kTextUnits, WISP_AT(unit), "what one record (a text) is", {.port = "unit"}),
    Number("privacy.session_gap", kRecommenders, 1, data::kMaxSessionGap, WISP_AT(session_gap),
           "a longer pause ends a session; a public constant, required with the unit session",
           {.unit = "seconds", .port = "session_gap"}),
    Number("privacy.times_per_second", kRecommenders, 1, 1e9, WISP_AT(times_per_second),
           "times of the log in a second: 1000 for milliseconds", {.port = "times_per_second"}),
    Number("data.min_user_events", kRecommenders, 1, 1e9, WISP_AT(min_user_events),
           "users with fewer events are left out", {.unit = "events"}),
    Number("data.min_item_events", kRecommenders, 1, 1e9, WISP_AT(min_item_events),
           "items with fewer events are left out; private methods need 1", {.unit = "events"}),
    Choice("data.catalogue", kRecommenders, kPublic, WISP_AT(catalogue),
           "which items exist is no secret; private methods need this or a model to start from",
           {.option = "catalogue"}),
    Choice("data.hold_out", kRecommenders, kHoldOuts, WISP_AT(hold_out),
           "which last events of each user are not trained on"),
    Other("data.allow_seen", kRecommenders, WISP_AT(allow_seen),
          "lists may hold items of the history, as in cafes and groceries; the model says so from then on; an adapter "
          "leaves it to its base"),
    Other("data.classes", kClassifiers, WISP_AT(classes),
          "names of the classes, a public statement; their order is that of their numbers"),
    Choice("data.catalogue", kClassifiers, kPublic, WISP_AT(catalogue),
           "which words occur is no secret; otherwise a vocabulary or a base brings the words"),
    Choice("data.letters", kClassifiers, kLetters, WISP_AT(letters), "A to Z become small, or stay"),
    Other("data.text_column", kClassifiers, WISP_AT(text_column), "name of the column of texts; none: sentence or text",
          {.option = "text-column"}),
    Other("data.label_column", kClassifiers, WISP_AT(label_column), "name of the column of labels; none: label",
          {.option = "label-column"}),
    Other("text.record", kRecommenders, WISP_AT(text->record), "what one record is, which is the protected unit",
          {.option = "record"}),
    Choice("text.tokenizer", kRecommenders, kTokenizers, WISP_AT(text->tokenizer),
           "of fresh weights: each byte a token; none: the command names a file"),
    Number("text.max_length", kRecommenders, 1, kMaxLength, WISP_AT(text->max_length),
           "positions of a record that are read; 0: as many as the model has",
           {.unit = "positions", .option = "max-length"}),
    Number("text.hold_out_share", kRecommenders, 0, 0.9, WISP_AT(text->hold_out_share),
           "share of the texts, chosen by content, that is measured and not trained on"),
};

#undef WISP_AT

}  // namespace

std::span<const Field> Fields() { return kFields; }

const Field* FindField(std::string_view path, RunKind kind) {
  const auto* found = std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) {
    return (f.kinds & static_cast<uint8_t>(kind)) != 0 && f.path == path;
  });
  return found == std::end(kFields) ? nullptr : found;
}

}  // namespace wisp
