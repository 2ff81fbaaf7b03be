// Implements `wisp synth`.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/text.h"
#include "runtime/data/synth.h"
#include "tools/wisp/commands.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {
Status Synth(const SynthArguments& a, OutputFormat format) {
  data::SynthOptions options{.seed = a.seed,
                             .num_users = a.users,
                             .min_events = a.min_events,
                             .max_events = a.max_events,
                             .repeats = a.repeats};
  if (a.population == "device") {
    options.population = data::Population::kDevice;
  } else if (a.population != "public") {
    return InvalidArgument("--population is '", a.population, "', allowed are public and device");
  }
  const data::Format written = data::FormatFromName(a.out);
  const std::string names = a.out + ".items.tsv";
  const NamedFile out{"--out", a.out}, beside{"the file of the items' names", names};
  if (written == data::Format::kSqlite) {
    WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kLog, out));
    WISP_RETURN_IF_ERROR(CheckReplaces(FileKind::kItemNames, beside));
  } else {
    WISP_RETURN_IF_ERROR(CheckReplacesMadeUp(out, beside));
  }
  WISP_ASSIGN_OR_RETURN(const data::SynthData data, data::Synthesize(options));
  WISP_RETURN_IF_ERROR(written == data::Format::kSqlite ? data::WriteSqliteLog(a.out, data)
                       : written == data::Format::kAuto ? data::WriteUserItemText(a.out, data)
                                                        : data::WriteTable(a.out, data, written));
  WISP_RETURN_IF_ERROR(data::WriteItemNames(names, data));
  const nlohmann::ordered_json result = {{"events_file", a.out},
                                         {"item_names_file", names},
                                         {"population", a.population},
                                         {"users", data.sequences.num_users()},
                                         {"items", data.sequences.item_keys.size()},
                                         {"events", data.sequences.items.size()},
                                         {"repeats", a.repeats},
                                         {"seed", a.seed}};
  if (format == OutputFormat::kJson) {
    PrintJson(result);
  } else {
    PrintText("%s: %zu events of %zu users (%s); names of %zu items in %s\n", OneLine(a.out).c_str(),
              data.sequences.items.size(), data.sequences.num_users(), a.population.c_str(),
              data.sequences.item_keys.size(), names.c_str());
  }
  return OkStatus();
}

}  // namespace wisp::tools
