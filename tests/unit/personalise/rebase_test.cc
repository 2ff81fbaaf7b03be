// A new base: learned changes move over by keys, nothing is worse meanwhile, and a power cut loses nothing.
#include "runtime/personalise/rebase.h"

#include <fstream>
#include <map>

#include "runtime/model/catalogue.h"
#include "runtime/personalise/lineage.h"
#include "runtime/train/run/check_start.h"
#include "tests/unit/needs.h"
#include "tests/unit/personalise/planned_run_test_util.h"

namespace wisp::rebase_test {
namespace {

class RebaseTest : public PlannedRunTest {
 protected:
  // Makes the base with two more items, of which one takes the first number.
  void MakeNewBase() {
    const ModelFile base = *ModelFile::Open(base_path_);
    auto grown = AddItems(base, std::vector<NewItem>{{"new a", "", ""}, {"new b", "", Key(3)}});
    ASSERT_TRUE(grown.ok()) << grown.status().message();
    std::reverse(grown->contents.item_keys.begin(), grown->contents.item_keys.end());
    const auto parameters = ListParameters(grown->contents.architecture);
    const ParameterSpec& table = parameters[RequireParameter(parameters, ParameterRole::kItemTable)];
    std::vector<float> reversed = grown->weights;
    for (size_t row = 0; row < table.rows; ++row)
      std::copy_n(grown->weights.data() + table.offset + row * table.cols, table.cols,
                  reversed.data() + table.offset + (table.rows - 1 - row) * table.cols);
    grown->contents.weights = reversed;
    grown->contents.untrained = {0, 1};
    grown->contents.allow_seen = allow_seen_;
    ASSERT_TRUE(WriteModel(new_base_, grown->contents).ok());
  }
  RebaseOptions MakeRebaseOptions() const {
    return {.from = base_path_, .to = new_base_, .output = output_, .ledger = ledger_path_};
  }
  PlannedRunOptions OnNewBase() {
    PlannedRunOptions o = Options();
    o.base_path = new_base_;
    return o;
  }
  // Expects a refusal that names `why` and changes no file.
  void ExpectRefused(const RebaseOptions& options, const std::string& why) {
    const auto read = [this] {
      std::map<std::string, std::string> files;
      for (const std::string& path : {files_.served, files_.candidate, files_.checkpoint, files_.start}) {
        std::ifstream file(path, std::ios::binary);
        files[path] = file ? std::string(std::istreambuf_iterator<char>(file), {}) : "none";
      }
      return files;
    };
    const auto before = read();
    const Status refused = Rebase(options).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.message();
    EXPECT_NE(refused.message().find(why), std::string::npos) << refused.message();
    EXPECT_TRUE(read() == before) << "a refusal changed a file";
  }
  // Returns the row of an item, by its key.
  static std::vector<float> Row(const ModelFile& model, const std::string& key) {
    const auto& parameters = model.parameters();
    const size_t table = RequireParameter({parameters.begin(), parameters.end()}, ParameterRole::kItemTable);
    const float* row = model.Tensor(table) + *model.FindItem(key) * parameters[table].cols;
    return {row, row + parameters[table].cols};
  }

