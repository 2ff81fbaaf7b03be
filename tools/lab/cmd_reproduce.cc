// Implements `wisp-lab reproduce`: runs the cells of a paper's table one after the other, by training or measuring, and
// records each run as a line of JSON.
//
// On public benchmark data (Reproduction::is_public), private runs are charged to a ledger that is deleted with the
// run. On any other data they are charged to the data set's own, --ledger. The recorded figures are those of the test
// items. The noise is secure and never repeated; a seed determines weights and shuffling only.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "runtime/core/date.h"
#include "runtime/core/threads.h"
#include "runtime/privacy/json.h"
#include "tools/lab/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"
#include "tools/lab/reproduce/check_cell.h"
#include "tools/lab/reproduce/measured_runs.h"
#include "tools/lab/reproduce/reproduction.h"
#include "tools/lab/result_lines.h"
#include "tools/wisp/temporary_folder.h"
#include "tools/wisp/training_run.h"

namespace wisp::tools {
namespace {

struct PlannedRun {
  const ReproductionCell* cell;
  std::optional<uint64_t> seed;  // only for a cell that trains
};

using Kind = ReproductionCell::Kind;

const char* ToText(Kind kind) {
  constexpr const char* kNames[] = {"train", "bench", "decode", "baseline"};  // indexed by Kind
  return kNames[static_cast<size_t>(kind)];
}

// Returns the processor's name as Linux has it; a machine without a name is described by its number of cores.
std::string Device() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model;
  while (model.empty() && std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) model = line.substr(colon + 2);
  }
  return (model.empty() ? "" : model + ", ") + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores";
}

class ReproduceCommand {
 public:
  ReproduceCommand(const ReproduceArguments& arguments, OutputFormat format) : a_(arguments), format_(format) {}

  Status Run() {
    WISP_ASSIGN_OR_RETURN(table_, ReadReproduction(a_.table));
    WISP_ASSIGN_OR_RETURN(const auto cells, SelectCells(table_, a_.cell));
    if (!a_.out.empty()) {
      WISP_ASSIGN_OR_RETURN(done_, ReadResultLines(a_.out));
      WISP_RETURN_IF_ERROR(CheckLines());
    }
    if (a_.list) return List(cells);
    WISP_RETURN_IF_ERROR(Plan(cells));
    if (runs_.empty()) std::fprintf(stderr, "wisp: %s: nothing is left to run\n", table_.name.c_str());
    for (size_t i = 0; i < runs_.size(); ++i) {
      const std::string title = table_.name + " " + RunTitle(runs_[i]) + " (" + std::to_string(i + 1) + "/" +
                                std::to_string(runs_.size()) + ")";
      WISP_RETURN_IF_ERROR(RunOne(title, runs_[i]));
    }
    return OkStatus();
  }

 private:
  static std::string RunTitle(const PlannedRun& run) {
    return run.cell->Name() + (run.seed ? " seed " + std::to_string(*run.seed) : "");
  }

  // Lines of another table in the file would only surface after hours, so they are refused at the start.
  Status CheckLines() const {
    for (size_t i = 0; i < done_.size(); ++i) {
      if (done_[i].contains("table") && done_[i]["table"] == table_.name) continue;
      return InvalidData(a_.out, ", line ", i + 1, ": it belongs to another table than ", table_.name);
    }
    return OkStatus();
  }

  // Counts the lines of a run with its current recipe. Lines of an older recipe or another model do not count.
  size_t NumDone(const PlannedRun& run) const {
    return static_cast<size_t>(std::count_if(done_.begin(), done_.end(), [&](const ResultLine& line) {
      const auto is = [&](const char* key, const ResultLine& value) {
        return line.contains(key) && line[key] == value;
      };
      const bool decodes = run.cell->kind == Kind::kDecode && !files_.model.empty();
      return is("row", run.cell->row) && is("column", run.cell->column) && is("recipe", run.cell->recipe_hash) &&
             (!run.seed || is("seed", *run.seed)) && (!decodes || is("model", files_.model)) &&
             (!decodes || !run.cell->decode.NeedsBase() || is("base", files_.base));
    }));
  }

