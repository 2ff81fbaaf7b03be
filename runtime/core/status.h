// Errors as values: a code that a program can branch on and a sentence a person can act on.
//
//   Result<Model> model = Model::Open(path);
//   if (!model.ok()) return model.status();
//   Use(*model);
//
// The sentence names the file, the value found and what is allowed. Nothing here prints, throws or aborts.
// No dependency on the rest of the runtime: `runtime/privacy` uses this header and nothing else of ours.
#ifndef WISP_RUNTIME_CORE_STATUS_H_
#define WISP_RUNTIME_CORE_STATUS_H_

#include <optional>
#include <string>
#include <utility>

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

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return Status(); }
inline Status InvalidArgument(std::string m) { return {StatusCode::kInvalidArgument, std::move(m)}; }
inline Status InvalidData(std::string m) { return {StatusCode::kInvalidData, std::move(m)}; }
inline Status IoError(std::string m) { return {StatusCode::kIo, std::move(m)}; }
inline Status Unsupported(std::string m) { return {StatusCode::kUnsupported, std::move(m)}; }
inline Status PrivacyRefused(std::string m) { return {StatusCode::kPrivacyRefused, std::move(m)}; }
inline Status Cancelled(std::string m) { return {StatusCode::kCancelled, std::move(m)}; }

// Either a value or the reason why there is none. Dereferencing an error is a programmer's mistake.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  // By value: `for (x : *f())` must not look into a temporary that is gone.
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
#define WISP_RETURN_IF_ERROR(expr)                   \
  do {                                               \
    if (::wisp::Status wisp_status_ = (expr); !wisp_status_.ok()) return wisp_status_; \
  } while (false)

// `WISP_ASSIGN_OR_RETURN(auto file, Open(path));`
#define WISP_ASSIGN_OR_RETURN(lhs, expr) \
  WISP_ASSIGN_OR_RETURN_IMPL(WISP_CONCAT(wisp_result_, __LINE__), lhs, expr)
#define WISP_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return tmp.status();              \
  lhs = *std::move(tmp)

#endif  // WISP_RUNTIME_CORE_STATUS_H_
