// The commands of the program `wisp-lab`: their arguments, and the functions that run them.
#ifndef WISP_TOOLS_LAB_COMMANDS_H_
#define WISP_TOOLS_LAB_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/wisp/commands.h"

namespace wisp::tools {

struct AuditArguments {
  std::string recipe, model, ledger, dataset, method, through = "release";
  AnchorArguments anchor;
  DataArguments data;
  std::optional<double> noise_multiplier, epsilon, clipping_norm, claim, epochs, run_delta;
  std::optional<uint64_t> steps, reproducible_noise_seed;
  std::optional<uint32_t> num_records_public, expected_batch;
  double delta = 1e-5, confidence = 0.95, sampling_probability = 1;
  uint64_t observations = 2000;
  uint32_t canaries = 500, users = 400, threads = 0;
  // Arguments of the audit of decoding.
  std::string mode = "mixed", mixing;
  double lambda = 0.1, clip = 1, temperature = 1;
  uint32_t items = 4, samples = 1;
};

struct BenchArguments {
  std::string what = "both", model, tensors, recipe, cache = "f32";
  std::vector<std::string> given = {};  // options that the command line names, except --what
  bool all = false;                     // everything that is measured of a machine
  DeviceArguments device;
  uint32_t threads = 0, items = 3416, length = 200, inner_width = 256, repeats = 20, batch = 64;
};

struct ReproduceArguments {
  std::string table, out, cell, ledger;
  std::string model, base;  // for decode cells
  AnchorArguments anchor;
  std::vector<std::string> public_datasets;
  DataArguments data;
  std::optional<uint64_t> seed;
  bool list = false, skip_done = false;
  uint32_t threads = 0;
};

struct FieldsArguments {};

struct GoalsArguments {
  std::string figures;  // a folder
};

struct PerplexityArguments {
  std::string model, adapter, base, texts, record = "line";
  std::vector<double> epsilons = {1, 2, 4, 8, 16, 32, 64};
  uint64_t samples = 100;  // tokens that each epsilon pays for
  double delta = 1e-6, temperature = 1;
  uint32_t max_length = 0;  // tokens that are read of each text; 0: the positions of the models
};

Status AuditStepCommand(const AuditArguments& arguments, OutputFormat format);
Status AuditRunCommand(const AuditArguments& arguments, OutputFormat format);
Status AuditMembershipCommand(const AuditArguments& arguments, OutputFormat format);
Status AuditDecodingCommand(const AuditArguments& arguments, OutputFormat format);
Status Bench(const BenchArguments& arguments, OutputFormat format);
Status Reproduce(const ReproduceArguments& arguments, OutputFormat format);
Status ListFields(const FieldsArguments& arguments, OutputFormat format);
Status PrintGoals(const GoalsArguments& arguments, OutputFormat format);
// Computes the perplexity of texts under the laws of Majmudar et al. 2022, figure 2 (mixed with the uniform), and under
// the anchored one, by pure composition and by PLD. Beside them stand the model and the base alone. Not private: local
// only.
Status MeasurePerplexity(const PerplexityArguments& arguments, OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_COMMANDS_H_