  const std::string new_base_ = folder_ / "base-2.wisp";
  bool allow_seen_ = false;  // of the new base
};

// The moved model is served with the list rule of the new base.
TEST_F(RebaseTest, AllowSeen_IsThatOfTheNewBase) {
  Plan(Settings());
  allow_seen_ = true;
  MakeNewBase();
  EXPECT_EQ(MustRun().steps, 6u);
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  EXPECT_TRUE(ModelFile::Open(output_)->lists().allow_seen);
  EXPECT_TRUE(ModelFile::Open(files_.start)->lists().allow_seen);
  EXPECT_NE(RunPlanned(OnNewBase()).status().message().find("change what is left of the plan"), std::string::npos);
}

TEST_F(RebaseTest, CarriesWhatWasLearnedOverAndServesItOnceItIsFoundBetter) {
  Plan(Settings());
  MakeNewBase();
  while (MustRun().serves == PlannedRunResult::Serves::kBase) ASSERT_LT(runs_, 4);
  const double learned = Knows(output_), known = Knows(base_path_);
  const std::vector<float> mine = Row(*ModelFile::Open(files_.candidate), Key(5)),
                           base = Row(*ModelFile::Open(base_path_), Key(5));
  const auto refused = RunPlanned(OnNewBase());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << "before it is carried over";

  const uint64_t charged = Charged("training") + Charged("evaluation");
  const auto result = Rebase(MakeRebaseOptions());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_TRUE(result->carried);
  EXPECT_EQ(result->shared_items, static_cast<uint32_t>(kItems));
  EXPECT_EQ(result->lost_items, 0u);
  EXPECT_EQ(Charged("training") + Charged("evaluation"), charged);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(new_base_)) << "the sum was not evaluated";
  const ModelFile start = *ModelFile::Open(files_.start, Verify::kFull);
  const std::vector<float> carried = Row(start, Key(5));
  for (size_t i = 0; i < base.size(); ++i) EXPECT_NEAR(carried[i], mine[i], 1e-5) << "the new row is the old base's";
  EXPECT_EQ(Row(start, "new b"), Row(*ModelFile::Open(new_base_), "new b")) << "of which nothing was learned";
  EXPECT_EQ(std::vector(start.untrained().begin(), start.untrained().end()), (std::vector<int32_t>{0, 1}));
  ASSERT_EQ(start.provenance().size(), 3u);

  // It is evaluated at once, although no evaluation is due in this run, because the plan has a fixed trains_until.
  const auto planned_run = RunPlanned(OnNewBase());
  ASSERT_TRUE(planned_run.ok() && planned_run->evaluated) << planned_run.status().message();
  EXPECT_EQ(planned_run->serves, PlannedRunResult::Serves::kNewestCandidate);
  EXPECT_GT(Knows(output_), (learned + known) / 2);
  // Nobody chose the new items. One that noise did not move further than by chance is as it was.
  const ModelFile served = *ModelFile::Open(output_);
  for (const int32_t item : served.untrained()) {
    const std::string key(served.item_key(static_cast<size_t>(item)));
    EXPECT_EQ(Row(served, key), Row(start, key));
  }
  // A newer base adds them too; those that the candidate has learned are not untrained in it.
  const ModelFile second = *ModelFile::Open(new_base_);
  std::vector<float> room;
  ModelContents contents = *ChangeOffer(second, std::vector<std::string>{Key(2)}, Offer::kRetired, room);
  const std::string third = folder_ / "base-3.wisp";
  ASSERT_TRUE(WriteModel(third, contents).ok());
  ASSERT_TRUE(Rebase({.from = new_base_, .to = third, .output = output_, .ledger = ledger_path_})->carried);
  EXPECT_FALSE(ModelFile::Open(output_)->untrained().empty());
  EXPECT_EQ(ModelFile::Open(files_.start)->untrained().size(), served.untrained().size());
}

// Training moves the tower, and so the rows of items that only the new base has.
TEST_F(RebaseTest, NewItems_GetRowsFromTheTowerThatWasLearned) {
  MakeBase(base_path_, 1, false, /*item_features=*/3);
  Plan(Settings());
  EXPECT_EQ(MustRun().steps, 6u);
  const ModelFile base = *ModelFile::Open(base_path_);
  const auto grown = AddItems(base, std::vector<NewItem>{{.key = "new", .features = {1, -2, 3}}});
  ASSERT_TRUE(grown.ok()) << grown.status().message();
  ASSERT_TRUE(WriteModel(new_base_, grown->contents).ok());
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  const ModelFile start = *ModelFile::Open(files_.start, Verify::kFull);
  EXPECT_TRUE(start.untrained().empty());
  std::vector<float> room;
  const std::span<const float> carried = start.AllWeights(room);
  std::vector<float> followed(carried.begin(), carried.end());
  RowsFromFeatures(start.architecture(), 0, followed);
  for (size_t i = 0; i < followed.size(); ++i) ASSERT_NEAR(carried[i], followed[i], 1e-6) << i;
  EXPECT_NE(Row(start, "new"), Row(*ModelFile::Open(new_base_), "new")) << "the tower has moved";
}

// If evaluation uses the events since the newest evaluation, there are almost none in the session after it.
TEST_F(RebaseTest, WithoutAFixedDay_ANewBaseIsEvaluatedWhenAEvaluationIsDue) {
  DeploymentSettings settings = Settings();
  settings.trains_until = 0;
  Plan(settings);
  MakeNewBase();
  for (int planned_run = 1; planned_run <= 2; ++planned_run) EXPECT_EQ(MustRun().evaluated, planned_run == 2);
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  for (int planned_run = 3; planned_run <= 6; ++planned_run) {
    const auto result = RunPlanned(OnNewBase());
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->evaluated, planned_run % 2 == 0) << planned_run;
  }
}

