// wisp_personalise through the shipped library: the chosen unit, counted results, structs of every size.
#include <sqlite3.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "tests/unit/ports/c_personalise_fixture.h"

namespace wisp::c_personalise_test {
namespace {

using test::AtEverySize;
using test::Cut;
using test::Put;
using test::ReadBytes;
using test::WriteBytes;

using CPersonalise = test::CPersonaliseTest;

TEST_F(CPersonalise, Unit_IsRequired) {
  for (const int32_t unit : {0, -1, 5, 1000, INT32_MAX, INT32_MIN}) {
    Put(options_.unit, unit);
    EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("unit is " + std::to_string(unit)), std::string::npos) << error_.message;
  }
  options_.unit = WISP_UNIT_INTERACTION;
  EXPECT_EQ(Run(), WISP_PRIVACY_REFUSED);
  options_.unit = WISP_UNIT_SESSION;
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT) << "a session without a gap";
  options_.unit = WISP_UNIT_DAY;
  options_.session_gap = 1800;
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT) << "a day with a gap";
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

TEST_F(CPersonalise, EmptyPaths_AreRefusedBeforeAnythingIsCharged) {
  const auto paths = {&wisp_personalise_options::model_path, &wisp_personalise_options::log_path,
                      &wisp_personalise_options::output_path, &wisp_personalise_options::ledger_path};
  for (const auto path : paths) {
    const char* const given = std::exchange(options_.*path, "");
    EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("are required, and none is empty"), std::string::npos) << error_.message;
    options_.*path = given;
  }
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

// SQLite would take a file of that name for the database's latest changes, or remove it: charges or a model would be
// lost.
TEST_F(CPersonalise, FilesOfSqlite_AreRefusedAsOutputs) {
  for (const std::string& path : {ledger_, log_}) {
    for (const char* end : {"-wal", "-shm", "-journal"}) {
      const std::string beside = path + end;
      for (const auto member : {&wisp_personalise_options::output_path, &wisp_personalise_options::checkpoint_path}) {
        const char* const given = std::exchange(options_.*member, beside.c_str());
        EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT) << beside;
        EXPECT_NE(std::string(error_.message).find(beside), std::string::npos) << error_.message;
        options_.*member = given;
      }
    }
  }
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

// The ledger must not have the name of one of the log's files either: SQLite would remove it with all charges. Links
// are followed, even if they lead to no file yet.
TEST_F(CPersonalise, FilesOfSqlite_AreRefusedAsLedgers) {
  const auto refused = [&] {
    EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("where SQLite keeps changes of "), std::string::npos) << error_.message;
  };
  for (const char* end : {"-wal", "-shm", "-journal"}) {
    const std::string beside = log_ + end, real = folder_ / "real.ledger", model = real + end;
    options_.ledger_path = beside.c_str();
    refused();
    EXPECT_FALSE(std::filesystem::exists(beside));
    const std::string link = folder_ / "link.ledger";
    std::filesystem::remove(link);
    std::filesystem::create_symlink("real.ledger", link);
    options_.ledger_path = link.c_str();
    const char* const output = std::exchange(options_.output_path, model.c_str());
    refused();
    options_.output_path = output;
    EXPECT_FALSE(std::filesystem::exists(real));
  }
}

// An error after a charge says that the charge stays.
TEST_F(CPersonalise, WhatFailsAfterACharge_SaysThatItStays) {
  options_.progress = [](const wisp_progress*, void*) -> int { throw std::runtime_error("the app's own"); };
  EXPECT_EQ(Run(), WISP_INTERNAL);
  EXPECT_STREQ(error_.message, "the app's own; what a ledger was charged before stays charged");
  options_.progress = [](const wisp_progress*, void*) -> int { throw 1; };
  EXPECT_EQ(Run(), WISP_INTERNAL);
  EXPECT_STREQ(error_.message,
               "a callback threw what is no std::exception; what a ledger was charged before stays charged");
  // The output's folder disappears during the run.
  const std::string folder = folder_ / "goes", output = folder + "/out.wisp";
  std::filesystem::create_directory(folder);
  options_.output_path = output.c_str();
  options_.user_data = const_cast<char*>(folder.c_str());
  options_.progress = [](const wisp_progress*, void* data) -> int {
    const std::string from = static_cast<const char*>(data);
    if (std::filesystem::exists(from)) std::filesystem::rename(from, from + "-away");
    return 0;
  };
  EXPECT_EQ(Run(), WISP_IO);
  EXPECT_NE(std::string(error_.message).find("charged and what was charged stays charged"), std::string::npos)
      << error_.message;
}

