// wisp reproduce: runs the cells of a paper's table one after the other and notes each run as a line of JSON.
//
// For public benchmark data only: private runs are paid for from a ledger that is thrown away with the run, and what is
// noted are figures of the test items. The noise is secure, never repeated; a seed is that of weights and shuffling.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "runtime/core/threads.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/output.h"
#include "tools/wisp/reproduction.h"
#include "tools/wisp/result_lines.h"
#include "tools/wisp/temporary_folder.h"
#include "tools/wisp/training_run.h"

namespace wisp::tools {
namespace {

struct PlannedRun {
  const ReproductionCell* cell;
  uint64_t seed;
};

// The processor as Linux calls it; machines that do not say are called by their number of cores alone.
std::string Device() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model;
  while (model.empty() && std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) model = line.substr(colon + 2);
  }
  return (model.empty() ? "" : model + ", ") + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores";
}

// An argument as a shell reads it back.
std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/';
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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
      const std::string title = table_.name + " " + RunTitle(runs_[i]) + " (" + std::to_string(i + 1) + "/" + std::to_string(runs_.size()) + ")";
      WISP_RETURN_IF_ERROR(RunOne(title, runs_[i]));
    }
    return OkStatus();
  }

 private:
  static std::string RunTitle(const PlannedRun& run) { return run.cell->Name() + " seed " + std::to_string(run.seed); }

  // Lines of another table in the file are a mistake that would surface after hours.
  Status CheckLines() const {
    for (size_t i = 0; i < done_.size(); ++i) {
      if (done_[i].contains("table") && done_[i]["table"] == table_.name) continue;
      return InvalidData(a_.out + ", line " + std::to_string(i + 1) + ": it belongs to another table than " + table_.name);
    }
    return OkStatus();
  }

  // Lines of a run as its recipe is now; older ones of another recipe do not count.
  size_t NumDone(const PlannedRun& run) const {
    return static_cast<size_t>(std::count_if(done_.begin(), done_.end(), [&](const ResultLine& line) {
      const auto is = [&](const char* key, const ResultLine& value) { return line.contains(key) && line[key] == value; };
      return is("row", run.cell->row) && is("column", run.cell->column) && is("seed", run.seed) && is("recipe", run.cell->recipe_hash);
    }));
  }

  Status Plan(const std::vector<const ReproductionCell*>& cells) {
    if (a_.data.path.empty()) return InvalidArgument("--data is needed: the file of " + table_.data_label);
    if (a_.out.empty()) return InvalidArgument("--out is needed: the file that gets a line of JSON for each run");
    bool has_seed = false;
    for (const ReproductionCell* cell : cells) {
      if (cell->kind == ReproductionCell::Kind::kBench) {
        if (!a_.cell.empty()) return InvalidArgument("the cell " + cell->Name() + " is measured by wisp bench, not by training");
        std::fprintf(stderr, "wisp: %s is measured by wisp bench; left out here\n", cell->Name().c_str());
      }
      for (const uint64_t seed : cell->seeds) {
        if (a_.seed && seed != *a_.seed) continue;
        has_seed = true;
        const PlannedRun run{cell, seed};
        if (!a_.skip_done || NumDone(run) == 0) runs_.push_back(run);
      }
    }
    if (a_.seed && !has_seed) return InvalidArgument("no selected cell of " + table_.name + " has the seed " + std::to_string(*a_.seed));
    return runs_.empty() ? OkStatus() : CheckAppendable(a_.out);
  }

  Status List(const std::vector<const ReproductionCell*>& cells) const {
    ResultLine list = ResultLine::array();
    for (const ReproductionCell* cell : cells) {
      size_t done = 0;
      std::string seeds;
      for (const uint64_t seed : cell->seeds) {
        done += NumDone({cell, seed}) > 0 ? 1 : 0;
        seeds += (seeds.empty() ? "" : ", ") + std::to_string(seed);
      }
      const bool trains = cell->kind == ReproductionCell::Kind::kTrain;
      list.push_back({{"cell", cell->Name()}, {"kind", trains ? "train" : "bench"}, {"seeds", cell->seeds}, {"done", done}, {"recipe", cell->recipe_hash}});
      if (format_ == OutputFormat::kJson) continue;
      if (trains) std::printf("%-32s seeds %s; %zu of %zu done\n", cell->Name().c_str(), seeds.c_str(), done, cell->seeds.size());
      if (!trains) std::printf("%-32s measured by wisp bench\n", cell->Name().c_str());
    }
    if (format_ == OutputFormat::kJson) std::printf("%s\n", list.dump(2).c_str());
    return OkStatus();
  }

  Status RunOne(const std::string& title, const PlannedRun& planned) {
    WISP_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
    TrainArguments arguments;
    arguments.data = a_.data;
    if (arguments.data.format == "auto") arguments.data.format = table_.data_format;
    arguments.dataset = table_.data_label;
    arguments.ledger = folder.File("ledger");
    arguments.seed = planned.seed;
    arguments.threads = a_.threads == 0 ? static_cast<uint32_t>(DefaultThreads()) : a_.threads;
    TrainingRun run(title, arguments, planned.cell->recipe);
    run.expected_users = table_.users;
    run.expected_items = table_.items;
    const std::clock_t start = std::clock();
    WISP_ASSIGN_OR_RETURN(const JobResult result, run.Run());
    const double cpu_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!result.test) return InvalidData(a_.data.path + ": no user has enough events to be tested");
    const ResultLine line = Line(planned, run, result, arguments.threads, cpu_seconds);
    if (format_ == OutputFormat::kJson) {
      std::printf("%s\n", line.dump().c_str());
    } else {
      std::printf("%s: NDCG@10 %.4f, HIT@10 %.4f%s, %.0f s\n", RunTitle(planned).c_str(), result.test->ndcg_at_10, result.test->hit_at_10,
                  result.epsilon ? (", epsilon " + Fixed(*result.epsilon, 3)).c_str() : "", result.seconds);
    }
    std::fflush(stdout);
    const Status appended = AppendResultLine(a_.out, line);
    if (!appended.ok()) std::fprintf(stderr, "wisp: this line could not be added: %s\n", line.dump().c_str());
    return appended;
  }

  ResultLine Line(const PlannedRun& planned, const TrainingRun& run, const JobResult& r, uint32_t threads, double cpu_seconds) const {
    ResultLine line = {{"table", table_.name}, {"row", planned.cell->row}, {"column", planned.cell->column}, {"seed", planned.seed},
                       {"ndcg@10", r.test->ndcg_at_10}, {"hit@10", r.test->hit_at_10}, {"users", r.test->num_users}};
    if (run.is_private()) {
      line["epsilon"] = r.epsilon ? ResultLine(*r.epsilon) : ResultLine();
      line["delta"] = run.recipe().goal.delta;
      line["noise_multiplier"] = r.noise_multiplier;
    }
    line["steps"] = r.num_steps;
    line["seconds"] = r.seconds;
    line["cpu_seconds"] = cpu_seconds;
    line["planned_bytes"] = r.planned_bytes;
    line["record_state_bytes"] = r.record_state_bytes;
    line["threads"] = threads;
    line["device"] = Device();
    line["date"] = Today();
    line["command"] = "wisp reproduce " + Quoted(table_.name) + " --data " + Quoted(FileName(a_.data.path)) + " --out " + Quoted(FileName(a_.out)) +
                      " --cell " + Quoted(planned.cell->Name()) + " --seed " + std::to_string(planned.seed) + " --threads " + std::to_string(threads);
    line["wisp"] = Version();
    line["recipe"] = planned.cell->recipe_hash;
    return line;
  }

  const ReproduceArguments& a_;
  OutputFormat format_;
  Reproduction table_;
  std::vector<ResultLine> done_;  // what is in the file
  std::vector<PlannedRun> runs_;
};

}  // namespace

Status Reproduce(const ReproduceArguments& arguments, OutputFormat format) { return ReproduceCommand(arguments, format).Run(); }

}  // namespace wisp::tools
