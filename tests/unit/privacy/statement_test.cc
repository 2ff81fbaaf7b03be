// The statement says everything that it must, in its order, and no epsilon if nothing is guaranteed.
#include "runtime/privacy/statement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/core/text.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy::statement_test {
namespace {

Mechanism Steps() {
  return *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = 0.75, .sampling_probability = 0.0424, .steps = 1234});
}

PrivacyStatement Complete() {
  PrivacyStatement s;
  s.dataset = "watch history";
  s.run = "run 7";
  s.uncharged_tuning = {"the learning rate (3 values)"};
  s.unit = PrivacyUnit::kDay;
  s.unprotected_parts.push_back("the labels");
  s.mechanisms = {Steps()};
  s.num_steps = 1234;
  s.loss_slack = 1e-12;
  s.delta = 1e-6;
  s.epsilon = 3.14159265;
  s.ledger_epsilon = 5.5;
  s.limit = *EpsilonDelta::Create(8, 1e-6);
  s.ledger_path = "watch.ledger";
  return s;
}

TEST(Statement, TextSaysEverythingInTheOrderOfTheChecklist) {
  const std::string text = ToText(Complete());
  size_t at = 0;
  for (const char* part : {"1. Setting",
                           "central",
                           "2. Definition",
                           "watch history",
                           "run 7",
                           "the learning rate (3 values)",
                           "released",
                           "privacy unit: one day",
                           "adjacency: ",
                           "protected: ",
                           "not protected: the number of steps",
                           "not protected: the architecture",
                           "not protected: the labels",
                           "3. Accounting",
                           "accountant: PLD",
                           "mechanism: ",
                           "steps: 1234",
                           "Poisson",
                           "noise: secure",
                           "noise mode: exact",
                           "epsilon of this run: 3.1416 (delta 1e-06)",
                           "epsilon of the data set, all runs: 5.5",
                           "limit of the data set: 8",
                           "4. Verification",
                           "wisp",
                           "watch.ledger"}) {
    const size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " is missing, or out of order, in\n" << text;
    at = found;
  }
  EXPECT_NE(text.find(Steps().Describe()), std::string::npos);
}

TEST(Statement, JsonHoldsTheSame) {
  const auto json = nlohmann::ordered_json::parse(ToJson(Complete()));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(json["statement_version"], 1);
  EXPECT_EQ(keys,
            (std::vector<std::string>{"statement_version", "setting", "definition", "accounting", "verification"}));
  const auto& definition = json["definition"];
  EXPECT_EQ(definition["dataset"], "watch history");
  EXPECT_EQ(definition["run"], "run 7");
  EXPECT_EQ(definition["uncharged_tuning"].size(), 1u);
  EXPECT_EQ(definition["privacy_unit"], "day");
  EXPECT_EQ(definition["adjacency"], std::string(ToText(Adjacency::kAddRemove)));
  EXPECT_EQ(definition["not_protected"].size(), 4u);
  const auto& accounting = json["accounting"];
  EXPECT_EQ(accounting["mechanisms"][0], Steps().ToText());
  EXPECT_EQ(accounting["steps"], 1234);
  EXPECT_EQ(accounting["sampling"], "poisson");
  EXPECT_EQ(accounting["noise"], "secure");
  EXPECT_EQ(accounting["noise_mode"], "exact");
  EXPECT_EQ(accounting["delta"].get<double>(), 1e-6);
  EXPECT_EQ(accounting["epsilon"].get<double>(), 3.14159265);
  EXPECT_EQ(accounting["ledger_epsilon"].get<double>(), 5.5);
  EXPECT_EQ(accounting["limit"]["epsilon"].get<double>(), 8);
  EXPECT_EQ(accounting["guarantee"], "differential privacy");
  EXPECT_EQ(json["verification"]["ledger"], "watch.ledger");
}

