// A deployment through the C interface: every promise of the header, and false inputs.
#include "ports/c/wisp_deployment.h"

#include <sqlite3.h>

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "runtime/core/platform.h"
#include "tests/unit/ports/c_personalise_fixture.h"

namespace wisp::test::c_deployment_test {
namespace {

class CDeploymentTest : public CPersonaliseTest {
 protected:
  CDeploymentTest() {
    plan_.model_path = base_.c_str();
    plan_.ledger_path = ledger_.c_str();
    plan_.dataset = "log.db";
    plan_.epsilon = 8;
    plan_.delta = 1e-4;
    plan_.num_records_public = 20;
    plan_.runs = 4;
    plan_.steps_per_run = 3;
    plan_.evaluations = 2;
    plan_.unit = WISP_UNIT_USER;
    run_.model_path = base_.c_str();
    run_.log_path = log_.c_str();
    run_.output_path = out_.c_str();
    run_.ledger_path = ledger_.c_str();
    run_.num_threads = 1;
  }
  wisp_plan MustPlan() {
    wisp_plan plan = WISP_INIT(wisp_plan);
    EXPECT_EQ(wisp_plan_make(&plan_, &plan, &error_), WISP_OK) << error_.message;
    return plan;
  }
  wisp_run_result MustRunPlanned() {
    wisp_run_result result = WISP_INIT(wisp_run_result);
    EXPECT_EQ(wisp_run_planned(&run_, &result, &error_), WISP_OK) << error_.message;
    return result;
  }
  wisp_budget Budget() {
    wisp_budget budget = WISP_INIT(wisp_budget);
    EXPECT_EQ(wisp_budget_read(ledger_.c_str(), nullptr, 1e-5, &budget, &error_), WISP_OK) << error_.message;
    return budget;
  }

