// What a report of a life shows: what the ledger knows, and on the device what its log says besides.
#ifndef WISP_TOOLS_WISP_LIFE_REPORT_DATA_H_
#define WISP_TOOLS_WISP_LIFE_REPORT_DATA_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/personalise/judge_rule.h"
#include "runtime/personalise/lifetime.h"
#include "runtime/personalise/night_figures.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/evaluate.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/life/report_layers.h"

namespace wisp::tools {

struct ReportedLife {
  std::string ledger_name, dataset, unit, statement;
  LifetimeSettings settings;
  LifetimeLeft left;
  double epsilon_stated = 0;
  std::string first_day, last_day;             // of charges; empty: none yet
  uint64_t steps_planned = 0, steps_done = 0;  // before and after changes of the plan
  bool changed = false;                        // the plan was
  // Epsilon of so many steps of training, had they been all that was planned; at delta.
  struct Spent {
    uint64_t steps;
    double epsilon;
  };
  std::vector<Spent> plan;  // empty where steps of several kinds were taken: no curve of one of them would be true
  struct Judged {
    std::string day;
    double gain = 0, deviation = 0;  // of a record in the measure's unit, as far as the noise tells; of the noise
    Verdict::Kind found = Verdict::Kind::kUndecided;
  };
  std::vector<Judged> judgings;
  std::vector<LayerChange> layers;
  // On the log: local only.
  std::vector<NightFigures> nights;
  struct Quality {
    std::string name;
    RankingQuality quality;
  };
  std::vector<Quality> qualities;
};

// kInvalidArgument: a ledger without a plan for a life. Models may be empty, and the log: then nothing local is shown.
Result<ReportedLife> ReadLife(const ReportArguments& arguments);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_LIFE_REPORT_DATA_H_
