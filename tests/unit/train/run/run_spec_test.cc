#include "runtime/train/run/run_spec.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/train/run/classifier_start.h"

namespace wisp {
namespace {

constexpr RunKind kKinds[] = {RunKind::kEvents, RunKind::kTexts, RunKind::kClasses, RunKind::kDevice};

TEST(RunSpec, EachPathIsOneFieldOfAKind) {
  for (const RunKind kind : kKinds) {
    std::set<std::string> paths;
    for (const Field& field : Fields()) {
      if ((field.kinds & static_cast<uint8_t>(kind)) == 0) continue;
      EXPECT_TRUE(paths.insert(field.path).second) << field.path;
      EXPECT_EQ(FindField(field.path, kind), &field);
    }
    EXPECT_GT(paths.size(), 30u);
  }
  EXPECT_EQ(FindField("training.epoch", RunKind::kEvents), nullptr);
  EXPECT_EQ(FindField("dp_fp.mode", RunKind::kEvents), nullptr);
}

TEST(RunSpec, EveryFieldSaysWhatItIsAndWhatIsAllowed) {
  for (const Field& field : Fields()) {
    const FieldType type = GetType(field);
    EXPECT_NE(*field.sentence, '\0') << field.path;
    EXPECT_FALSE(Allowed(field).empty()) << field.path;
    EXPECT_EQ(type == FieldType::kWhole || type == FieldType::kNumber, field.low < field.high) << field.path;
    EXPECT_FALSE(type == FieldType::kChoice && field.words.empty()) << field.path;
  }
}

// A member of another size or type than the setter writes would show here.
TEST(RunSpec, ASlotHoldsBothEndsOfItsRange) {
  for (const Field& field : Fields()) {
    RunSpec spec;
    spec.text.emplace();
    const FieldSlot slot = field.slot(spec);
    for (const double bound : {field.low, field.high}) {
      if (slot.type == FieldType::kWhole) {
        slot.SetWhole(static_cast<uint64_t>(bound));
        EXPECT_EQ(ValueText(field, spec), std::to_string(static_cast<uint64_t>(bound))) << field.path;
      } else if (slot.type == FieldType::kNumber) {
        slot.SetNumber(bound);
        EXPECT_NEAR(std::strtod(ValueText(field, spec).c_str(), nullptr), bound, 1e-3 * bound) << field.path;
      }
    }
    for (const ChoiceWord& word : field.words) {
      slot.type == FieldType::kText ? slot.SetText(word.word) : slot.SetChoice(word.value);
      EXPECT_EQ(ValueText(field, spec), '"' + std::string(word.word) + '"') << field.path;
    }
  }
}

TEST(RunSpec, AllowedNamesWholeBoundsExactly) {
  EXPECT_EQ(Allowed(*FindField("training.num_negatives", RunKind::kEvents)), "a whole number from 0 to 67108864");
  EXPECT_EQ(Allowed(*FindField("training.epochs", RunKind::kEvents)), "a number from 0 to 1e+06");
  EXPECT_EQ(Allowed(*FindField("training.sampling", RunKind::kEvents)), "poisson, shuffled, allocation, cyclic");
}

// Outside of DefaultsFor there is no second default.
TEST(RunSpec, DefaultsOfEventsAreThoseOfTheStructs) {
  const RunSpec events = DefaultsFor(RunKind::kEvents), fresh;
  EXPECT_EQ(events.training.optimizer.learning_rate, fresh.training.optimizer.learning_rate);
  EXPECT_EQ(events.training.expected_batch, fresh.training.expected_batch);
  EXPECT_EQ(events.training.method, fresh.training.method);
  EXPECT_EQ(events.goal.head_share, fresh.goal.head_share);
  EXPECT_EQ(events.epochs, fresh.epochs);
  EXPECT_EQ(events.hold_out, fresh.hold_out);
  EXPECT_EQ(DefaultText(*FindField("training.epochs", RunKind::kTexts), RunKind::kTexts), "3");
  EXPECT_EQ(DefaultText(*FindField("training.epochs", RunKind::kDevice), RunKind::kDevice), "20");
  EXPECT_EQ(DefaultText(*FindField("privacy.epsilon", RunKind::kEvents), RunKind::kEvents), "");
}

TEST(RunSpec, AClassifierSeedIsThatOfFreshWeightsAlone) {
  RunSpec spec = DefaultsFor(RunKind::kClasses);
  spec.training.seed = 7;
  EXPECT_EQ(MakeOptions(spec).seed, 7u);
  spec.classes = {"bad", "good"};
  EXPECT_EQ(MakeOptions(spec).seed, TrainingOptions().seed);
  EXPECT_EQ(MakeOptions(spec).classes_hash, HashClasses(spec.classes));
}

TEST(RunSpec, ARunOfTextsCutsItsRecords) {
  RunSpec spec = DefaultsFor(RunKind::kTexts);
  spec.text->max_length = 24;
  EXPECT_EQ(MakeOptions(spec).cut_to, 24u);
}

}  // namespace
}  // namespace wisp
