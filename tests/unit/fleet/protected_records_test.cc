// A policy that protects the records of a device from the server too.
#include <algorithm>

#include "runtime/privacy/ledger_statement.h"
#include "tests/unit/fleet/node_test_util.h"

namespace wisp::fleet {
namespace {

using test::DeviceTest;

class ProtectedRecords : public DeviceTest {
 protected:
  ProtectedRecords() {
    plan_.method = FleetPlan::Method::kLocal;
    plan_.local_steps = 4;
    plan_.local_learning_rate = 0.5;
    for (int i = 0; IsEvaluator(plan_, plan_.hash(), kNode); ++i) plan_.name = "local-" + std::to_string(i);
    policy_ = Protected(MakePolicy(plan_, "http://localhost:9092"));
  }

  static FleetPolicy Protected(FleetPolicy policy) {
    policy.evaluates = false;
    policy.records_epsilon = 4;
    policy.records_delta = 1e-5;
    policy.records_public = 50;
    policy.records_batch = 10;
    return policy;
  }

  Result<std::unique_ptr<FleetDevice>> OpenProtected() const {
    return FleetDevice::Open({.policy = policy_,
                              .base = &*base_,
                              .base_path = base_path_,
                              .log_path = log_path_,
                              .ledger_path = ledger_path_,
                              .records_ledger_path = records_path_,
                              .dataset = "guests",
                              .output_path = output_path_});
  }
  // The update of a round, or an empty string.
  static std::string Answer(FleetDevice& device, const Request& request) {
    const auto taken = device.Take(request.view(), kNode);
    EXPECT_TRUE(taken.ok()) << taken.status().message();
    if (!taken.ok() || !taken->answer) return "";
    return taken->answer->update;
  }
  privacy::LedgerState Records() const {
    return *(*privacy::Ledger::Open(records_path_, {.dataset = "guests", .record = privacy::RecordSpec::OfEvents({})}))
                .StateNow(*privacy::Delta::Create(policy_.records_delta));
  }
  static bool IsZero(const std::string& update) {
    return std::all_of(update.begin(), update.end(), [](char c) { return c == 0; });
  }

  std::string records_path_ = folder_ / "records.ledger";
};

TEST_F(ProtectedRecords, UpdatesAreThoseOfPlannedRuns_WhichTheLedgerOfRecordsPays) {
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  for (const int64_t round : {1, 5, 9}) EXPECT_FALSE(IsZero(Answer(**device, Ask(round)))) << round;
  const privacy::LedgerState state = Records();
  ASSERT_EQ(state.entries.size(), 3u);  // a run is one charge
  EXPECT_EQ(state.figures.basis, privacy::LedgerFigures::Basis::kPlan);
  EXPECT_LE(state.figures.stated.epsilon, policy_.records_epsilon);
  EXPECT_GE(state.figures.stated.epsilon, 0.97 * policy_.records_epsilon);
  ASSERT_TRUE(state.limit.has_value());
  EXPECT_EQ(state.limit->epsilon(), policy_.records_epsilon);
  for (const privacy::LedgerEntry& entry : state.entries) EXPECT_EQ(entry.noise, privacy::NoiseKind::kSecure);
}

// A process that is killed after the run asks again with the same request.
TEST_F(ProtectedRecords, AParticipationIsChargedBeforeItsRun_SoARunIsNeverRepeated) {
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_EQ(NumCharges(), 0);
  EXPECT_FALSE(IsZero(Answer(**device, Ask(1))));
  EXPECT_EQ(NumCharges(), 1);
  const auto again = (*device)->Take(Ask(1).view(), kNode);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->answer);
  EXPECT_EQ(Records().entries.size(), 1u);
}

TEST_F(ProtectedRecords, NoiseIsFreshInEveryRun) {
  std::vector<std::string> updates;
  for (const std::string run : {"first", "second"}) {
    ledger_path_ = folder_ / (run + ".ledger");
    records_path_ = folder_ / (run + "-records.ledger");
    const auto device = OpenProtected();
    ASSERT_TRUE(device.ok()) << device.status().message();
    updates.push_back(Answer(**device, Ask(1)));
  }
  EXPECT_NE(updates[0], updates[1]);
}

// The runs of an earlier ledger of participations are all spent.
TEST_F(ProtectedRecords, WithoutRoomForARun_ZerosAreSent) {
  {
    const auto device = OpenProtected();
    ASSERT_TRUE(device.ok()) << device.status().message();
    for (const int64_t round : {1, 5, 9}) EXPECT_FALSE(IsZero(Answer(**device, Ask(round))));
  }
  ledger_path_ = folder_ / "other.ledger";
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  const auto taken = (*device)->Take(Ask(1).view(), kNode);
  ASSERT_TRUE(taken.ok() && taken->answer) << taken.status().message();
  EXPECT_EQ(taken->answer->update, std::string(plan_.bytes_of_update(), '\0'));
  EXPECT_NE(taken->what.find("train, round 1: zeros, because ledger '"), std::string::npos) << taken->what;
  EXPECT_EQ(Records().entries.size(), 3u);
}

// Otherwise one record could decide whether all others count.
TEST_F(ProtectedRecords, ALogThatCannotBeReadIsAnError_AndNothingIsCharged) {
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  std::filesystem::resize_file(log_path_, 1000);
  EXPECT_FALSE((*device)->Take(Ask(1).view(), kNode).ok());
  EXPECT_EQ(NumCharges(), 0);
  EXPECT_FALSE(std::filesystem::exists(records_path_));
}

// With as many unreadable users a run that is not on a device refuses the log as one of another form.
TEST_F(ProtectedRecords, RecordsThatCannotBeReadLeaveTheOthersAlone) {
  std::filesystem::remove(log_path_);
  sqlite3* log = nullptr;
  ASSERT_EQ(sqlite3_open(log_path_.c_str(), &log), SQLITE_OK);
  const char* const statements =
      "CREATE TABLE events(user TEXT, item TEXT, time INTEGER);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) "
      "INSERT INTO events SELECT 'v' || i, 'item-1', CASE WHEN i < 24 THEN 1700000000 ELSE NULL END FROM n";
  EXPECT_EQ(sqlite3_exec(log, statements, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(log);
  sqlite3_close(log);
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_FALSE(IsZero(Answer(**device, Ask(1))));
  EXPECT_EQ(Records().entries.size(), 1u);
}

TEST_F(ProtectedRecords, ALedgerOfOtherRunsOrWithALowerLimitIsRefused) {
  const privacy::LedgerOptions options{.dataset = "guests", .record = privacy::RecordSpec::OfEvents({})};
  {
    privacy::Ledger ledger = *privacy::Ledger::Open(records_path_, options);
    ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(1, policy_.records_delta)).ok());
  }
  EXPECT_EQ(OpenProtected().status().code(), StatusCode::kPrivacyRefused);
  std::filesystem::remove(records_path_);
  {
    privacy::Ledger ledger = *privacy::Ledger::Open(records_path_, options);
    const auto mechanism = *privacy::Mechanism::Gaussian({.noise_multiplier = 10, .count = 1});
    ASSERT_TRUE(ledger.Charge({.mechanism = mechanism, .run = "personalise", .purpose = "training"}).ok());
  }
  const Status refused = OpenProtected().status();
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("was charged by 'personalise'"), std::string::npos) << refused.message();
}

