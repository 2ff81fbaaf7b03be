// A fleet's device through the C interface: every promise of the header, false inputs, and callbacks that fail. The
// rounds are in tests/unit/fleet.
#include "ports/c/wisp_fleet.h"

#include <cmath>
#include <fstream>
#include <limits>

#include "runtime/fleet/fleet_policy.h"
#include "tests/unit/ports/c_personalise_fixture.h"

namespace wisp::test::c_fleet_test {
namespace {

// The app's side: how its callbacks behave, and what they saw.
struct App {
  int ends_with = 0;
  int32_t status = 401;
  std::string answer;
  bool signs = true;
  size_t signature_bytes = 8;
  int waits = 0, pauses = 0;
  std::vector<std::string> urls, headers, sentences;
};

int Post(void* data, const char* url, const char* headers, const void*, size_t, wisp_fleet_sink sink, void* sink_data,
         int32_t* status, double* server_time) {
  App& app = *static_cast<App*>(data);
  app.urls.push_back(url);
  app.headers.push_back(headers);
  *status = app.status;
  *server_time = 0;
  for (size_t at = 0; at < app.answer.size(); at += 1000) {
    if (sink(sink_data, app.answer.data() + at, std::min<size_t>(1000, app.answer.size() - at)) != 0) return 2;
  }
  return app.ends_with;
}
int Sign(void* data, const void*, size_t, uint8_t* der, size_t capacity, size_t* length) {
  const App& app = *static_cast<App*>(data);
  *length = app.signature_bytes;
  std::fill_n(der, std::min(capacity, app.signature_bytes), uint8_t{7});
  return app.signs ? 0 : 1;
}
int Verify(void*, const char*, const void*, size_t, const uint8_t*, size_t) { return 0; }
int Wait(void* data, double) { return ++static_cast<App*>(data)->pauses > static_cast<App*>(data)->waits ? 1 : 0; }
void Log(void* data, wisp_log_level, const char* sentence) {
  static_cast<App*>(data)->sentences.emplace_back(sentence);
}

class CFleetTest : public CPersonaliseTest {
 protected:
  CFleetTest() {
    policy_ = {.server = "http://localhost:9092/fleet/",
               .takes_part = 3,
               .noise_multiplier = 2,
               .clipping_norm = 1,
               .cohort = 10,
               .delta = 1e-5,
               .methods = {fleet::FleetPlan::Method::kGradient},
               .parts = {fleet::FleetPlan::Part::kAll},
               .most_bytes_up = 1000,
               .most_bytes_down = 2000};
    WritePolicy();
    transport_.user_data = &app_;
    transport_.post = Post;
    transport_.sign = Sign;
    transport_.verify = Verify;
    transport_.wait = Wait;
    transport_.public_key_pem = "key";
    logger_.data = &app_;
    logger_.write = Log;
    fleet_options_.policy_path = policy_path_.c_str();
    fleet_options_.model_path = base_.c_str();
    fleet_options_.log_path = log_.c_str();
    fleet_options_.ledger_path = ledger_.c_str();
    fleet_options_.transport = &transport_;
    fleet_options_.logger = &logger_;
  }
  ~CFleetTest() override { wisp_fleet_close(fleet_); }
  void WritePolicy() const { std::ofstream(policy_path_) << policy_.ToText(); }

  wisp_code Open() {
    wisp_fleet_close(fleet_);
    fleet_ = nullptr;
    return wisp_fleet_open(&fleet_options_, &fleet_, &error_);
  }
  // Opens the fleet and works once.
  wisp_code Work() {
    const wisp_code opened = Open();
    return opened == WISP_OK ? wisp_fleet_work(fleet_, 0, nullptr, &error_) : opened;
  }
  void ExpectRefused(const char* sentence) {
    EXPECT_EQ(Open(), WISP_INVALID_ARGUMENT) << sentence;
    EXPECT_NE(std::string(error_.message).find(sentence), std::string::npos) << error_.message;
    EXPECT_EQ(fleet_, nullptr);
    EXPECT_TRUE(app_.urls.empty());
  }

