// What is wrong with a cell that trains, found before anything is run: hours later is too late.
#ifndef WISP_TOOLS_WISP_REPRODUCE_CHECK_CELL_H_
#define WISP_TOOLS_WISP_REPRODUCE_CHECK_CELL_H_

#include "tools/wisp/reproduce/reproduction.h"

namespace wisp::tools {

// The checks that training makes of its options, with as many users and items as the table says. Where it does not
// say, what depends on them is left to the run. Charges nothing but a ledger of its own that is thrown away. Errors
// name table and cell.
Status CheckTrainingCell(const Reproduction& table, const ReproductionCell& cell);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_REPRODUCE_CHECK_CELL_H_