TEST_F(RebaseTest, EndsWhatAPowerCutLeft) {
  Plan(Settings());
  MakeNewBase();
  MustRun();
  const std::string candidate = folder_ / "kept", checkpoint = folder_ / "kept.c";
  ASSERT_TRUE(CopyFile(files_.candidate, candidate).ok());
  ASSERT_TRUE(CopyFile(files_.checkpoint, checkpoint).ok());
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  const uint64_t start = ComputeHash(files_.start);
  // Only the start was written.
  ASSERT_TRUE(CopyFile(candidate, files_.candidate).ok());
  ASSERT_TRUE(CopyFile(checkpoint, files_.checkpoint).ok());
  ASSERT_TRUE(CopyFile(base_path_, output_).ok());
  EXPECT_FALSE(RunPlanned(OnNewBase()).ok());
  const auto again = Rebase(MakeRebaseOptions());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->carried);
  EXPECT_EQ(ComputeHash(files_.start), start);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(new_base_));
  EXPECT_EQ(RunPlanned(OnNewBase())->steps, 6u);
}

// An app may ask at each start: what was learned since then stays.
TEST_F(RebaseTest, DoneAgainItTakesNothingAway) {
  Plan(Settings());
  MakeNewBase();
  MustRun();
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  ASSERT_TRUE(RunPlanned(OnNewBase()).ok());
  const uint64_t candidate = ComputeHash(files_.candidate), served = ComputeHash(output_);
  const auto again = Rebase(MakeRebaseOptions());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(again->carried);
  ASSERT_TRUE(files_.HasCandidate());
  EXPECT_EQ(ComputeHash(files_.candidate), candidate);
  EXPECT_TRUE(files_.HasCheckpoint());
  EXPECT_EQ(ComputeHash(output_), served);
}

// A base among the plan's own files would be deleted before it is read.
TEST_F(RebaseTest, FilesOfThePlan_AreRefusedAsBases) {
  Plan(Settings());
  MakeNewBase();
  MustRun();
  for (const std::string& mine : {files_.candidate, files_.start, files_.checkpoint, files_.served}) {
    for (const bool is_old : {false, true}) {
      const uint64_t candidate = ComputeHash(files_.candidate);
      const auto refused = Rebase({.from = is_old ? mine : base_path_,
                                   .to = is_old ? new_base_ : mine,
                                   .output = output_,
                                   .ledger = ledger_path_});
      EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << mine;
      EXPECT_NE(refused.status().message().find(is_old ? "the old base" : "the new base"), std::string::npos)
          << refused.status().message();
      ASSERT_TRUE(files_.HasCandidate() && files_.HasCheckpoint() && !files_.HasStart()) << mine;
      EXPECT_EQ(ComputeHash(files_.candidate), candidate);
    }
  }
}

