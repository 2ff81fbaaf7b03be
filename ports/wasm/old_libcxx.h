// Parts of C++20's library that wisp uses and Emscripten 3.1.6 lacks (Debian 12; its libc++ is that of LLVM 13). The
// build of ports/wasm includes it ahead of every unit; newer Emscriptens skip it.
#ifndef WISP_PORTS_WASM_OLD_LIBCXX_H_
#define WISP_PORTS_WASM_OLD_LIBCXX_H_
#if defined(__cplusplus)
#include <version>
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
#endif
#endif  // WISP_PORTS_WASM_OLD_LIBCXX_H_
