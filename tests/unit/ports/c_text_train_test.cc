// A decoder that learns texts over the C interface: what a record is, the counts, and refusals before a charge.
#include <gtest/gtest.h>

#include <fstream>

#include "ports/c/wisp_text.h"
#include "tests/unit/ports/c_personalise_fixture.h"
#include "tools/convert/byte_tokenizer.h"

namespace wisp::c_text_train_test {
namespace {

class CTextTrain : public test::CShortRunTest {
 protected:
  CTextTrain() : CShortRunTest("texts.txt", 40, WISP_UNIT_INTERACTION) {
    Write(base_, Attend::kCausal, /*tokens=*/true);
    std::ofstream texts(log_);
    for (int i = 0; i < 30; ++i) texts << "line " << i << (i % 3 == 2 ? "\n\n" : "\n");
    texts << "bad \xff\n";
    records_.record = WISP_TEXT_LINE;
  }

  void Write(const std::string& path, Attend attend, bool tokens) {
    const Architecture a = UniformArchitecture{.num_items = 260,
                                               .max_length = 16,
                                               .width = 8,
                                               .num_heads = 2,
                                               .num_blocks = 1,
                                               .inner_width = 16,
                                               .attend = attend};
    ModelContents contents{.architecture = a};
    if (tokens) contents.tokenizer = *convert::ByteTokenizerImage();
    WriteRandom(path, std::move(contents));
  }
  wisp_code Run() { return wisp_text_train(&options_, &records_, &result_, &error_); }
  void ExpectRefused(const char* sentence) { ExpectNothingSpent(Run(), sentence); }

  const std::string other_ = folder_ / "other.wisp";
  wisp_text_records records_ = WISP_INIT(wisp_text_records);
  wisp_personalise_result result_ = WISP_INIT(wisp_personalise_result);
};

TEST_F(CTextTrain, ALineIsARecordAndSaysSo) {
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_events, 31u);
  EXPECT_EQ(result_.bad_rows, 1u);
  EXPECT_EQ(result_.num_records, 30u);
  EXPECT_EQ(result_.num_steps, 2u);
  EXPECT_GT(result_.epsilon, 0);
  EXPECT_LE(result_.epsilon, 8);
  const auto model = ModelFile::Open(out_);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->provenance().back().description, "personalised on the device, one record: one line of text");
  EXPECT_EQ(model->provenance().back().privacy_unit, "interaction, one line of text");
  EXPECT_FALSE(model->tokenizer().empty());
  const auto ledger = privacy::Ledger::OpenExisting(ledger_);
  EXPECT_EQ(ledger->dataset(), "texts.txt");
  // The result can be trained further.
  wisp_text_model* tuned = nullptr;
  ASSERT_EQ(wisp_text_open(out_.c_str(), nullptr, &tuned, &error_), WISP_OK) << error_.message;
  wisp_generated made = WISP_INIT(wisp_generated);
  EXPECT_EQ(wisp_text_generate(tuned, "li", nullptr, nullptr, nullptr, &made, &error_), WISP_OK) << error_.message;
  EXPECT_GT(made.num_tokens, 0u);
  wisp_text_close(tuned);
}

TEST_F(CTextTrain, ParagraphsAndChunksAreFewerRecords) {
  records_.record = WISP_TEXT_PARAGRAPH;
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_records, 10u);
  records_ = {.size = sizeof(records_), .record = WISP_TEXT_CHUNK, .chunk_bytes = 64, .max_length = 8, .not_read = 0};
  EXPECT_EQ(Run(), WISP_PRIVACY_REFUSED) << "records of two kinds on one ledger";
  const std::string other = folder_ / "other.ledger";
  options_.ledger_path = other.c_str();
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_records + result_.bad_rows, 4u);  // of 246 bytes
}

// A refusal would reveal something about the data. The run spends what was asked for, and the result says that it had
// no record.
TEST_F(CTextTrain, AFileWithoutATextIsPaidForAllTheSame) {
  std::ofstream(log_) << "\n  \n";
  ASSERT_EQ(Run(), WISP_OK) << error_.message;
  EXPECT_EQ(result_.num_events, 0u);
  EXPECT_EQ(result_.num_records, 0u);
  EXPECT_EQ(result_.num_steps, 2u);
  EXPECT_GT(result_.epsilon, 0);
  EXPECT_FALSE(privacy::Ledger::OpenExisting(ledger_)->Entries()->empty());
}

TEST_F(CTextTrain, RefusesBeforeAnythingIsSpent) {
  records_.record = static_cast<wisp_text_record>(0);
  ExpectRefused("wisp_text_train: record is 0; required is WISP_TEXT_LINE");
  records_.record = WISP_TEXT_CHUNK;
  ExpectRefused("the record is 'chunk:0', allowed are");
  records_ = {.size = sizeof(records_), .record = WISP_TEXT_LINE, .chunk_bytes = 64, .max_length = 0, .not_read = 0};
  ExpectRefused("chunk_bytes is 64, allowed is 0");
  records_ = {.size = sizeof(records_), .record = WISP_TEXT_LINE, .chunk_bytes = 0, .max_length = 17, .not_read = 0};
  ExpectRefused("max_length is 17, allowed are 1 to 16");
  records_.max_length = 0;
  options_.session_gap = 5;
  ExpectRefused("session_gap and times_per_second are of events");
  options_.session_gap = 0;
  options_.model_path = other_.c_str();
  Write(other_, Attend::kCausal, /*tokens=*/false);
  ExpectRefused("brings no tokenizer");
  Write(other_, Attend::kAll, /*tokens=*/true);
  ExpectRefused("its positions see those behind them");
  EXPECT_EQ(wisp_text_train(&options_, nullptr, &result_, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_text_train(nullptr, &records_, &result_, &error_), WISP_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace wisp::c_text_train_test
