#include "runtime/core/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/core/hash.h"
#include "runtime/core/hex.h"
#include "runtime/core/platform.h"
#include "runtime/core/reason.h"

namespace wisp {
namespace {

// write(2) moves at most about 2 GiB a call. A smaller chunk keeps signals responsive.
constexpr size_t kWriteChunk = size_t{1} << 28;

// True if the header starts with SQLite's first bytes (sqlite.org/fileformat.html, 1.3). A file that exists but cannot
// be read may be a database, so it counts as one.
bool MayBeDatabase(const std::string& path) {
  constexpr char kMagic[] = "SQLite format 3";
  char header[sizeof kMagic] = {};
  const int fd = platform::Open(path, platform::kRead | platform::kNoWait);
  if (fd < 0) return errno == EACCES || errno == EPERM || errno == EBUSY;
  const int64_t size = platform::Read(fd, header, sizeof header);
  platform::Close(fd);
  return size < 0 || (size == static_cast<int64_t>(sizeof header) && std::memcmp(header, kMagic, sizeof header) == 0);
}

// Suffixes of the files beside a database in which SQLite keeps recent changes.
constexpr std::string_view kBesideDatabase[] = {"-wal", "-shm", "-journal"};

// True for a database, and for a file in which SQLite keeps recent changes: these may exist nowhere else.
bool HoldsDatabase(const std::string& path) {
  if (MayBeDatabase(path)) return true;
  for (const std::string_view end : kBesideDatabase) {
    if (path.ends_with(end) && MayBeDatabase(path.substr(0, path.size() - end.size()))) return true;
  }
  return false;
}

// Removes a temporary file whose writer was killed. A living writer holds a lock on its file. On a file system without
// locks the lock is refused, and nothing is removed.
void RemoveIfAbandoned(const std::string& path) {
  if (MayBeDatabase(path)) return;  // the name looks like a temporary file's, but the file is not ours
  const int fd = platform::Open(path, platform::kRead | platform::kWrite | platform::kNoFollow | platform::kNoWait);
  if (fd < 0) return;
  if (platform::LockFile(fd, platform::Lock::kTryExclusive) == 0) platform::Remove(path);
  platform::Close(fd);
}

// True if the writer of this temporary file is still at work. False on a file system without locks.
bool IsHeld(const std::string& path) {
  const int fd = platform::Open(path, platform::kRead | platform::kNoFollow | platform::kNoWait);
  if (fd < 0) return false;
  const bool is_held = platform::LockFile(fd, platform::Lock::kTryShared) != 0 && errno == EWOULDBLOCK;
  platform::Close(fd);
  return is_held;
}

// The file's name without its folder.
std::string GetName(const std::string& path) { return path.substr(platform::FindName(path)); }

// Identifies a file: by device and inode number if it exists, otherwise by those of its folder and by its name.
struct FileIdentity {
  uint64_t device = 0, number = 0;
  std::string name;
  bool operator==(const FileIdentity&) const = default;
};

// Follows all links. A link to a file that does not exist yet resolves to that file's path.
std::string Resolved(std::string path) {
  platform::FileInfo info;
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks && platform::GetInfo(path, info) != 0; ++i) {
    const std::string to = platform::ReadLink(path);
    if (to.empty()) break;
    path = platform::IsAbsolute(to) ? to : GetFolder(path) + "/" + to;
  }
  const std::string real = platform::FindRealPath(path);
  return real.empty() ? path : real;
}

std::optional<FileIdentity> FindIdentity(const std::string& given) {
  const std::string path = Resolved(given);
  platform::FileInfo info;
  if (platform::GetInfo(path, info) == 0) return FileIdentity{info.device, info.number, ""};
  if (platform::GetInfo(GetFolder(path), info) != 0) return std::nullopt;
  return FileIdentity{info.device, info.number, GetName(path)};
}

// True for the names of our own temporary files. A user's "m.wisp.tmp-2026-11-27" is not one.
bool IsTemporary(const std::string& path, std::string_view numbers) {
  uint64_t process = 0, number = 0;
  const char* end = numbers.data() + numbers.size();
  const auto first = std::from_chars(numbers.data(), end, process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return false;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  return second.ec == std::errc() && TemporaryName(path, process, number) == path + ".tmp-" + std::string(numbers);
}

// Calls `use` with the path of each temporary file beside `path` that belongs to `path`.
template <class Use>
void ForEachTemporary(const std::string& path, const Use& use) {
  const std::string prefix = GetName(path) + ".tmp-";
  platform::ForEachName(GetFolder(path), [&](const std::string& name) {
    if (name.size() <= prefix.size() || name.compare(0, prefix.size(), prefix) != 0) return;
    if (!IsTemporary(path, std::string_view(name).substr(prefix.size()))) return;
    use(path.substr(0, platform::FindName(path)) + name);
  });
}

}  // namespace

std::string GetFolder(const std::string& path) { return platform::GetFolder(path); }

std::string TemporaryName(const std::string& path, uint64_t process, uint64_t number) {
  const std::string end = ".tmp-" + std::to_string(process) + "-" + std::to_string(number);
  const std::string name = GetName(path) + end;
  return path + end + "-" + ToHex(Hash64(std::as_bytes(std::span(name))));
}

void RemoveAbandoned(const std::string& path) { ForEachTemporary(path, RemoveIfAbandoned); }

Status MappedFile::Map(const std::string& name, int descriptor, uint64_t offset, uint64_t length) {
  platform::FileInfo info;
  if (platform::GetInfo(descriptor, info) != 0) return IoError(name, ": cannot be examined: ", Reason(errno));
  if (info.type == platform::FileType::kFolder) return IoError(name, ": is a folder, a file is needed");
  if (info.type != platform::FileType::kRegular)
    return IoError(name, ": is not a regular file, and only those can be mapped");
  const uint64_t whole = info.size;
  if (offset > whole || length > whole - offset)
    return InvalidArgument(name, ": bytes from ", offset, " on, ", length, " of them, are not within the file's ",
                           whole);
  const uint64_t size = length == 0 ? whole - offset : length;
  if (size > std::numeric_limits<size_t>::max() / 2)
    return Unsupported(name, ": has ", size, " bytes, more than this device can map");
  if (size == 0) return OkStatus();
  const uint64_t skipped = offset % platform::GetMapUnit();
  data_ = platform::Map(descriptor, offset - skipped, static_cast<size_t>(size + skipped));
  if (data_ == nullptr) return IoError(name, ": cannot be mapped: ", Reason(errno));
  size_ = static_cast<size_t>(size + skipped);
  skipped_ = static_cast<size_t>(skipped);
  return OkStatus();
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  if (path.empty()) return InvalidArgument("a file's name is empty");
  // With kNoWait opening a pipe returns at once, so that the pipe is refused instead of waited for.
  const int fd = platform::Open(path, platform::kRead | platform::kNoWait);
  if (fd < 0) return IoError(path, ": cannot be opened: ", Reason(errno));
  MappedFile file;
  const Status status = file.Map(path, fd, 0, 0);
  platform::Close(fd);
  if (!status.ok()) return status;
  return file;
}

Result<MappedFile> MappedFile::OpenDescriptor(const std::string& name, int descriptor, uint64_t offset,
                                              uint64_t length) {
  MappedFile file;
  WISP_RETURN_IF_ERROR(file.Map(name, descriptor, offset, length));
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      skipped_(std::exchange(other.skipped_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(skipped_, other.skipped_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) platform::Unmap(data_, size_);
}

Result<FileReplacement> FileReplacement::Begin(const std::string& path, FileAccess access) {
  platform::FileInfo info;
  if (platform::GetInfo(path, info) == 0 && info.type != platform::FileType::kRegular) {
    return InvalidArgument(path, ": is not a regular file and will not be replaced by one");
  }
  if (platform::FindName(path) == path.size()) return InvalidArgument("\"", path, "\" does not name a file to write");
  if (HoldsDatabase(path))
    return InvalidArgument(
        path, ": is an SQLite database, a log or a ledger, or may be one, and will not be replaced: name another file");
  RemoveAbandoned(path);
  static std::atomic<uint64_t> counter{0};
  FileReplacement out;
  out.path_ = path;
  while (true) {
    const std::string name = TemporaryName(path, static_cast<uint64_t>(platform::GetProcess()), counter++);
    out.fd_ = platform::Open(name, platform::kWrite | platform::kCreate | platform::kNew,
                             access == FileAccess::kOwner ? platform::NewFile::kOwner : platform::NewFile::kShared);
    if (out.fd_ < 0 && errno == EEXIST) continue;
    if (out.fd_ < 0) return out.Error("the new file cannot be created beside it");
    // Between creation and lock, another writer may have removed the file as abandoned. Then try again.
    const bool is_locked = platform::LockFile(out.fd_, platform::Lock::kExclusive) == 0;
    if (is_locked && platform::GetInfo(out.fd_, info) == 0 && info.num_names == 0) {
      platform::Close(out.fd_);
      continue;
    }
    out.temporary_ = name;
    return out;
  }
}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      reserved_(other.reserved_) {}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty()) platform::Remove(temporary_);
  if (fd_ >= 0) platform::Close(fd_);
}

Status FileReplacement::Error(const char* doing) const { return IoError(path_, ": ", doing, ": ", Reason(errno)); }

Status FileReplacement::CheckOnlyWriter() const {
  // Look a second time: whoever checks whether a file can be written also has a temporary file for a moment.
  constexpr int kMomentUs = 5000;
  for (int look = 0; look < 3; ++look) {
    if (look > 0) platform::Sleep(kMomentUs);
    bool has_other = false;
    ForEachTemporary(path_, [&](const std::string& name) { has_other |= name != temporary_ && IsHeld(name); });
    if (!has_other) return OkStatus();
  }
  return IoError(path_, ": another run is under way that is to write it; allowed is one at a time");
}

Status FileReplacement::Reserve(uint64_t size_bytes) {
  const int error = size_bytes == 0 ? 0 : platform::Reserve(fd_, size_bytes);
  reserved_ = size_bytes;
  // On file systems that answer EINVAL or EOPNOTSUPP, no space can be reserved, so nothing is promised.
  if (error == 0 || error == EINVAL || error == EOPNOTSUPP) return OkStatus();
  errno = error;
  return Error(("the disk has no room for its " + std::to_string(size_bytes) + " bytes").c_str());
}

Status FileReplacement::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const int64_t done = platform::Write(fd_, bytes.data(), std::min(bytes.size(), kWriteChunk));
    if (done < 0) return Error("writing failed");
    if (done == 0) {  // an emulated file system that is full may return 0
      errno = ENOSPC;
      return Error("writing failed");
    }
    size_ += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  return OkStatus();
}

