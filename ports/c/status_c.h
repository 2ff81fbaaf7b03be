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

inline wisp_code GetCode(StatusCode code) {
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
    case StatusCode::kTooEarly:
      return WISP_TOO_EARLY;
  }
  return WISP_INTERNAL;
}

// The number of bytes, at most `most`, that hold whole characters only.
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

// An exception, perhaps from a callback, can come at any time, also after a charge. This function allocates no memory.
inline wisp_code ReportThrown(wisp_error* error, const char* what) {
  constexpr char kStays[] = "; what a ledger was charged before stays charged";
  char message[sizeof(wisp_error::message)];
  const size_t size = SizeWithin(what, sizeof(message) - sizeof(kStays));
  std::memcpy(message, what, size);
  std::memcpy(message + size, kStays, sizeof(kStays));
  return Report(error, WISP_INTERNAL, message);
}

// Runs `work`, which returns a Status, and lets no exception out. `error` may be null.
template <class Work>
wisp_code Guarded(wisp_error* error, Work&& work) {
  try {
    const Status status = work();
    return Report(error, GetCode(status.code()), OneLine(status.message()).c_str());
  } catch (const std::bad_alloc&) {
    return ReportThrown(error, "out of memory");
  } catch (const std::exception& exception) {
    return ReportThrown(error, exception.what());
  } catch (...) {
    return ReportThrown(error, "a callback threw what is no std::exception");
  }
}

inline std::string Text(const char* text) { return text == nullptr ? "" : text; }

// Accepts a size that some version may have had. Others would cut a field in two.
inline Status CheckSize(size_t size, const char* name) {
  if (size >= sizeof(size_t) && size <= 4096 && size % alignof(size_t) == 0) return OkStatus();
  return InvalidArgument(name, ": size is ", size, "; set it with WISP_INIT");
}

// MakeOptions for any struct, of which this version knows the first `known` bytes.
inline Status CopyOptions(const void* given, void* options, size_t known, const char* name) {
  size_t size = 0;  // the struct's first field
  std::memcpy(&size, given, sizeof(size));
  WISP_RETURN_IF_ERROR(CheckSize(size, name));
  // A newer caller must not have asked for anything that this version does not know.
  for (size_t i = known; i < size; ++i) {
    if (static_cast<const unsigned char*>(given)[i] != 0)
      return Unsupported(name, ": it has options that this version does not know");
  }
  std::memcpy(options, given, size < known ? size : known);
  return OkStatus();
}

// The options as this version knows them. Fields that an older caller's struct lacks are zero; a null pointer means all
// zero.
template <class Options>
Result<Options> MakeOptions(const Options* given, const char* name) {
  Options options{};
  if (given != nullptr) WISP_RETURN_IF_ERROR(CopyOptions(given, &options, sizeof(Options), name));
  options.size = sizeof(Options);
  return options;
}

// Reads an enum field as a number. C lets a caller store any number there; reading one outside the enum's range as the
// enum would be undefined.
template <class Enum>
int32_t GetNumber(const Enum& field) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int32_t));
  int32_t number = 0;
  std::memcpy(&number, &field, sizeof(number));
  return number;
}

// Checks a caller's list. A number without a list is an error; an empty list differs from no list. A number above
// INT32_MAX, such as (size_t)-1, is the unchecked failure of another function.
inline Status CheckList(const char* function, const void* list, size_t num) {
  if (list == nullptr && num > 0) return InvalidArgument(function, ": a list is NULL but its number is not 0");
  if (num <= INT32_MAX) return OkStatus();
  return InvalidArgument(function, ": the number of a list is ", num, ", allowed are 0 to ", INT32_MAX);
}

// The number of items wanted: `count`, but 0 if only candidates are wanted and there are no candidates.
inline size_t GetCount(const wisp_recommend_options& options, size_t count) {
  return options.candidates != nullptr && options.num_candidates == 0 ? 0 : count;
}

// Reads whether items of the history may be recommended again.
inline Result<SeenItems> ReadSeen(const wisp_recommend_options& options) {
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

// Fills a caller's sized struct up to its size, which stays as the caller set it.
template <class Filled>
Status FillResult(const Filled& filled, Filled* out, const char* name) {
  const size_t size = out->size;
  WISP_RETURN_IF_ERROR(CheckSize(size, name));
  std::memcpy(out, &filled, size < sizeof(Filled) ? size : sizeof(Filled));
  out->size = size;
  return OkStatus();
}

// Wraps the app's threads for the library; empty if the app lends none. The app receives the task's address, which
// stays valid during every call (Executor).
inline std::function<void(size_t, const std::function<void(size_t)>&)> MakeExecutor(wisp_run_tasks run_tasks,
                                                                                    void* data) {
  if (run_tasks == nullptr) return {};
  return [run_tasks, data](size_t num_tasks, const std::function<void(size_t)>& task) {
    run_tasks(
        data, num_tasks, [](void* t, size_t index) { (*static_cast<const std::function<void(size_t)>*>(t))(index); },
        const_cast<std::function<void(size_t)>*>(&task));
  };
}

const Session& GetSession(const wisp_model* model);
Session& GetSession(wisp_model* model);

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_STATUS_C_H_