  wisp_plan_options plan_ = WISP_INIT(wisp_plan_options);
  wisp_run_options run_ = WISP_INIT(wisp_run_options);
};

// A file at such a name that is not a model would be taken for a damaged one and removed: here the ledger, with all
// charges.
TEST_F(CDeploymentTest, NoFileBesideTheOutputIsTheLedgerTheLogOrTheBase) {
  const std::string elsewhere = folder_ / "elsewhere.ledger";
  plan_.ledger_path = elsewhere.c_str();
  MustPlan();
  const auto refused = [&](const char*& path, const std::string& from, const std::string& beside, const char* what) {
    std::filesystem::copy_file(from, beside);
    const char* const given = std::exchange(path, beside.c_str());
    EXPECT_EQ(wisp_run_planned(&run_, nullptr, &error_), WISP_INVALID_ARGUMENT) << beside;
    const std::string sentence = std::string("a file beside the output and ") + what + " name the same file, ";
    EXPECT_NE(std::string(error_.message).find(sentence + beside), std::string::npos) << error_.message;
    EXPECT_EQ(ReadBytes(beside), ReadBytes(from));
    path = given;
    std::filesystem::remove(beside);
  };
  run_.ledger_path = elsewhere.c_str();
  for (const char* end : {".candidate", ".checkpoint", ".start", ".local", ".lock"}) {
    refused(run_.ledger_path, elsewhere, out_ + end, "the ledger");
    refused(run_.log_path, log_, out_ + end, "log_path");
    refused(run_.model_path, base_, out_ + end, "the base");
  }
}

// The served model cannot be read after the training, which was paid for.
TEST_F(CDeploymentTest, APlannedRunThatFailsBehindItsTrainingSaysWhatStays) {
  plan_.evaluation = WISP_EVALUATION_NONE;
  MustPlan();
  run_.user_data = const_cast<char*>(out_.c_str());
  run_.progress = [](const wisp_progress*, void* out) -> int {
    std::filesystem::remove_all(static_cast<const char*>(out));
    std::filesystem::create_directory(static_cast<const char*>(out));
    return 0;
  };
  EXPECT_NE(wisp_run_planned(&run_, nullptr, &error_), WISP_OK);
  EXPECT_NE(
      std::string(error_.message)
          .find("; before it, 3 steps were trained: what that cost stays charged, and " + out_ + ".candidate is kept"),
      std::string::npos)
      << error_.message;
  EXPECT_EQ(Budget().steps_left, 9u);
}

TEST_F(CDeploymentTest, PlansRunsAndSaysWhatIsLeft) {
  plan_.epsilon = 1;
  const wisp_plan plan = MustPlan();
  EXPECT_EQ(plan.runs, 4u);
  EXPECT_GT(plan.training_noise, 0);
  EXPECT_GT(plan.evaluation_noise, 0);
  EXPECT_EQ(plan.outlook, WISP_OUTLOOK_HOPELESS) << "with 20 users";
  EXPECT_TRUE(std::isnan(plan.found_gain));
  EXPECT_GT(plan.bytes, 1000u);
  EXPECT_EQ(plan.cpu_seconds_of_run, 0) << "nobody asked";
  wisp_budget budget = Budget();
  EXPECT_EQ(budget.has_plan, 1);
  EXPECT_EQ(budget.runs_left, 4u);
  EXPECT_EQ(budget.epsilon_stated, 0);
  EXPECT_EQ(budget.epsilon_limit, 1);
  EXPECT_EQ(budget.delta, 1e-4) << "that of the limit";
  for (uint64_t planned_run = 1; planned_run <= 4; ++planned_run) {
    const wisp_run_result result = MustRunPlanned();
    EXPECT_EQ(result.steps, 3u);
    EXPECT_EQ(result.steps_of_model, 3 * planned_run);
    EXPECT_EQ(result.runs_left, 4 - planned_run);
    EXPECT_EQ(result.changed, planned_run == 1 ? 1 : 0) << "the base, at first";
    EXPECT_EQ(result.evaluated, planned_run % 2 == 0 ? 1 : 0);
    EXPECT_EQ(result.served, WISP_SERVED_BASE);
    EXPECT_EQ(result.num_events, 61u);
    EXPECT_EQ(result.unknown_items, 1u);
  }
  EXPECT_EQ(ModelFile::Open(out_)->content_hash(), ModelFile::Open(base_)->content_hash());
  budget = Budget();
  EXPECT_EQ(budget.steps_left, 0u);
  EXPECT_EQ(budget.evaluations_left, 0u);
  EXPECT_GT(budget.epsilon_stated, 0.98);
  EXPECT_LE(budget.epsilon_stated, 1);
  EXPECT_EQ(MustRunPlanned().steps, 0u);
}

TEST_F(CDeploymentTest, ARunThatComesTooEarly_SaysSoByItsCode) {
  plan_.every = 86400;
  MustPlan();
  EXPECT_EQ(MustRunPlanned().steps, 3u);
  EXPECT_EQ(wisp_run_planned(&run_, nullptr, &error_), WISP_TOO_EARLY);
  EXPECT_NE(std::string(error_.message).find("its plan trains every 24 hours"), std::string::npos) << error_.message;
  EXPECT_EQ(Budget().steps_left, 9u);
  run_.early = 1;
  EXPECT_EQ(MustRunPlanned().steps, 3u);
}

TEST_F(CDeploymentTest, SaysHowOftenAPlanReleasesSuccessionsAndTheBiasWeight) {
  WriteTiny(base_, 1, OutputBias::kFixed);
  plan_.dry_run = 1;
  wisp_plan plan = MustPlan();
  EXPECT_EQ(plan.succession_releases, 0u);
  EXPECT_EQ(plan.succession_noise, 0);
  EXPECT_EQ(plan.bias_weight_releases, 0u);
  EXPECT_EQ(plan.bias_weight_noise, 0);
  plan_.dry_run = 0;
  plan_.num_records_public = 2000;
  plan = MustPlan();
  EXPECT_EQ(plan.succession_releases, 1u);
  EXPECT_GT(plan.succession_share, 0);
  EXPECT_LT(plan.succession_share, 1);
  EXPECT_GT(plan.succession_noise, 0);
  EXPECT_GT(plan.succession_signal, 0);
  EXPECT_EQ(plan.bias_weight_releases, 1u);
  EXPECT_GT(plan.bias_weight_share, 0);
  EXPECT_LT(plan.bias_weight_share, plan.succession_share);
  EXPECT_GT(plan.bias_weight_noise, 0);
  EXPECT_EQ(Budget().succession_releases_left, 1u);
  EXPECT_EQ(Budget().bias_weight_releases_left, 1u);
  MustRunPlanned();
  EXPECT_EQ(Budget().succession_releases_left, 0u);
  EXPECT_EQ(Budget().bias_weight_releases_left, 0u);
}

TEST_F(CDeploymentTest, ChangesAPlanAndSaysWhatThatCosts) {
  MustPlan();
  wisp_plan_options change = WISP_INIT(wisp_plan_options);
  change.model_path = base_.c_str();
  change.ledger_path = ledger_.c_str();
  change.runs = 9;
  EXPECT_EQ(wisp_plan_change(&change, nullptr, nullptr, &error_), WISP_PRIVACY_REFUSED) << "nothing was charged";
  MustRunPlanned();
  wisp_plan plan = WISP_INIT(wisp_plan);
  double factor = 0;
  ASSERT_EQ(wisp_plan_change(&change, &plan, &factor, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(factor, 1) << "other times cost nothing";
  EXPECT_EQ(plan.steps_per_run, 1u);
  EXPECT_EQ(Budget().steps_left, 9u);
  EXPECT_EQ(MustRunPlanned().steps_of_model, 4u);
  change.runs = 2;
  change.steps_per_run = 1;
  change.num_records_public = 40;
  change.dry_run = 1;
  ASSERT_EQ(wisp_plan_change(&change, &plan, &factor, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(Budget().steps_left, 8u) << "a dry run";
  change.dry_run = 0;
  ASSERT_EQ(wisp_plan_change(&change, &plan, &factor, &error_), WISP_OK) << error_.message;
  EXPECT_NE(factor, 1);
  EXPECT_EQ(Budget().steps_left, 2u);
  EXPECT_EQ(MustRunPlanned().steps_of_model, 1u);
  EXPECT_LE(Budget().epsilon_stated, 8);
  EXPECT_EQ(wisp_plan_change(nullptr, nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
}

TEST_F(CDeploymentTest, ADryRunWritesNothingAndMeasures) {
  plan_.dry_run = 1;
  plan_.measure = 1;
  const wisp_plan plan = MustPlan();
  EXPECT_GT(plan.cpu_seconds_of_run, 0);
  EXPECT_GT(plan.seconds_of_evaluation, 0);
  EXPECT_FALSE(std::filesystem::exists(ledger_));
  EXPECT_EQ(wisp_run_planned(&run_, nullptr, &error_), WISP_IO);
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(CDeploymentTest, OpenModel_ServesWhileASessionRuns) {
  plan_.evaluation = WISP_EVALUATION_NONE;
  MustPlan();
  MustRunPlanned();
  wisp_model* model = nullptr;
  ASSERT_EQ(wisp_model_open(out_.c_str(), &model, &error_), WISP_OK) << error_.message;
  const int32_t history[] = {1, 2};
  const auto best = [&] {
    wisp_recommendation top[3];
    size_t count = 3;
    wisp_error error;
    EXPECT_EQ(wisp_recommend(model, history, 2, nullptr, top, &count, &error), WISP_OK) << error.message;
    return std::make_pair(top[0].item, top[0].score);
  };
  const auto before = best();
  std::atomic<bool> done = false;
  std::thread planned_run([&] {
    EXPECT_EQ(MustRunPlanned().served, WISP_SERVED_NEWEST);
    done = true;
  });
  while (!done) EXPECT_EQ(best(), before);
  planned_run.join();
  wisp_model_close(model);
}

TEST_F(CDeploymentTest, InterruptedSession_Resumes) {
  MustPlan();
  run_.progress = [](const wisp_progress* p, void*) { return p->step >= 2 ? 1 : 0; };
  EXPECT_EQ(wisp_run_planned(&run_, nullptr, &error_), WISP_CANCELLED);
  run_.progress = nullptr;
  EXPECT_EQ(MustRunPlanned().steps_of_model, 5u);
}

TEST_F(CDeploymentTest, InvalidPlansAndSessions_AreRefused) {
  const auto refused = [&](auto change) {
    wisp_plan_options o = plan_;
    change(o);
    return wisp_plan_make(&o, nullptr, &error_);
  };
  EXPECT_EQ(wisp_plan_make(nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.dataset = nullptr; }), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.unit = static_cast<wisp_unit>(0); }), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.unit = WISP_UNIT_INTERACTION; }), WISP_PRIVACY_REFUSED);
  EXPECT_EQ(refused([](auto& o) { o.evaluation = static_cast<wisp_evaluation>(7); }), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.runs = 0; }), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.learning_rate = std::nan(""); }), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](auto& o) { o.num_records_public = 0; }), WISP_INVALID_ARGUMENT);
  EXPECT_NE(refused([](auto& o) { o.epsilon = 0; }), WISP_OK);
  EXPECT_EQ(refused([](auto& o) { o.delta = 0.5; }), WISP_PRIVACY_REFUSED);
  EXPECT_FALSE(std::filesystem::exists(ledger_));
  EXPECT_EQ(wisp_run_planned(nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
  run_.log_path = nullptr;
  EXPECT_EQ(wisp_run_planned(&run_, nullptr, &error_), WISP_INVALID_ARGUMENT);
  wisp_budget budget = WISP_INIT(wisp_budget);
  EXPECT_EQ(wisp_budget_read(ledger_.c_str(), nullptr, 1e-5, &budget, &error_), WISP_IO);
  EXPECT_EQ(wisp_budget_read(nullptr, nullptr, 1e-5, &budget, &error_), WISP_INVALID_ARGUMENT);
}

TEST_F(CDeploymentTest, ANewBaseWithMoreItemsTakesOver) {
  plan_.evaluation = WISP_EVALUATION_NONE;
  MustPlan();
  MustRunPlanned();
  const std::string grown = folder_ / "grown.wisp";
  const wisp_new_item items[] = {{"unknown", "Until now", "k1"}, {"k99", nullptr, nullptr}};
  EXPECT_EQ(wisp_catalogue_add(base_.c_str(), items, 2, base_.c_str(), &error_), WISP_INVALID_ARGUMENT);
  ASSERT_EQ(wisp_catalogue_add(base_.c_str(), items, 2, grown.c_str(), &error_), WISP_OK) << error_.message;
  EXPECT_EQ(wisp_catalogue_add(grown.c_str(), items, 2, out_.c_str(), &error_), WISP_INVALID_ARGUMENT) << "again";
  wisp_rebase_result moved = WISP_INIT(wisp_rebase_result);
  wisp_rebase_options moves = WISP_INIT(wisp_rebase_options);
  moves.from_path = base_.c_str();
  moves.to_path = grown.c_str();
  moves.output_path = out_.c_str();
  moves.ledger_path = ledger_.c_str();
  ASSERT_EQ(wisp_rebase(&moves, &moved, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(moved.carried, 1);
  EXPECT_EQ(moved.shared_items, 12u);
  run_.model_path = grown.c_str();
  const wisp_run_result planned_run = MustRunPlanned();
  EXPECT_EQ(planned_run.unknown_events, 0u) << "they stayed in the log until the model knew them";
  EXPECT_EQ(planned_run.served, WISP_SERVED_NEWEST);
  EXPECT_EQ(ModelFile::Open(out_)->num_items(), 14u);
  const std::string fewer = folder_ / "fewer.wisp";
  const char* gone[] = {"k1", "k99"};
  EXPECT_EQ(wisp_catalogue_retire(base_.c_str(), gone, 2, 0, fewer.c_str(), &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_catalogue_retire(grown.c_str(), gone, 2, 2, fewer.c_str(), &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_catalogue_retire(grown.c_str(), nullptr, 2, 0, fewer.c_str(), &error_), WISP_INVALID_ARGUMENT);
  ASSERT_EQ(wisp_catalogue_retire(grown.c_str(), gone, 2, 0, fewer.c_str(), &error_), WISP_OK) << error_.message;
  EXPECT_EQ(ModelFile::Open(fewer)->retired().size(), 2u);
  EXPECT_EQ(wisp_rebase(nullptr, nullptr, &error_), WISP_INVALID_ARGUMENT);
  moves.ledger_path = nullptr;
  EXPECT_EQ(wisp_rebase(&moves, nullptr, &error_), WISP_INVALID_ARGUMENT);

  // A base of another shape takes away what was learned, if the caller means it.
  const std::string other = folder_ / "other.wisp";
  WriteTiny(other, 3);
  moves.from_path = grown.c_str();
  moves.to_path = other.c_str();
  moves.ledger_path = ledger_.c_str();
  EXPECT_EQ(wisp_rebase(&moves, nullptr, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error_.message).find("what was learned would be lost"), std::string::npos) << error_.message;
  EXPECT_EQ(ModelFile::Open(out_)->num_items(), 14u);
  moves.start_over = 1;
  ASSERT_EQ(wisp_rebase(&moves, &moved, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(moved.carried, 0);
}

TEST_F(CDeploymentTest, AnOutputWithoutANameLeavesNoFile) {
  WriteTiny(folder_ / "n.wisp", 2);
  const std::string newer = folder_ / "n.wisp";
  wisp_rebase_options moves = WISP_INIT(wisp_rebase_options);
  moves.from_path = base_.c_str();
  moves.to_path = newer.c_str();
  moves.output_path = "";
  moves.ledger_path = ledger_.c_str();
  EXPECT_EQ(wisp_rebase(&moves, nullptr, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message,
               "wisp_rebase: from_path, to_path, output_path and ledger_path are required, and none is empty");
  EXPECT_FALSE(platform::IsThere(".lock")) << "in the folder of work";
}

TEST_F(CDeploymentTest, SaysHowGoodAModelIs) {
  wisp_quality quality = WISP_INIT(wisp_quality);
  ASSERT_EQ(wisp_evaluate(base_.c_str(), log_.c_str(), 1, &quality, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(quality.num_users, 10u);
  EXPECT_GT(quality.hit_at_10, 0) << "of 12 items";
  EXPECT_LE(quality.ndcg_at_10, quality.hit_at_10);
  const double one_thread = quality.ndcg_at_10;
  ASSERT_EQ(wisp_evaluate(base_.c_str(), log_.c_str(), 3, &quality, &error_), WISP_OK);
  EXPECT_EQ(quality.ndcg_at_10, one_thread);
  EXPECT_EQ(wisp_evaluate(base_.c_str(), nullptr, 1, &quality, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_evaluate(ledger_.c_str(), log_.c_str(), 1, &quality, &error_), WISP_IO);
}

TEST_F(CDeploymentTest, StructsOfEverySizeAreFilledAsFarAsTheyGo) {
  MustPlan();
  for (size_t size = 0; size <= sizeof(wisp_budget); ++size) {
    Cut<wisp_budget> cut(wisp_budget{}, size);
    const wisp_code code = wisp_budget_read(ledger_.c_str(), nullptr, 1e-5, cut.get(), &error_);
    EXPECT_EQ(code, cut.IsPossible() ? WISP_OK : WISP_INVALID_ARGUMENT) << size;
    EXPECT_TRUE(cut.GuardsHold()) << size;
  }
}

TEST_F(CDeploymentTest, CountsOfALogSayWhatTrainingCannotRead) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(log_.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, "INSERT INTO events VALUES('u0', '', 1700000000)", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  wisp_log* log = nullptr;
  ASSERT_EQ(wisp_log_open(log_.c_str(), &log, &error_), WISP_OK) << error_.message;
  wisp_log_counts counts = WISP_INIT(wisp_log_counts);
  ASSERT_EQ(wisp_log_count(log, &counts, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(counts.events, 62u);
  EXPECT_EQ(counts.unreadable, 1u);
  wisp_log_close(log);
}

TEST_F(CDeploymentTest, ALogIsLookedAfter) {
  wisp_log* log = nullptr;
  ASSERT_EQ(wisp_log_open(log_.c_str(), &log, &error_), WISP_OK);
  wisp_log_counts counts = WISP_INIT(wisp_log_counts);
  ASSERT_EQ(wisp_log_count(log, &counts, &error_), WISP_OK);
  EXPECT_EQ(counts.events, 61u);
  EXPECT_EQ(counts.users, 11u);
  EXPECT_EQ(counts.oldest, 1700000000);
  const wisp_event events[] = {{"new", "k1", 1700000001}, {"new", "k2", 1700000002}};
  EXPECT_EQ(wisp_log_append_all(log, events, 2, &error_), WISP_OK) << error_.message;
  const wisp_event bad[] = {{"new", "k1", 5}, {"new", nullptr, 6}};
  EXPECT_EQ(wisp_log_append_all(log, bad, 2, &error_), WISP_INVALID_ARGUMENT);
  char text[64];
  size_t needed = 0;
  ASSERT_EQ(wisp_log_users(log, "new", 2, text, sizeof(text), &needed, &error_), WISP_OK);
  EXPECT_STREQ(text, "short\nu0\n");
  EXPECT_EQ(needed, 10u);
  std::vector<std::string> told;
  const wisp_on_event tell = [](void* list, const wisp_event* e) -> int32_t {
    static_cast<std::vector<std::string>*>(list)->push_back(std::string(e->user) + e->item_key +
                                                            std::to_string(e->time));
    return 1;
  };
  ASSERT_EQ(wisp_log_events(log, "new", tell, &told, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(told, (std::vector<std::string>{"newk11700000001", "newk21700000002"}));
  const wisp_on_event once = [](void* number, const wisp_event*) -> int32_t {
    return ++*static_cast<int*>(number) < 1;
  };
  int calls = 0;
  ASSERT_EQ(wisp_log_events(log, "new", once, &calls, &error_), WISP_OK);
  EXPECT_EQ(calls, 1) << "0 ends it";
  EXPECT_EQ(wisp_log_events(log, "nobody", tell, &told, &error_), WISP_OK);
  EXPECT_EQ(told.size(), 2u);
  EXPECT_EQ(wisp_log_events(log, nullptr, tell, &told, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_log_events(log, "new", nullptr, &told, &error_), WISP_INVALID_ARGUMENT);
  uint64_t count = 0;
  ASSERT_EQ(wisp_log_erase(log, "new", &count, &error_), WISP_OK);
  EXPECT_EQ(count, 2u);
  wisp_prune_options prune = WISP_INIT(wisp_prune_options);
  EXPECT_EQ(wisp_log_prune(log, &prune, &count, &error_), WISP_INVALID_ARGUMENT) << "no unit";
  prune.unit = WISP_UNIT_USER;
  prune.newest_per_user = 2;
  ASSERT_EQ(wisp_log_prune(log, &prune, &count, &error_), WISP_OK) << error_.message;
  EXPECT_EQ(count, 40u);
  wisp_log_close(log);
}

TEST_F(CDeploymentTest, AnAdapterMovesToANewBase) {
  options_.adapter_rank = 2;
  MustRun();
  const std::string newer = folder_ / "newer.wisp", moved = folder_ / "moved.wisp";
  const wisp_new_item item = {.key = "k12", .name = nullptr, .like = "k1"};
  ASSERT_EQ(wisp_catalogue_add(base_.c_str(), &item, 1, newer.c_str(), &error_), WISP_OK) << error_.message;
  ASSERT_EQ(wisp_rebase_adapter(base_.c_str(), out_.c_str(), newer.c_str(), moved.c_str(), &error_), WISP_OK)
      << error_.message;
  wisp_open_options open = WISP_INIT(wisp_open_options);
  open.adapter_path = moved.c_str();
  wisp_model* model = nullptr;
  ASSERT_EQ(wisp_model_open_with(newer.c_str(), &open, &model, &error_), WISP_OK) << error_.message;
  wisp_model_close(model);
  EXPECT_NE(wisp_rebase_adapter(newer.c_str(), out_.c_str(), base_.c_str(), moved.c_str(), &error_), WISP_OK);
  EXPECT_EQ(wisp_rebase_adapter(nullptr, out_.c_str(), base_.c_str(), moved.c_str(), &error_), WISP_INVALID_ARGUMENT);
}

// Whoever stops a run is told what was charged beside the whole plan's figure, and a history of both.
TEST_F(CDeploymentTest, ABudgetSaysWhatWasCharged_AndHowItGrew) {
  plan_.evaluation = WISP_EVALUATION_NONE;
  MustPlan();
  MustRunPlanned();
  const wisp_budget budget = Budget();
  EXPECT_GT(budget.epsilon_charged, 0);
  EXPECT_LT(budget.epsilon_charged, budget.epsilon_stated);
  std::vector<wisp_spent> all;
  const wisp_on_spent keep = [](void* list, const wisp_spent* spent) -> int32_t {
    static_cast<std::vector<wisp_spent>*>(list)->push_back(*spent);
    return 1;
  };
  ASSERT_EQ(wisp_budget_history(ledger_.c_str(), nullptr, 1e-5, 0, keep, &all, &error_), WISP_OK) << error_.message;
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().epsilon_stated, budget.epsilon_stated);
  EXPECT_EQ(all.back().epsilon_charged, budget.epsilon_charged);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].epsilon_charged, all[i - 1].epsilon_charged);
  all.clear();
  ASSERT_EQ(wisp_budget_history(ledger_.c_str(), nullptr, 1e-5, 1, keep, &all, &error_), WISP_OK);
  EXPECT_EQ(all.size(), 1u);
  const wisp_on_spent stop = [](void* calls, const wisp_spent*) -> int32_t { return ++*static_cast<int*>(calls), 0; };
  int calls = 0;
  ASSERT_EQ(wisp_budget_history(ledger_.c_str(), nullptr, 1e-5, 9, stop, &calls, &error_), WISP_OK);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(wisp_budget_history(nullptr, nullptr, 1e-5, 0, keep, &all, &error_), WISP_INVALID_ARGUMENT);
  EXPECT_EQ(wisp_budget_history(ledger_.c_str(), nullptr, 1e-5, 0, nullptr, &all, &error_), WISP_INVALID_ARGUMENT);
}

TEST_F(CDeploymentTest, ARunThatIsCancelledBeforeItsFirstStep_IsNotCharged) {
  plan_.evaluation = WISP_EVALUATION_NONE;
  MustPlan();
  run_.cancelled = [](void*) { return 1; };
  EXPECT_EQ(wisp_run_planned(&run_, nullptr, &error_), WISP_CANCELLED);
  EXPECT_NE(std::string(error_.message).find("nothing was charged"), std::string::npos) << error_.message;
  EXPECT_EQ(Budget().epsilon_stated, 0);
}

}  // namespace
}  // namespace wisp::test::c_deployment_test