Status FileReplacement::WriteZeros(size_t count) {
  const std::byte zeros[4096] = {};  // on the stack: it takes no space in the library
  while (count > 0) {
    const size_t part = std::min(count, sizeof(zeros));
    WISP_RETURN_IF_ERROR(Write({zeros, part}));
    count -= part;
  }
  return OkStatus();
}

Status FileReplacement::Commit() {
  if (reserved_ > size_ && platform::Truncate(fd_, size_) != 0)
    return Error("the room that was left over cannot be given back");
  if (platform::Sync(fd_) != 0) return Error("the new file cannot be synced to the disk");
  // A ledger of this run may lie there since Begin, where the file system takes two names for one.
  if (HoldsDatabase(path_)) return InvalidArgument(path_, ": is an SQLite database by now, and will not be replaced");
  if (platform::Rename(temporary_, path_) != 0) return Error("the new file cannot be put in its place");
  temporary_.clear();
  // Closing the file releases the lock. Close it only now, so that nobody removes the temporary file as abandoned.
  const int closed = platform::Close(std::exchange(fd_, -1));
  if (closed != 0 && errno != EINTR) return Error("the file was replaced, but closing it failed");
  const int folder = platform::Open(GetFolder(path_), platform::kRead | platform::kFolder);
  if (folder < 0) return Error("the file was replaced, but its folder cannot be opened to be synced");
  // Some file systems cannot sync folders and answer EINVAL. No stronger promise is possible on them.
  const bool failed = platform::Sync(folder) != 0 && errno != EINVAL && errno != ENOTSUP;
  const int error = errno;
  platform::Close(folder);
  errno = error;
  if (failed) return Error("the file was replaced, but its folder cannot be synced");
  return OkStatus();
}