TEST_F(ProtectedRecords, ADeviceWithoutRecords_SendsNoiseLikeAnyOther) {
  std::filesystem::remove(log_path_);
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  EXPECT_FALSE(IsZero(Answer(**device, Ask(1))));
  EXPECT_EQ(Records().entries.size(), 1u);
}

TEST_F(ProtectedRecords, AModelIsKeptWithoutALookAtTheRecords) {
  const auto device = OpenProtected();
  ASSERT_TRUE(device.ok()) << device.status().message();
  const auto taken = (*device)->Take(AskToKeepWorse(12).view(), kNode);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->what, "the model of round 12 was kept as " + output_path_);
  EXPECT_FALSE(std::filesystem::exists(records_path_));
}

TEST_F(ProtectedRecords, TheirLedgerIsGivenIfAndOnlyIfThePolicyProtectsThem) {
  const auto without = OpenDevice();
  EXPECT_EQ(without.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(without.status().message(), "the policy protects records (records_epsilon): their ledger is missing");
  policy_ = MakePolicy(plan_, "http://localhost:9092");
  const auto needless = OpenProtected();
  EXPECT_EQ(needless.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(ledger_path_));
}

TEST_F(ProtectedRecords, APolicyHasAllNumbersOfThePromiseOrNone) {
  const FleetPolicy good = policy_;
  EXPECT_TRUE(good.Check().ok()) << good.Check().message();
  const auto read = FleetPolicy::FromText(good.ToText(), "policy.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->ToText(), good.ToText());
  const auto refuses = [&](const std::string& words, const std::function<void(FleetPolicy&)>& change) {
    FleetPolicy policy = good;
    change(policy);
    const Status refused = policy.Check();
    EXPECT_FALSE(refused.ok()) << words;
    EXPECT_NE(refused.message().find(words), std::string::npos) << refused.message();
  };
  refuses("records_delta", [](FleetPolicy& p) { p.records_delta = 0; });
  refuses("records_delta", [](FleetPolicy& p) { p.records_epsilon = 0; });
  refuses("records_delta", [](FleetPolicy& p) { p.records_public = 999'999, p.records_delta = 1e-5; });
  refuses("records_public", [](FleetPolicy& p) { p.records_public = 0; });
  refuses("records_batch is 51", [](FleetPolicy& p) { p.records_batch = 51; });
  refuses("methods local alone", [](FleetPolicy& p) { p.evaluates = true; });
  refuses("parts is all,blocks", [](FleetPolicy& p) { p.parts = {FleetPlan::Part::kAll, FleetPlan::Part::kBlocks}; });
  refuses("methods local alone", [](FleetPolicy& p) {
    p.methods = {FleetPlan::Method::kGradient, FleetPlan::Method::kLocal};
  });
}

TEST_F(ProtectedRecords, APlanHasExactlyThePolicysSteps) {
  EXPECT_TRUE(policy_.Allows(plan_).ok()) << policy_.Allows(plan_).message();
  for (const uint32_t steps : {3, 5}) {
    plan_.local_steps = steps;
    EXPECT_EQ(policy_.Allows(plan_).code(), StatusCode::kPrivacyRefused) << steps;
  }
}

}  // namespace
}  // namespace wisp::fleet
