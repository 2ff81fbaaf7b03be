// The handle of a log, and texts that are copied to a caller's buffer. Not part of the C interface.
#ifndef WISP_PORTS_C_LOG_C_H_
#define WISP_PORTS_C_LOG_C_H_

#include <algorithm>
#include <cstring>
#include <string>

#include "ports/c/status_c.h"
#include "runtime/data/event_log.h"

struct wisp_log {
  wisp::data::EventLog log;
};

namespace wisp::ports {

// Copies as much of the text as fits, with its final zero, and sets `*needed` to the size that all of it needs.
inline void GiveText(const std::string& full, char* text, size_t capacity, size_t* needed) {
  *needed = full.size() + 1;
  if (capacity == 0) return;
  const size_t n = std::min(full.size(), capacity - 1);
  std::memcpy(text, full.data(), n);
  text[n] = '\0';
}

}  // namespace wisp::ports

#endif  // WISP_PORTS_C_LOG_C_H_
