// Memory is known before there is a session or a trainer, and what is said is what is allocated.
#include "tests/unit/counting_allocator.h"

#include <gtest/gtest.h>

#include "runtime/inference/session.h"
#include "runtime/train/trainer.h"
#include "tests/unit/gradient_test_util.h"
#include "tests/unit/train_test_util.h"

namespace wisp {
namespace {

using testing::allocated_bytes;

std::vector<Architecture> Architectures() {
  std::vector<Architecture> all = testing::SmallArchitectures();
  all.push_back({.num_items = 3416, .max_length = 200, .width = 64, .num_heads = 1, .num_blocks = 2, .inner_width = 256});
  all.push_back({.num_items = 1001, .max_length = 33, .width = 24, .num_heads = 3, .num_blocks = 1, .inner_width = 40,
                 .output_table = OutputTable::kUntied, .output_bias = OutputBias::kTrained});
  all.push_back({.num_items = 9, .max_length = 6, .width = 8, .num_blocks = 0, .inner_width = 8});
  return all;
}

// What is not planned for: layers, names, vectors of small things, and those that are gone again. It does not grow with any
// size: 25 tensors took 23 KB in a session, 48 KB in a trainer and 11 KB for each of its workers but the first (g++ 12.2, 2026-11-21).
size_t SessionObjects(const Architecture& a) { return ParametersOf(a).size() * 1024 + 4096; }
size_t TrainerObjects(const Architecture& a, size_t workers) { return ParametersOf(a).size() * 2048 + workers * 8192 + 4096; }

void ExpectEqual(const TrainingMemory& a, const TrainingMemory& b) {
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.packed_weights, b.packed_weights);
  EXPECT_EQ(a.optimizer_state, b.optimizer_state);
  EXPECT_EQ(a.gradient_sums, b.gradient_sums);
  EXPECT_EQ(a.negatives, b.negatives);
  EXPECT_EQ(a.activations, b.activations);
  EXPECT_EQ(a.record_gradients, b.record_gradients);
  EXPECT_EQ(a.lists, b.lists);
}

// `planned` is all that was allocated, but for `objects`.
void ExpectAllocated(size_t planned, size_t allocated, size_t objects) {
  EXPECT_GE(allocated, planned);
  EXPECT_LE(allocated, planned + objects);
}

TEST(Memory, SessionHoldsWhatIsPlanned) {
  const test::TemporaryFolder folder;
  for (const Architecture& a : Architectures()) {
    const std::vector<float> weights = testing::RandomWeights(a, 5);
    ASSERT_TRUE(WriteModel(folder / "m", {.architecture = a, .weights = weights}).ok());
    ModelFile file = *ModelFile::Open(folder / "m");
    size_t before = allocated_bytes;
    const InferenceMemory planned = *Session::PlanMemory(a);
    EXPECT_LE(allocated_bytes - before, SessionObjects(a)) << "planning allocates what it plans";
    before = allocated_bytes;
    const auto session = *Session::Create(std::move(file));
    ExpectAllocated(planned.total(), allocated_bytes - before, SessionObjects(a));
    EXPECT_EQ(session->planned_bytes(), planned.total());
    EXPECT_EQ(session->memory().activations, planned.activations);
    EXPECT_EQ(session->memory().packed_weights, planned.packed_weights);
    EXPECT_EQ(session->memory().scores, planned.scores);
    std::vector<float> scores(a.num_items);
    ASSERT_TRUE(session->Score(std::vector<int32_t>{1, 2}, scores).ok());
    EXPECT_EQ(session->planned_bytes(), planned.total());
  }
}

// Opening maps the file: nothing of the size of the weights is allocated, and tensors lie in the mapping.
TEST(Memory, OpeningAModelCopiesNoWeights) {
  const test::TemporaryFolder folder;
  const Architecture a = {.num_items = 20000, .max_length = 20, .width = 64, .num_heads = 1, .num_blocks = 1, .inner_width = 64};
  ASSERT_TRUE(WriteModel(folder / "m", {.architecture = a, .weights = testing::RandomWeights(a, 5)}).ok());
  const size_t before = allocated_bytes;
  const auto file = ModelFile::Open(folder / "m");
  ASSERT_TRUE(file.ok());
  EXPECT_LE(allocated_bytes - before, size_t{100} << 10);  // the weights are 5 MB
  EXPECT_EQ(file->Tensor(0), file->flat_weights().data());
}

TEST(Memory, TrainerHoldsWhatIsPlanned) {
  const test::TemporaryFolder folder;
  auto ledger = *privacy::Ledger::Open(folder / "l", {.dataset = "ring"});
  for (const Architecture& a : Architectures()) {
    const testing::Ring ring(a.num_items, 1000, std::min<size_t>(a.max_length, 5));
    const std::vector<float> weights = testing::StartWeights(a, {});
    for (const size_t threads : {1, 3}) {
      for (const NormForm form : {NormForm::kAutomatic, NormForm::kGram}) {
        for (const bool is_private : {false, true}) {
          TrainingOptions o{.num_steps = 2, .expected_batch = 3, .num_threads = threads};
          o.ema_decay = threads == 3 ? 0.9f : 0.0f;
          if (form == NormForm::kGram) o.optimizer = {.kind = OptimizerKind::kSgd, .momentum = is_private ? 0.9f : 0.0f};
          o.privacy = {.noise_multiplier = 1, .norm_form = form, .ledger = &ledger, .run = "r", .reproducible_seed = 1};
          if (is_private) {
            o.method = Method::kPhantom;
            o.sampling = Sampling::kPoisson;
            o.num_records_public = 1000;
          }
          size_t before = allocated_bytes;
          const auto planned = PlanTrainingMemory(a, ring.records.size(), o);
          ASSERT_TRUE(planned.ok()) << planned.status().message();
          EXPECT_LE(allocated_bytes - before, TrainerObjects(a, threads)) << "planning allocates what it plans";
          before = allocated_bytes;
          const auto trainer = Trainer::Create(a, weights, ring.records, o);
          ASSERT_TRUE(trainer.ok()) << trainer.status().message();
          ExpectAllocated(planned->total(), allocated_bytes - before, TrainerObjects(a, threads));
          ExpectEqual(*planned, (*trainer)->memory());
          ASSERT_TRUE((*trainer)->Step().ok());
          EXPECT_EQ((*trainer)->planned_bytes(), planned->total());
        }
      }
    }
  }
}

// Methods that are not planned ahead say so, and their trainers still count everything.
TEST(Memory, OtherMethodsAreCountedByTheTrainer) {
  const test::TemporaryFolder folder;
  auto ledger = *privacy::Ledger::Open(folder / "l", {.dataset = "ring"});
  const Architecture a{.num_items = 3000, .max_length = 20, .width = 32, .num_heads = 2, .num_blocks = 1, .inner_width = 32};
  const testing::Ring ring(a.num_items, 1000, 5);
  std::vector<int32_t> rows(500);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(3 * i);
  for (const Method method : {Method::kRgp, Method::kFest}) {
    TrainingOptions o{.method = method, .sampling = Sampling::kPoisson, .num_steps = 2, .expected_batch = 3, .num_records_public = 1000, .num_threads = 2};
    o.privacy = {.noise_multiplier = 1, .ledger = &ledger, .run = "r", .reproducible_seed = 1};
    o.sparse.rows = rows;
    EXPECT_EQ(PlanTrainingMemory(a, 1000, o).status().code(), StatusCode::kUnsupported);
    const std::vector<float> weights = testing::StartWeights(a, {});
    const size_t before = allocated_bytes;
    const auto trainer = Trainer::Create(a, weights, ring.records, o);
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    ExpectAllocated((*trainer)->planned_bytes(), allocated_bytes - before, 2 * TrainerObjects(a, 2));
    for (int step = 0; step < 2; ++step) ASSERT_TRUE((*trainer)->Step().ok());
    ExpectAllocated((*trainer)->planned_bytes(), allocated_bytes - before, size_t{4} << 20);  // never less than it holds
  }
}

}  // namespace
}  // namespace wisp
