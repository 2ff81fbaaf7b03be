#ifndef WISP_TESTS_UNIT_FROM_SOURCES_H_
#define WISP_TESTS_UNIT_FROM_SOURCES_H_

#include <string>

namespace wisp::test {

// Where a file or folder of the sources lies, by its path from their root. Its source alone is compiled anew for each checkout.
std::string FromSources(const std::string& path);

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_FROM_SOURCES_H_
