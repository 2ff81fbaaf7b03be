// Labelled texts: each format, errors in a line, the vocabulary, and the tokens of a text.
#include "runtime/data/labelled.h"

#include <gtest/gtest.h>

namespace wisp::data::labelled_test {
namespace {

using Strings = std::vector<std::string>;

LabelledTexts Parse(const std::string& text, const LabelledOptions& options = {}, const std::string& name = "f.txt") {
  auto texts = ParseLabelled(name, text, options);
  EXPECT_TRUE(texts.ok()) << texts.status().message();
  return texts.ok() ? *std::move(texts) : LabelledTexts{};
}

TEST(Labelled, EveryFormatGivesTheSameTexts) {
  const Strings texts = {"a good film", "\"quoted\" bad, bad"}, labels = {"1", "0"};
  const std::pair<const char*, const char*> files[] = {
      {"f.txt", "1\ta good film\n\n0\t\"quoted\" bad, bad\n"},
      {"f.txt",
       "\xef\xbb\xbf"
       "1\ta good film\r\n0\t\"quoted\" bad, bad"},
      {"f.tsv", "sentence\tlabel\na good film\t1\n\"quoted\" bad, bad\t0\n"},
      {"f.tsv", "id\tlabel\ttext\n7\t1\ta good film\n8\t0\t\"quoted\" bad, bad\n"},
      {"f.csv", "label,text\n1,a good film\n0,\"\"\"quoted\"\" bad, bad\"\n"},
  };
  for (const auto& [name, text] : files) {
    const LabelledTexts read = Parse(text, {}, name);
    EXPECT_EQ(read.texts, texts) << text;
    EXPECT_EQ(read.labels, labels) << text;
  }
  const LabelledTexts named =
      Parse("x\ty\nt\tl\n", {.format = LabelledFormat::kTsv, .text_column = "x", .label_column = "y"});
  EXPECT_EQ(named.texts, Strings{"t"});
  EXPECT_EQ(Parse("1\t\n").texts, Strings{""});
}

TEST(Labelled, FaultsNameFileAndLine) {
  struct Case {
    const char *name, *text, *sentence;
    LabelledFormat format = LabelledFormat::kAuto;
  };
  const Case cases[] = {
      {"f.txt", "1\ta\nno tab here\n", "f.txt, line 2: 1 field; allowed is a label, a tab and a text without a tab"},
      {"f.txt", "1\ta\tb\n", "f.txt, line 1: 3 fields"},
      {"f.txt", "\n \n", "f.txt: it has no labelled text"},
      {"f.tsv", "sentence\tlabel\nonly text\n", "f.tsv, line 2: 1 field; allowed are 2, as in the header"},
      {"f.tsv", "sentence\tstars\n", "f.tsv, line 1: the header does not name one column label", LabelledFormat::kTsv},
      {"f.tsv", "1\ta good film\n", "f.tsv, line 1: the header does not name one column label"},
      {"f.tsv", "text\tlabel\tlabel\n", "f.tsv, line 1: the header", LabelledFormat::kTsv},
      {"f.csv", "text,label\n\"open,1\n", "f.csv, line 2: a quoted field is not closed"},
      {"f.csv", "text,label\na,1,2\n", "f.csv, line 2: 3 fields"},
  };
  for (const Case& c : cases) {
    const auto texts = ParseLabelled(c.name, c.text, {.format = c.format});
    ASSERT_FALSE(texts.ok()) << c.text;
    EXPECT_EQ(texts.status().code(), StatusCode::kInvalidData);
    EXPECT_NE(texts.status().message().find(c.sentence), std::string::npos) << texts.status().message();
  }
  EXPECT_EQ(ReadLabelled("/nowhere/f.tsv", {}).status().code(), StatusCode::kIo);
  EXPECT_EQ(ParseLabelledFormat("xml").status().code(), StatusCode::kInvalidArgument);
}

// The set of occurring tokens is declared public. Their order and counts are not, and must not show.
TEST(Vocabulary, FromDataDependsOnTheSetOfTokensAlone) {
  const Strings expected = {"[CLS]", "[UNK]", "B", "a", "b"};
  EXPECT_EQ(GetTokens(Parse("1\tb a\n0\tB b [CLS]\n"), LetterCase::kKeep), expected);
  EXPECT_EQ(GetTokens(Parse("0\tB\n1\ta\n1\tb b b a a [UNK]\n"), LetterCase::kKeep), expected);
  EXPECT_EQ(GetTokens(Parse("1\tb A\n0\tB b\n"), LetterCase::kLower), (Strings{"[CLS]", "[UNK]", "a", "b"}));
}

TEST(Vocabulary, BadTokensAreRefused) {
  const std::pair<Strings, const char*> cases[] = {{{"[CLS]", "[UNK]", "a", "a"}, "tokens 2 and 3 are both 'a'"},
                                                   {{"[UNK]", "a"}, "has no token [CLS]"},
                                                   {{"[CLS]", "a"}, "has no token [UNK]"},
                                                   {{"[CLS]", "[UNK]", "\xff"}, "token 2 is"},
                                                   {{"[CLS]", "[UNK]", "a\xc2\x9b"}, "token 2 is"},
                                                   {{"[CLS]", "[UNK]", ""}, "token 2 is empty"}};
  for (const auto& [tokens, sentence] : cases) {
    const auto vocabulary = Vocabulary::Create("v", tokens);
    ASSERT_FALSE(vocabulary.ok()) << sentence;
    EXPECT_NE(vocabulary.status().message().find(sentence), std::string::npos) << vocabulary.status().message();
  }
}

TEST(Labelled, TextsBecomeTokens) {
  const Strings tokens = {"a", "[UNK]", "b", "[CLS]"}, classes = {"bad", "good", "2"};
  const auto vocabulary = *Vocabulary::Create("v", tokens);
  const auto data = Encode(Parse("good\tA b\n1\t  a\fzebra\va a \n2\t\n2\ta b a\n"), vocabulary,
                           {.classes = classes, .max_length = 4});
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data->labels, (std::vector<int32_t>{1, 1, 2, 2}));  // "1" is a number, "2" a name
  const auto record = [&](size_t i) { return std::vector<int32_t>(data->Record(i).begin(), data->Record(i).end()); };
  EXPECT_EQ(record(0), (std::vector<int32_t>{3, 0, 2}));
  EXPECT_EQ(record(1), (std::vector<int32_t>{3, 0, 1, 0}));
  EXPECT_EQ(record(2), (std::vector<int32_t>{3}));
  EXPECT_EQ(record(3), (std::vector<int32_t>{3, 0, 2, 0}));
  EXPECT_EQ(data->num_unknown, 1u);
  EXPECT_EQ(data->num_cut, 1u);
  const auto keep =
      Encode(Parse("good\tA b\n"), vocabulary, {.classes = classes, .letters = LetterCase::kKeep, .max_length = 4});
  EXPECT_EQ(keep->tokens, (std::vector<int32_t>{3, 1, 2}));
}

TEST(Labelled, UnknownLabel_IsRefused) {
  const Strings tokens = {"[CLS]", "[UNK]"}, classes = {"bad", "good"};
  const auto vocabulary = *Vocabulary::Create("v", tokens);
  for (const char* label : {"2", "-1", "ugly", "1.0", "", "99999999999999999999"}) {
    const auto data =
        Encode(Parse("1\ta\n" + std::string(label) + "\tb\n"), vocabulary, {.classes = classes, .max_length = 4});
    ASSERT_FALSE(data.ok()) << label;
    EXPECT_NE(data.status().message().find("f.txt, line 2: the label is '" + std::string(label)), std::string::npos)
        << data.status().message();
  }
}

// Stars from 1 to 3: a label is never taken for the index of a class with another name.
TEST(Labelled, ClassesCalledByOtherNumbersAreNamedAlone) {
  const Strings tokens = {"[CLS]", "[UNK]"}, classes = {"1", "2", "3"};
  const auto vocabulary = *Vocabulary::Create("v", tokens);
  const auto data = Encode(Parse("1\ta\n3\tb\n"), vocabulary, {.classes = classes, .max_length = 4});
  ASSERT_TRUE(data.ok()) << data.status().message();
  EXPECT_EQ(data->labels, (std::vector<int32_t>{0, 2}));
  const auto zero = Encode(Parse("1\ta\n0\tb\n"), vocabulary, {.classes = classes, .max_length = 4});
  ASSERT_FALSE(zero.ok());
  EXPECT_NE(zero.status().message().find("allowed are the classes '1', '2', '3', by name"), std::string::npos)
      << zero.status().message();
}

TEST(Labelled, APrivateRunGoesByTheNameAlone) {
  const std::string text = "label\ttext\n1\ta\n";
  const LabelledOptions drop{.drop_bad = true};
  EXPECT_EQ(ParseLabelled("f.txt", text, {})->texts, Strings{"a"});
  EXPECT_EQ(ParseLabelled("f.txt", text, drop)->texts, (Strings{"text", "a"})) << "a record that looks like a header";
  EXPECT_EQ(ParseLabelled("f.tsv", text, drop)->texts, Strings{"a"});
  EXPECT_FALSE(ParseLabelled("f.tsv", "1\ta\n", drop).ok());
  const Status unknown = ParseLabelled("f.data", text, drop).status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.message().find("a private run does not look at the lines for that"), std::string::npos)
      << unknown.message();
  EXPECT_TRUE(ParseLabelled("f.data", text, {.format = LabelledFormat::kLines, .drop_bad = true}).ok());
}

