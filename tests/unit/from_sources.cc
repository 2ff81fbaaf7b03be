#include "tests/unit/from_sources.h"

namespace wisp::test {

std::string FromSources(const std::string& path) { return WISP_SOURCE_DIR "/" + path; }

}  // namespace wisp::test