TEST_F(RebaseTest, TrainsAnewWhereNothingCanBeCarried) {
  Plan(Settings());
  MakeNewBase();
  const auto nothing = Rebase(MakeRebaseOptions());
  ASSERT_TRUE(nothing.ok()) << nothing.status().message();
  EXPECT_FALSE(nothing->carried);
  EXPECT_EQ(nothing->why_not, "nothing was learned yet");
  EXPECT_EQ(ComputeHash(output_), ComputeHash(new_base_));
  // This model was personalised from neither of the two.
  MakeBase(folder_ / "third.wisp", 3);
  ASSERT_TRUE(RunPlanned(OnNewBase()).ok());
  RebaseOptions other = MakeRebaseOptions();
  other.from = folder_ / "third.wisp";
  other.to = base_path_;
  EXPECT_EQ(Rebase(other).status().code(), StatusCode::kInvalidArgument);
}

// The difference that moves over depends on the old base too.
TEST_F(RebaseTest, WhatTheOldBaseLearnedFrom_IsNamedInTheResult) {
  MakeNewBase();
  TrainFurther(base_path_, {{.description = "trained without a guarantee", .dataset = "log.db"},
                            {.description = "trained with one",
                             .mechanisms = {"noise"},
                             .epsilon = 1,
                             .noise = NoiseOrigin::kSecure,
                             .dataset = "the shop",
                             .base_model_hash = 7,
                             .receipt = std::string(kReceiptBytes, 'r')}});
  Plan(Settings());
  PlannedRunOptions options = Options();
  options.other_data = true;
  ASSERT_TRUE(RunPlanned(options).ok());
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  const ModelFile start = *ModelFile::Open(files_.start, Verify::kFull);
  const privacy::Ledger ledger = OpenLedger();
  const Status refused = CheckStart(start, files_.start, {.dataset = "log.db"}, ledger);
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("it was trained on 'log.db' before, without a guarantee"), std::string::npos)
      << refused.message();
  EXPECT_TRUE(std::ranges::any_of(start.provenance(), [](const ProvenanceEntry& entry) {
    return entry.dataset == "log.db" && entry.mechanisms.empty();
  })) << "private samples are charged for data that was learned without a guarantee";
  // The lineage follows the receipt of the ledger that paid for the old base.
  const auto line = FindLineage(ledger, start, *ModelFile::Open(new_base_));
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_NE(*line, 0u);
}

// The old base was trained from the new one.
TEST_F(RebaseTest, AnAncestorIsServedAndTrainsOn) {
  const std::string later = folder_ / "later.wisp";
  TrainFurther(later, {{.description = "trained", .dataset = "more of the public"}});
  Plan(Settings());
  PlannedRunOptions on_later = Options();
  on_later.base_path = later;
  ASSERT_TRUE(RunPlanned(on_later).ok());
  ASSERT_EQ(ComputeHash(output_), ComputeHash(later));

  const RebaseOptions back{.from = later, .to = base_path_, .output = output_, .ledger = ledger_path_};
  for (int again = 0; again < 2; ++again) {
    const auto result = Rebase(back);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_TRUE(result->carried) << result->why_not;
    EXPECT_EQ(ComputeHash(output_), ComputeHash(base_path_));
    EXPECT_FALSE(files_.HasCandidate());
    EXPECT_TRUE(BeganWith(*ModelFile::Open(files_.start), *ModelFile::Open(base_path_)));
  }
  ASSERT_TRUE(RunPlanned(Options()).ok());
  EXPECT_TRUE(Rebase(back)->carried);
  EXPECT_TRUE(files_.HasCandidate()) << "what was learned since stays";
  // Moves to the later one again.
  ASSERT_TRUE(Rebase({.from = base_path_, .to = later, .output = output_, .ledger = ledger_path_})->carried);
  EXPECT_EQ(ComputeHash(output_), ComputeHash(later));
}