  // Checks the options that the selected cells need, before hours of work, and refuses those that they do not need.
  Status CheckNeeds(const std::vector<const ReproductionCell*>& cells) {
    const auto any = [&](auto&& is) {
      return std::any_of(cells.begin(), cells.end(), [&](const ReproductionCell* c) { return is(*c); });
    };
    const bool decodes = any([](const ReproductionCell& c) { return c.kind == Kind::kDecode; });
    const bool trains = any([](const ReproductionCell& c) { return c.kind == Kind::kTrain; });
    if (a_.data.path.empty() && any([](const ReproductionCell& c) { return c.kind != Kind::kBench; }))
      return InvalidArgument("--data is needed: the file of ", table_.data_label);
    WISP_RETURN_IF_ERROR(CheckDeclared(decodes, any([](const ReproductionCell& c) { return IsPrivate(c); })));
    if (a_.out.empty()) return InvalidArgument("--out is needed: the file that gets a line of JSON for each run");
    if (a_.seed && !trains)
      return InvalidArgument("--seed is of cells that train; the selected cells of ", table_.name, " are measured");
    if (!decodes) return OkStatus();
    if (a_.model.empty())
      return InvalidArgument("--model is needed: the model, trained without privacy, that is sampled from");
    if (a_.base.empty() &&
        any([](const ReproductionCell& c) { return c.kind == Kind::kDecode && c.decode.NeedsBase(); })) {
      return InvalidArgument(
          "--base is needed: these cells sample close to a public model; what the model itself knows of popularity is "
          "not public");
    }
    return ReadFiles();
  }

  static bool IsPrivate(const ReproductionCell& c) {
    return c.kind == Kind::kTrain && c.recipe.training.method != Method::kOrdinary;
  }

  // Data that nobody declared public is charged, as `wisp train` charges it. The other requirements of training are
  // checked for each cell (check_cell.h).
  Status CheckDeclared(bool decodes, bool any_private) const {
    const std::string declare =
        "\"public\": true with the number of \"users\" under data of the table declares a public benchmark";
    if (decodes && !table_.is_public()) {
      return PrivacyRefused(
          table_.name,
          " has cells that sample, whose perplexity no ledger pays for, and its data is not declared public; ",
          declare);
    }
    if (table_.is_public() && !a_.ledger.empty()) {
      return InvalidArgument("--ledger is given, but the data of ", table_.name,
                             " is declared public: runs on it are not charged to anybody");
    }
    if (table_.is_public() || !any_private || !a_.ledger.empty()) return OkStatus();
    return PrivacyRefused(table_.name,
                          " has private cells, and its data is not declared public: --ledger is needed, the data set's "
                          "own, which is charged; ",
                          declare);
  }

  DecodingData Decoding() const {
    DecodingData d{.model = a_.model,
                   .base = a_.base,
                   .public_datasets = a_.public_datasets,
                   .data = a_.data,
                   .users = table_.users,
                   .items = table_.items,
                   .threads = Threads()};
    if (d.data.format == "auto") d.data.format = table_.data_format;
    return d;
  }
  Status ReadFiles() {
    WISP_ASSIGN_OR_RETURN(files_, CheckDecodingFiles(Decoding()));
    return OkStatus();
  }

  Status Plan(const std::vector<const ReproductionCell*>& cells) {
    WISP_RETURN_IF_ERROR(CheckNeeds(cells));
    for (const ReproductionCell* cell : cells) {
      if (cell->kind == Kind::kTrain) WISP_RETURN_IF_ERROR(CheckTrainingCell(table_, *cell));
    }
    measured_ = MeasuredRuns(Threads(), Decoding());
    bool has_seed = false;
    for (const ReproductionCell* cell : cells) {
      for (const PlannedRun& run : GetRuns(*cell)) {
        if (a_.seed && run.seed != a_.seed) continue;
        has_seed = true;
        if (a_.skip_done && NumDone(run) > 0) continue;
        runs_.push_back(run);
        if (cell->kind == Kind::kDecode) measured_.Expect(*cell);
      }
    }
    if (a_.seed && !has_seed) return InvalidArgument("no selected cell of ", table_.name, " has the seed ", *a_.seed);
    return runs_.empty() ? OkStatus() : CheckAppendable(a_.out);
  }