// A foreign ledger may have any names, also some that look like lines of the statement.
TEST(Statement, EachValueIsOneLineWhateverItHolds) {
  const std::string forged = "a\x1b[31mRED\r\n  epsilon of the data set, all runs: 0.01\n\xc2\x9b\xe2\x80\xaez\xff";
  PrivacyStatement s = Complete();
  s.samples = SampleFigures{.num_samples = 3};
  s.parts = {{.purpose = "training"}};
  const std::string plain = ToText(s);
  s.setting = s.dataset = s.run = s.output = s.accountant = s.software = s.created_by = s.ledger_path = forged;
  s.uncharged_tuning = s.protected_parts = s.unprotected_parts = {forged};
  s.parts[0].purpose = forged;
  const std::string text = ToText(s);
  const auto lines = [](const std::string& all) { return std::count(all.begin(), all.end(), '\n'); };
  // One more line says who made it, and three unprotected parts are missing.
  EXPECT_EQ(lines(text), lines(plain) + 1 - 3) << text;
  for (const char* part :
       {"\x1b", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xff", "\n  epsilon of the data set, all runs: 0.01"}) {
    EXPECT_EQ(text.find(part), std::string::npos) << text;
  }
  const std::string shown = "a?[31mRED??  epsilon of the data set, all runs: 0.01???z?";
  for (const char* name : {"data set: ", "run: ", "released: ", "not protected: ", "ledger: "}) {
    EXPECT_NE(text.find("\n  " + std::string(name) + shown + "\n"), std::string::npos) << text;
  }
  EXPECT_NE(text.find("\n  " + shown + " alone: "), std::string::npos) << text;
  const auto json = nlohmann::json::parse(ToJson(s));
  EXPECT_EQ(json["definition"]["dataset"], forged.substr(0, forged.size() - 1) + "\xef\xbf\xbd");
}

TEST(Statement, WhatTheUnitCoversAndWhoChoseItIsSaid) {
  PrivacyStatement s = Complete();
  EXPECT_NE(ToText(s).find("which is: one day of a user, not the user"), std::string::npos);
  EXPECT_EQ(ToText(s).find("chosen by: nobody"), std::string::npos);
  s.unit = PrivacyUnit::kUser;
  s.unit_chosen = false;
  EXPECT_NE(
      ToText(s).find(
          "which is: everything one user did in this data; where one person made all of it, that is the one record"),
      std::string::npos);
  EXPECT_NE(ToText(s).find("the unit was chosen by: nobody"), std::string::npos);
  const auto definition = nlohmann::ordered_json::parse(ToJson(s))["definition"];
  EXPECT_EQ(definition["privacy_unit_chosen"], false);
  EXPECT_TRUE(definition["privacy_unit_means"].get<std::string>().starts_with("everything one user did"));
}

TEST(Statement, WhoWroteItIsSaidWhereItIsKnown) {
  PrivacyStatement s = Complete();
  EXPECT_EQ(ToText(s).find("created by"), std::string::npos);
  s.created_by = "wisp 1.2.3";
  EXPECT_NE(ToText(s).find("created by: wisp 1.2.3"), std::string::npos);
  const auto json = nlohmann::ordered_json::parse(ToJson(s));
  EXPECT_EQ(json.begin().key(), "statement_version");
  EXPECT_EQ(json["created_by"], "wisp 1.2.3");
}

// No part of the statement may be read as a guarantee: neither a number nor the word.
void ExpectNoEpsilon(const PrivacyStatement& s, const std::string& reason) {
  const std::string text = ToText(s);
  EXPECT_NE(text.find(reason), std::string::npos) << text;
  for (const char* part : {"epsilon", "3.14", "5.5", "limit of"}) EXPECT_EQ(text.find(part), std::string::npos) << text;
  const auto accounting = nlohmann::json::parse(ToJson(s))["accounting"];
  EXPECT_TRUE(accounting["epsilon"].is_null());
  EXPECT_TRUE(accounting["ledger_epsilon"].is_null());
  EXPECT_TRUE(accounting["limit"].is_null());
  EXPECT_TRUE(accounting["guarantee"].is_null());
  EXPECT_NE(accounting.value("no_guarantee_because", "").find(reason), std::string::npos);
}

TEST(Statement, ReproducibleNoiseStatesNoEpsilon) {
  PrivacyStatement s = Complete();
  s.noise = NoiseKind::kReproducible;
  ExpectNoEpsilon(s, "noise: reproducible, no guarantee");
}

TEST(Statement, ShuffledBatchesStateNoEpsilon) {
  PrivacyStatement s = Complete();
  s.sampling = SamplingDone::kShuffled;
  ExpectNoEpsilon(s, "sampling: shuffled, no guarantee");
}

TEST(Statement, InfiniteEpsilonIsSaidSo) {
  PrivacyStatement s = Complete();
  s.epsilon = INFINITY;
  EXPECT_NE(ToText(s).find("epsilon of this run: infinite"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(ToJson(s))["accounting"]["epsilon"], "infinity");
}

TEST(Statement, UnknownEpsilonIsNotZero) {
  PrivacyStatement s = Complete();
  s.epsilon.reset();
  EXPECT_NE(ToText(s).find("epsilon of this run: not computed"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(ToJson(s))["accounting"]["epsilon"].is_null());
}

TEST(Statement, PrintedEpsilonIsNeverBelowTheComputedOne) {
  PrivacyStatement s = Complete();
  for (double epsilon : {0.00001, 1.00004, 2.99999, 7.123449999}) {
    s.epsilon = epsilon;
    const std::string text = ToText(s), name = "epsilon of this run: ";
    double printed = 0;
    ReadDecimal(text.data() + text.find(name) + name.size(), text.data() + text.size(), printed);
    EXPECT_GE(printed, epsilon);
  }
}

TEST(JsonWriter, DoublesReadBackAsWritten) {
  for (double x : {0.1, 1e-300, -2.5, 1e22, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(), 0.0, 3.0}) {
    JsonWriter json;
    json.BeginArray().Value(x).EndArray();
    const auto read = nlohmann::json::parse(json.Take());
    EXPECT_EQ(read[0].get<double>(), x);
  }
  JsonWriter json;
  json.BeginArray()
      .Value(double{INFINITY})
      .Value(double{-INFINITY})
      .Value(std::nan(""))
      .Value(uint64_t{18446744073709551615u})
      .EndArray();
  const auto read = nlohmann::json::parse(json.Take());
  EXPECT_EQ(read[0], "infinity");
  EXPECT_EQ(read[1], "-infinity");
  EXPECT_EQ(read[2], "nan");
  EXPECT_EQ(read[3].get<uint64_t>(), 18446744073709551615u);
}

TEST(JsonWriter, StringsAreEscaped) {
  std::string nasty = "\"\\/\b\f\n\r\t\x01\x1f\x7f plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
  nasty.push_back('\0');
  nasty += "end";
  JsonWriter json;
  json.BeginObject().Key(nasty).Value(nasty).EndObject();
  const auto read = nlohmann::json::parse(json.Take());
  EXPECT_EQ(read.begin().key(), nasty);
  EXPECT_EQ(read.begin().value(), nasty);
}

// Text has a '?' for every character that JSON escapes: both use one list.
TEST(JsonWriter, TextAndJsonTakeTheSameCharactersForControls) {
  size_t controls = 0;
  for (uint32_t c = 0x01; c < 0x10000; ++c) {
    if ((c >= 0xd800 && c < 0xe000) || c == '"' || c == '\\' || c == '?') continue;
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
    std::string text(1, static_cast<char>(c));
    if (c >= 0x800) {
      text = {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
    } else if (c >= 0x80) {
      text = {static_cast<char>(0xc0 | c >> 6), tail(0)};
    }
    const bool is_shown = OneLine(text) == text;
    EXPECT_EQ(is_shown, JsonWriter().Value(text).Take().find('\\') == std::string::npos) << c;
    controls += is_shown ? 0 : 1;
  }
  EXPECT_EQ(controls, 31u + 1 + 32 + 5 + 4 + 5);  // C0, DEL, C1; U+202x; U+206x; U+061C, U+200E, U+200F, U+2028, U+2029
}

// Valid JSON may hold them, but a terminal acts on them.
TEST(JsonWriter, ControlCharactersOfSeveralBytesAreEscaped) {
  const std::string acted_on =
      "\xc2\x9b"
      "2J \xe2\x80\xae \xe2\x81\xa6 \xc2\xa0";
  JsonWriter json;
  const std::string text = json.BeginArray().Value(acted_on).EndArray().Take();
  EXPECT_EQ(text, "[\n  \"\\u009b2J \\u202e \\u2066 \xc2\xa0\"\n]\n");
  EXPECT_EQ(nlohmann::json::parse(text)[0], acted_on);
  // Invisible marks that move text, and line ends that JavaScript knows.
  JsonWriter marks;
  EXPECT_EQ(marks.BeginArray().Value("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\xa8\xe2\x80\xa9").EndArray().Take(),
            "[\n  \"\\u061c\\u200e\\u200f\\u2028\\u2029\"\n]\n");
}

// JSON of another library: it keeps its meaning, and a terminal acts on nothing in it.
TEST(EscapedJson, ControlCharactersAreEscapedAndNothingElseChanges) {
  const nlohmann::ordered_json json = {
      {"a\xe2\x80\xae z", {"\xc2\x9b", "\x7f", "\n\t\"\\", "\xc3\xa9 \xf0\x9f\x98\x80"}}};
  for (const int indentation : {-1, 2}) {
    const std::string plain = json.dump(indentation), escaped = EscapedJson(plain);
    EXPECT_EQ(escaped.find("\xe2\x80\xae"), std::string::npos);
    EXPECT_EQ(escaped.find("\xc2\x9b"), std::string::npos);
    EXPECT_EQ(escaped.find('\x7f'), std::string::npos);
    EXPECT_EQ(nlohmann::ordered_json::parse(escaped), json);
    EXPECT_EQ(EscapedJson(escaped), escaped);
  }
  EXPECT_EQ(EscapedJson("[\"\xff\"]"), "[\"\xEF\xBF\xBD\"]");
}

TEST(JsonWriter, BytesThatAreNotUtf8AreReplaced) {
  const std::string replacement = "\xEF\xBF\xBD";
  for (const std::string& bad :
       {std::string("\xff"), std::string("\x80"), std::string("\xc3"), std::string("\xc0\xaf"),
        std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"), std::string("\xe2\x82")}) {
    JsonWriter json;
    json.BeginArray().Value("a" + bad + "z").EndArray();
    const auto text = nlohmann::json::parse(json.Take())[0].get<std::string>();
    EXPECT_EQ(text.substr(0, 4), "a" + replacement);
    EXPECT_EQ(text.back(), 'z');
  }
}

TEST(JsonWriter, NestingIsIndentedAndEmptyBracketsAreShort) {
  JsonWriter json;
  json.BeginObject().Key("a").BeginArray().Value(true).Null().EndArray().Key("b").BeginObject().EndObject().EndObject();
  EXPECT_EQ(json.Take(), "{\n  \"a\": [\n    true,\n    null\n  ],\n  \"b\": {}\n}\n");
  EXPECT_EQ(json.BeginArray().EndArray().Take(), "[]\n");
}

}  // namespace
}  // namespace wisp::privacy::statement_test
