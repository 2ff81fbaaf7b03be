// Which columns of a format that names them are the user, the item and the time.
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

// An error that lists the columns present when one is missing, or when one that is asked for is there twice.
// `where` starts the message.
Result<Columns> ChooseColumns(const std::string& where, const std::vector<std::string>& present,
                              const ReadOptions& options);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_COLUMNS_H_
