// How statuses, exceptions and sized option structs cross the C interface. Not part of it.
#ifndef WISP_PORTS_C_STATUS_C_H_
#define WISP_PORTS_C_STATUS_C_H_

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <type_traits>

#include "ports/c/wisp.h"
#include "runtime/core/served_list.h"
#include "runtime/core/status.h"
#include "runtime/core/text.h"

namespace wisp {
class Session;
}

namespace wisp::ports {

inline wisp_code CodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return WISP_OK;
    case StatusCode::kInvalidArgument:
      return WISP_INVALID_ARGUMENT;
    case StatusCode::kInvalidData:
      return WISP_INVALID_DATA;
    case StatusCode::kIo:
      return WISP_IO;
    case StatusCode::kUnsupported:
      return WISP_UNSUPPORTED;
    case StatusCode::kPrivacyRefused:
      return WISP_PRIVACY_REFUSED;
    case StatusCode::kCancelled:
      return WISP_CANCELLED;
  }
  return WISP_INTERNAL;
}

// How many of its bytes fit into `most`, without a character in two.
inline size_t SizeWithin(const char* text, size_t most) {
  size_t size = std::strlen(text);
  if (size <= most) return size;
  size = most;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  return size;
}

inline wisp_code Report(wisp_error* error, wisp_code code, const char* message) {
  if (error == nullptr) return code;
  error->code = code;
  const size_t size = SizeWithin(message, sizeof(error->message) - 1);
  std::memcpy(error->message, message, size);
  error->message[size] = '\0';
  return code;
}

// An exception, which may be a callback's, comes at any time: behind a charge too. Takes no memory.
inline wisp_code ReportThrown(wisp_error* error, const char* what) {
  constexpr char kStays[] = "; what a ledger was charged before stays charged";
  char message[sizeof(wisp_error::message)];
  const size_t size = SizeWithin(what, sizeof(message) - sizeof(kStays));
  std::memcpy(message, what, size);
  std::memcpy(message + size, kStays, sizeof(kStays));
  return Report(error, WISP_INTERNAL, message);
}

// Runs `work`, which returns a Status; lets no exception out. `error` may be null.
template <class Work>
wisp_code Guarded(wisp_error* error, Work&& work) {
  try {
    const Status status = work();
    return Report(error, CodeOf(status.code()), OneLine(status.message()).c_str());
  } catch (const std::bad_alloc&) {
    return ReportThrown(error, "out of memory");
  } catch (const std::exception& exception) {
    return ReportThrown(error, exception.what());
  } catch (...) {
    return ReportThrown(error, "a callback threw what is no std::exception");
  }
}

inline std::string Text(const char* text) { return text == nullptr ? "" : text; }

// A size that some version may have had: no field is cut in two.
inline Status CheckSize(size_t size, const char* name) {
  if (size >= sizeof(size_t) && size <= 4096 && size % alignof(size_t) == 0) return OkStatus();
  return InvalidArgument(name, ": size is ", size, "; set it with WISP_INIT");
}

// OptionsOf for any struct, of which this version knows `known` bytes.
inline Status CopyOptions(const void* given, void* options, size_t known, const char* name) {
  size_t size = 0;  // the first field
  std::memcpy(&size, given, sizeof(size));
  WISP_RETURN_IF_ERROR(CheckSize(size, name));
  // A newer caller: what this version does not know must not have been asked for.
  for (size_t i = known; i < size; ++i) {
    if (static_cast<const unsigned char*>(given)[i] != 0)
      return Unsupported(name, ": it has options that this version does not know");
  }
  std::memcpy(options, given, size < known ? size : known);
  return OkStatus();
}

// The options as this version knows them: fields that an older caller does not have are zero. Null: all zero.
template <class Options>
Result<Options> OptionsOf(const Options* given, const char* name) {
  Options options{};
  if (given != nullptr) WISP_RETURN_IF_ERROR(CopyOptions(given, &options, sizeof(Options), name));
  options.size = sizeof(Options);
  return options;
}

// The number in a field of an enum's type. C lets a caller put any there; reading one that is out of the enum's range
// would be undefined.
template <class Enum>
int32_t NumberOf(const Enum& field) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int32_t));
  int32_t number = 0;
  std::memcpy(&number, &field, sizeof(number));
  return number;
}

// A list as the caller gives it. `num` without a list is an error; a list of none is not the same as no list. A number
// beyond those of any list, such as (size_t)-1, is another function's failure that nobody looked at.
inline Status CheckList(const char* function, const void* list, size_t num) {
  if (list == nullptr && num > 0) return InvalidArgument(function, ": a list is NULL but its number is not 0");
  if (num <= INT32_MAX) return OkStatus();
  return InvalidArgument(function, ": the number of a list is ", num, ", allowed are 0 to ", INT32_MAX);
}

// How many items are wanted, of the `count` asked for: none where only candidates are wanted and there are none.
inline size_t CountOf(const wisp_recommend_options& options, size_t count) {
  return options.candidates != nullptr && options.num_candidates == 0 ? 0 : count;
}

// Reads what a call says of items of the history.
inline Result<SeenItems> SeenOf(const wisp_recommend_options& options) {
  switch (options.allow_seen) {
    case 0:
      return SeenItems::kAsModel;
    case 1:
      return SeenItems::kAllow;
    case 2:
      return SeenItems::kExclude;
    default:
      return InvalidArgument("wisp_recommend_options.allow_seen is ", options.allow_seen,
                             ", allowed are 0 (as the model says), 1 (allowed) and 2 (not allowed)");
  }
}

// Fills a caller's sized struct as far as it goes; its size stays the caller's.
template <class Filled>
Status FillResult(const Filled& filled, Filled* out, const char* name) {
  const size_t size = out->size;
  WISP_RETURN_IF_ERROR(CheckSize(size, name));
  std::memcpy(out, &filled, size < sizeof(Filled) ? size : sizeof(Filled));
  out->size = size;
  return OkStatus();
}

// The app's threads as the library's; none where it lends none. The task's address is what the app is told: it outlives
// every call (Executor).
inline std::function<void(size_t, const std::function<void(size_t)>&)> ExecutorOf(wisp_run_tasks run_tasks,
                                                                                  void* data) {
  if (run_tasks == nullptr) return {};
  return [run_tasks, data](size_t num_tasks, const std::function<void(size_t)>& task) {
    run_tasks(
        data, num_tasks, [](void* t, size_t index) { (*static_cast<const std::function<void(size_t)>*>(t))(index); },
        const_cast<std::function<void(size_t)>*>(&task));
  };
}

const Session& SessionOf(const wisp_model* model);
Session& SessionOf(wisp_model* model);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_STATUS_C_H_
