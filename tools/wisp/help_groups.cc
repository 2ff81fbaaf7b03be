// Which options --help shows, and in which groups --help-all lists the others.
#include <algorithm>
#include <string_view>

#include "tools/wisp/help.h"

namespace wisp::tools {
namespace {

struct OptionNames {
  std::string_view of;     // a command, or a group
  std::string_view names;  // with a space before and behind each
};

// The options that most people need. --json is always among them.
constexpr OptionNames kFirst[] = {
    {"wisp train",
     " recipe data texts labelled model out ledger epsilon budget num-records-public method epochs batch "},
    {"wisp tune", " recipe values data model out out-recipe public ledger budget epsilon expected-runs "},
    {"wisp evaluate", " model adapter data texts labelled split trains-until baselines "},
    {"wisp recommend", " model adapter data user history cold-start candidates count allow-seen exclude-seen private "},
    {"wisp inspect", " model verify memory method recipe records threads "},
    {"wisp convert", " in out adapter f16 int8 int4 panels family dataset "},
    {"wisp plan", " data model ledger epsilon num-records-public for every unit session-gap left change dry-run "},
    {"wisp personalise", " data model out ledger start-over early "},
    {"wisp report", " ledger html model out data "},
    {"wisp privacy", " ledger delta model "},
    {"wisp embed", " model adapter text input max-length "},
    {"wisp classify", " model adapter text input max-length "},
    {"wisp generate", " model adapter prompt prompts max-tokens temperature top-k top-p stop seed private "},
    {"wisp new", " recipe out data num-items catalogue item-names item-features "},
    {"wisp node", " policy data model ledger output superlink once seconds ask-seconds key ca "},
    {"wisp fleet plan",
     " devices rounds takes-part epsilon readers-epsilon delta model weights part out policy server "},
    {"wisp log import", " log data times-per-second "},
};

constexpr OptionNames kGroups[] = {
    {"Privacy",
     " ledger anchor begin-anchor epsilon delta budget expected-runs noise-multiplier num-records-public "
     "num-records-at-start planned-runs privacy-json dataset other-data public-dataset uncharged-tuning "
     "allow-large-delta unit reproducible-noise evaluation evaluations replace records-epsilon records-delta "
     "records-ledger "},
    {"Method",
     " base mode lambda clip epsilon-per-sample planned-samples support block mixing-floor private-texts contexts "
     "context-before context-after public-text "},
    {"Training",
     " values out-recipe public method rank rows histogram-noise re-attention batch steps epochs learning-rate seed "
     "adapter trains last-blocks lora recompute-blocks checkpoint checkpoint-every trains-until typical-events "},
    {"Fleet", " adapter-rank evaluators name clipping-norm bits local-steps local-learning-rate round-seconds "},
    {"Texts",
     " texts record max-length tokenizer text-column label-column vocabulary ids report pooling no-tokenizer "},
    {"Data and items",
     " data format table user-column item-column time-column session-gap times-per-second item-names item-keys "
     "item-features config "
     "allow-seen "},
    {"Sampling", " temperature top-k top-p min-p repetition-penalty at-once "},
    {"Processor and device",
     " threads backend cache verify device device-arithmetic device-memory device-module records "},
};

bool HasName(std::string_view names, const std::string& name) {
  return names.find(" " + name + " ") != std::string_view::npos;
}

void SetGroups(CLI::App& command, const std::string& path) {
  const auto* const first =
      std::find_if(std::begin(kFirst), std::end(kFirst), [&](const OptionNames& n) { return n.of == path; });
  for (CLI::Option* option : command.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    const bool is_first = first == std::end(kFirst) || HasName(first->names, name) || name == "json" ||
                          name == "help" || name == "help-all" || name == "version";
    const auto* const group = std::find_if(std::begin(kGroups), std::end(kGroups),
                                           [&](const OptionNames& n) { return HasName(n.names, name); });
    option->group(is_first ? kFirstGroup : group == std::end(kGroups) ? kNoGroup : std::string(group->of));
  }
  for (CLI::App* below : command.get_subcommands({})) SetGroups(*below, path + " " + below->get_name());
}

}  // namespace

void SetGroups(CLI::App& app) { SetGroups(app, app.get_name()); }

}  // namespace wisp::tools
