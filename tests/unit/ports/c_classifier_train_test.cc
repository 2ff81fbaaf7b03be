// A classifier that learns labelled texts over the C interface: that it learns, which tensors change, the counts, and
// refusals before a charge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "ports/c/wisp_text.h"
#include "tests/unit/ports/c_personalise_fixture.h"
#include "tests/unit/ports/c_text_test_util.h"

namespace wisp::c_classifier_train_test {
namespace {

using test::ReadBytes;

const char* const kClasses[] = {"bad", "good"};
const char* const kOthers[] = {"good", "bad"};

class CClassifierTrain : public test::CShortRunTest {
 protected:
  CClassifierTrain() : CShortRunTest("labelled.txt", 60, WISP_UNIT_INTERACTION) {
    Write(base_, test::TextEncoder());
    std::ofstream texts(log_);
    for (int i = 0; i < 30; ++i) texts << "good\tthe the " << i << "\n1\tthe the the " << i << "\n";
    for (int i = 0; i < 30; ++i) texts << "bad\tof of " << i << "\n0\tof of of " << i << "\n";
    texts << "neither\tof "
          << "\ngood\tbad \xff\nno tab\n";
    options_.num_records_public = 120;
    options_.expected_batch = 60;
    labelled_.classes = kClasses;
    labelled_.num_classes = 2;
    labelled_.format = WISP_LABELLED_LINES;
    labelled_.trains = WISP_TRAINS_ALL;
  }

  void Write(const std::string& path, const Architecture& a) {
    ModelContents contents{.architecture = a};
    contents.tokenizer = test::GoldenTokenizer("bert");
    WriteRandom(path, std::move(contents));
  }
  wisp_code Run() { return wisp_classifier_train(&options_, &labelled_, &result_, &error_); }
  void ExpectRefused(const char* sentence) { ExpectNothingSpent(Run(), sentence); }
  float GoodProbability(const char* text, const std::string& path, const char* adapter = nullptr) {
    wisp_open_options how = WISP_INIT(wisp_open_options);
    how.adapter_path = adapter;
    wisp_text_model* model = nullptr;
    EXPECT_EQ(wisp_text_open(path.c_str(), &how, &model, &error_), WISP_OK) << error_.message;
    EXPECT_STREQ(wisp_text_class_name(model, 1), "good");
    float p[2] = {};
    EXPECT_EQ(wisp_text_classify(model, text, p, 2, &error_), WISP_OK) << error_.message;
    wisp_text_close(model);
    return p[1];
  }
  // Returns which of the base's tensors differ in `out_`.
  std::vector<std::string> Changed() const {
    const auto before = ModelFile::Open(base_, Verify::kFull, Accept::kAny);
    const auto after = ModelFile::Open(out_, Verify::kFull, Accept::kAny);
    const std::vector<ParameterSpec> parameters = ListParameters(before->architecture());
    std::vector<std::string> changed;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!std::equal(before->Tensor(i), before->Tensor(i) + parameters[i].size(), after->Tensor(i)))
        changed.push_back(parameters[i].name);
    }
    return changed;
  }

  const std::string other_ = folder_ / "other.wisp";
  wisp_labelled_texts labelled_ = WISP_INIT(wisp_labelled_texts);
  wisp_personalise_result result_ = WISP_INIT(wisp_personalise_result);
};

TEST_F(CClassifierTrain, LearnsTheClassesOfTexts) {
  options_.epsilon = 100;
  options_.epochs = 60;
  options_.learning_rate = 0.02;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_events, 123u);
  EXPECT_EQ(result_.bad_rows, 3u);
  EXPECT_EQ(result_.num_records, 120u);
  EXPECT_EQ(result_.records_too_short, 0u);
  EXPECT_EQ(result_.num_steps, 120u);
  EXPECT_LE(result_.epsilon, 100);
  EXPECT_GT(GoodProbability("the the 5", out_), 0.9);
  EXPECT_LT(GoodProbability("of of 5", out_), 0.1);
  const auto model = ModelFile::Open(out_, Verify::kFull, Accept::kClassifier);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->provenance().back().description, "personalised on the device, one record: one labelled text");
  EXPECT_EQ(model->provenance().back().privacy_unit, "interaction, one labelled text");
  EXPECT_EQ(privacy::Ledger::OpenExisting(ledger_)->dataset(), "labelled.txt");
}

TEST_F(CClassifierTrain, WhatTrainsIsAllThatChanges) {
  labelled_.trains = WISP_TRAINS_HEAD;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(Changed(), std::vector<std::string>());
  labelled_.trains = WISP_TRAINS_BLOCKS;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  const std::vector<std::string> blocks = Changed();
  labelled_.trains = WISP_TRAINS_ALL;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  const std::vector<std::string> all = Changed();
  EXPECT_GT(blocks.size(), 10u);
  EXPECT_EQ(all.size(), blocks.size() + 3);  // tables of tokens, positions and types
}

