// The data of a report on a deployment: what the ledger knows, and, on the device, what its log adds.
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_REPORT_DATA_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_REPORT_DATA_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/personalise/evaluation_rule.h"
#include "runtime/personalise/deployment.h"
#include "runtime/personalise/run_figures.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/evaluate.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/deployment/report_layers.h"

namespace wisp::tools {

struct ReportedDeployment {
  std::string ledger_name, dataset, unit, statement;
  DeploymentSettings settings;
  DeploymentLeft left;
  double epsilon_stated = 0;
  std::string first_day, last_day;             // days of charges; empty: no charge yet
  uint64_t steps_planned = 0, steps_done = 0;  // before and after changes of the plan
  bool changed = false;                        // the plan was changed
  // The epsilon, at delta, that `steps` steps of training would cost if only they had been planned.
  struct Spent {
    uint64_t steps;
    double epsilon;
  };
  std::vector<Spent> plan;  // empty if steps of several kinds were taken: no single kind's curve would be true
  struct Evaluated {
    std::string day;
    double gain = 0, deviation = 0;  // gain per record in the measure's unit, as released; deviation of its noise
    Verdict::Kind found = Verdict::Kind::kUndecided;
  };
  std::vector<Evaluated> evaluations;
  std::vector<LayerChange> layers;
  // Computed from the log: local only.
  std::vector<RunFigures> runs;
  struct Quality {
    std::string name;
    RankingQuality quality;
  };
  std::vector<Quality> qualities;
};

// Returns kInvalidArgument if the ledger has no plan for a deployment. Models and log may be empty; then nothing local
// is shown.
Result<ReportedDeployment> ReadDeployment(const ReportArguments& arguments);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_REPORT_DATA_H_
