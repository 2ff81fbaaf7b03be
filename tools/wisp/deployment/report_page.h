// Writes a report as one HTML page that needs nothing else: inline SVG, light and dark, no script, no network, readable
// on a phone.
#ifndef WISP_TOOLS_WISP_DEPLOYMENT_REPORT_PAGE_H_
#define WISP_TOOLS_WISP_DEPLOYMENT_REPORT_PAGE_H_

#include <string>
#include <vector>

#include "tools/wisp/deployment/report_data.h"

namespace wisp::tools {

std::string ReportPage(const ReportedDeployment& deployment);

// Returns the text with all markup escaped.
std::string Escaped(const std::string& text);

// A chart of lines and points over numbers: x starts at 0, y at `bottom`.
struct Chart {
  std::string title, x_name, y_name, caption;
  double width = 1, bottom = 0, top = 1;  // the range of the axes; top above bottom, width above 0
  struct Line {
    std::vector<std::pair<double, double>> points;
    const char* style;  // a class of the page: "done", "planned", "limit"
    std::string name;
  };
  struct Point {
    double x, y, error;  // error: half of the bar through the point
    const char* style;   // "better", "worse", "undecided"
    std::string name;    // shown on hovering
  };
  std::vector<Line> lines;
  std::vector<Point> points;
};
std::string ToSvg(const Chart& chart);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_DEPLOYMENT_REPORT_PAGE_H_