// The emulator's module replaces a GPU if the build names it.
TEST_F(CPersonalise, RunsOnADeviceOrSaysThatItDidNot) {
  wisp_device device = WISP_INIT(wisp_device);
  options_.device = &device;
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT) << "a device without a name";
  device.name = "cuda";
  char text[200];
  size_t needed = 0;
  const char* module = std::getenv("WISP_CUDA_MODULE");
  if (module == nullptr) GTEST_SKIP() << "WISP_CUDA_MODULE names no module";
  device.module = "none.so";
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT) << "a named module is missing";
  EXPECT_NE(std::string(error_.message).find("the device cuda cannot be opened: "), std::string::npos)
      << error_.message;
  device.module = module;
  setenv("WISP_TEST_NO_GPU", "1", 1);
  EXPECT_EQ(wisp_device_describe(&device, text, sizeof text, &needed, &error_), WISP_UNSUPPORTED);
  EXPECT_NE(std::string(error_.message).find("there is no device cuda: "), std::string::npos) << error_.message;
  EXPECT_EQ(MustRun().on_device, 0);
  unsetenv("WISP_TEST_NO_GPU");
  EXPECT_EQ(wisp_device_describe(&device, text, sizeof text, &needed, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(needed, std::string(text).size() + 1);
  EXPECT_EQ(std::string(text).rfind("cuda (emulator, ", 0), 0u) << text;
  wisp_personalise_memory memory = WISP_INIT(wisp_personalise_memory), on_host = WISP_INIT(wisp_personalise_memory);
  EXPECT_EQ(wisp_personalise_plan_memory(&options_, &memory, &error_), WISP_OK);
  options_.device = nullptr;
  EXPECT_EQ(wisp_personalise_plan_memory(&options_, &on_host, &error_), WISP_OK);
  EXPECT_GT(memory.record_gradient_bytes, on_host.record_gradient_bytes);
  options_.device = &device;
  EXPECT_EQ(MustRun().on_device, 1);
  device.arithmetic = "tf32";
  EXPECT_EQ(MustRun().on_device, 1);
  device.arithmetic = "float16";
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("inference only"), std::string::npos) << error_.message;
  device.arithmetic = nullptr;
  device.max_bytes = 1000;
  EXPECT_EQ(Run(), WISP_IO);
  EXPECT_NE(std::string(error_.message).find("there is no room on the device cuda"), std::string::npos);
  device.name = "cpu";
  EXPECT_EQ(MustRun().on_device, 0);
}

TEST_F(CPersonalise, Users_AreRecordsAndEventsAreCounted) {
  const wisp_personalise_result result = MustRun();
  EXPECT_EQ(result.num_records, 10u);
  EXPECT_EQ(result.records_too_short, 1u);
  EXPECT_EQ(result.num_events, 61u);
  EXPECT_EQ(result.unknown_events, 10u);
  EXPECT_EQ(result.unknown_items, 1u);
  EXPECT_EQ(result.gradients_dropped, 0u);
  EXPECT_GT(result.num_steps, 0u);
  EXPECT_LE(result.epsilon, 8);
  EXPECT_EQ(Stated(), "user user");
}

TEST_F(CPersonalise, SessionsAndDays_AreRecordsOfTheirOwn) {
  options_.unit = WISP_UNIT_SESSION;
  options_.session_gap = 1800;
  EXPECT_EQ(MustRun().num_records, 20u);
  EXPECT_TRUE(Stated().starts_with("session session, the events of one user without a pause of more than 1800 seconds"))
      << Stated();
  // Another gap, or another unit, on the same ledger would be another promise.
  options_.session_gap = 60;
  EXPECT_EQ(Run(), WISP_PRIVACY_REFUSED);
  EXPECT_NE(std::string(error_.message).find("a pause of more than 60 seconds"), std::string::npos) << error_.message;
  options_.unit = WISP_UNIT_DAY;
  options_.session_gap = 0;
  options_.output_path = base_.c_str();
  EXPECT_NE(Run(), WISP_OK);
  const std::string other = folder_ / "other.ledger";
  options_.ledger_path = other.c_str();
  EXPECT_EQ(MustRun().num_records, 20u);
}