  static std::vector<PlannedRun> GetRuns(const ReproductionCell& cell) {
    if (cell.kind != Kind::kTrain) return {{&cell, std::nullopt}};
    std::vector<PlannedRun> runs;
    for (const uint64_t seed : cell.seeds) runs.push_back({&cell, seed});
    return runs;
  }

  Status List(const std::vector<const ReproductionCell*>& cells) {
    if (!a_.model.empty()) WISP_RETURN_IF_ERROR(ReadFiles());
    ResultLine list = ResultLine::array();
    for (const ReproductionCell* cell : cells) {
      size_t done = 0;
      std::string seeds;
      const std::vector<PlannedRun> runs = GetRuns(*cell);
      for (const PlannedRun& run : runs) {
        done += NumDone(run) > 0 ? 1 : 0;
        if (run.seed) seeds += (seeds.empty() ? "" : ", ") + std::to_string(*run.seed);
      }
      list.push_back({{"cell", cell->Name()},
                      {"kind", ToText(cell->kind)},
                      {"seeds", cell->seeds},
                      {"done", done},
                      {"recipe", cell->recipe_hash}});
      if (format_ == OutputFormat::kJson) continue;
      const std::string what = cell->kind == Kind::kTrain    ? "seeds " + seeds
                               : cell->kind == Kind::kDecode ? "perplexity of samples"
                                                             : "measured";
      PrintText("%-32s %s; %zu of %zu done\n", cell->Name().c_str(), what.c_str(), done, runs.size());
    }
    if (format_ == OutputFormat::kJson) PrintJson(list);
    return OkStatus();
  }

  Status RunOne(const std::string& title, const PlannedRun& planned) {
    const bool trains = planned.cell->kind == Kind::kTrain;
    if (!trains) std::fprintf(stderr, "wisp: %s\n", title.c_str());
    WISP_ASSIGN_OR_RETURN(ResultLine figures, trains ? RunTraining(title, planned) : measured_.Figures(*planned.cell));
    if (!table_.is_public() && planned.cell->kind != Kind::kBench) figures["not_private"] = FindNotPrivate(figures);
    const ResultLine line = Line(planned, figures);
    if (format_ == OutputFormat::kJson) {
      PrintJson(line, kOneLine);
    } else {
      const bool local = !table_.is_public() && planned.cell->kind != Kind::kBench;
      PrintText("%s: %s%s\n", RunTitle(planned).c_str(), Shown(*planned.cell, figures).c_str(),
                local ? (std::string("; ") + kLocalOnly).c_str() : "");
    }
    std::fflush(stdout);
    Status appended = AppendResultLine(a_.out, line);
    if (!appended.ok()) std::fprintf(stderr, "wisp: this line could not be added: %s\n", JsonText(line).c_str());
    return appended;
  }

  static std::string Shown(const ReproductionCell& cell, const ResultLine& f) {
    const auto number = [&](const char* key, int digits) { return Fixed(f[key].get<double>(), digits); };
    switch (cell.kind) {
      case Kind::kBaseline:
        return "NDCG@10 " + number("ndcg@10", 4) + ", HIT@10 " + number("hit@10", 4);
      case Kind::kTrain:
        return (f.contains("ndcg@10")
                    ? "NDCG@10 " + number("ndcg@10", 4) + ", HIT@10 " + number("hit@10", 4)
                    : "loss " + number("loss", 4) + ", " + number("bits_per_byte", 4) + " bits a byte") +
               (f.contains("epsilon") && f["epsilon"].is_number()
                    ? ", epsilon " + privacy::EpsilonText(f["epsilon"].get<double>())
                    : "") +
               ", " + number("seconds", 0) + " s";
      case Kind::kBench:
        return number("step_seconds", 4) + " s a step, median of " + f["steps_measured"].dump();
      case Kind::kDecode:
        return "perplexity " + number("perplexity", 2) +
               (f.contains("epsilon") ? ", epsilon " + privacy::EpsilonText(f["epsilon"].get<double>()) : "");
    }
    return "";
  }

