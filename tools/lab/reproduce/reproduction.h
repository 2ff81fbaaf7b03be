// A table of a paper as data. models/reproduce/<table>.json names a base recipe, and for each cell its changes to that
// recipe, its seeds, and the published figures. Reading is strict, as for a recipe; every cell's recipe is read and
// checked.
//
//   {"name": "t", "title": "...", "reference": "...", "data": {"label": "ML-1M", "users": 6040, "items": 3416,
//       "public": true},
//    "base": "../recipes/ml-1m-dp-10.json",                     relative to the table's file
//    "metrics": [{"field": "ndcg@10", "title": "NDCG@10 (%)", "scale": 100, "digits": 2}],
//    "cells": [{"row": "vanilla", "column": "5", "overrides": {"privacy": {"epsilon": 5}}, "seeds": [1, 2, 3],
//               "published": {"ndcg@10": 0.0457}}]}
//
// Cells of the kinds bench and decode are measured instead of trained. They have an object of settings and no seeds
// (measured_cell.h). Those of the kind baseline name a list without training, "popularity" or "transitions"
// (runtime/train/run/baselines.h), which learns from the events that the base recipe trains on.
//
// tools/lab/reproduce/draw.py reads the values that are only for plots (titles, metrics, plot, published, notes).
#ifndef WISP_TOOLS_LAB_REPRODUCE_REPRODUCTION_H_
#define WISP_TOOLS_LAB_REPRODUCE_REPRODUCTION_H_

#include <string>
#include <vector>

#include "tools/wisp/recipe/recipe.h"
#include "tools/lab/reproduce/measured_cell.h"

namespace wisp::tools {

struct ReproductionCell {
  enum class Kind {
    kTrain,   // one training run per seed
    kBench,   // steps of random records, timed
    kDecode,  // the perplexity of a model's private sampling
    kBaseline,
  };
  std::string row, column;
  Kind kind = Kind::kTrain;
  RunSpec recipe;            // base with overrides; for kTrain and kBaseline
  BenchCell bench;           // for kBench
  DecodeCell decode;         // for kDecode
  bool transitions = false;  // for kBaseline; false: popularity
  // hash of the merged recipe's text without its seed, or of the settings; 16 hexadecimal digits
  std::string recipe_hash;
  std::vector<uint64_t> seeds;  // for kTrain

  std::string Name() const { return row + "/" + column; }
};

struct Reproduction {
  std::string name, title, data_label, data_format = "auto";
  uint32_t users = 0, items = 0;  // of the required data; 0: not said
  // True if the table declares its data a public benchmark. The number of users must confirm that the data is that
  // benchmark.
  bool says_public = false;
  bool is_public() const { return says_public && users > 0; }
  std::vector<ReproductionCell> cells;
};

// `table` is the name of a file in models/reproduce, or a path that ends in .json.
Result<Reproduction> ReadReproduction(const std::string& table);

// Returns the cells called `name`, "ROW/COLUMN", or all for an empty name. kInvalidArgument lists the cells that there
// are.
Result<std::vector<const ReproductionCell*>> SelectCells(const Reproduction& table, const std::string& name);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_REPRODUCE_REPRODUCTION_H_