TEST_F(CPersonalise, Times_AreReadInTheirUnit) {
  options_.unit = WISP_UNIT_SESSION;
  options_.session_gap = 1;
  options_.times_per_second = 60;
  EXPECT_EQ(MustRun().num_records, 20u) << "pauses of one second do not end sessions of pauses up to one";
}

// A shorter struct is completed with zeros, and the unit has no default: nobody chooses it for the app.
TEST_F(CPersonalise, OptionsThatEndBeforeTheUnit_AreRefused) {
  Put(options_.unit, 1);  // not read
  Cut<wisp_personalise_options> shorter(options_, offsetof(wisp_personalise_options, unit));
  EXPECT_EQ(wisp_personalise(shorter.get(), nullptr, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("unit is 0; required is what one record is"), std::string::npos)
      << error_.message;
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

TEST_F(CPersonalise, UnchargedTuning_IsStated) {
  options_.uncharged_tuning = "rate; batch";
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("(`uncharged_tuning`) has a semicolon"), std::string::npos)
      << error_.message;
  EXPECT_FALSE(std::filesystem::exists(ledger_));
  options_.uncharged_tuning = "learning rate";
  MustRun();
  size_t needed = 0;
  std::vector<char> text(1 << 14);
  ASSERT_EQ(
      wisp_privacy_statement(ledger_.c_str(), 1e-4, WISP_STATEMENT_TEXT, text.data(), text.size(), &needed, &error_),
      WISP_OK)
      << error_.message;
  EXPECT_NE(std::string(text.data()).find("chosen on the same data without a charge: learning rate"), std::string::npos)
      << text.data();
}

TEST_F(CPersonalise, NumbersOutsideOfWhatIsOfUse_AreNamed) {
  for (double value : {-1.0, std::nan(""), 1.5, 1e30}) {
    options_.learning_rate = value;
    EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error_.message).find("wisp_personalise_options: learning_rate is "), std::string::npos)
        << error_.message;
  }
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

TEST_F(CPersonalise, PlannedRuns_ShareTheirEpsilon) {
  options_.planned_runs = 2;
  const double noise = MustRun().noise_multiplier;
  EXPECT_EQ(MustRun().noise_multiplier, noise);
  const auto ledger = privacy::Ledger::OpenExisting(ledger_);
  const auto figures = *ledger->Figures(*privacy::Delta::Create(options_.delta));
  EXPECT_EQ(figures.basis, privacy::LedgerFigures::Basis::kPlan);
  EXPECT_LE(figures.stated.epsilon, options_.epsilon);
  EXPECT_GT(figures.stated.epsilon, 0.97 * options_.epsilon);
  EXPECT_EQ(Run(), WISP_PRIVACY_REFUSED) << "a third of two";
  EXPECT_NE(std::string(error_.message).find("has no room for this run in its plan"), std::string::npos)
      << error_.message;
}

TEST_F(CPersonalise, Adapter_IsTrainedBesideTheModel) {
  const std::string before = ReadBytes(base_), second = folder_ / "second.wisp";
  options_.adapter_rank = 2;
  wisp_personalise_memory small = WISP_INIT(wisp_personalise_memory), whole = small;
  ASSERT_EQ(wisp_personalise_plan_memory(&options_, &small, &error_), WISP_OK) << error_.message;
  MustRun();
  EXPECT_EQ(ReadBytes(base_), before);
  EXPECT_LT(std::filesystem::file_size(out_), before.size());
  // The adapter is trained further, then used with the model.
  options_.adapter_path = out_.c_str();
  options_.output_path = second.c_str();
  MustRun();
  wisp_open_options how = WISP_INIT(wisp_open_options);
  wisp_verified verified = {};
  how.adapter_path = second.c_str();
  how.verify = WISP_VERIFY_ONCE;
  how.verified = &verified;
  for (int again = 0; again < 2; ++again) {
    wisp_model* model = nullptr;
    ASSERT_EQ(wisp_model_open_with(base_.c_str(), &how, &model, &error_), WISP_OK) << error_.message;
    const int32_t history[] = {1, 2};
    wisp_recommendation best[3];
    size_t count = 3;
    EXPECT_EQ(wisp_recommend(model, history, 2, nullptr, best, &count, &error_), WISP_OK) << error_.message;
    EXPECT_EQ(count, 3u);
    wisp_model_close(model);
    EXPECT_NE(verified.words[0], 0u);
  }
  EXPECT_EQ(wisp_model_open(second.c_str(), nullptr, &error_), WISP_INVALID_ARGUMENT);
  wisp_model* alone = nullptr;
  EXPECT_EQ(wisp_model_open(second.c_str(), &alone, &error_), WISP_INVALID_DATA);
  EXPECT_NE(std::string(error_.message).find("is an adapter"), std::string::npos) << error_.message;
  options_.adapter_rank = 3;
  EXPECT_EQ(Run(), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("adapter_rank is 3"), std::string::npos) << error_.message;
  options_.adapter_rank = 0;
  options_.adapter_path = nullptr;
  ASSERT_EQ(wisp_personalise_plan_memory(&options_, &whole, &error_), WISP_OK) << error_.message;
  EXPECT_LT(small.optimizer_bytes, whole.optimizer_bytes);
}