Status MakePrivate(const std::string& path) {
  const int fd = platform::Open(path, platform::kWrite | platform::kCreate | platform::kNew);
  if (fd >= 0) return platform::Close(fd) == 0 ? OkStatus() : IoError(path, ": cannot be made: ", Reason(errno));
  platform::FileInfo info;
  if (errno == EEXIST && (platform::GetInfo(path, info) == 0 || errno != ENOENT)) return OkStatus();
  if (errno != ENOENT) return IoError(path, ": cannot be made: ", Reason(errno));
  // `path` is a symbolic link to a file that does not exist yet.
  const int linked = platform::Open(path, platform::kWrite | platform::kCreate, platform::NewFile::kOwner);
  return linked >= 0 && platform::Close(linked) == 0 ? OkStatus() : IoError(path, ": cannot be made: ", Reason(errno));
}

Status CheckWritable(const std::string& path) { return FileReplacement::Begin(path).status(); }

Status CheckDistinct(const NamedFile& output, std::span<const NamedFile> others) {
  const auto identity = FindIdentity(output.path);
  if (output.path.empty() || !identity) return OkStatus();
  for (const NamedFile& other : others) {
    if (other.path.empty()) continue;
    if (identity == FindIdentity(other.path))
      return InvalidArgument(output.name, " and ", other.name, " name the same file, ", output.path,
                             ": it would be replaced; name another one");
    const std::string database = Resolved(other.path);  // SQLite derives the names of its files from this path
    for (const std::string_view end : kBesideDatabase) {
      if (identity != FindIdentity(database + std::string(end))) continue;
      return InvalidArgument(output.name, " is ", output.path, ", where SQLite keeps changes of ", other.name,
                             ": name another file");
    }
  }
  return OkStatus();
}

Status CheckApart(const NamedFile& one, const NamedFile& other) {
  WISP_RETURN_IF_ERROR(CheckDistinct(one, std::span(&other, 1)));
  return CheckDistinct(other, std::span(&one, 1));
}

Status CheckOutput(const NamedFile& output, std::initializer_list<NamedFile> others) {
  if (output.path.empty()) return OkStatus();
  WISP_RETURN_IF_ERROR(CheckDistinct(output, others));
  return CheckWritable(output.path);
}

Status RemoveFile(const std::string& path) {
  if (HoldsDatabase(path))
    return InvalidArgument(path, ": is an SQLite database, a log or a ledger, or may be one, and will not be removed");
  return platform::Remove(path) == 0 || errno == ENOENT ? OkStatus()
                                                        : IoError(path, ": it cannot be removed: ", Reason(errno));
}

}  // namespace wisp
