// Carries over what was learned to a new base, which comes with an app's update or has new items.
//
//   WISP_ASSIGN_OR_RETURN(const RebaseResult moved, Rebase({.from = "base-1.wisp", .to = "base-2.wisp",
//       .output = "mine.wisp", .ledger = "log.ledger"}));
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
  // The plan's ledger, which says whether anything carried over could still be served. Read only if something was
  // learned; never written.
  std::string ledger;
  // True: what was learned and is served is given up where it could never be served on the new base.
  bool start_over = false;
  std::string created_by = {};
};

struct RebaseResult {
  // False if nothing was learned yet or, with `start_over`, if what was learned could not be carried over or not be
  // served. Training then starts from the new base, with what the plan has left.
  bool carried = false;
  std::string why_not;
  std::string damaged;        // sentences about files that could not be read and are lost; empty: none
  uint32_t shared_items = 0;  // items of both bases
  uint32_t lost_items = 0;    // items of the old base alone: what was learned of them is lost
};

// kInvalidArgument: `output` was personalised from another base than `from`; or, without `start_over`, what was learned
// would never be served again, because it cannot be carried over or the plan has no step or evaluation left. Nothing
// has changed then. kPrivacyRefused: the ledger has no plan. kIo: the disk, or a run is running. It
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
