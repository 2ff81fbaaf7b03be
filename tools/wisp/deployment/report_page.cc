#include "tools/wisp/deployment/report_page.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/text.h"
#include "runtime/privacy/json.h"
#include "tools/wisp/dataset.h"
#include "tools/wisp/deployment/deployment_data.h"
#include "tools/wisp/output.h"

namespace wisp::tools {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fdfdfb; --soft: #6b6b74; --grid: #dcdce0; --done: #0b66c3;
  --planned: #8aa9c9; --limit: #b3261e; --better: #14713d; --worse: #b3261e; --box: #f1f1ee; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9e9ee; --paper: #16161a; --soft: #a0a0ab; --grid: #35353d;
  --done: #6db3ff; --planned: #4d6d8f; --limit: #ff8a80; --better: #6fd69a; --worse: #ff8a80; --box: #22222a; } }
body { margin: 0 auto; max-width: 42rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--grid); vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 500; color: var(--soft); overflow-wrap: normal; } td.n { font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; display: block; } svg text { font: 10px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--grid); } polyline { fill: none; stroke-width: 2; } .done { stroke: var(--done); }
.planned { stroke: var(--planned); stroke-dasharray: 4 3; } .limit { stroke: var(--limit); stroke-width: 1; }
.bar { stroke-width: 1.5; stroke: var(--soft); } circle { fill: var(--soft); } circle.better { fill: var(--better); }
circle.worse { fill: var(--worse); } .key { color: var(--soft); font-size: .9rem; }
.local { border: 2px solid var(--limit); border-radius: .4rem; padding: .2rem .8rem .8rem; margin-top: 2rem; }
.local h2 { margin-top: .6rem; } pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem;
  background: var(--box); padding: .8rem; border-radius: .4rem; }
)";

std::string TableRow(const std::string& name, const std::string& value) {
  return "<tr><th>" + Escaped(name) + "</th><td class=\"n\">" + Escaped(value) + "</td></tr>\n";
}

std::string Section(const Chart& chart) {
  const std::string caption = "<p class=\"key\">" + Escaped(chart.caption) + "</p>\n";
  return "<h2>" + Escaped(chart.title) + "</h2>\n" + ToSvg(chart) + (chart.caption.empty() ? "" : caption);
}

std::string Short(double number) { return privacy::ShortText(number); }

std::string Summary(const ReportedDeployment& deployment) {
  const DeploymentSettings& s = deployment.settings;
  std::string text = "<p>";
  text += deployment.steps_done == 0 ? "Nothing was trained yet."
                                     : "From " + Escaped(deployment.first_day) + " to " + Escaped(deployment.last_day) +
                                           " a model learned from " + Escaped(deployment.dataset) + ".";
  text += " All that is planned costs every " + deployment.unit + " epsilon " + Short(s.epsilon) + " at delta " +
          Short(s.delta) +
          ". An epsilon bounds how much surer anybody can become, from all that is ever released, that one " +
          deployment.unit + " took part: the odds change by no more than a factor of about " +
          Short(std::round(std::exp(s.epsilon))) + ", but for a chance of delta.</p>\n";
  return text;
}

std::string PlanAndReality(const ReportedDeployment& deployment) {
  const DeploymentSettings& s = deployment.settings;
  std::string text = "<h2>Plan and reality</h2>\n<table>\n<tr><th></th><th>planned</th><th>so far</th></tr>\n";
  const auto row = [&](const char* name, const std::string& planned, const std::string& done) {
    text += "<tr><th>" + std::string(name) + "</th><td class=\"n\">" + Escaped(planned) + "</td><td class=\"n\">" +
            Escaped(done) + "</td></tr>\n";
  };
  if (deployment.changed) {
    row("runs to come", Thousands(deployment.left.runs), "the plan was changed");
  } else {
    row("runs", Thousands(s.runs), Thousands(s.runs - deployment.left.runs));
  }
  row("training steps", Thousands(deployment.steps_planned), Thousands(deployment.steps_done));
  if (EvaluatesPrivately(s))
    row("evaluations", Thousands(s.evaluations), Thousands(s.evaluations - deployment.left.evaluations));
  row("epsilon", Short(s.epsilon),
      privacy::EpsilonText(deployment.epsilon_stated, 4) + (deployment.left.by_filter
                                                                ? ", of all that was chosen after looking"
                                                                : ", that of the whole plan from its first charge on"));
  text += "</table>\n<table>\n";
  text += TableRow("records", "about " + Thousands(s.num_records_public) + "; each is one " + deployment.unit);
  text += TableRow("batch", "about " + Thousands(s.expected_batch) + " records a step");
  text +=
      TableRow("noise", Short(s.training_noise) + " times the clipping norm of " + Short(s.clipping_norm) + " a step");
  return text + "</table>\n";
}