  // Returns the names of all figures that were computed from the data without noise.
  static std::vector<std::string> FindNotPrivate(const ResultLine& figures) {
    std::vector<std::string> names;
    for (const std::string& name : ListFigureNames(figures)) {
      const bool is_fixed =
          name == "seed" || name == "epsilon" || name == "delta" || name == "noise_multiplier" || name == "steps";
      if (!is_fixed) names.push_back(name);
    }
    return names;
  }

  Result<ResultLine> RunTraining(const std::string& title, const PlannedRun& planned) {
    WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
    TrainArguments arguments;
    arguments.data = a_.data;
    if (arguments.data.format == "auto") arguments.data.format = table_.data_format;
    arguments.dataset = table_.data_label;
    // An existing limit stays, so that a run beyond it is refused.
    arguments.ledger = a_.ledger.empty() ? folder.File("ledger") : a_.ledger;
    arguments.anchor = a_.anchor;
    arguments.threads = Threads();
    RunSpec recipe = planned.cell->recipe;
    recipe.training.seed = *planned.seed;
    TrainingRun run(title, arguments, std::move(recipe));
    run.expected_users = table_.users;
    run.expected_items = table_.items;
    const std::clock_t start = std::clock();
    WISP_ASSIGN_OR_RETURN(const JobResult r, run.Run());
    const double cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    ResultLine figures = {{"seed", *planned.seed}};
    if (run.is_text()) {
      if (!run.text_quality()) return InvalidData(a_.data.path, ": no text is held out to be tested on");
      figures.update(ToJson(*run.text_quality()));
      figures["users"] = run.texts().records.size();
    } else {
      if (!r.test) return InvalidData(a_.data.path, ": no user has enough events to be tested");
      figures["ndcg@10"] = r.test->ndcg_at_10;
      figures["hit@10"] = r.test->hit_at_10;
      figures["users"] = r.test->num_users;
    }
    if (run.is_private()) {
      figures["epsilon"] = r.epsilon ? ResultLine(*r.epsilon) : ResultLine();
      figures["delta"] = run.recipe().goal.delta;
      figures["noise_multiplier"] = r.noise_multiplier;
    }
    figures["steps"] = r.num_steps;
    figures["seconds"] = r.seconds;
    figures["cpu_seconds"] = cpu_seconds;
    figures["planned_bytes"] = r.planned_bytes;
    figures["record_state_bytes"] = r.record_state_bytes;
    return figures;
  }

  // The command in the shell's syntax.
  std::string Command(const PlannedRun& planned) const {
    const bool decodes = planned.cell->kind == Kind::kDecode;
    std::string text = "wisp-lab reproduce " + ShellWord(table_.name);
    if (decodes) text += " --model " + ShellWord(FileName(a_.model));
    if (decodes && !a_.base.empty()) text += " --base " + ShellWord(FileName(a_.base));
    for (const std::string& dataset : a_.public_datasets)
      text += decodes ? " --public-dataset " + ShellWord(dataset) : "";
    if (planned.cell->kind != Kind::kBench) text += " --data " + ShellWord(FileName(a_.data.path));
    text += " --out " + ShellWord(FileName(a_.out)) + " --cell " + ShellWord(planned.cell->Name());
    if (planned.seed) text += " --seed " + std::to_string(*planned.seed);
    return text + " --threads " + std::to_string(Threads());
  }

  ResultLine Line(const PlannedRun& planned, const ResultLine& figures) const {
    ResultLine line = {{"table", table_.name}, {"row", planned.cell->row}, {"column", planned.cell->column}};
    line.update(figures);
    line["threads"] = Threads();
    line["device"] = Device();
    line["date"] = Today();
    line["command"] = Command(planned);
    line["wisp"] = Version();
    line["recipe"] = planned.cell->recipe_hash;
    return line;
  }

  uint32_t Threads() const { return a_.threads == 0 ? static_cast<uint32_t>(DefaultThreads()) : a_.threads; }

  const ReproduceArguments& a_;
  OutputFormat format_;
  Reproduction table_;
  std::vector<ResultLine> done_;  // the lines that are in the file
  DecodingFiles files_;           // with --model only
  std::vector<PlannedRun> runs_;
  MeasuredRuns measured_;
};

}  // namespace

Status Reproduce(const ReproduceArguments& arguments, OutputFormat format) {
  return ReproduceCommand(arguments, format).Run();
}

}  // namespace wisp::tools