// Learning from one base says nothing about a base that was trained from other random weights.
TEST_F(RebaseTest, UnrelatedBase_BeginsAnew) {
  const std::string unrelated = folder_ / "unrelated.wisp", related = folder_ / "related.wisp";
  MakeBase(unrelated, 2);
  TrainFurther(related, {{.description = "trained", .dataset = "more of the public"}});
  Plan(Settings());
  ASSERT_TRUE(RunPlanned(Options()).ok());
  RebaseOptions moves{.from = base_path_, .to = unrelated, .output = output_, .ledger = ledger_path_};
  ExpectRefused(moves, "the new base was not trained from the old one");
  moves.start_over = true;
  const auto anew = Rebase(moves);
  ASSERT_TRUE(anew.ok()) << anew.status().message();
  EXPECT_FALSE(anew->carried);
  EXPECT_NE(anew->why_not.find("the new base was not trained from the old one"), std::string::npos) << anew->why_not;
  EXPECT_EQ(ComputeHash(output_), ComputeHash(unrelated));
  EXPECT_FALSE(files_.HasAny() && (files_.HasStart() || files_.HasCandidate()));
  PlannedRunOptions on_unrelated = Options();
  on_unrelated.base_path = unrelated;
  ASSERT_TRUE(RunPlanned(on_unrelated).ok());
  // Moves back, where the two have as little in common; and to one that was trained from the old one.
  EXPECT_FALSE(
      Rebase({.from = unrelated, .to = base_path_, .output = output_, .ledger = ledger_path_, .start_over = true})
          ->carried);
  ASSERT_TRUE(RunPlanned(Options()).ok());
  EXPECT_TRUE(Rebase({.from = base_path_, .to = related, .output = output_, .ledger = ledger_path_})->carried);
}

// After the last evaluation nothing could make people be served the carried model.
TEST_F(RebaseTest, WhatCouldNeverBeServedAgain_IsNotGivenUpUnasked) {
  DeploymentSettings settings = Settings();
  settings.runs = 4;
  settings.evaluations = 1;
  Plan(settings);
  MakeNewBase();
  PlannedRunResult run;
  while ((run = MustRun()).left.evaluations > 0) ASSERT_LT(runs_, 4);
  for (const bool has_steps : {run.left.steps > 0, false}) {
    while (!has_steps && run.left.steps > 0) run = MustRun();
    ASSERT_EQ(run.left.steps > 0, has_steps);
    ExpectRefused(MakeRebaseOptions(), has_steps ? "has no evaluation left" : "has no step left");
  }
  RebaseOptions anyway = MakeRebaseOptions();
  anyway.start_over = true;
  const auto result = Rebase(anyway);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_FALSE(result->carried);
  EXPECT_FALSE(files_.HasStart());
  EXPECT_EQ(ComputeHash(output_), ComputeHash(new_base_));
}

// A plan without evaluations serves each candidate, but only after a step.
TEST_F(RebaseTest, WithoutAStep_NothingCarriedOverIsServed) {
  DeploymentSettings settings = Settings();
  settings.runs = 2;
  settings.evaluations = 0;
  settings.trains_until = 0;
  Plan(settings);
  MakeNewBase();
  while (MustRun().left.steps > 0) ASSERT_LT(runs_, 3);
  ASSERT_EQ(ComputeHash(output_), ComputeHash(files_.candidate));
  ExpectRefused(MakeRebaseOptions(), "has no step left");
}

