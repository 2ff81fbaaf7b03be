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
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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
  kTooEarly,         // a planned run came before its time: the same request is right later
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

// A piece of a text as it passes through `...`.
struct ViewPiece {
  const char* text;
  size_t size;
};
inline const char* AsPiece(const char* text) { return text; }
inline const std::string* AsPiece(const std::string& text) { return &text; }
inline ViewPiece AsPiece(std::string_view text) { return {text.data(), text.size()}; }
inline double AsPiece(double number) { return number; }
inline float AsPiece(float number) { return number; }
template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) auto AsPiece(T number) {
  return static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(number);
}

enum class PieceKind : uint8_t { kNone, kText, kString, kView, kSigned, kUnsigned, kFloat, kDouble };
constexpr int kPieceBits = 3;  // a PieceKind or a StatusCode

template <typename T>
constexpr PieceKind KindOfPiece() {
  using Piece = decltype(AsPiece(std::declval<const T&>()));
  return std::is_same_v<Piece, const char*>          ? PieceKind::kText
         : std::is_same_v<Piece, const std::string*> ? PieceKind::kString
         : std::is_same_v<Piece, ViewPiece>          ? PieceKind::kView
         : std::is_same_v<Piece, int64_t>            ? PieceKind::kSigned
         : std::is_same_v<Piece, uint64_t>           ? PieceKind::kUnsigned
         : std::is_same_v<Piece, float>              ? PieceKind::kFloat
                                                     : PieceKind::kDouble;
}

// Lowest bits first: the code, and the kind of each piece.
template <StatusCode kCode, typename... P>
constexpr uint64_t LayoutOfPieces() {
  static_assert((1 + sizeof...(P)) * kPieceBits <= 64, "a text has at most 20 pieces");
  uint64_t layout = static_cast<uint64_t>(kCode);
  int at = 0;
  ((layout |= static_cast<uint64_t>(KindOfPiece<P>()) << (at += kPieceBits)), ...);
  return layout;
}

[[gnu::noinline]] inline void AppendPieces(std::string& text, uint64_t layout, va_list pieces) {
  constexpr uint64_t kMask = (1 << kPieceBits) - 1;
  // The shortest digits: 0.1 is "0.1", as float and as double. The locale does not change the point.
  char digits[40];
  char* const end = digits + sizeof digits;
  for (uint64_t rest = layout >> kPieceBits; rest != 0; rest >>= kPieceBits) {
    ViewPiece piece = {digits, 0};
    const char* written = digits;
    switch (static_cast<PieceKind>(rest & kMask)) {
      case PieceKind::kNone:
        break;
      case PieceKind::kText:
        text += va_arg(pieces, const char*);
        break;
      case PieceKind::kString:
        text += *va_arg(pieces, const std::string*);
        break;
      case PieceKind::kView:
        piece = va_arg(pieces, ViewPiece);
        break;
      case PieceKind::kSigned:
        written = std::to_chars(digits, end, va_arg(pieces, int64_t)).ptr;
        break;
      case PieceKind::kUnsigned:
        written = std::to_chars(digits, end, va_arg(pieces, uint64_t)).ptr;
        break;
      case PieceKind::kFloat:
        written = WriteDecimal(digits, va_arg(pieces, double), 6);
        break;
      case PieceKind::kDouble:
        written = WriteDecimal(digits, va_arg(pieces, double), 9);
        break;
    }
    text.append(piece.text, piece.size).append(digits, static_cast<size_t>(written - digits));
  }
}

// Messages are joined in many places. With varargs each place takes little more code than the addresses of its pieces.
// If memory runs out, va_end is not reached, which leaks nothing.
[[gnu::noinline]] inline std::string JoinPieces(uint64_t layout, ...) {  // NOLINT: JoinText checks the kinds
  std::string text;
  va_list pieces;
  va_start(pieces, layout);
  AppendPieces(text, layout, pieces);
  va_end(pieces);
  return text;
}
[[gnu::noinline]] inline Status JoinError(uint64_t layout, ...) {  // NOLINT: MakeError checks the kinds
  std::string sentence;
  va_list pieces;
  va_start(pieces, layout);
  AppendPieces(sentence, layout, pieces);
  va_end(pieces);
  return {static_cast<StatusCode>(layout & ((1 << kPieceBits) - 1)), std::move(sentence)};
}

// JoinText(path, " has ", count, " rows")
template <typename... P>
[[gnu::always_inline]] inline std::string JoinText(const P&... p) {
  constexpr uint64_t kLayout = LayoutOfPieces<StatusCode::kOk, P...>();
  return JoinPieces(kLayout, AsPiece(p)...);
}

template <StatusCode kCode, typename... P>
[[gnu::always_inline]] inline Status MakeError(const P&... p) {
  constexpr uint64_t kLayout = LayoutOfPieces<kCode, P...>();
  return JoinError(kLayout, AsPiece(p)...);
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
