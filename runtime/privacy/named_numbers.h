// Named numbers on one line, "gains=1.5 squares=3": the ledger's form of values that are read back.
#ifndef WISP_RUNTIME_PRIVACY_NAMED_NUMBERS_H_
#define WISP_RUNTIME_PRIVACY_NAMED_NUMBERS_H_

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/core/decimal.h"
#include "runtime/privacy/json.h"

namespace wisp::privacy {

template <class Number>
void PutNumber(std::string& text, std::string_view name, Number number) {
  text += (text.empty() ? "" : " ") + std::string(name) + "=";
  if constexpr (std::is_floating_point_v<Number>) {
    text += DoubleText(number);
  } else {
    text += std::to_string(number);
  }
}

// Removes "name=number", and the space behind it, from the front. False if something else is there, or a number that is
// not finite.
template <class Number>
bool TakeNumber(std::string_view& rest, std::string_view name, Number& number) {
  if (!rest.starts_with(name) || rest.substr(name.size(), 1) != "=") return false;
  rest.remove_prefix(name.size() + 1);
  const auto [end, error] = ReadDecimal(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || !std::isfinite(static_cast<double>(number))) return false;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  if (rest.empty()) return true;
  if (rest.front() != ' ' || rest.size() == 1) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NAMED_NUMBERS_H_