TEST_F(RebaseTest, AServedModelWithoutItsCandidate_IsKept) {
  DeploymentSettings settings = Settings();
  settings.evaluations = 0;
  settings.trains_until = 0;
  Plan(settings);
  MakeNewBase();
  MustRun();
  ASSERT_TRUE(files_.ForgetCandidate(/*keep_start=*/false).ok());
  ExpectRefused(MakeRebaseOptions(), "neither a candidate nor a start");
  // A model that was moved already stays, whatever happened to the files beside it.
  ASSERT_TRUE(RunPlanned(Options()).ok());
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  ASSERT_TRUE(RunPlanned(OnNewBase()).ok());
  ASSERT_TRUE(files_.ForgetCandidate(/*keep_start=*/false).ok());
  const uint64_t served = ComputeHash(output_);
  ASSERT_NE(served, ComputeHash(new_base_));
  const auto again = Rebase(MakeRebaseOptions());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(ComputeHash(output_), served);
}

// Directions of few rows agree by chance. Then the provenance decides; if it says nothing, training starts anew.
TEST_F(RebaseTest, FewSharedItems_BeginAnewUnlessTheProvenanceNamesTheOldBase) {
  const std::string other = folder_ / "other.wisp", related = folder_ / "related.wisp";
  const auto rename_all_but = [&](const std::string& path, int shared) {
    const ModelFile model = *ModelFile::Open(path);
    std::vector<float> room;
    ModelContents contents = GetContents(model, room);
    for (int i = shared; i < kItems; ++i) contents.item_keys[static_cast<size_t>(i)] = "other " + std::to_string(i);
    contents.base_hash = 0;
    ASSERT_TRUE(WriteModel(path, contents).ok());
  };
  Plan(Settings());
  for (const int shared : {0, 1, 7}) {
    SCOPED_TRACE(shared);
    MakeBase(other, 2);
    rename_all_but(other, shared);
    ASSERT_TRUE(RunPlanned(Options()).ok());
    const auto anew =
        Rebase({.from = base_path_, .to = other, .output = output_, .ledger = ledger_path_, .start_over = true});
    ASSERT_TRUE(anew.ok()) << anew.status().message();
    EXPECT_FALSE(anew->carried);
    EXPECT_NE(anew->why_not.find("nothing shows that the new base was trained from the old one: they share " +
                                 std::to_string(shared) + " item"),
              std::string::npos)
        << anew->why_not;
    EXPECT_EQ(ComputeHash(output_), ComputeHash(other));
    std::filesystem::remove(output_);
  }
  TrainFurther(related, {{.description = "trained", .dataset = "more of the public"}});
  rename_all_but(related, 1);
  ASSERT_TRUE(RunPlanned(Options()).ok());
  const auto named = Rebase({.from = base_path_, .to = related, .output = output_, .ledger = ledger_path_});
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_TRUE(named->carried) << named->why_not;
}

