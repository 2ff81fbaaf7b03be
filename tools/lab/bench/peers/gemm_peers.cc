// gemm_peers: our matrix products beside those of OpenBLAS, oneDNN, Eigen and XNNPACK, f32, one thread, at the shapes
// of a small recommender and of an encoder of width 384. Every contender is checked before it is timed. See README.md
// here.
//
//   gemm_peers [--rounds N] [--only TEXT] [--cpu N] [--json FILE]
//
// Exits 1 when a contender's result does not agree or when a library used a second thread, 2 on a wrong command line.
#include <sched.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "tools/lab/bench/peers/measure.h"

namespace wisp::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  uint32_t rounds = 41;
  std::string only, json;
  int cpu = -1;
};

const char* GetName(Orientation o) {
  return o == Orientation::kForward         ? "forward"
         : o == Orientation::kBackwardInput ? "backward-input"
                                            : "backward-weight";
}

std::vector<Shape> Shapes() {
  const Shape bases[] = {
      {"d64 qkv", 200, 192, 64, {}},      {"d64 out", 200, 64, 64, {}},        {"d64 ffn up", 200, 256, 64, {}},
      {"d64 ffn down", 200, 64, 256, {}}, {"d64 logits", 200, 3416, 64, {}},   {"d32 qkv", 200, 96, 32, {}},
      {"d32 out", 200, 32, 32, {}},       {"d32 ffn up", 200, 128, 32, {}},    {"d32 ffn down", 200, 32, 128, {}},
      {"d32 logits", 200, 3416, 32, {}},  {"d64 score", 1, 3416, 64, {}},      {"d384 qkv", 128, 1152, 384, {}},
      {"d384 out", 128, 384, 384, {}},    {"d384 ffn up", 128, 1536, 384, {}}, {"d384 ffn down", 128, 384, 1536, {}},
  };
  std::vector<Shape> shapes;
  for (Shape s : bases) {
    for (const Orientation o : {Orientation::kForward, Orientation::kBackwardInput, Orientation::kBackwardWeight}) {
      if (s.rows == 1 && o != Orientation::kForward) continue;  // scoring only
      s.orientation = o;
      shapes.push_back(s);
    }
  }
  return shapes;
}

std::vector<std::pair<std::string, std::string>> Libraries() {
  std::vector<std::pair<std::string, std::string>> libraries = {{"wisp", kernels::BestOps().name}};
#ifdef WISP_PEER_OPENBLAS
  libraries.push_back({"openblas", DescribeOpenBlas()});
#endif
#ifdef WISP_PEER_ONEDNN
  libraries.push_back({"onednn", DescribeOneDnn()});
#endif
#ifdef WISP_PEER_EIGEN
  libraries.push_back({"eigen", DescribeEigen()});
#endif
#ifdef WISP_PEER_XNNPACK
  libraries.push_back({"xnnpack", DescribeXnnpack()});
#endif
  return libraries;
}

bool Parse(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return false;
    const std::string value = argv[i + 1];
    char* end = nullptr;
    const long number = std::strtol(value.c_str(), &end, 10);
    const bool is_number = !value.empty() && *end == '\0' && number >= 0 && number <= 1000000;
    if (name == "--rounds" && is_number && number > 0) {
      a.rounds = static_cast<uint32_t>(number);
    } else if (name == "--cpu" && is_number) {
      a.cpu = static_cast<int>(number);
    } else if (name == "--only") {
      a.only = value;
    } else if (name == "--json") {
      a.json = value;
    } else {
      return false;
    }
  }
  return true;
}

Json ToJson(const Spread& s) { return {{"median", s.median}, {"quartiles", {s.low, s.high}}}; }

Json OverPeer(const Measured& peer) { return {{"peer", peer.contender}, {"ratio", ToJson(peer.ours_over_this)}}; }