  const std::string policy_path_ = folder_ / "policy.json";
  fleet::FleetPolicy policy_;
  App app_;
  wisp_fleet_transport transport_ = WISP_INIT(wisp_fleet_transport);
  wisp_logger logger_ = WISP_INIT(wisp_logger);
  wisp_fleet_options fleet_options_ = WISP_INIT(wisp_fleet_options);
  wisp_fleet* fleet_ = nullptr;
};

TEST_F(CFleetTest, NullsAreRefused) {
  EXPECT_EQ(wisp_fleet_open(nullptr, &fleet_, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_fleet_open(&fleet_options_, nullptr, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_fleet_open(nullptr, nullptr, nullptr), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_fleet_work(nullptr, 0, nullptr, &error_), WISP_INVALID_ARGUMENT);
  wisp_fleet_close(nullptr);
  for (const char* wisp_fleet_options::*path : {&wisp_fleet_options::policy_path, &wisp_fleet_options::model_path,
                                                &wisp_fleet_options::log_path, &wisp_fleet_options::ledger_path}) {
    const char* const before = fleet_options_.*path;
    fleet_options_.*path = nullptr;
    ExpectRefused("policy_path, model_path, log_path and ledger_path");
    fleet_options_.*path = before;
  }
  fleet_options_.transport = nullptr;
  ExpectRefused("transport must not be NULL");
  fleet_options_.transport = &transport_;
  transport_.post = nullptr;
  ExpectRefused("post, sign and public_key_pem");
  transport_.post = Post;
  transport_.sign = nullptr;
  ExpectRefused("post, sign and public_key_pem");
  transport_.sign = Sign;
  transport_.public_key_pem = nullptr;
  ExpectRefused("post, sign and public_key_pem");
}

TEST_F(CFleetTest, WrongValuesAreRefused) {
  for (const double seconds : {-1.0, 3601.0, std::nan("")}) {
    fleet_options_.ask_seconds = seconds;
    ExpectRefused("ask_seconds is");
  }
  fleet_options_.ask_seconds = 0;
  fleet_options_.unit = static_cast<wisp_unit>(77);
  ExpectRefused("there is no unit 77");
  fleet_options_.unit = WISP_UNIT_SESSION;
  ExpectRefused("the session gap is 0");
  fleet_options_.unit = WISP_UNIT_USER;
  fleet_options_.output_path = log_.c_str();
  ExpectRefused("output_path");
  fleet_options_.output_path = nullptr;
  fleet_options_.reply_path = base_.c_str();
  ExpectRefused("reply_path");
  fleet_options_.reply_path = nullptr;
  policy_.operator_key = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n";
  WritePolicy();
  transport_.verify = nullptr;
  ExpectRefused("verify must not be NULL");
  transport_.verify = Verify;
  EXPECT_EQ(Open(), WISP_OK) << error_.message;
  for (const double seconds : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(wisp_fleet_work(fleet_, seconds, nullptr, &error_), WISP_INVALID_ARGUMENT) << seconds;
  }
}

TEST_F(CFleetTest, StructsOfEverySize) {
  AtEverySize(fleet_options_, [&](Cut<wisp_fleet_options>& cut) {
    wisp_fleet* fleet = nullptr;
    const wisp_code code = wisp_fleet_open(cut.get(), &fleet, &error_);
    EXPECT_TRUE(code == WISP_OK || code == WISP_INVALID_ARGUMENT) << error_.message;
    EXPECT_TRUE(cut.GuardsHold());
    wisp_fleet_close(fleet);
  });
  AtEverySize(transport_, [&](Cut<wisp_fleet_transport>& cut) {
    fleet_options_.transport = cut.get();
    const wisp_code code = Open();
    EXPECT_TRUE(code == WISP_OK || code == WISP_INVALID_ARGUMENT) << error_.message;
    EXPECT_TRUE(cut.GuardsHold());
  });
  fleet_options_.transport = &transport_;
}

TEST_F(CFleetTest, PostsToTheServerOfThePolicy) {
  EXPECT_EQ(Work(), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("status 401"), std::string::npos) << error_.message;
  ASSERT_FALSE(app_.urls.empty());
  EXPECT_EQ(app_.urls[0], "http://localhost:9092/fleet/v1/fleet/activate-node");
  EXPECT_TRUE(app_.headers[0].starts_with("content-type: application/protobuf\nflwr-public-key: "));
  EXPECT_EQ(app_.headers[0].back(), '\n');
}

TEST_F(CFleetTest, CallbacksThatFail) {
  app_.ends_with = 1;
  EXPECT_EQ(Work(), WISP_IO) << error_.message;
  app_.ends_with = 2;
  EXPECT_EQ(Work(), WISP_INVALID_ARGUMENT) << error_.message;
  app_.ends_with = 77;
  EXPECT_EQ(Work(), WISP_INVALID_ARGUMENT) << error_.message;
  app_.ends_with = 0;
  app_.answer.assign(1 << 20, 'x');
  EXPECT_EQ(Work(), WISP_INVALID_DATA) << error_.message;
  app_.answer.clear();
  app_.urls.clear();
  app_.signs = false;
  EXPECT_EQ(Work(), WISP_IO) << error_.message;
  app_.signs = true;
  app_.signature_bytes = 161;
  EXPECT_EQ(Work(), WISP_IO) << error_.message;
  EXPECT_TRUE(app_.urls.empty()) << "nothing leaves without a signature";
  app_.signature_bytes = 8;
  app_.status = 503;
  EXPECT_EQ(Work(), WISP_IO) << error_.message;
}

// A server without requests: it knows the node, and has nothing to do.
TEST_F(CFleetTest, IdleWorkPausesUntilTheAppStopsIt) {
  app_.status = 200;
  app_.answer = "\x08\x05";  // the node's number, or success; as an answer to pull-messages it has no message
  app_.waits = 3;
  ASSERT_EQ(Open(), WISP_OK) << error_.message;
  wisp_fleet_result result = WISP_INIT(wisp_fleet_result);
  ASSERT_EQ(wisp_fleet_work(fleet_, 1000, &result, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(app_.pauses, 4);
  EXPECT_EQ(result.answers, 0u);
  EXPECT_EQ(result.participations, 0u);
  EXPECT_EQ(result.most_participations, 3u);
  EXPECT_GE(result.wait_seconds, 15);
  EXPECT_LE(result.wait_seconds, 45);
  AtEverySize(result, [&](Cut<wisp_fleet_result>& cut) {
    const wisp_code code = wisp_fleet_work(fleet_, 0, cut.get(), &error_);
    EXPECT_EQ(code == WISP_OK, cut.IsPossible()) << error_.message;
    EXPECT_TRUE(cut.GuardsHold());
  });
  EXPECT_EQ(wisp_fleet_work(fleet_, 0, nullptr, nullptr), WISP_OK);
}

TEST_F(CFleetTest, OneFleetAtATimeHasTheLedger) {
  ASSERT_EQ(Open(), WISP_OK) << error_.message;
  wisp_fleet* second = nullptr;
  EXPECT_EQ(wisp_fleet_open(&fleet_options_, &second, &error_), WISP_IO);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(Open(), WISP_OK) << "closing gives it back: " << error_.message;
}

TEST_F(CFleetTest, LedgerOfSomethingElseIsRefused) {
  MustRun();
  EXPECT_EQ(Open(), WISP_PRIVACY_REFUSED) << error_.message;
}

}  // namespace
}  // namespace wisp::test::c_fleet_test