// In private training, a malformed record affects only itself. A mistake in how the file is cut into records affects
// all of them.
// If most texts lack a class or a tab, the file has another form: it is refused before anything is charged.
TEST(Labelled, AFileWithMostTextsInAnotherFormIsRefused) {
  const Strings tokens = {"[CLS]", "[UNK]", "a"}, classes = {"bad", "good"};
  const auto vocabulary = *Vocabulary::Create("v", tokens);
  const auto read = [&](size_t good, size_t bad, const std::string& line) {
    std::string text;
    for (size_t i = 0; i < good; ++i) text += "good\ta\n";
    for (size_t i = 0; i < bad; ++i) text += line;
    const auto texts = ParseLabelled("f.txt", text, {.drop_bad = true});
    return Encode(*texts, vocabulary, {.classes = classes, .max_length = 4, .drop_bad = true}).status();
  };
  for (const std::string& line : {std::string("fine\ta\n"), std::string("no tab\n")}) {
    EXPECT_EQ(read(99, 100, line).code(), StatusCode::kInvalidData) << line;
    EXPECT_NE(read(99, 100, line).message().find("f.txt: 100 of its 199 texts cannot be read"), std::string::npos);
    EXPECT_TRUE(read(100, 100, line).ok()) << line;
    EXPECT_TRUE(read(0, 99, line).ok()) << "few, which may be one person's";
  }
}