TEST_F(CClassifierTrain, AnAdapterAndItsHeadAreBesideTheEncoder) {
  const std::string before = ReadBytes(base_), second = folder_ / "second.wisp";
  labelled_.trains = static_cast<wisp_trains>(0);
  options_.adapter_rank = 2;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(ReadBytes(base_), before);
  EXPECT_GT(GoodProbability("the the 5", base_, out_.c_str()), 0);
  // The adapter is trained further.
  options_.adapter_path = out_.c_str();
  options_.output_path = second.c_str();
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_GT(GoodProbability("the the 5", base_, second.c_str()), 0);
}

TEST_F(CClassifierTrain, AClassifierKeepsItsClasses) {
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  options_.model_path = out_.c_str();
  const std::string first = ReadBytes(out_);
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_NE(ReadBytes(out_), first);
  labelled_.classes = kOthers;
  EXPECT_EQ(Run(), WISP_INVALID_DATA);
  EXPECT_NE(std::string(error_.message).find("its classes are 'bad', 'good', those to learn are 'good', 'bad'"),
            std::string::npos)
      << error_.message;
}

// Weights learned for the first class are not taken for the second.
TEST_F(CClassifierTrain, ACheckpointIsOfItsClasses) {
  const std::string checkpoint = folder_ / "c.checkpoint";
  options_.checkpoint_path = checkpoint.c_str();
  options_.epochs = 2;
  options_.progress = [](const wisp_progress* p, void*) { return p->step == 2 ? 1 : 0; };
  EXPECT_EQ(Run(), WISP_CANCELLED) << error_.message;
  options_.progress = nullptr;
  labelled_.classes = kOthers;
  EXPECT_NE(Run(), WISP_OK);
  EXPECT_NE(std::string(error_.message).find("belongs to a run with other options"), std::string::npos)
      << error_.message;
  labelled_.classes = kClasses;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.resumed_from, 2u);
}

TEST_F(CClassifierTrain, ReadsFilesWithAHeader) {
  std::ofstream(log_) << "said,what\n\"of, of\",bad\nthe,good\n";
  labelled_.format = WISP_LABELLED_CSV;
  ExpectRefused("the header does not name one column label");
  labelled_.text_column = "said";
  labelled_.label_column = "what";
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_records, 2u);
  std::ofstream(log_) << "sentence\tlabel\nof\t0\n";
  labelled_.format = WISP_LABELLED_TSV;
  labelled_.text_column = labelled_.label_column = nullptr;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_records, 1u);
}

// A refusal would reveal something about the data. The run spends what was asked for, and the result says that it had
// no record.
TEST_F(CClassifierTrain, AFileWithoutARecordIsPaidForAllTheSame) {
  std::ofstream(log_) << "neither\tof\n";
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_events, 1u);
  EXPECT_EQ(result_.num_records, 0u);
  EXPECT_FALSE(privacy::Ledger::OpenExisting(ledger_)->Entries()->empty());
}

TEST_F(CClassifierTrain, RefusesBeforeAnythingIsSpent) {
  const auto changed = [this](auto change, const char* sentence) {
    const wisp_labelled_texts labelled = labelled_;
    const wisp_personalise_options options = options_;
    change();
    ExpectRefused(sentence);
    labelled_ = labelled;
    options_ = options;
  };
  changed([&] { labelled_.num_classes = 1; }, "1 classes, allowed are 2 to 65536");
  changed([&] { labelled_.classes = nullptr; }, "classes is NULL, num_classes is 2");
  const char* const twice[] = {"bad", "bad"};
  changed([&] { labelled_.classes = twice; }, "two classes are called bad");
  const char* const none[] = {"bad", nullptr};
  changed([&] { labelled_.classes = none; }, "class 1 is NULL");
  changed([&] { labelled_.format = static_cast<wisp_labelled_format>(0); }, "format is 0; required is");
  changed([&] { labelled_.trains = static_cast<wisp_trains>(4); }, "trains is 4, allowed are");
  changed([&] { labelled_.trains = static_cast<wisp_trains>(0); }, "trains is 0; required is");
  changed([&] { options_.adapter_rank = 2; }, "trains is set, allowed is 0 with an adapter");
  changed([&] { labelled_.text_column = "text"; }, "are of files with a header");
  changed([&] { labelled_.max_length = 2; }, "max_length is 2, allowed are 3 to 12");
  changed([&] { labelled_.max_length = 13; }, "max_length is 13, allowed are 3 to 12");
  changed([&] { options_.session_gap = 5; }, "session_gap and times_per_second are of events");
  changed([&] { options_.unit = WISP_UNIT_DAY; }, "unit is day; required is WISP_UNIT_INTERACTION");
  Architecture decoder = test::TextEncoder();
  decoder.attend = Attend::kCausal;
  decoder.token_types = {};
  decoder.head = {};
  Write(other_, decoder);
  changed([&] { options_.model_path = other_.c_str(); }, "texts are classified by an encoder");
  changed([&] { options_.unit = static_cast<wisp_unit>(0); }, "required is what one record is: WISP_UNIT_INTERACTION");
  changed([&] { options_.size = offsetof(wisp_personalise_options, unit); }, "unit is 0; required is what one record");
  labelled_.num_classes = 1;
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
  labelled_.num_classes = 2;
  EXPECT_EQ(wisp_classifier_train(&options_, nullptr, &result_, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_classifier_train(nullptr, &labelled_, &result_, &error_), WISP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace wisp::c_classifier_train_test
