// Errors as values: a code that a program can branch on and a sentence a person can act on.
//
//   Result<Model> model = Model::Open(path);
//   if (!model.ok()) return model.status();
//   Use(*model);
//
// The message names the file, the value found and what is allowed. Nothing here prints or aborts. std::bad_alloc is
// thrown where a message cannot be allocated.
// Depends on nothing else of the runtime. `runtime/privacy` uses this header, decimal.h, text.h and little else of
// ours.
#ifndef WISP_RUNTIME_CORE_STATUS_H_
#define WISP_RUNTIME_CORE_STATUS_H_

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/decimal.h"

namespace wisp {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,  // the caller asked for something that does not exist or is out of range
  kInvalidData,      // a file or a record is malformed, truncated or contradicts itself
  kIo,               // the operating system refused: not found, no permission, disk full
  kUnsupported,      // well-formed, but from a newer version or not in this build
  kPrivacyRefused,   // the request has no guarantee, or would pass the budget
  kCancelled,        // the caller's progress callback asked to stop
};

// g++ -Os would call these functions, which makes the code larger than inlining them. With clang it is the other way
// round.
#if defined(__clang__)
#define WISP_INLINE_FOR_SIZE
#else
#define WISP_INLINE_FOR_SIZE [[gnu::always_inline]]
#endif

// Holds one pointer, null for OK: nearly every call returns a Status, and nearly all are OK. Moving and testing are
// inline; code that only a failure runs is not. A moved-from Status is OK.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // kOk takes no message.
  [[gnu::noinline]] Status(StatusCode code, std::string message)
      : failure_(code == StatusCode::kOk ? nullptr : new Failure{code, std::move(message)}) {}
  [[gnu::noinline]] Status(const Status& other) : failure_(other.ok() ? nullptr : new Failure(*other.failure_)) {}
  WISP_INLINE_FOR_SIZE Status(Status&& other) noexcept : failure_(std::exchange(other.failure_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(failure_, other.failure_);
    return *this;
  }
  WISP_INLINE_FOR_SIZE ~Status() {
    if (failure_ != nullptr) Delete(failure_);
  }

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : failure_->code; }
  // Empty if the status is OK.
  [[gnu::noinline]] const std::string& message() const {
    static const std::string none;
    return ok() ? none : failure_->message;
  }

 private:
  struct Failure {
    StatusCode code;
    std::string message;
  };
  [[gnu::noinline]] static void Delete(const Failure* failure) { delete failure; }

  const Failure* failure_ = nullptr;
};

inline Status OkStatus() { return Status(); }

// One piece of a message: text, or a number that is written in decimal. It refers to the caller's text: use it as an
// argument, do not store it.
class Part {
 public:
  // NOLINT: implicit on purpose.
  Part(std::string_view text) : kind_(Kind::kText), text_(text.data()), value_(text.size()) {}
  Part(const char* text) : Part(std::string_view(text)) {}         // NOLINT
  Part(const std::string& text) : Part(std::string_view(text)) {}  // NOLINT
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Part(T number)  // NOLINT
      : kind_(number < 0 ? Kind::kNegative : Kind::kPositive),
        value_(number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number)) {}
  Part(double number) : kind_(Kind::kDouble), number_(number) {}  // NOLINT
  Part(float number) : kind_(Kind::kFloat), number_(number) {}    // NOLINT

  [[gnu::noinline]] void AppendTo(std::string& sentence) const {
    if (kind_ == Kind::kText) {
      sentence.append(text_, static_cast<size_t>(value_));
      return;
    }
    // The shortest digits: 0.1 is "0.1", as float and as double. The locale does not change the point.
    char digits[40];
    char* const end = digits + sizeof digits;
    if (kind_ == Kind::kNegative) sentence += '-';
    const bool whole = kind_ == Kind::kNegative || kind_ == Kind::kPositive;
    const char* const written =
        whole ? std::to_chars(digits, end, value_).ptr : WriteDecimal(digits, number_, kind_ == Kind::kFloat ? 6 : 9);
    sentence.append(digits, static_cast<size_t>(written - digits));
  }

 private:
  enum class Kind : uint8_t { kText, kPositive, kNegative, kFloat, kDouble };
  Kind kind_;
  const char* text_ = "";
  union {
    uint64_t value_;  // the whole number, or the length of the text
    double number_;
  };
};

// Not inlined: there are many messages, and each would repeat the code that joins its pieces.
[[gnu::noinline]] inline Status JoinError(StatusCode code, const Part* parts, size_t count) {
  std::string sentence;
  for (size_t i = 0; i < count; ++i) parts[i].AppendTo(sentence);
  return {code, std::move(sentence)};
}

template <StatusCode kCode, typename... Parts>
Status MakeError(const Parts&... given) {
  const Part parts[] = {given...};
  return JoinError(kCode, parts, sizeof...(given));
}

// InvalidArgument(path, ": has ", count, " rows, allowed are 2 and above")
template <typename... P>
[[gnu::always_inline]] inline Status InvalidArgument(const P&... p) {
  return MakeError<StatusCode::kInvalidArgument>(p...);
}
template <typename... P>
[[gnu::always_inline]] inline Status InvalidData(const P&... p) {
  return MakeError<StatusCode::kInvalidData>(p...);
}
template <typename... P>
[[gnu::always_inline]] inline Status IoError(const P&... p) {
  return MakeError<StatusCode::kIo>(p...);
}
template <typename... P>
[[gnu::always_inline]] inline Status Unsupported(const P&... p) {
  return MakeError<StatusCode::kUnsupported>(p...);
}
template <typename... P>
[[gnu::always_inline]] inline Status PrivacyRefused(const P&... p) {
  return MakeError<StatusCode::kPrivacyRefused>(p...);
}
template <typename... P>
[[gnu::always_inline]] inline Status Cancelled(const P&... p) {
  return MakeError<StatusCode::kCancelled>(p...);
}

// Either a value or the error that prevented it. Dereferencing an error is a programming mistake. A moved-from Result
// is neither: assign to it or destroy it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  // Returns by value, so that `for (x : *f())` does not iterate over a destroyed temporary.
  T operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace wisp

#define WISP_CONCAT_INNER(a, b) a##b
#define WISP_CONCAT(a, b) WISP_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expr` (a Status) is an error.
#define WISP_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                 \
    if (::wisp::Status wisp_status_ = (expr); !wisp_status_.ok()) return wisp_status_; \
  } while (false)

// `WISP_ASSIGN_OR_RETURN(auto file, Open(path));`
#define WISP_ASSIGN_OR_RETURN(lhs, expr) WISP_ASSIGN_OR_RETURN_IMPL(WISP_CONCAT(wisp_result_, __LINE__), lhs, expr)
#define WISP_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return std::move(tmp).status();   \
  lhs = *std::move(tmp)

#endif  // WISP_RUNTIME_CORE_STATUS_H_
