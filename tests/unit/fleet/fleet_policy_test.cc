// The policy of a device: its text, the addresses it accepts, and the plans it refuses.
#include "runtime/fleet/fleet_policy.h"

#include <cmath>
#include <functional>

#include "gtest/gtest.h"
#include "tests/unit/fleet/fleet_test_util.h"

namespace wisp::fleet::fleet_policy_test {
namespace {

constexpr char kServer[] = "https://fleet.example.org:9092/films";
constexpr char kKey[] = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQ==\n-----END PUBLIC KEY-----\n";

TEST(FleetPolicy, TextReadsBackToTheSamePolicy) {
  FleetPolicy policy = MakePolicy(SomePlan(), kServer);
  for (const char* key : {"", kKey}) {
    policy.operator_key = key;
    policy.methods = {FleetPlan::Method::kGradient, FleetPlan::Method::kLocal};
    const auto read = FleetPolicy::FromText(policy.ToText(), "policy.json");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->ToText(), policy.ToText());
    EXPECT_EQ(read->operator_key, key);
    EXPECT_EQ(read->cohort, policy.cohort);
    EXPECT_EQ(read->methods, policy.methods);
    EXPECT_EQ(read->evaluates, true);
    EXPECT_EQ(read->ExplainTrust().starts_with("Nobody signs"), read->operator_key.empty());
  }
}

TEST(FleetPolicy, TheTightestOneAllowsItsPlanAndNothingBeyond) {
  const FleetPlan plan = SomePlan();
  const FleetPolicy policy = MakePolicy(plan, kServer);
  EXPECT_EQ(policy.Check().message(), "");
  EXPECT_EQ(policy.Allows(plan).message(), "");
  const struct {
    std::function<void(FleetPlan&)> change;
    const char* says;
  } kCases[] = {
      {[](FleetPlan& p) { p.takes_part = 10; }, "takes_part 10, and this device's policy allows 5 at most"},
      {[](FleetPlan& p) { p.noise_multiplier = 3.2; }, "noise_multiplier 3.2, and this device's policy allows 3.25 at"},
      {[](FleetPlan& p) { p.clipping_norm = 1.1; }, "clipping_norm 1.1, and this device's policy allows 1 at most"},
      {[](FleetPlan& p) { p.devices = 99998; }, "a cohort of"},
      {[](FleetPlan& p) { p.evaluators = 0.2; }, "a cohort of"},
      {[](FleetPlan& p) { p.delta = 1.1e-5; }, "delta 1.1e-05"},
      {[](FleetPlan& p) { p.method = FleetPlan::Method::kLocal; },
       "method local, and this device's policy allows gradient"},
      {[](FleetPlan& p) { p.part = FleetPlan::Part::kBlocks; }, "part blocks, and this device's policy allows all"},
      {[](FleetPlan& p) { p.local_steps = 1; }, "local_steps 1, and this device's policy allows 0 at most"},
      {[](FleetPlan& p) { p.bits = 16; }, "updates of 663040 bytes, and this device's policy allows 331520 bytes at"},
      {[](FleetPlan& p) { p.weight_bits = 32; }, "weights of 1326080 bytes"},
      {[](FleetPlan& p) { p.noise_multiplier = std::nan(""); }, "noise_multiplier nan"},
  };
  for (const auto& c : kCases) {
    FleetPlan other = plan;
    c.change(other);
    const Status status = policy.Allows(other);
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused);
    EXPECT_NE(status.message().find(c.says), std::string::npos) << status.message();
  }
  FleetPlan kinder = plan;
  kinder.noise_multiplier = 4;
  kinder.clipping_norm = 0.5;
  kinder.devices = 200'000;
  kinder.delta = 1e-6;
  kinder.name = "books";
  EXPECT_EQ(policy.Allows(kinder).message(), "");
}

TEST(FleetPolicy, FieldsOutOfTheirRange_AreNamed) {
  const struct {
    const char *field, *value, *says;
  } kCases[] = {
      {"fleet_policy", "2", "from 1 to 1"},
      {"server", "\"\"", "https://host:port/path"},
      {"takes_part", "0", "from 1 to 1000000"},
      {"noise_multiplier", "0", "from 0.1 to 10000"},
      {"clipping_norm", "0", "from 1e-06 to 1000000"},
      {"cohort", "0.5", "from 1 to 1e+09"},
      {"delta", "0.01", "from 1e-30 to 0.001"},
      {"methods", "\"average\"", "some of gradient, local"},
      {"methods", "\"\"", "some of gradient, local"},
      {"parts", "\"all,all\"", "each once"},
      {"local_steps", "1001", "from 0 to 1000"},
      {"most_bytes_up", "0", "from 1 to"},
      {"most_bytes_down", "-1", "from 1 to"},
      {"evaluates", "1", "true and false"},
  };
  const std::string text = MakePolicy(SomePlan(), kServer).ToText();
  for (const auto& c : kCases) {
    std::string changed = WithField(text, c.field, c.value);
    const auto read = FleetPolicy::FromText(changed, "policy.json");
    ASSERT_FALSE(read.ok()) << c.field;
    EXPECT_NE(read.status().message().find(c.says), std::string::npos) << read.status().message();
    EXPECT_NE(read.status().message().find(c.field), std::string::npos) << read.status().message();
  }
  for (const char* key :
       {"", "a key", "-----BEGIN PUBLIC KEY-----\\n", "-----BEGIN PRIVATE KEY-----\\nMFkw\\n-----END"}) {
    const std::string with = WithField(text, "evaluates", std::string("true, \"operator_key\": \"") + key + "\"");
    const auto read = FleetPolicy::FromText(with, "policy.json");
    ASSERT_FALSE(read.ok()) << key;
    EXPECT_NE(read.status().message().find("operator_key is"), std::string::npos) << read.status().message();
  }
  EXPECT_FALSE(FleetPolicy::FromText(WithField(text, "evaluates", "true, \"trains\": true"), "policy.json").ok());
}

TEST(CheckServer, HttpIsForThisMachineAlone) {
  for (const char* url : {"https://a.org", "https://a.org:443/x/y", "https://10.0.0.1:9092", "https://[2001:db8::1]:1/",
                          "http://localhost", "http://localhost:9092", "http://127.0.0.1:9092/x", "http://127.255.1.2",
                          "http://[::1]:9092"}) {
    EXPECT_EQ(CheckServer(url, "x").message(), "") << url;
  }
  for (const char* url :
       {"http://a.org", "http://localhost.a.org", "http://127.0.0.1.a.org", "http://127.a.org", "http://127.0.0",
        "http://127.0.0.1.2", "http://127.0.0.256", "http://10.0.0.1", "http://localhost@a.org", "http://[::1].a.org",
        "http://[::2]", "http://127.0.0.", "http://127.0.0.1:80@a.org"}) {
    EXPECT_FALSE(CheckServer(url, "x").ok()) << url;
  }
  for (const char* url :
       {"", "a.org", "ftp://a.org", "HTTPS://a.org", "https://", "https:///x", "https://a.org:", "https://a.org:0",
        "https://a.org:65536", "https://a.org:x", "https://a org", "https://a.org/\n", "https://a@b.org",
        "https://a.org?x", "https://a.org#x", "https://[::1", "https://[]a:1", "https://a.org\\b"}) {
    EXPECT_FALSE(CheckServer(url, "x").ok()) << url;
  }
}

}  // namespace
}  // namespace wisp::fleet::fleet_policy_test
