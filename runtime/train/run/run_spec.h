// The description of a training run, as data, and the table of its fields.
//
// A recipe is a RunSpec as JSON. Recipes, the program's options, the defaults of the ports and the reference of recipes
// read this table or are checked against it: a field has one name, one range, one default and one sentence.
//
//   RunSpec spec = DefaultsFor(RunKind::kEvents);
//   const Field& field = *FindField("training.epochs", RunKind::kEvents);
//   field.slot(spec).SetNumber(3);                     // spec.epochs = 3
//   Allowed(field)                                     // "a number from 0 to 1e+06"
#ifndef WISP_RUNTIME_TRAIN_RUN_RUN_SPEC_H_
#define WISP_RUNTIME_TRAIN_RUN_RUN_SPEC_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/labelled.h"
#include "runtime/data/texts.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/budget.h"
#include "runtime/train/options.h"
#include "runtime/train/run/initialise.h"
#include "runtime/train/run/records.h"

namespace wisp {

// FEST and AdaFEST+: selects the rows of the item table that train.
struct RowSelection {
  enum class Source {
    kPrivate,  // the most frequent by the charged popularity histogram; needs histogram_noise
    kPublic,   // the largest of public_scores: costs nothing
  } source = Source::kPrivate;
  uint32_t count = 0;                         // number of rows, at most the number of items
  std::span<const float> public_scores = {};  // one per item; from public data, or from an earlier release
};

// The settings of a decoder that learns texts: what a record is, and how texts become tokens.
struct TextSpec {
  std::string record = "line";  // as ParseTextUnit reads it
  data::TextUnit unit;          // `record`, parsed
  std::string tokenizer;        // for a model without a base: "bytes"; empty: the caller names a file
  uint32_t max_length = 0;      // positions of a record that are read; 0: as many as the model has
  double hold_out_share = 0;    // share of the texts that is kept for testing
};

// A run learns from events, labelled texts or texts. Events and texts share the fields of a recipe.
enum class RunKind : uint8_t { kEvents = 1, kClasses = 2, kTexts = 4, kDevice = 8 };

// A member that has no initialiser here has its default in the struct that it is part of. DefaultsFor gives what
// differs by kind.
struct RunSpec {
  std::string name;
  Architecture architecture = UniformArchitecture();  // num_items comes from the data, the model or the vocabulary
  std::vector<std::string> names_architecture;        // the keys of the architecture that a recipe names
  std::optional<AdapterSpec> adapter;                 // trains beside a model, which does not change
  InitialisationOptions initialisation;
  TrainingOptions training;  // num_steps 0: derived from epochs
  double epochs = 0;         // steps = ceil(epochs * records / expected_batch)
  PrivacyGoal goal;          // read if training is private; without a target or noise in DP-FP's mode paper
  RowSelection rows;         // read if training.sparse.rows is empty
  privacy::PrivacyUnit unit = privacy::PrivacyUnit::kUser;
  bool unit_chosen = false;       // the recipe names it
  int64_t session_gap = 0;        // for the unit session, in seconds
  uint32_t times_per_second = 1;  // unit of the log's times
  std::string uncharged_tuning;   // for the statement: choices made by looking at the same data without a charge
  HoldOut hold_out = HoldOut::kTest;
  // ModelFile::lists of the result. If not set, it is that of the base; without a base, seen items may not be shown.
  std::optional<bool> allow_seen;
  uint32_t min_user_events = 1, min_item_events = 1;
  // Says if anybody may know which items or tokens exist: a list from private data requires it.
  enum class Catalogue { kUnsaid, kPublic } catalogue = Catalogue::kUnsaid;
  std::optional<TextSpec> text;      // set: a decoder learns texts
  std::vector<std::string> classes;  // not empty: a classifier learns them; public, in the order of their numbers
  data::LetterCase letters = data::LetterCase::kLower;  // for a vocabulary of words
  std::string text_column, label_column;                // of labelled texts
};

// The defaults of a run of that kind. kDevice: private fine-tuning by the ports.
RunSpec DefaultsFor(RunKind kind);

// The options of the run's trainer: spec.training with what follows from the rest.
TrainingOptions MakeOptions(const RunSpec& spec);

enum class FieldType : uint8_t { kFlag, kWhole, kNumber, kText, kChoice, kTexts, kNumbers, kObject };

// The place of a field's value in a RunSpec. A setter must be the one of the type.
struct FieldSlot {
  FieldType type;
  uint8_t bytes = 0;         // of a whole number or a number
  bool is_optional = false;  // may have no value
  void* at = nullptr;

  void SetFlag(bool value) const;
  void SetWhole(uint64_t value) const;
  void SetNumber(double value) const;
  void SetChoice(int value) const;
  void SetText(std::string value) const;
  void SetTexts(std::vector<std::string> values) const;
  void SetNumbers(std::vector<double> values) const;
};

// A word of a choice, and the value that it stands for. The value is unused where the field is a text.
struct ChoiceWord {
  const char* word;
  int value;
};

struct Field {
  const char* path;          // sections and key of a recipe: "training.optimizer.learning_rate"
  uint8_t kinds;             // the kinds whose recipes have it: bits of RunKind
  double low = 0, high = 0;  // range of a number, ends included
  std::span<const ChoiceWord> words = {};
  const char* unit = "";    // of a number
  const char* option = "";  // of the program, without its hyphens
  const char* port = "";    // the member of wisp_personalise_options, after which the other ports name theirs
  const char* sentence;     // what it is, for help and reference
  FieldSlot (*slot)(RunSpec&);
};

// All fields (run_fields.cc). Those of a section stand together, in the order in which messages name them.
std::span<const Field> Fields();

// Null if the kind has no such field.
const Field* FindField(std::string_view path, RunKind kind);

FieldType GetType(const Field& field);

// The values that a message or a help text says are allowed: "a whole number from 1 to 4e+09", "true and false".
std::string Allowed(const Field& field);

// The value of a field as JSON; empty if it has none, and for lists. `spec` needs `text` for fields of texts.
std::string ValueText(const Field& field, RunSpec& spec);

// The default of a kind: ValueText.
std::string DefaultText(const Field& field, RunKind kind);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_RUN_SPEC_H_
