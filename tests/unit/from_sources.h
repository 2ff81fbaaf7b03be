#ifndef WISP_TESTS_UNIT_FROM_SOURCES_H_
#define WISP_TESTS_UNIT_FROM_SOURCES_H_

#include <string>

namespace wisp::test {

// Returns the path of a file or folder of the sources, given its path from their root. Only one source knows the
// checkout's path, so no other unit test is compiled again for each checkout.
std::string FromSources(const std::string& path);

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_FROM_SOURCES_H_