TEST_F(RebaseTest, PutsAnAdapterBesideTheNewBase) {
  MakeNewBase();
  const std::string adapter = folder_ / "a.wisp", moved = folder_ / "b.wisp";
  const ModelFile base = *ModelFile::Open(base_path_);
  std::vector<float> room;
  ModelContents contents = GetContents(base, room);
  contents.architecture.adapter = AdapterSpec{.rank = 2, .alpha = 3, .matrices = AdapterSpec::kQkv};
  const std::vector<ParameterSpec> parameters = ListParameters(contents.architecture);
  std::vector<float> weights(FlatSize(parameters));
  std::copy(contents.weights.begin(), contents.weights.end(), weights.begin());
  for (size_t i = parameters[base.parameters().size()].offset; i < weights.size(); ++i)
    weights[i] = 0.01f * static_cast<float>(i % 7);
  contents.weights = weights;
  contents.base_hash = base.content_hash();
  contents.provenance.push_back({.description = "adapted", .dataset = "log.db"});
  ASSERT_TRUE(WriteModel(adapter, contents).ok());

  const Status done = RebaseAdapter({.from = base_path_, .adapter = adapter, .to = new_base_, .output = moved});
  ASSERT_TRUE(done.ok()) << done.message();
  const ModelFile before = *ModelFile::OpenWithAdapter(base_path_, adapter), to = *ModelFile::Open(new_base_);
  const auto after = ModelFile::OpenWithAdapter(new_base_, moved, Verify::kFull);
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(after->architecture().adapter, contents.architecture.adapter);
  EXPECT_EQ(Row(*after, "new b"), Row(to, "new b"));
  for (size_t p = base.parameters().size(); p < parameters.size(); ++p) {
    const float *was = before.Tensor(p), *is = after->Tensor(p);
    EXPECT_TRUE(std::equal(was, was + parameters[p].size(), is)) << parameters[p].name;
  }
  ASSERT_EQ(after->provenance().size(), to.provenance().size() + 2);
  EXPECT_EQ(after->provenance().back().description, "adapted");
  // If the base does not say what it learned from, nobody will know.
  contents.provenance = {};
  ASSERT_TRUE(WriteModel(folder_ / "unknown.wisp", contents).ok());
  const std::string of_unknown = folder_ / "c.wisp";
  ASSERT_TRUE(
      RebaseAdapter({.from = base_path_, .adapter = folder_ / "unknown.wisp", .to = new_base_, .output = of_unknown})
          .ok());
  EXPECT_EQ(ModelFile::OpenWithAdapter(new_base_, of_unknown)->provenance().back().dataset, kUnknownDataset);
  // The adapter belongs to another base, or the target has another shape.
  EXPECT_FALSE(RebaseAdapter({.from = new_base_, .adapter = adapter, .to = base_path_, .output = moved}).ok());
  ModelContents deeper = GetContents(to, room);
  const Architecture wide = UniformArchitecture{
      .num_items = kItems, .max_length = 8, .width = 8, .num_heads = 1, .num_blocks = 1, .inner_width = 16};
  const std::vector<float> other(FlatSize(ListParameters(wide)), 0.1f);
  deeper.architecture = wide;
  deeper.item_keys.resize(kItems);
  deeper.weights = other;
  ASSERT_TRUE(WriteModel(folder_ / "wide.wisp", deeper).ok());
  EXPECT_EQ(
      RebaseAdapter({.from = base_path_, .adapter = adapter, .to = folder_ / "wide.wisp", .output = moved}).code(),
      StatusCode::kInvalidArgument);
}

// Re-Attention's variances of an item move with the item.
TEST_F(RebaseTest, CarriesVariancesOfItemsByTheirKeys) {
  WISP_NEEDS(kHasReAttention);
  const ModelFile plain = *ModelFile::Open(base_path_);
  std::vector<float> room;
  ModelContents contents = GetContents(plain, room);
  contents.architecture.re_attention = ReAttention::kOn;
  const std::vector<ParameterSpec> parameters = ListParameters(contents.architecture);
  std::vector<float> weights(FlatSize(parameters), 0.5f);
  std::copy(contents.weights.begin(), contents.weights.end(), weights.begin());
  contents.weights = weights;
  ASSERT_TRUE(WriteModel(base_path_, contents).ok());
  MakeNewBase();
  Plan(Settings());
  MustRun();
  ASSERT_TRUE(Rebase(MakeRebaseOptions())->carried);
  const ModelFile mine = *ModelFile::Open(base_path_), to = *ModelFile::Open(new_base_),
                  start = *ModelFile::Open(files_.start);
  const size_t variance = RequireParameter(parameters, ParameterRole::kItemVariance);
  const float first = start.Tensor(variance)[*start.FindItem(Key(0))];
  EXPECT_NE(first, to.Tensor(variance)[*to.FindItem(Key(0))]) << "training has noise";
  EXPECT_EQ(start.Tensor(variance)[*start.FindItem("new a")], to.Tensor(variance)[*to.FindItem("new a")]);
  EXPECT_GT(first, 0);
  EXPECT_EQ(mine.num_items() + 2, start.num_items());
}

}  // namespace
}  // namespace wisp::rebase_test