// A damaged adapter is found, also by a model that was verified once.
TEST_F(CPersonalise, AdapterThatChanged_IsVerifiedAgain) {
  options_.adapter_rank = 1;
  MustRun();
  wisp_open_options how = WISP_INIT(wisp_open_options);
  wisp_verified verified = {};
  how.adapter_path = out_.c_str();
  how.verify = WISP_VERIFY_ONCE;
  how.verified = &verified;
  wisp_model* model = nullptr;
  ASSERT_EQ(wisp_model_open_with(base_.c_str(), &how, &model, &error_), WISP_OK) << error_.message;
  wisp_model_close(model);
  std::string bytes = ReadBytes(out_);
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  WriteBytes(out_, bytes);
  std::filesystem::last_write_time(out_, std::filesystem::last_write_time(out_) + std::chrono::seconds(2));
  EXPECT_EQ(wisp_model_open_with(base_.c_str(), &how, &model, &error_), WISP_INVALID_DATA) << error_.message;
}

TEST_F(CPersonalise, BadRows_AreLeftOutAndCounted) {
  sqlite3* log = nullptr;
  ASSERT_EQ(sqlite3_open(log_.c_str(), &log), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(log,
                         "INSERT INTO events(user, item, time) VALUES('u1', x'00', 1700000000), ('', 'k1', "
                         "1700000000), ('u1', 'k1', 'soon')",
                         nullptr, nullptr, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(log);
  sqlite3_close(log);
  const wisp_personalise_result result = MustRun();
  EXPECT_EQ(result.bad_rows, 3u);
  EXPECT_EQ(result.num_events, 61u);
  EXPECT_EQ(result.num_records, 10u);
}

TEST_F(CPersonalise, ShorterOptions_AreRefusedForWhatTheyLack) {
  AtEverySize(options_, [&](Cut<wisp_personalise_options>& cut) {
    if (cut.get()->size >= offsetof(wisp_personalise_options, budget_epsilon)) return;  // would run
    EXPECT_EQ(wisp_personalise(cut.get(), nullptr, &error_), WISP_INVALID_ARGUMENT);
  });
  Cut<wisp_personalise_options> odd(options_, sizeof(options_) - 4);
  EXPECT_EQ(wisp_personalise(odd.get(), nullptr, &error_), WISP_INVALID_ARGUMENT) << "a field is cut in two";
  EXPECT_FALSE(std::filesystem::exists(ledger_));
}

TEST_F(CPersonalise, Result_IsFilledAsFarAsItGoesAndNeverBeyond) {
  AtEverySize(wisp_personalise_result{}, [&](Cut<wisp_personalise_result>& cut) {
    const size_t size = cut.get()->size;
    if (!cut.IsPossible()) {
      EXPECT_EQ(wisp_personalise(&options_, cut.get(), &error_), WISP_INVALID_ARGUMENT);
      EXPECT_FALSE(std::filesystem::exists(ledger_)) << "something was spent on what cannot be told";
    }
    if (size != 32 && size != 40) return;  // 32: before there were counts
    const std::string ledger = folder_ / std::to_string(size);
    options_.ledger_path = ledger.c_str();
    ASSERT_EQ(wisp_personalise(&options_, cut.get(), &error_), WISP_OK) << error_.message;
    EXPECT_EQ(cut.get()->size, size);
    EXPECT_GT(cut.get()->num_steps, 0u);
    if (size == 40) {
      EXPECT_EQ(cut.get()->num_records, 10u);
    }
    options_.ledger_path = ledger_.c_str();
  });
}

}  // namespace
}  // namespace wisp::c_personalise_test
