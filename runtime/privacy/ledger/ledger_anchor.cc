#include "runtime/privacy/ledger/ledger_anchor.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/core/hex.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"

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

  std::string Name() const override { return path_; }

  Result<std::optional<AnchorValue>> Read() override {
    const int file = platform::Open(path_, platform::kRead);
    if (file < 0 && errno == ENOENT) return std::optional<AnchorValue>();
    if (file < 0) return Failed("cannot be read");
    char line[256];
    const int64_t size = platform::Read(file, line, sizeof line);
    platform::Close(file);
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
      platform::Close(file);
      return IoError("the anchor '", path_, "' cannot be written: '", temporary,
                     "' is in the way, which is no anchor; move it elsewhere");
    }
    const bool written = platform::Truncate(file, 0) == 0 &&
                         platform::Write(file, line.data(), line.size()) == static_cast<int64_t>(line.size()) &&
                         platform::Sync(file) == 0 && platform::Rename(temporary, path_) == 0;
    const Status failed = written ? OkStatus() : Failed("cannot be written");
    if (!written) platform::Remove(temporary);
    platform::Close(file);  // and releases its lock
    return written ? SyncFolder() : failed;
  }

 private:
  // All writers share one temporary file, so that the next one reuses what a killed writer left. It belongs to the
  // caller until it is closed.
  static int OpenLocked(const std::string& temporary) {
    for (;;) {
      const int file =
          platform::Open(temporary, platform::kRead | platform::kWrite | platform::kCreate | platform::kNoFollow);
      if (file < 0) return file;
      platform::FileInfo opened, named;
      if (platform::LockFile(file, platform::Lock::kExclusive) != 0 || platform::GetInfo(file, opened) != 0 ||
          platform::MakePrivate(file) != 0) {
        const int error = errno;
        platform::Close(file);
        errno = error;
        return -1;
      }
      if (platform::GetLinkInfo(temporary, named) == 0 && named.IsSame(opened)) return file;
      platform::Close(file);  // another writer has moved or removed it meanwhile
    }
  }

  // A killed writer leaves an empty file, or the beginning of a line. Anything else is somebody's file.
  static bool IsOurs(int file) {
    std::array<char, kTitle.size()> begin;
    const int64_t size = platform::ReadAt(file, begin.data(), begin.size(), 0);
    return size >= 0 && kTitle.starts_with(std::string_view(begin.data(), static_cast<size_t>(size)));
  }

  Status Failed(const char* what) const { return IoError("the anchor '", path_, "' ", what, ": ", Reason(errno)); }

  Status SyncFolder() const {
    const size_t name_at = platform::FindName(path_);
    const int folder = platform::Open(name_at == 0 ? "." : path_.substr(0, name_at), platform::kRead);
    const bool synced = folder >= 0 && platform::Sync(folder) == 0;
    if (folder >= 0) platform::Close(folder);
    return synced ? OkStatus() : Failed("cannot be synced to disk");
  }

  const std::string path_;
};

}  // namespace

std::shared_ptr<LedgerAnchor> FileAnchor(const std::string& path) { return std::make_shared<File>(path); }

}  // namespace wisp::privacy
