// Helpers by which the files options_*.cc declare options and choose a command. Only these, known_words.h,
// option_faults.h and program_commands.h know CLI11.
//
//   chosen.OnCall(app.add_subcommand("synth", "Make a log."), Synth, arguments);     // after parsing: chosen.action()
#ifndef WISP_TOOLS_WISP_OPTIONS_H_
#define WISP_TOOLS_WISP_OPTIONS_H_

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/threads.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/option_faults.h"

namespace wisp::tools {

// The command to run, which parsing sets. This object must not move, nor the arguments given to OnCall.
struct Chosen {
  bool json = false;
  std::function<Status()> action;

  template <class Arguments>
  void OnCall(CLI::App* command, Status (*run)(const Arguments&, OutputFormat), const Arguments& arguments) {
    command->add_flag("--json", json, "Print the result as JSON");
    // CLI11 runs a command's callback after those of its sub-commands, so the innermost one decides.
    command->callback([this, command, run, &arguments] {
      if (!command->get_subcommands().empty()) return;
      action = [this, run, &arguments] { return run(arguments, json ? OutputFormat::kJson : OutputFormat::kText); };
    });
  }
};

template <class T>
CLI::Option* AddOptional(CLI::App* app, const std::string& name, std::optional<T>& value, const std::string& help) {
  return app->add_option(name, value, help);
}

// Adds an option whose value may be empty, which differs from a missing value. The parser's own optional treats both
// alike.
CLI::Option* AddOptional(CLI::App* app, const std::string& name, std::optional<std::string>& value,
                         const std::string& help);

// Adds an option that may be given several times, each time with one value, which is taken literally. The parser's own
// lists read "[a, b]" as two values and "[]" as none, and then also take the words that follow.
CLI::Option* AddRepeated(CLI::App* app, const std::string& name, std::vector<std::string>& values,
                         const std::string& help);
CLI::Option* AddRepeated(CLI::App* app, const std::string& name, std::vector<double>& values, const std::string& help);

// Adds --private and the options that all private sampling shares. Returns --private.
CLI::Option* AddPrivateSamples(CLI::App* app, PrivateSampleArguments& arguments, const char* help_of_private);

// Call it after --ledger was added.
inline void AddAnchor(CLI::App* app, AnchorArguments& anchor) {
  CLI::Option* ledger = app->get_option("--ledger");
  CLI::Option* file =
      app->add_option("--anchor", anchor.file,
                      "File that records the position of the ledger, so that an old copy of the ledger is "
                      "refused. Keep it where backups do not restore it, and give it each time")
          ->needs(ledger);
  app->add_flag("--begin-anchor", anchor.begin,
                "The ledger has charges and no anchor yet, or lost it: start the anchor now")
      ->needs(file);
}

// `needs` is an option without which these options are refused; it may be null.
inline void AddDevice(CLI::App* app, DeviceArguments& device, CLI::Option* needs = nullptr) {
  CLI::Option* name = app->add_option("--device", device.name, "cpu, or cuda: an NVIDIA GPU (docs/cuda.md)")
                          ->check(OneOf({"cpu", "cuda"}))
                          ->capture_default_str();
  if (needs != nullptr) name->needs(needs);
  app->add_option(
         "--device-arithmetic", device.arithmetic,
         "Number format of the device's matrix products: float32, tf32; to recommend and classify also float16,\n"
         "bfloat16 and int8, which are faster and slightly less exact (docs/cuda.md)")
      ->check(OneOf({"float32", "tf32", "float16", "bfloat16", "int8"}))
      ->capture_default_str()
      ->needs(name);
  app->add_option("--device-memory", device.megabytes,
                  "Most of the device's memory to take, in MB of 10^6 bytes; 0: no limit")
      ->check(Within(uint64_t{0}, uint64_t{1} << 40))
      ->needs(name);
  app->add_option("--device-module", device.module,
                  "File of the device's kernels; default: libwisp_cuda.so beside the program, in the lib beside its\n"
                  "bin, or where the system looks")
      ->needs(name);
}

inline void AddPlannedRuns(CLI::App* app, std::optional<uint32_t>& planned_runs) {
  AddOptional(app, "--planned-runs", planned_runs,
              "Number of runs like this one on this ledger, fixed before the first. --epsilon is then the total of\n"
              "all of them. Give it with each of them. Default: 1");
}

inline CLI::Validator ThreadsRange() { return Within(0, static_cast<int>(kMaxThreads)); }

inline void AddData(CLI::App* app, DataArguments& data, bool required) {
  auto* path =
      app->add_option("--data", data.path, "File of events: SQLite, CSV, TSV, .inter, ratings.dat or text lines");
  if (required) path->required();
  app->add_option("--format", data.format, "auto, user-item, ratings-dat, csv, tsv, inter or sqlite")
      ->capture_default_str();
  app->add_option("--table", data.table, "Table of a SQLite file")->capture_default_str();
  app->add_option("--user-column", data.user_column, "Name of the column of users");
  app->add_option("--item-column", data.item_column, "Name of the column of items");
  app->add_option("--time-column", data.time_column, "Name of the column of times");
}

struct ExchangeArguments {
  ConvertArguments convert;
  EmbedArguments embed;
};

struct DeploymentCommandArguments {
  PlanArguments plan;
  PersonaliseArguments personalise;
  ReportArguments report;
  RebaseArguments rebase;
  CatalogueArguments catalogue;
  LogArguments log;
};

struct FleetCommandArguments {
  FleetPlanArguments plan;
  NodeArguments node;
};

// Each function adds its command with all options to `app`; parsing fills `arguments`.
void AddTune(CLI::App& app, Chosen& chosen, TuneArguments& arguments);
void AddRecommend(CLI::App& app, Chosen& chosen, RecommendArguments& arguments);
void AddClassify(CLI::App& app, Chosen& chosen, ClassifyArguments& arguments);
// Adds convert and embed.
void AddExchange(CLI::App& app, Chosen& chosen, ExchangeArguments& arguments);
// Adds plan, personalise, report, catalogue and log.
void AddDeployment(CLI::App& app, Chosen& chosen, DeploymentCommandArguments& arguments);
// Adds fleet and node.
void AddFleet(CLI::App& app, Chosen& chosen, FleetCommandArguments& arguments);

// Defined in options_classify.cc. They add the options for labelled texts to an existing command.
void AddTrainLabelled(CLI::App* train, TrainArguments& arguments);
void AddEvaluateLabelled(CLI::App* evaluate, EvaluateArguments& arguments);

// Defined in options_text.cc. The first two add the options for texts to an existing command.
void AddTrainTexts(CLI::App* train, TrainArguments& arguments);
// Adds --unit, --session-gap and --times-per-second; `help` is that of --unit.
void AddUnit(CLI::App* command, std::optional<std::string>& unit, int64_t& session_gap, uint32_t& times_per_second,
             const char* help);
void AddEvaluateTexts(CLI::App* evaluate, EvaluateArguments& arguments);
void AddGenerate(CLI::App& app, Chosen& chosen, GenerateArguments& arguments);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OPTIONS_H_
