// Mechanisms as texts, and the table of kinds.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/privacy/accounting/mechanism.h"
#include "runtime/privacy/accounting/mechanism_kind.h"

namespace wisp::privacy {
namespace {

TEST(MechanismKinds, EveryKind_AnswersWhatAccountantsAsk) {
  for (const MechanismKind* kind : MechanismKinds()) {
    SCOPED_TRACE(kind->word);
    EXPECT_FALSE(std::string(kind->in_words).empty());
    EXPECT_FALSE(std::string(kind->unit).empty());
    EXPECT_TRUE(kind->fits_grid && kind->is_symmetric);
    EXPECT_EQ(kind->range != nullptr, kind->discretise != nullptr);
    EXPECT_TRUE(kind->discretise || kind->rdp);
    EXPECT_EQ(kind->is_sample, kind->pure_epsilon != nullptr);
  }
}

// The least and the most of each parameter, so that a kind whose limits are wrong is noticed.
TEST(MechanismKinds, TextOfEveryKind_ReadsBack) {
  for (const MechanismKind* kind : MechanismKinds()) {
    Mechanism::Values values = {};
    for (const bool least : {true, false}) {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = least ? kind->parameters[i].least : kind->parameters[i].most;
      const auto made = Mechanism::Make(*kind, values, 7, Adjacency::kAddRemove);
      ASSERT_TRUE(made.ok()) << made.status().message();
      const auto read = Mechanism::FromText(made->ToText());
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(*read, *made) << made->ToText();
      EXPECT_EQ(&read->kind(), kind) << made->ToText();
    }
  }
}

TEST(MechanismKinds, ValuesOutsideOfTheirLimits_AreRefused) {
  for (const MechanismKind* kind : MechanismKinds()) {
    Mechanism::Values values = {};
    for (size_t i = 0; i < values.size(); ++i) values[i] = kind->parameters[i].most;
    for (size_t i = 0; i < values.size() && kind->parameters[i].name; ++i) {
      for (const double bad : {-1.0, std::nextafter(kind->parameters[i].least, -1), kInfinity, std::nan("")}) {
        Mechanism::Values with = values;
        with[i] = bad;
        const auto made = Mechanism::Make(*kind, with, 1, Adjacency::kAddRemove);
        ASSERT_FALSE(made.ok()) << kind->word << " " << i << " " << bad;
        EXPECT_NE(made.status().message().find(kind->parameters[i].in_words), std::string::npos);
      }
    }
  }
}

TEST(Mechanism, TextThatIsAlmostRight_IsRefused) {
  for (const char* text : {
           "",
           "gaussian",
           "gaussianish noise_multiplier=1 steps=1 adjacency=add_remove",
           "gaussian noise_multiplier=1 steps=1 adjacency=",
           "gaussian noise_multiplier=1 steps=1 adjacency=add_remove ",
           "gaussian  noise_multiplier=1 steps=1 adjacency=add_remove",
           "gaussian noise_multiplier=1 steps=9007199254740993 adjacency=add_remove",
           "gaussian noise_multiplier=1 steps=1.5 adjacency=add_remove",
           "gaussian noise_multiplier=1 sampling_probability=0.5 steps=1 adjacency=add_remove",
           "randomised_response support=2.5 lambda=0.1 steps=1 adjacency=add_remove",
           "randomised_response support=9007199254740993 lambda=0.1 steps=1 adjacency=add_remove",
           "randomised_response lambda=0.1 support=3 steps=1 adjacency=add_remove",
       }) {
    EXPECT_FALSE(Mechanism::FromText(text).ok()) << text;
  }
}

TEST(Mechanism, RefusalOfAText_HasNoControlCharacters) {
  EXPECT_EQ(Mechanism::FromText("gauss\n\x1b[2J").status().message(),
            "mechanism 'gauss??[2J' is not one that this version knows");
}

}  // namespace
}  // namespace wisp::privacy
