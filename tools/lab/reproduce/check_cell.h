// Finds mistakes in a cell that trains before anything runs, because a run may take hours.
#ifndef WISP_TOOLS_LAB_REPRODUCE_CHECK_CELL_H_
#define WISP_TOOLS_LAB_REPRODUCE_CHECK_CELL_H_

#include "tools/lab/reproduce/reproduction.h"

namespace wisp::tools {

// Runs the checks that training makes of its options, with the table's numbers of users and items. If the table does
// not say them, checks that depend on them are left to the run. It charges only a temporary ledger of its own. Errors
// name table and cell.
Status CheckTrainingCell(const Reproduction& table, const ReproductionCell& cell);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_LAB_REPRODUCE_CHECK_CELL_H_
