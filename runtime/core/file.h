// Files of the operating system: read-only mappings, and replacements that happen entirely or not at all. Does not know
// what files contain.
//
//   WISP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open("model.wisp"));
//   Parse(file.bytes());
//
//   WISP_ASSIGN_OR_RETURN(FileReplacement out, FileReplacement::Begin("model.wisp"));
//   WISP_RETURN_IF_ERROR(out.Reserve(1 << 20));   // reserves disk space, before hours of work depend on it
//   WISP_RETURN_IF_ERROR(out.Write(bytes));
//   WISP_RETURN_IF_ERROR(out.Commit());   // without it, nothing has happened
#ifndef WISP_RUNTIME_CORE_FILE_H_
#define WISP_RUNTIME_CORE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "runtime/core/status.h"

namespace wisp {

// The folder of `path`; "." if `path` names none. Does not access the file system.
std::string GetFolder(const std::string& path);

// A regular file, mapped for reading and unmapped by the destructor. The start is page-aligned. If another program
// shortens the mapped file in place, access raises SIGBUS. FileReplacement never does that: a mapping of the old file
// stays valid.
class MappedFile {
 public:
  // kIo: the file does not exist, is not readable, or is not a regular file. The message names `path`.
  static Result<MappedFile> Open(const std::string& path);

  // Maps `length` bytes of an open file from `offset` on; length 0: to its end. The caller keeps the descriptor.
  // kInvalidArgument: the range is not within the file. Messages use `name`.
  static Result<MappedFile> OpenDescriptor(const std::string& name, int descriptor, uint64_t offset, uint64_t length);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_ + skipped_, size_ - skipped_}; }

 private:
  Status Map(const std::string& name, int descriptor, uint64_t offset, uint64_t length);

  const std::byte* data_ = nullptr;
  size_t size_ = 0, skipped_ = 0;  // bytes that are mapped; bytes of these that lie before the offset
};

// Who may read a new file. It may hold a user's data, so sharing it takes a deliberate chmod.
enum class FileAccess {
  kOwner,   // only the owner can read and write, whatever the umask
  kShared,  // the umask decides; for files made of no user data
};

// Writes a temporary file beside `path` (TemporaryName), then renames it over `path`. Readers see the old file or the
// new one, never a mixture, even after a crash or a power cut. An error, or destruction without Commit, removes the
// temporary file and keeps the old one. A killed process leaves its temporary file behind; the next replacement of the
// same path removes it. A symbolic link at `path` is replaced, not followed.
class FileReplacement {
 public:
  // kInvalidArgument: `path` is an SQLite database or not a regular file. Logs and ledgers grow over time, and a new
  // file cannot replace what they hold. kIo: the folder refuses.
  static Result<FileReplacement> Begin(const std::string& path, FileAccess access = FileAccess::kOwner);

  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  // kIo: another FileReplacement of the same path is open, in this process or another; the one committed first would be
  // lost. If two begin at the same moment, at least one of them gets the error, possibly both. Not detected: writers on
  // a file system without locks, in a folder that cannot be listed, of another user, or through another link to the
  // file. A forked process holds what its parent held.
  Status CheckOnlyWriter() const;

  // Reserves disk space, so that writing at most `size_bytes` does not fail for lack of it, where the file system can
  // promise that. Commit gives back what is not written. kIo: the disk is too full, or the file would be larger than
  // allowed.
  Status Reserve(uint64_t size_bytes);

  Status Write(std::span<const std::byte> bytes);
  Status WriteZeros(size_t count);
  uint64_t size() const { return size_; }

  // Syncs the file, renames it, and syncs the folder. Call it once, last.
  Status Commit();

 private:
  FileReplacement() = default;
  Status Error(const char* doing) const;

  std::string path_, temporary_;  // temporary_ is empty once there is nothing to remove
  int fd_ = -1;
  uint64_t size_ = 0, reserved_ = 0;
};

// "PATH.tmp-PROCESS-NUMBER-CHECK". Nobody chooses such a name by chance: CHECK is computed from all before it.
std::string TemporaryName(const std::string& path, uint64_t process, uint64_t number);

// Removes the temporary files that killed writers of `path` left beside it: those that no process has locked.
void RemoveAbandoned(const std::string& path);

// Creates an empty file at `path` that only its owner can access, if none exists. Use it before programs that would
// create the file by the umask, such as SQLite. kIo: that fails.
Status MakePrivate(const std::string& path);

// Finds out now whether FileReplacement could begin at `path`: the folder may not exist, permission may lack, the name
// may not be a file's. Call it before spending work or privacy on the output. Changes nothing.
Status CheckWritable(const std::string& path);

// A file as the user knows it: an option's name and a path. An empty path means that the option was not given.
struct NamedFile {
  const char* name;  // "--out"
  const std::string& path;
};
// Refuses an `output` that is one of `others`, the files that the work reads or writes. Also refuses a file, existing
// or not, that SQLite uses for one of them. kInvalidArgument names both. Follows links; a file that does not exist yet
// is identified by its folder and name.
Status CheckDistinct(const NamedFile& output, std::span<const NamedFile> others);
// CheckDistinct for two databases, such as a log and a ledger. SQLite would delete a database that lies where it keeps
// the other's changes.
Status CheckApart(const NamedFile& one, const NamedFile& other);
// CheckDistinct and CheckWritable, for a file that is written when the work is done. An empty path passes.
Status CheckOutput(const NamedFile& output, std::initializer_list<NamedFile> others);

// Removes the file if it exists. Never removes a database, whatever its name: it may be the only log or ledger.
Status RemoveFile(const std::string& path);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FILE_H_