void PrintCell(const Cell& cell) {
  const Shape& s = cell.shape;
  std::printf("\n%s, %s: rows %zu, n %zu, k %zu; peak %.0f GFLOP/s\n", s.name, GetName(s.orientation), s.rows, s.n, s.k,
              cell.peak_gflops);
  for (const Measured& m : cell.measured) {
    if (!m.agrees) {
      std::printf("  %-14s DISAGREES: error %.3g * 2^-24 sum|ab|\n", m.contender.c_str(), m.error);
      continue;
    }
    std::printf("  %-14s %7.1f [%6.1f %6.1f]  %5.1f%% of peak  ours/this %5.2f [%5.2f %5.2f]", m.contender.c_str(),
                m.gflops.median, m.gflops.low, m.gflops.high, m.percent_of_peak.median, m.ours_over_this.median,
                m.ours_over_this.low, m.ours_over_this.high);
    if (m.packs_ahead) std::printf("  packing ahead %.1f us", m.pack_us.median);
    std::printf("%s%s\n", m.implementation.empty() ? "" : "  ", m.implementation.c_str());
  }
  std::fflush(stdout);
}

void WriteCell(const Cell& cell, std::FILE* file) {
  const Shape& s = cell.shape;
  const Measured* best = cell.Best(false);
  const Measured* same = cell.Best(true);
  for (const Measured& m : cell.measured) {
    Json line = {{"shape", s.name},
                 {"orientation", GetName(s.orientation)},
                 {"rows", s.rows},
                 {"n", s.n},
                 {"k", s.k},
                 {"contender", m.contender},
                 {"implementation", m.implementation},
                 {"agrees", m.agrees}};
    line["error"] = std::isfinite(m.error) ? Json(m.error) : Json();
    if (m.agrees) {
      line["gflops"] = ToJson(m.gflops);
      line["percent_of_peak"] = ToJson(m.percent_of_peak);
      line["ours_over_this"] = ToJson(m.ours_over_this);
      if (m.packs_ahead) line["pack_us"] = ToJson(m.pack_us);
      line["fma_peak_gflops"] = cell.peak_gflops;
    }
    if (&m == &cell.measured[0]) {
      if (best != nullptr) line["ours_over_best"] = OverPeer(*best);
      if (same != nullptr) line["ours_over_best_same_work"] = OverPeer(*same);
    }
    std::fprintf(file, "%s\n", line.dump().c_str());
  }
  std::fflush(file);
}

// The geometric mean of the ratio of ours to the best peer, over the cells of one orientation (null: all cells).
struct GeometricMean {
  double value = 1;
  size_t cells = 0;
};

GeometricMean MeanRatio(const std::vector<Cell>& cells, const Orientation* only, bool same_work) {
  double sum = 0;
  size_t count = 0;
  for (const Cell& c : cells) {
    const Measured* best = c.Best(same_work);
    if ((only != nullptr && c.shape.orientation != *only) || best == nullptr) continue;
    sum += std::log(best->ours_over_this.median);
    ++count;
  }
  return {count == 0 ? 1 : std::exp(sum / static_cast<double>(count)), count};
}

