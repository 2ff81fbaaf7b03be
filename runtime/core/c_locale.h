// Runs C functions that depend on the program's locale in the locale "C", so that an app's language changes no number
// and no sentence.
//
//   { const InCLocale here;  std::snprintf(text, sizeof text, "%.3f", 0.5); }   // "0.500", never "0,500"
//
// Call these functions only through decimal.h, date.h and reason.h; tests/structure.sh rejects other calls.
#ifndef WISP_RUNTIME_CORE_C_LOCALE_H_
#define WISP_RUNTIME_CORE_C_LOCALE_H_

#if defined(_WIN32)
#include <locale.h>

#include <string>
#include <string_view>
#elif !defined(__ANDROID__) && !defined(__wasm__)  // these systems have no other locale
#define WISP_HAS_LOCALES 1
#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#endif

namespace wisp {

// Sets the locale "C" for the thread that creates it, as long as it lives.
class InCLocale {
 public:
#if defined(_WIN32)
  InCLocale() : by_thread_(_configthreadlocale(_ENABLE_PER_THREAD_LOCALE)) {
    const char* before = setlocale(LC_ALL, nullptr);
    if (before != nullptr && std::string_view(before) != "C") before_ = before;
    if (!before_.empty()) setlocale(LC_ALL, "C");
  }
  ~InCLocale() {
    if (!before_.empty()) setlocale(LC_ALL, before_.c_str());
    _configthreadlocale(by_thread_);
  }
  InCLocale(const InCLocale&) = delete;
  InCLocale& operator=(const InCLocale&) = delete;

 private:
  int by_thread_;       // whether each thread has a locale of its own
  std::string before_;  // empty for "C"
#elif defined(WISP_HAS_LOCALES)
  InCLocale() : c_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(c_)) {}
  ~InCLocale() {
    uselocale(before_);
    if (c_ != locale_t{}) freelocale(c_);
  }
  InCLocale(const InCLocale&) = delete;
  InCLocale& operator=(const InCLocale&) = delete;

 private:
  locale_t c_, before_;
#else
  InCLocale() {}
#endif
};

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_C_LOCALE_H_