Chart EpsilonChart(const ReportedDeployment& deployment) {
  Chart chart{.title = "What it cost",
              .x_name = "training steps",
              .y_name = "epsilon",
              .caption =
                  "Line: epsilon of the steps so far, had no more been planned. Dashed: of those to come. Red: "
                  "what the plan promises, whatever of it is run.",
              .width = static_cast<double>(std::max<uint64_t>(1, deployment.steps_planned)),
              .top = 1.15 * deployment.settings.epsilon};
  Chart::Line done{{}, "done", "so far"}, planned{{}, "planned", "to come"};
  const auto now = static_cast<double>(deployment.steps_done);
  for (size_t i = 0; i < deployment.plan.size(); ++i) {
    const auto x = static_cast<double>(deployment.plan[i].steps);
    const double y = deployment.plan[i].epsilon;
    if (x <= now) done.points.emplace_back(x, y);
    if (i > 0 && static_cast<double>(deployment.plan[i - 1].steps) < now && x > now) {
      const auto before = static_cast<double>(deployment.plan[i - 1].steps);
      const double between =
          deployment.plan[i - 1].epsilon + (y - deployment.plan[i - 1].epsilon) * (now - before) / (x - before);
      done.points.emplace_back(now, between);
      planned.points.emplace_back(now, between);
    }
    if (x >= now) planned.points.emplace_back(x, y);
  }
  chart.lines = {planned,
                 done,
                 {{{0, deployment.settings.epsilon}, {chart.width, deployment.settings.epsilon}}, "limit", "promise"}};
  return chart;
}

Chart EvaluationChart(const ReportedDeployment& deployment) {
  Chart chart{.title = "What the evaluations found",
              .x_name = "evaluation",
              .y_name = "gain over the base, in NDCG",
              .caption =
                  "How much better than the base each candidate's lists were, for events later than those that it "
                  "learned from, as far as the noise tells: bars are twice its deviation. A difference counts for " +
                  Short(deployment.settings.gain_scale) +
                  " at most, so the true gain may be larger. The verdict adds up the evaluations so far. Green: found "
                  "better, red: worse, grey: undecided.",
              .width = static_cast<double>(deployment.evaluations.size() + 1),
              .bottom = 0,
              .top = 0.01};
  for (size_t i = 0; i < deployment.evaluations.size(); ++i) {
    const ReportedDeployment::Evaluated& j = deployment.evaluations[i];
    const double error = 2 * j.deviation;
    chart.bottom = std::min(chart.bottom, j.gain - error);
    chart.top = std::max(chart.top, j.gain + error);
    chart.points.push_back({static_cast<double>(i + 1), j.gain, error, GetName(j.found),
                            j.day + ": " + Short(j.gain) + ", " + GetName(j.found)});
  }
  const double room = 0.1 * (chart.top - chart.bottom);
  chart.top += room;
  if (chart.bottom < 0) chart.bottom -= room;
  chart.lines = {{{{0, 0}, {chart.width, 0}}, "limit", "the base"}};
  return chart;
}

