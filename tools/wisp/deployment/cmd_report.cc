// Implements `wisp report`.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/core/file.h"
#include "tools/wisp/deployment/report_page.h"
#include "tools/wisp/output.h"
#include "tools/wisp/replaced.h"

namespace wisp::tools {

Status Report(const ReportArguments& a, OutputFormat format) {
  WISP_RETURN_IF_ERROR(CheckOutputFile(FileKind::kPage, {"--html", a.html},
                                       {{"--ledger", a.ledger},
                                        {"--model", a.model},
                                        {"--out", a.out},
                                        {"--data", a.data.path},
                                        {"--anchor", a.anchor.file}}));
  WISP_ASSIGN_OR_RETURN(const ReportedDeployment deployment, ReadDeployment(a));
  const std::string page = ReportPage(deployment);
  WISP_ASSIGN_OR_RETURN(FileReplacement file, FileReplacement::Begin(a.html));
  WISP_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span<const char>(page))));
  WISP_RETURN_IF_ERROR(file.Commit());
  const bool local = !deployment.qualities.empty();
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json j = {{"html", a.html}, {"bytes", page.size()}, {"local_only", local}};
    if (local) j["not_private"] = {"html", "bytes"};
    PrintJson(j);
    return OkStatus();
  }
  PrintText("%s: %s\n", a.html.c_str(),
            local ? "local only: its marked part was counted on the data without noise"
                  : "from the ledger and released models: nothing in it was counted on the data without noise");
  return OkStatus();
}

}  // namespace wisp::tools
