// Finds the columns of user, item and time in formats that name their columns.
#ifndef WISP_RUNTIME_DATA_COLUMNS_H_
#define WISP_RUNTIME_DATA_COLUMNS_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/sequences.h"

namespace wisp::data {

struct Columns {
  size_t user = 0, item = 0;
  std::optional<size_t> time;  // absent with TimeSource::kFileOrder
};

// An error lists the columns present if one is missing, or if a requested one appears twice. The message starts with
// `where`.
Result<Columns> ChooseColumns(const std::string& where, const std::vector<std::string>& present,
                              const ReadOptions& options);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_COLUMNS_H_
