// Files as the operating system gives them: a read-only mapping, and a replacement that happens entirely or not at all.
// Knows nothing of what is in them. POSIX.
//
//   WISP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open("model.wisp"));
//   Parse(file.bytes());
//
//   WISP_ASSIGN_OR_RETURN(FileReplacement out, FileReplacement::Begin("model.wisp"));
//   WISP_RETURN_IF_ERROR(out.Reserve(1 << 20));   // room on the disk, before hours are spent on what is to lie there
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

// The folder that holds what is at `path`, "." where it names none. Asks nothing of the system.
std::string FolderOf(const std::string& path);

// A regular file mapped for reading; unmapped by the destructor. The start is page-aligned.
// A file that another program shortens in place while it is mapped raises SIGBUS on access; FileReplacement never
// does that: who has the old file mapped keeps the old file.
class MappedFile {
 public:
  // kIo: not there, not readable, not a regular file; the sentence names `path`.
  static Result<MappedFile> Open(const std::string& path);

  // `length` bytes from `offset` on of an open file; 0: to its end. The descriptor stays the caller's.
  // kInvalidArgument: they are not within the file. `name` is used in messages.
  static Result<MappedFile> OpenDescriptor(const std::string& name, int descriptor, uint64_t offset, uint64_t length);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_ + skipped_, size_ - skipped_}; }

 private:
  Status Map(const std::string& name, int descriptor, uint64_t offset, uint64_t length);

  const std::byte* data_ = nullptr;
  size_t size_ = 0, skipped_ = 0;  // what is mapped; of it, what lies before the offset
};

// What is written may come from the data of a device's user: whoever wants to share it says so with chmod.
enum class FileAccess {
  kOwner,   // readable and writable by the owner alone, whatever the umask
  kShared,  // as the umask says: for what is made of no data
};

// Writes a temporary file beside `path` (TemporaryName), then renames it over `path`. Readers see the old file or
// the new one, never a part, also after a crash or a power cut. An error, or destruction without Commit, removes the
// temporary file and leaves the old one alone. A process that is killed leaves its temporary file behind; the next
// replacement of the same path removes it. A symbolic link at `path` is replaced, not followed.
class FileReplacement {
 public:
  // kInvalidArgument when something that is not a regular file is at `path`, or an SQLite database: what programs add
  // to over time, a log or a ledger, is nothing that a new file makes up for. kIo when the folder refuses.
  static Result<FileReplacement> Begin(const std::string& path, FileAccess access = FileAccess::kOwner);

  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  // kIo: another FileReplacement of the same path is under way, in this process or another, and whichever is committed
  // first would be lost. Of two that begin at the same moment both may get it, and never neither. Not seen: on a file
  // system without locks, in a folder that cannot be listed, what another user writes, and the same file by another
  // link to it. A process that was forked off holds what its parent held.
  Status CheckOnlyWriter() const;

  // Room for so many bytes: writing no more than these does not fail for want of it, where the file system can promise
  // that. What is not written is given back by Commit. kIo: the disk is too full, or the file would be larger than is
  // allowed.
  Status Reserve(uint64_t size_bytes);

  Status Write(std::span<const std::byte> bytes);
  Status WriteZeros(size_t count);
  uint64_t size() const { return size_; }

  // Syncs, renames, syncs the folder. Call once, last.
  Status Commit();

 private:
  FileReplacement() = default;
  Status Error(const char* doing) const;

  std::string path_, temporary_;  // temporary_ is empty once there is nothing to remove
  int fd_ = -1;
  uint64_t size_ = 0, reserved_ = 0;
};

// "PATH.tmp-PROCESS-NUMBER-CHECK", a name that nobody chooses by chance: the check follows from all before it.
std::string TemporaryName(const std::string& path, uint64_t process, uint64_t number);

// Removes what killed writers of `path` left beside it: a FileReplacement's temporary files that nobody holds.
void RemoveAbandoned(const std::string& path);

// Makes `path`, empty and the owner's alone, if nothing is there: for programs that would make it as the umask says,
// such as SQLite. kIo where that fails.
Status MakePrivate(const std::string& path);

// Says now what would keep FileReplacement from beginning at `path`: no such folder, no permission, not a file's name.
// To be asked before work, or privacy, is spent on what is to be written there. Leaves everything as it is.
Status CheckWritable(const std::string& path);

// A file as the user knows it: by an option and a path. An empty path is none.
struct NamedFile {
  const char* name;  // "--out"
  const std::string& path;
};
// That `output` is none of `others`, which the work reads or writes, nor a file in which SQLite keeps what belongs to
// one of them, there or not: kInvalidArgument names both. Links are followed; a file that is not there yet is known by
// its folder and name.
Status CheckDistinct(const NamedFile& output, std::span<const NamedFile> others);
// The same of two databases, a log and a ledger say: one that lies where SQLite keeps the other's changes is taken
// away.
Status CheckApart(const NamedFile& one, const NamedFile& other);
// CheckDistinct and CheckWritable: for a file that is written once the work is done. An empty path is none.
Status CheckOutput(const NamedFile& output, std::initializer_list<NamedFile> others);

// Removes it, if it is there. A database is never removed, whatever name it bears: it may be the only log or ledger.
Status RemoveFile(const std::string& path);

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_FILE_H_