// Draws how far each layer moved, beside how far it would have moved without learning.
std::string Layers(const ReportedDeployment& deployment) {
  std::string text =
      "<h2>What noise and data did to each layer</h2>\n<table>\n<tr><th></th><th>moved by</th><th>by noise alone</th>"
      "<th>share of noise</th></tr>\n";
  for (const LayerChange& layer : deployment.layers) {
    const double share = layer.moved > layer.by_noise ? layer.by_noise / layer.moved : 1;
    text += "<tr><th>" + Escaped(layer.name) + "</th><td class=\"n\">" + Fixed(layer.moved, 4) +
            "</td><td class=\"n\">" + Fixed(layer.by_noise, 4) + "</td><td class=\"n\">" + Fixed(100 * share, 0) +
            " %</td></tr>\n";
  }
  text +=
      "</table>\n<p class=\"key\">Of a weight, the root of the mean square, from the start of training to the newest "
      "candidate. Noise alone: what this many steps would have done to a layer without data, within 10 %.";
  if (deployment.settings.shrinks_changes != 0) text += " Changes were shrunk by what noise makes of them.";
  return text + "</p>\n";
}

Chart RunChart(const ReportedDeployment& deployment, const char* title, const char* what, double RunFigures::*figure) {
  Chart chart{.title = title,
              .x_name = "run",
              .y_name = what,
              .caption = "",
              .width = static_cast<double>(std::max<size_t>(2, deployment.runs.size())),
              .top = 0.01};
  Chart::Line line{{}, "done", what};
  for (size_t n = 0; n < deployment.runs.size(); ++n) {
    const double y = deployment.runs[n].*figure;
    chart.top = std::max(chart.top, 1.1 * y);
    line.points.emplace_back(static_cast<double>(n + 1), y);
  }
  chart.lines = {line};
  return chart;
}

std::string Runs(const ReportedDeployment& deployment) {
  if (deployment.runs.empty()) return "";
  return Section(RunChart(deployment, "Loss of the records that trained", "loss", &RunFigures::mean_loss)) +
         Section(RunChart(deployment, "Share of gradients that were clipped", "share", &RunFigures::clipped_share));
}

std::string Local(const ReportedDeployment& deployment) {
  if (deployment.qualities.empty()) return "";
  std::string text =
      "<section class=\"local\">\n<h2>On this device's own log</h2>\n<p>Local only: counted on the data without noise. "
      "Do not send this part anywhere.</p>\n<table>\n<tr><th></th><th>NDCG@10</th><th>HIT@10</th></tr>\n";
  for (const auto& [name, q] : deployment.qualities)
    text += "<tr><th>" + Escaped(name) + "</th><td class=\"n\">" + Fixed(q.ndcg_at_10, 4) + "</td><td class=\"n\">" +
            Fixed(q.hit_at_10, 4) + "</td></tr>\n";
  return text +
         "</table>\n<p class=\"key\">The last event of each user, after all before it; models have trained on most of "
         "these users. So a gain here is another one than those of the evaluations, which have noise and later "
         "events.</p>\n" +
         Runs(deployment) + "</section>\n";
}

}  // namespace

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string ReportPage(const ReportedDeployment& deployment) {
  std::string statement;
  for (size_t begin = 0; begin <= deployment.statement.size();) {
    const size_t end = std::min(deployment.statement.find('\n', begin), deployment.statement.size());
    statement += Escaped(deployment.statement.substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>A device's deployment: " +
      Escaped(deployment.dataset) + "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>" + kStyle +
      "</style>\n</head>\n<body>\n<h1>A device's deployment: " + Escaped(deployment.dataset) + "</h1>\n";
  page += Summary(deployment) + PlanAndReality(deployment);
  if (!deployment.plan.empty()) page += Section(EpsilonChart(deployment));
  if (!deployment.evaluations.empty()) page += Section(EvaluationChart(deployment));
  if (!deployment.layers.empty()) page += Layers(deployment);
  page += Local(deployment);
  return page + "<h2>The statement</h2>\n<details><summary>Everything an auditor asks for</summary>\n<pre>" +
         statement + "</pre></details>\n<p class=\"key\">Made by wisp " + Version() + " of " +
         Escaped(deployment.ledger_name) + ".</p>\n</body>\n</html>\n";
}

}  // namespace wisp::tools
