// The fixed runs whose instructions tests/gates.sh counts. Each call does one run, and only the measured part is
// counted:
//
//   valgrind --tool=callgrind --instr-atstart=no gate_runs RUN
//   qemu-aarch64 -plugin gate_counter.so gate_runs RUN               tests/gate_counter.c
//   gate_runs            four lines: names of the runs; compiler and C library; instruction set of the kernels; values
//                        for WISP_TARGETS (kernels/highway/)
//
// Seeds and sizes are fixed, and there is one thread. Instructions are counted instead of time, because they are the
// same on a busy machine.
#include <gnu/libc-version.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#include "runtime/inference/session.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/initialise.h"
#include "runtime/train/trainer.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp {
namespace {

// Returns the recipe ml-1m-wide, with a smaller catalogue for training.
Architecture Ml1m(uint32_t num_items, uint32_t max_length) {
  return UniformArchitecture{.num_items = num_items,
                             .max_length = max_length,
                             .width = 64,
                             .num_heads = 1,
                             .num_blocks = 2,
                             .inner_width = 256,
                             .embedding_scale = 8};
}

std::vector<float> StartWeights(const Architecture& a) {
  std::vector<float> weights(FlatSize(ListParameters(a)));
  auto random = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kInitialisation);
  InitialiseWeights(a, {}, random, weights);
  return weights;
}

// Returns `length` items of a walk that visits all of the catalogue.
std::vector<int32_t> Walk(uint32_t num_items, size_t first, size_t length) {
  std::vector<int32_t> items;
  for (size_t t = 0; t < length; ++t) items.push_back(static_cast<int32_t>((first + t * 97) % num_items));
  return items;
}

int Failed(const Status& status) {
  std::fprintf(stderr, "gate_runs: %s\n", status.message().c_str());
  return 1;
}

struct Inference {
  test::TemporaryFolder folder;
  Architecture architecture = Ml1m(3416, 200);
  std::string path = folder / "m.wisp";
  Status written = WriteModel(path, {.architecture = architecture, .weights = StartWeights(architecture)});
};

int Open() {
  const Inference model;
  if (!model.written.ok()) return Failed(model.written);
  CALLGRIND_START_INSTRUMENTATION;
  const auto session = Session::Open(model.path);
  CALLGRIND_STOP_INSTRUMENTATION;
  return session.ok() ? 0 : Failed(session.status());
}

// The best 10 after 200 items: all of them new, or only the last one.
int Recommend(bool appended, Backend backend = Backend::kSimd) {
  const Inference model;
  const auto session = Session::Open(model.path, backend);
  if (!session.ok()) return Failed(session.status());
  const std::vector<int32_t> history = Walk(model.architecture.num_items, 5, 200);
  if (appended && !(*session)->Recommend(std::span(history).first(199), {}).ok()) return 1;
  CALLGRIND_START_INSTRUMENTATION;
  const auto top = (*session)->Recommend(history, {});
  CALLGRIND_STOP_INSTRUMENTATION;
  return top.ok() && top->size() == 10 ? 0 : 1;
}

// Runs the third step: 4 records of 50 positions, 500 items. Shuffled batches have a fixed size; the seed decides a
// Poisson batch.
int Step(Method method) {
  const Architecture a = Ml1m(500, 50);
  const test::TemporaryFolder folder;
  auto ledger = privacy::Ledger::Open(folder / "l", {.dataset = "gate", .record = privacy::RecordSpec::OfEvents({})});
  if (!ledger.ok()) return Failed(ledger.status());
  std::vector<std::vector<int32_t>> users;
  for (size_t u = 0; u < 16; ++u) users.push_back(Walk(a.num_items, 7 * u, a.max_length + 1));
  std::vector<Record> records;
  for (const auto& items : users)
    records.push_back({std::span(items).first(a.max_length), std::span(items).last(a.max_length)});
  TrainingOptions o{.method = method,
                    .num_steps = 3,
                    .expected_batch = 4,
                    .num_records_public = 16,
                    .dropout = {0.2f, 0.2f, 0.2f},
                    .num_threads = 1};
  o.privacy = {.noise_multiplier = 1, .ledger = &*ledger, .run = "gate", .steps_per_charge = 3, .reproducible_seed = 4};
  if (method != Method::kOrdinary) o.sampling = Sampling::kPoisson;
  const auto trainer = Trainer::Create(a, StartWeights(a), records, o);
  if (!trainer.ok()) return Failed(trainer.status());
  for (int i = 0; i < 2; ++i) {
    if (const auto step = (*trainer)->Step(); !step.ok()) return Failed(step.status());
  }
  CALLGRIND_START_INSTRUMENTATION;
  const auto step = (*trainer)->Step();
  CALLGRIND_STOP_INSTRUMENTATION;
  if (!step.ok()) return Failed(step.status());
  std::printf("records %zu\n", step->num_records);
  return 0;
}

}  // namespace

int Run(const std::string& name) {
  if (name == "model_open") return Open();
  if (name == "recommend_after_200") return Recommend(false);
  if (name == "recommend_after_appended_event") return Recommend(true);
  if (name == "recommend_int8_after_200") return Recommend(false, Backend::kInt8);
  if (name == "ordinary_step") return Step(Method::kOrdinary);
  if (name == "private_step") return Step(Method::kPhantom);
  std::fprintf(stderr, "gate_runs: there is no run '%s'\n", name.c_str());
  return 2;
}

}  // namespace wisp

int main(int argc, char** argv) {
  if (argc == 2) return wisp::Run(argv[1]);
  std::printf(
      "model_open recommend_after_200 recommend_after_appended_event recommend_int8_after_200 ordinary_step "
      "private_step\n");
#ifdef __clang__
  std::printf("clang %s, glibc %s\n", __clang_version__, gnu_get_libc_version());
#else
  std::printf("g++ %s, glibc %s\n", __VERSION__, gnu_get_libc_version());
#endif
  const auto* integers = wisp::kernels::Int8Ops();
  const bool dots = integers != nullptr && std::strstr(integers->name, "Arm dot product") != nullptr;
  std::printf("%s%s\n", wisp::kernels::BestOps().name, dots ? " with dot products" : "");
  for (const auto* ops : wisp::kernels::AllOps()) {
    if (ops == &wisp::kernels::ReferenceOps()) continue;
    // Without VNNI this is AVX2 again.
    if (std::string("AVX2") == ops->name) std::printf("AVX2+VNNI ");
    std::printf("%s ", ops->name);
  }
  std::printf("\n");
  return 0;
}