void PrintSummary(const std::vector<Cell>& cells, std::FILE* file) {
  std::printf("\n%-14s %-16s %16s %8s %8s %7s  %-14s %s\n", "shape", "orientation", "rows x n x k", "ours", "% peak",
              "best", "peer", "ours/best [quartiles]");
  for (const Cell& c : cells) {
    const Measured* best = c.Best(false);
    const Measured* same = c.Best(true);
    if (best == nullptr || same == nullptr) continue;
    const std::string size =
        std::to_string(c.shape.rows) + "x" + std::to_string(c.shape.n) + "x" + std::to_string(c.shape.k);
    std::printf("%-14s %-16s %16s %8.1f %8.1f %7.1f  %-14s %5.2f [%4.2f %4.2f]", c.shape.name,
                GetName(c.shape.orientation), size.c_str(), c.measured[0].gflops.median,
                c.measured[0].percent_of_peak.median, best->gflops.median, best->contender.c_str(),
                best->ours_over_this.median, best->ours_over_this.low, best->ours_over_this.high);
    if (same != best)
      std::printf("  packed ahead; same work: %s %.2f", same->contender.c_str(), same->ours_over_this.median);
    std::printf("\n");
  }
  const Orientation orientations[] = {Orientation::kForward, Orientation::kBackwardInput, Orientation::kBackwardWeight};
  std::printf("\ngeometric mean of ours/best peer (above 1: ours is faster)\n");
  Json line;
  const auto report = [&](const char* name, const Orientation* o) {
    const GeometricMean any = MeanRatio(cells, o, false), same = MeanRatio(cells, o, true);
    if (any.cells == 0) return;
    std::printf("  %-16s %.3f, against peers that do the same work per call %.3f (%zu cells)\n", name, any.value,
                same.value, any.cells);
    line[name] = {{"ours_over_best", any.value}, {"ours_over_best_same_work", same.value}, {"cells", any.cells}};
  };
  for (const Orientation& o : orientations) report(GetName(o), &o);
  report("all", nullptr);
  if (file != nullptr) std::fprintf(file, "%s\n", Json{{"geometric_means", line}}.dump().c_str());
}

int Run(const Arguments& a) {
  if (a.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(a.cpu), &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
      std::fprintf(stderr, "--cpu %d: this program may not run there\n", a.cpu);
      return 2;
    }
  }
  std::FILE* file = a.json.empty() ? nullptr : std::fopen(a.json.c_str(), "w");
  if (file == nullptr && !a.json.empty()) {
    std::fprintf(stderr, "%s: cannot be written\n", a.json.c_str());
    return 2;
  }
  Json libraries;
  for (const auto& [name, text] : Libraries()) {
    std::printf("%-9s %s\n", name.c_str(), text.c_str());
    libraries[name] = text;
  }
  if (file != nullptr) std::fprintf(file, "%s\n", Json{{"libraries", libraries}, {"rounds", a.rounds}}.dump().c_str());

  const double others_before = OtherThreadsSeconds();
  std::vector<Cell> cells;
  bool all_agree = true;
  for (const Shape& shape : Shapes()) {
    if ((std::string(shape.name) + " " + GetName(shape.orientation)).find(a.only) == std::string::npos) continue;
    cells.push_back(MeasureCell(shape, a.rounds));
    for (const Measured& m : cells.back().measured) all_agree = all_agree && m.agrees;
    PrintCell(cells.back());
    if (file != nullptr) WriteCell(cells.back(), file);
  }
  if (cells.empty()) {
    std::fprintf(stderr, "--only '%s': no product is called so\n", a.only.c_str());
    if (file != nullptr) std::fclose(file);
    return 2;
  }
  PrintSummary(cells, file);
  const double others = OtherThreadsSeconds() - others_before;
  if (file != nullptr) std::fclose(file);
  if (others > 0.01)
    std::fprintf(stderr, "a library used other threads: %.3f s; these figures are not of one thread\n", others);
  if (!all_agree) std::fprintf(stderr, "a result does not agree; see above\n");
  return others > 0.01 || !all_agree ? 1 : 0;
}

}  // namespace
}  // namespace wisp::bench

int main(int argc, char** argv) {
  wisp::bench::Arguments arguments;
  if (!wisp::bench::Parse(argc, argv, arguments)) {
    std::fprintf(
        stderr,
        "usage: gemm_peers [--rounds N] [--only TEXT] [--cpu N] [--json FILE]\n"
        "  --rounds  batches of every contender for each product (41)\n"
        "  --only    only products whose \"shape orientation\" contains this, for example \"d64\" or \"backward\"\n"
        "  --cpu     stay on this processor\n"
        "  --json    also write lines of JSON there\n");
    return 2;
  }
  return wisp::bench::Run(arguments);
}
