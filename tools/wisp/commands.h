// The commands of the program `wisp`: their arguments, and the functions that run them. The command line itself is in
// command_line.cc and options_*.cc.
#ifndef WISP_TOOLS_WISP_COMMANDS_H_
#define WISP_TOOLS_WISP_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "tools/wisp/given_fields.h"

namespace wisp {
enum class Backend;
}

namespace wisp::tools {

enum class OutputFormat { kText, kJson };

// The file of the events, and how to read it.
struct DataArguments {
  std::string path, format = "auto", table = "events", user_column, item_column, time_column;
};

struct SynthArguments {
  std::string out, population = "public";
  uint64_t seed = 1;
  uint32_t users = 2000, min_events = 12, max_events = 40, repeats = 40;
};

struct NewArguments {
  std::string recipe, out, item_names, item_features, catalogue;
  uint32_t num_items = 0;
  DataArguments data;  // if a path is given, items come from it, unless they come from item_features
};

// Where a copy of the ledger's position is kept. Every command with --ledger takes it.
struct AnchorArguments {
  std::string file;
  bool begin = false;
};

// The device on which a run computes, for every command that takes --device.
struct DeviceArguments {
  std::string name = "cpu", module, arithmetic = "float32";
  uint64_t megabytes = 0;  // 10^6 bytes; 0: no limit
};

struct TrainArguments {
  GivenFields given;  // in place of the recipe's
  std::string recipe, model, adapter, out, item_names, item_features, ledger, checkpoint, privacy_json, dataset,
      allow_large_delta;
  std::string texts, tokenizer;      // for a decoder that learns texts
  std::string labelled, vocabulary;  // for a classifier
  std::string trains_until;          // for events
  std::optional<uint32_t> lora;      // for a decoder or a classifier
  AnchorArguments anchor;
  DeviceArguments device;
  DataArguments data;
  std::optional<double> budget;
  std::optional<uint64_t> reproducible_noise_seed, checkpoint_every;
  std::optional<uint32_t> planned_runs;
  std::vector<std::string> public_datasets;
  bool re_attention = false, other_data = false;
  uint32_t threads = 0;
};

struct TuneArguments {
  TrainArguments train;
  std::vector<std::string> values;  // each "key=value,value"
  std::optional<uint32_t> expected_runs;
  bool is_public = false;
  std::string out_recipe;
};

struct EvaluateArguments {
  std::string model, adapter, split = "test", backend = "simd";
  std::string texts, record = "line";               // for a decoder, in place of data
  std::string labelled, text_column, label_column;  // for a classifier, in place of data
  std::optional<uint32_t> max_length;
  DataArguments data;
  // Decides how events become records, each of which is tested by its own last event. Empty: user.
  std::optional<std::string> unit;
  int64_t session_gap = 0;
  uint32_t times_per_second = 1;
  uint32_t threads = 0;
  // Tests the first event of each record after this moment, in place of the last ones.
  std::string trains_until;
  bool baselines = false;
};

// Arguments of `wisp recommend --private` and `wisp generate --private`.
struct PrivateSampleArguments {
  bool on = false;
  std::string ledger, mode, base, dataset, support = "all", allow_large_delta, uncharged_tuning;
  std::optional<std::string> unit;
  std::optional<double> lambda, clip, epsilon_per_sample, epsilon, delta, budget;
  std::optional<uint64_t> planned_samples, num_records_public;
  bool planned_of_one = false;  // nobody planned a number, so it is that of this text alone
  double temperature = 1, top_p = 1;
  uint32_t top_k = 0, block = 0;
  std::vector<std::string> public_datasets;
  bool other_data = false;
  AnchorArguments anchor;
};

struct RecommendArguments {
  std::string model, adapter, user, backend = "simd";
  std::vector<std::string> history, candidates;  // each element is one key, or several with commas between
  DataArguments data;
  DeviceArguments device;
  uint32_t count = 10, threads = 1;
  bool allow_seen = false, exclude_seen = false, cold_start = false;
  PrivateSampleArguments priv;
};

struct ConvertArguments {
  std::string in, out;
  // For a wisp model. family: of Hugging Face; empty: the recommender's own names.
  std::string adapter, family;
  bool f16 = false, int8 = false, int4 = false, panels = false;
  // For other models.
  std::string config, item_keys, item_names, dataset;  // dataset: empty if unknown
  // For a folder of Hugging Face. max_length 0: all positions.
  std::string report, pooling = "folder";
  uint32_t max_length = 0;
  bool no_tokenizer = false;  // for a folder
  bool allow_seen = false;    // for a recommender: ModelFile::lists
};

struct EmbedArguments {
  std::string model, adapter, input;
  std::vector<std::string> texts, ids;  // each element of `ids` is one text: token numbers with commas between
  std::optional<uint32_t> max_length;
  uint32_t threads = 1;
  DeviceArguments device;
};

struct InspectArguments {
  std::string model;
  bool verify = false;
  // Arguments of --memory.
  bool memory = false;
  DeviceArguments device;
  std::string method, recipe, backend, adapter, trains;  // no backend: simd
  std::optional<uint32_t> rank, rows, expected_batch, records, num_records_public, lora, max_length;
  std::optional<double> noise_multiplier;
  bool recompute_blocks = false;
  uint32_t threads = 0;
};

struct PrivacyArguments {
  std::string ledger, statement;
  std::vector<std::string> models;
  bool other_data = false;
  AnchorArguments anchor;
  double delta = 1e-5;
  std::optional<double> at_delta;  // for the statement
  double noise_multiplier = 0, sampling_probability = 0;
  std::optional<double> epsilon;
  uint64_t steps = 0;
  // Arguments of `wisp privacy decoding`.
  uint64_t support = 0;
  double lambda = 0, clip = 0, temperature = 1;
  std::optional<double> mixing_floor;
  uint32_t contexts = 0;
  bool calibrate = false;
};

struct ClassifyArguments {
  std::string model, adapter, input;
  std::vector<std::string> texts;
  std::optional<uint32_t> max_length;
  uint32_t threads = 1;
  DeviceArguments device;
};

struct GenerateArguments {
  std::string model, adapter, backend = "simd", cache = "f32";
  std::optional<std::string> prompt;
  std::string prompts;  // a file with a prompt on each line, in place of `prompt`
  std::vector<std::string> stop;
  uint32_t max_new_tokens = 128, top_k = 0, threads = 1, at_once = 16;
  double temperature = 1, top_p = 1, min_p = 0, repetition_penalty = 1;
  std::optional<uint64_t> seed;
  bool verify = false;
  // Arguments of --private.
  PrivateSampleArguments priv = {.block = 16};
  std::string private_texts, context_before, context_after = "\n", public_text;
  uint32_t contexts = 0;
  double mixing_floor = 0.1;
};

// The deployment that `wisp plan` and `wisp personalise` act on.
struct DeploymentArguments {
  std::string model, ledger, dataset;
  AnchorArguments anchor;
  DataArguments data;
  uint32_t threads = 0;
};

struct PlanArguments {
  DeploymentArguments deployment;
  std::string duration, every, evaluation = "private", trains_until;
  std::optional<std::string> unit;
  std::optional<double> epsilon, delta, learning_rate;
  std::optional<uint32_t> num_records_public, evaluations, expected_batch;
  std::optional<uint64_t> steps;
  uint32_t num_records_at_start = 0, typical_events = 0, times_per_second = 1;
  int64_t session_gap = 0;
  bool dry_run = false, left = false, change = false, replace = false;
};

struct PersonaliseArguments {
  DeploymentArguments deployment;
  std::string out;
  DeviceArguments device;
  bool other_data = false, start_over = false, early = false;
};

struct ReportArguments {
  std::string ledger, html, model, out;
  AnchorArguments anchor;
  DataArguments data;
  uint32_t threads = 0;
};

struct RebaseArguments {
  std::string from, to, out, ledger, adapter;
  bool start_over = false;
};

struct CatalogueArguments {
  std::string model, items, item_features, out;
};

// Arguments of `wisp log`.
struct LogArguments {
  std::string path, user, after, before, copy;
  DataArguments data;  // for import
  std::optional<std::string> unit;
  int64_t session_gap = 0;
  uint32_t times_per_second = 1, count = 20;
  uint64_t newest_per_user = 0;
};

// Arguments of `wisp node`.
struct NodeArguments {
  std::string superlink, policy, data, model, ledger, output, key, ca, records_ledger, dataset;
  std::optional<std::string> unit;
  int64_t session_gap = 0;
  uint32_t times_per_second = 1;
  bool once = false;
  double seconds = 0, ask_seconds = 30;
};

// Arguments of `wisp fleet plan`.
struct FleetPlanArguments {
  std::string name = "fleet", model, part = "all", method = "gradient", server, out, policy;
  uint64_t devices = 0, num_weights = 331520;  // the weights of a small recommender
  uint32_t rounds = 0, takes_part = 1, evaluations = 0, local_steps = 0, bits = 8, round_seconds = 3600;
  uint32_t adapter_rank = 8;
  double evaluators = 0, local_learning_rate = 0, learning_rate = 0.001, clipping_norm = 1;
  std::optional<double> epsilon, delta, readers_epsilon;
  double records_epsilon = 0, records_delta = 0;
  uint32_t num_records_public = 0, batch = 0;
};

Status Synth(const SynthArguments& arguments, OutputFormat format);
Status New(const NewArguments& arguments, OutputFormat format);
Status Train(const TrainArguments& arguments, OutputFormat format);
Status Tune(const TuneArguments& arguments, OutputFormat format);
Status Evaluate(const EvaluateArguments& arguments, OutputFormat format);
Status EvaluateTexts(const EvaluateArguments& arguments, OutputFormat format);  // for `wisp evaluate --texts`
Status Recommend(const RecommendArguments& arguments, OutputFormat format);
Status Convert(const ConvertArguments& arguments, OutputFormat format);
Status GenerateCommand(const GenerateArguments& arguments, OutputFormat format);
Status Embed(const EmbedArguments& arguments, OutputFormat format);
Status Inspect(const InspectArguments& arguments, OutputFormat format);
Status InspectMemory(const InspectArguments& arguments, OutputFormat format);  // for `wisp inspect --memory`
// Parses --backend: simd, int8 or xnnpack.
Result<Backend> BackendNamed(const std::string& name);
Status PrivacyEpsilon(const PrivacyArguments& arguments, OutputFormat format);
Status PrivacyCalibrate(const PrivacyArguments& arguments, OutputFormat format);
Status PrivacyDecoding(const PrivacyArguments& arguments, OutputFormat format);
Status PrivacyLedger(const PrivacyArguments& arguments, OutputFormat format);
Status PrivacyCheck(const PrivacyArguments& arguments, OutputFormat format);
Status TrainLabelled(const TrainArguments& arguments, OutputFormat format);        // for `wisp train --labelled`
Status EvaluateLabelled(const EvaluateArguments& arguments, OutputFormat format);  // for `wisp evaluate --labelled`
Status Classify(const ClassifyArguments& arguments, OutputFormat format);
Status PlanCommand(const PlanArguments& arguments, OutputFormat format);
Status Personalise(const PersonaliseArguments& arguments, OutputFormat format);
Status Report(const ReportArguments& arguments, OutputFormat format);
Status NodeCommand(const NodeArguments& arguments, OutputFormat format);
Status FleetPlanCommand(const FleetPlanArguments& arguments, OutputFormat format);
Status RebaseCommand(const RebaseArguments& arguments, OutputFormat format);
Status CatalogueAdd(const CatalogueArguments& arguments, OutputFormat format);
Status CatalogueRetire(const CatalogueArguments& arguments, OutputFormat format);
Status CatalogueRestore(const CatalogueArguments& arguments, OutputFormat format);
Status CatalogueList(const CatalogueArguments& arguments, OutputFormat format);
Status LogCount(const LogArguments& arguments, OutputFormat format);
Status LogList(const LogArguments& arguments, OutputFormat format);
Status LogErase(const LogArguments& arguments, OutputFormat format);
Status LogPrune(const LogArguments& arguments, OutputFormat format);
Status LogBackup(const LogArguments& arguments, OutputFormat format);
Status LogRestore(const LogArguments& arguments, OutputFormat format);
Status LogImport(const LogArguments& arguments, OutputFormat format);
Status LogExport(const LogArguments& arguments, OutputFormat format);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_COMMANDS_H_
