#include "runtime/privacy/ledger/ledger_anchor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/core/hex.h"
#include "runtime/core/reason.h"
#include "runtime/core/sync.h"

namespace wisp::privacy {
namespace {

constexpr std::string_view kTitle = "wisp ledger anchor 1: ";
constexpr size_t kIdBytes = 16;

template <typename Bytes>
bool FromHex(std::string_view text, Bytes& bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, value, 16);
    if (error != std::errc() || end != text.data() + 2 * i + 2) return false;
    bytes[i] = static_cast<typename Bytes::value_type>(value);
  }
  return true;
}

std::string FindLineage(const AnchorValue& value) {
  return std::string(kTitle) + ToHex(value.ledger_id) + " " + std::to_string(value.seq) + " " + ToHex(value.chain) +
         "\n";
}

std::optional<AnchorValue> FromLine(std::string_view line) {
  AnchorValue value{.ledger_id = std::string(kIdBytes, '\0')};
  if (!line.starts_with(kTitle) || !line.ends_with('\n')) return std::nullopt;
  const std::string_view fields = line.substr(kTitle.size(), line.size() - kTitle.size() - 1);
  const size_t first = fields.find(' '), second = fields.rfind(' ');
  if (first == second) return std::nullopt;
  const std::string_view number = fields.substr(first + 1, second - first - 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value.seq);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (!FromHex(fields.substr(0, first), value.ledger_id) || !FromHex(fields.substr(second + 1), value.chain))
    return std::nullopt;
  return value;
}

class File final : public LedgerAnchor {
 public:
  explicit File(const std::string& path) : path_(path) {}

  Result<std::optional<AnchorValue>> Read() override {
    const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) return std::optional<AnchorValue>();
    if (file < 0) return Failed("cannot be read");
    char line[256];
    const ssize_t size = read(file, line, sizeof line);
    close(file);
    if (size < 0) return Failed("cannot be read");
    std::optional<AnchorValue> value = FromLine({line, static_cast<size_t>(size)});
    if (value) return value;
    return InvalidData("'", path_, "' is not the anchor of a ledger, or is damaged");
  }

  Status Write(const AnchorValue& value) override {
    const std::string temporary = path_ + ".tmp", line = FindLineage(value);
    const int file = OpenLocked(temporary);
    if (file < 0) return Failed("cannot be written");
    if (!IsOurs(file)) {
      close(file);
      return IoError("the anchor '", path_, "' cannot be written: '", temporary,
                     "' is in the way, which is no anchor; move it elsewhere");
    }
    const bool written = ftruncate(file, 0) == 0 &&
                         write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
                         SyncToDisk(file) == 0 && rename(temporary.c_str(), path_.c_str()) == 0;
    const Status failed = written ? OkStatus() : Failed("cannot be written");
    if (!written) unlink(temporary.c_str());
    close(file);  // and releases its lock
    return written ? SyncFolder() : failed;
  }

 private:
  // All writers share one temporary file, so that the next one reuses what a killed writer left. It belongs to the
  // caller until it is closed.
  static int OpenLocked(const std::string& temporary) {
    for (;;) {
      const int file = open(temporary.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
      if (file < 0) return file;
      struct stat opened, named;
      if (flock(file, LOCK_EX) != 0 || fstat(file, &opened) != 0 || fchmod(file, 0600) != 0) {
        const int error = errno;
        close(file);
        errno = error;
        return -1;
      }
      if (lstat(temporary.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
        return file;
      close(file);  // another writer has moved or removed it meanwhile
    }
  }

  // A killed writer leaves an empty file, or the beginning of a line. Anything else is somebody's file.
  static bool IsOurs(int file) {
    std::array<char, kTitle.size()> begin;
    const ssize_t size = pread(file, begin.data(), begin.size(), 0);
    return size >= 0 && kTitle.starts_with(std::string_view(begin.data(), static_cast<size_t>(size)));
  }

  Status Failed(const char* what) const { return IoError("the anchor '", path_, "' ", what, ": ", Reason(errno)); }

  Status SyncFolder() const {
    const size_t slash = path_.rfind('/');
    const int folder =
        open(slash == std::string::npos ? "." : path_.substr(0, slash + 1).c_str(), O_RDONLY | O_CLOEXEC);
    const bool synced = folder >= 0 && SyncToDisk(folder) == 0;
    if (folder >= 0) close(folder);
    return synced ? OkStatus() : Failed("cannot be synced to disk");
  }

  const std::string path_;
};

}  // namespace

std::shared_ptr<LedgerAnchor> FileAnchor(const std::string& path) { return std::make_shared<File>(path); }

}  // namespace wisp::privacy
