// Carries over what was learned to a new base, which comes with an app's update or has new items.
//
//   WISP_ASSIGN_OR_RETURN(const RebaseResult moved, Rebase({.from = "base-1.wisp", .to = "base-2.wisp",
//                                                           .output = "mine.wisp"}));
//
// The change that training made to the old base is added to the new one: to rows of items by their keys, to everything
// else by its position. People are served the new base until an evaluation finds the carried model better than it, so a
// rebase makes nothing worse. It is post-processing: nothing is charged, and what was spent stays spent.
#ifndef WISP_RUNTIME_PERSONALISE_REBASE_H_
#define WISP_RUNTIME_PERSONALISE_REBASE_H_

#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/model_file.h"

namespace wisp {

struct RebaseOptions {
  std::string from, to;  // files of the old base and the new one
  std::string output;    // the served model (plan_files.h)
  std::string created_by = {};
};

struct RebaseResult {
  // False if nothing was learned yet, if shapes differ in more than the number of items, or if the new base was not
  // trained from the old one. Training then starts from the new base, with what the plan has left.
  bool carried = false;
  std::string why_not;
  std::string damaged;        // sentences about files that could not be read and are lost; empty: none
  uint32_t shared_items = 0;  // items of both bases
  uint32_t lost_items = 0;    // items of the old base alone: what was learned of them is lost
};

// kInvalidArgument: `output` was personalised from another base than `from`. kIo: the disk, or a run is running. It
// may be repeated after a power cut, and then finishes what it began.
Result<RebaseResult> Rebase(const RebaseOptions& options);

// Rebase for an adapter that `wisp train` made beside a model: afterwards its matrices fit the new base.
struct RebaseAdapterOptions {
  std::string from, adapter;  // the old base, and the adapter beside it
  std::string to, output;     // the new base, and the file of its new adapter
  std::string created_by = {};
};
// Nothing is charged. kInvalidArgument: the bases differ in more than their items, or the new one was not trained from
// the old one. kInvalidData: an adapter of another base.
Status RebaseAdapter(const RebaseAdapterOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_REBASE_H_