TEST(Labelled, MalformedRecordsAreDroppedOneByOneAndFaultsOfTheFormatRefused) {
  const Strings tokens = {"[CLS]", "[UNK]", "a", "b"}, classes = {"bad", "good"};
  const auto vocabulary = *Vocabulary::Create("v", tokens);
  const LabelledOptions drop{.drop_bad = true};
  const std::string longest(2 << 20, 'x');
  struct {
    const char* name;
    std::string text;
    uint64_t dropped;
    const char* first;
  } const cases[] = {{"f.txt", "1\ta\nno tab\nugly\tb\n0\tb\n" + longest + "\n", 3, "line 2: 1 field;"},
                     {"f.tsv", "label\ttext\n1\ta\n1\ta\tb\n0\tb\n", 1, "line 3: 3 fields"},
                     {"f.csv", "label,text\n1,a\n7,\"b\"\n0,b\n0\n", 2, "line 5: 1 field;"}};
  for (const auto& c : cases) {
    const auto texts = ParseLabelled(c.name, c.text, drop);
    ASSERT_TRUE(texts.ok()) << texts.status().message();
    const auto data = Encode(*texts, vocabulary, {.classes = classes, .max_length = 4, .drop_bad = true});
    ASSERT_TRUE(data.ok()) << data.status().message();
    EXPECT_EQ(data->labels, (std::vector<int32_t>{1, 0})) << c.name;
    EXPECT_EQ(data->begin, (std::vector<uint64_t>{0, 2, 4})) << c.name;
    EXPECT_EQ(data->num_dropped, c.dropped) << c.name;
    EXPECT_NE(data->first_dropped.find(c.first), std::string::npos) << data->first_dropped;
    EXPECT_FALSE(ParseLabelled(c.name, c.text, {}).ok());
  }
  EXPECT_EQ(ParseLabelled("f.txt", "", drop)->texts.size(), 0u);
  EXPECT_FALSE(ParseLabelled("f.tsv", longest + "\n1\ta\n", drop).ok()) << "without a header";
  EXPECT_FALSE(ParseLabelled("f.csv", "no,columns\n1,a\n", drop).ok());
  const auto quoted = ParseLabelled("f.csv", "label,text\n1,\"a\n0,b\n", drop);
  ASSERT_TRUE(quoted.ok()) << "a quote that takes in nobody else";
  EXPECT_EQ(quoted->texts, Strings{"b"});
  EXPECT_EQ(quoted->num_dropped, 1u);
}

}  // namespace
}  // namespace wisp::data::labelled_test
