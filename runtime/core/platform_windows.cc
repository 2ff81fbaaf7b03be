// Files are opened so that others may replace and delete them meanwhile, as on POSIX. A program that does not do so, as
// scanners for viruses may for a moment, is waited for. Never run on Windows itself so far: docs/windows.md.
#include "runtime/core/platform.h"
#if defined(_WIN32)

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef NOGDI
#define NOGDI
#endif
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00
#endif
#include <windows.h>
//
#include <sddl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace wisp::platform {
namespace {

constexpr size_t kChunk = size_t{1} << 28;  // ReadFile and WriteFile take 32 bits
constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr size_t kLongPath = 240;  // CreateDirectory refuses longer ones without the prefix; files have 259
// A scanner holds a new file for some milliseconds. A second is no long wait before an error.
constexpr int kTries = 50;
constexpr DWORD kPauseMs = 20;

HANDLE ToHandle(int file) { return reinterpret_cast<HANDLE>(static_cast<intptr_t>(file)); }
int ToFile(HANDLE handle) { return static_cast<int>(reinterpret_cast<intptr_t>(handle)); }

int ToErrno(DWORD error) {
  switch (error) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE:
    case ERROR_BAD_PATHNAME:
    case ERROR_BAD_NETPATH:
    case ERROR_NO_UNICODE_TRANSLATION:
      return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_PRIVILEGE_NOT_HELD:
      return EACCES;
    case ERROR_SHARING_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
      return EBUSY;
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING:
      return EWOULDBLOCK;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return EEXIST;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return ENOMEM;
    case ERROR_WRITE_PROTECT:
      return EROFS;
    case ERROR_DIRECTORY:
      return ENOTDIR;
    case ERROR_DIR_NOT_EMPTY:
      return ENOTEMPTY;
    case ERROR_TOO_MANY_OPEN_FILES:
      return EMFILE;
    case ERROR_FILENAME_EXCED_RANGE:
      return ENAMETOOLONG;
    case ERROR_INVALID_PARAMETER:
      return EINVAL;
    case ERROR_INVALID_HANDLE:
      return EBADF;
    case ERROR_NOT_SUPPORTED:
    case ERROR_INVALID_FUNCTION:
    case ERROR_CALL_NOT_IMPLEMENTED:
      return EOPNOTSUPP;
    default:
      return EIO;
  }
}

// Keeps the reason of the last call in errno.
int Failed() {
  errno = ToErrno(GetLastError());
  return -1;
}

int Done(BOOL done) { return done ? 0 : Failed(); }

// True if the failure may pass by itself. A file that is being deleted refuses to be opened until its last user closes
// it; only its attributes tell it from one that this user may not open.
bool MayPass(DWORD error, const std::wstring& path) {
  if (error == ERROR_SHARING_VIOLATION || error == ERROR_USER_MAPPED_FILE) return true;
  if (error != ERROR_ACCESS_DENIED) return false;
  const bool is_known = GetFileAttributesW(path.c_str()) != INVALID_FILE_ATTRIBUTES;
  const bool goes = !is_known && GetLastError() == ERROR_ACCESS_DENIED;
  SetLastError(error);
  return goes;
}

// `call` returns true when it is done. The reason of the last failure stays. With `denied_may_pass` a refusal is tried
// again whatever it is for: a file that somebody reads refuses to be replaced as one that this user may not replace.
template <class Call>
bool Patiently(const std::wstring& path, const Call& call, bool denied_may_pass = false) {
  for (int i = 0; i < kTries; ++i) {
    if (call()) return true;
    const DWORD error = GetLastError();
    if (!MayPass(error, path) && !(denied_may_pass && error == ERROR_ACCESS_DENIED)) return false;
    if (i + 1 < kTries) ::Sleep(kPauseMs);
    SetLastError(error);
  }
  return false;
}

std::string ToUtf8(const wchar_t* text, size_t length) {
  const int size = WideCharToMultiByte(CP_UTF8, 0, text, static_cast<int>(length), nullptr, 0, nullptr, nullptr);
  std::string utf8(static_cast<size_t>(std::max(size, 0)), '\0');
  if (size > 0) WideCharToMultiByte(CP_UTF8, 0, text, static_cast<int>(length), utf8.data(), size, nullptr, nullptr);
  return utf8;
}

// Empty if the text is empty or no UTF-8. Such a path names nothing.
std::wstring ToWide(const std::string& text) {
  const auto length = static_cast<int>(text.size());
  const int size = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), length, nullptr, 0);
  std::wstring wide(static_cast<size_t>(std::max(size, 0)), L'\0');
  if (size > 0) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text.data(), length, wide.data(), size);
  return wide;
}

std::wstring FullPath(const std::wstring& path) {
  std::wstring full(GetFullPathNameW(path.c_str(), 0, nullptr, nullptr), L'\0');
  full.resize(GetFullPathNameW(path.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr));
  return full.empty() ? path : full;
}

// A path as the system takes it. Long ones get the prefix that lifts the limit of 259 characters.
std::wstring ToSystemPath(const std::string& path) {
  std::wstring wide = ToWide(path);
  if (wide.size() < kLongPath || wide.starts_with(L"\\\\?\\")) return wide;
  wide = FullPath(wide);
  return wide.starts_with(L"\\\\") ? L"\\\\?\\UNC\\" + wide.substr(2) : L"\\\\?\\" + wide;
}

// Permissions of a file that this user, the system and administrators can open. Null if the system does not say who
// this user is: then the file inherits those of its folder.
SECURITY_ATTRIBUTES* OwnerOnly() {
  static SECURITY_ATTRIBUTES attributes = [] {
    SECURITY_ATTRIBUTES made = {sizeof(SECURITY_ATTRIBUTES), nullptr, FALSE};
    HANDLE token = nullptr;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token)) return made;
    alignas(TOKEN_USER) char user[256];
    DWORD size = 0;
    LPWSTR name = nullptr;
    if (GetTokenInformation(token, TokenUser, user, sizeof user, &size) &&
        ConvertSidToStringSidW(reinterpret_cast<TOKEN_USER*>(user)->User.Sid, &name)) {
      const std::wstring rule = std::wstring(L"D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;") + name + L")";
      if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(rule.c_str(), SDDL_REVISION_1,
                                                                &made.lpSecurityDescriptor, nullptr))
        made.lpSecurityDescriptor = nullptr;
      LocalFree(name);
    }
    CloseHandle(token);
    return made;
  }();
  return attributes.lpSecurityDescriptor == nullptr ? nullptr : &attributes;
}

HANDLE OpenHandle(const std::wstring& path, DWORD access, DWORD how, DWORD flags,
                  SECURITY_ATTRIBUTES* security = nullptr) {
  HANDLE handle = INVALID_HANDLE_VALUE;
  if (path.empty()) {
    SetLastError(ERROR_FILE_NOT_FOUND);
    return handle;
  }
  Patiently(path, [&] {
    handle = CreateFileW(path.c_str(), access, kShareAll, security, how, flags | FILE_FLAG_BACKUP_SEMANTICS, nullptr);
    return handle != INVALID_HANDLE_VALUE;
  });
  return handle;
}

bool IsLink(HANDLE handle) {
  FILE_ATTRIBUTE_TAG_INFO info = {};
  return GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &info, sizeof info) &&
         (info.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 &&
         (info.ReparseTag == IO_REPARSE_TAG_SYMLINK || info.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

int Keep(HANDLE handle, FileInfo& info) {
  info = {};
  if (GetFileType(handle) != FILE_TYPE_DISK) return 0;  // a pipe or a device
  BY_HANDLE_FILE_INFORMATION found = {};
  if (!GetFileInformationByHandle(handle, &found)) return Failed();
  info.type = IsLink(handle)                                             ? FileType::kLink
              : (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? FileType::kFolder
                                                                         : FileType::kRegular;
  info.device = found.dwVolumeSerialNumber;
  info.number = uint64_t{found.nFileIndexHigh} << 32 | found.nFileIndexLow;
  info.size = uint64_t{found.nFileSizeHigh} << 32 | found.nFileSizeLow;
  info.num_names = found.nNumberOfLinks;
  FILE_STANDARD_INFO standard = {};
  if (GetFileInformationByHandleEx(handle, FileStandardInfo, &standard, sizeof standard) && standard.DeletePending)
    info.num_names = 0;
  // In units of 100 ns since 1601.
  constexpr int64_t kUntil1970 = 116444736000000000;
  const uint64_t time = uint64_t{found.ftLastWriteTime.dwHighDateTime} << 32 | found.ftLastWriteTime.dwLowDateTime;
  info.changed_ns = (static_cast<int64_t>(time) - kUntil1970) * 100;
  return 0;
}

int KeepOf(const std::string& path, DWORD flags, FileInfo& info) {
  const HANDLE handle = OpenHandle(ToSystemPath(path), FILE_READ_ATTRIBUTES, OPEN_EXISTING, flags);
  if (handle == INVALID_HANDLE_VALUE) return Failed();
  const int kept = Keep(handle, info);
  CloseHandle(handle);
  return kept;
}

bool CanOpen(const std::string& path, DWORD access) {
  const HANDLE handle = OpenHandle(ToSystemPath(path), access, OPEN_EXISTING, 0);
  if (handle == INVALID_HANDLE_VALUE) return false;
  CloseHandle(handle);
  return true;
}

// Since Windows 10 a file can be replaced or deleted at once though others have it open, on NTFS. False where the
// system or the file system has no such call.
constexpr auto kRenameEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);
constexpr auto kDispositionEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(21);
constexpr DWORD kReplaceAtOnce = 0x1 | 0x2;  // FILE_RENAME_REPLACE_IF_EXISTS, FILE_RENAME_POSIX_SEMANTICS
constexpr DWORD kDeleteAtOnce = 0x1 | 0x2;   // FILE_DISPOSITION_DELETE, FILE_DISPOSITION_POSIX_SEMANTICS

bool RenameAtOnce(HANDLE from, const std::wstring& to) {
  struct Request {
    DWORD flags;
    HANDLE root;
    DWORD name_bytes;
    wchar_t name[1];
  };
  const std::wstring full = to.starts_with(L"\\\\?\\") ? to : FullPath(to);
  std::vector<uint64_t> space((sizeof(Request) + full.size() * sizeof(wchar_t)) / sizeof(uint64_t) + 1);
  auto* const request = reinterpret_cast<Request*>(space.data());
  request->flags = kReplaceAtOnce;
  request->name_bytes = static_cast<DWORD>(full.size() * sizeof(wchar_t));
  std::memcpy(request->name, full.data(), full.size() * sizeof(wchar_t));
  return SetFileInformationByHandle(from, kRenameEx, request, static_cast<DWORD>(space.size() * sizeof(uint64_t)));
}

bool IsSeparator(char c) { return c == '/' || c == '\\'; }

}  // namespace

int Open(const std::string& path, unsigned flags, NewFile access) {
  const DWORD wanted = ((flags & kRead) != 0 ? GENERIC_READ : 0) | ((flags & kWrite) != 0 ? GENERIC_WRITE : 0);
  const DWORD how = (flags & kCreate) == 0 ? OPEN_EXISTING : (flags & kNew) != 0 ? CREATE_NEW : OPEN_ALWAYS;
  const HANDLE handle =
      OpenHandle(ToSystemPath(path), wanted, how,
                 FILE_ATTRIBUTE_NORMAL | ((flags & kNoFollow) != 0 ? FILE_FLAG_OPEN_REPARSE_POINT : 0),
                 (flags & kCreate) != 0 && access == NewFile::kOwner ? OwnerOnly() : nullptr);
  if (handle == INVALID_HANDLE_VALUE) return Failed();
  FileInfo info;
  int error = Keep(handle, info) == 0 ? 0 : errno;
  if (error == 0 && info.type == FileType::kLink) error = ELOOP;
  if (error == 0 && info.type == FileType::kFolder && (flags & kWrite) != 0) error = EISDIR;
  if (error == 0 && info.type != FileType::kFolder && (flags & kFolder) != 0) error = ENOTDIR;
  if (error == 0) return ToFile(handle);
  CloseHandle(handle);
  errno = error;
  return -1;
}

int Close(int file) { return Done(CloseHandle(ToHandle(file))); }

int64_t Read(int file, void* to, size_t size) {
  DWORD done = 0;
  if (ReadFile(ToHandle(file), to, static_cast<DWORD>(std::min(size, kChunk)), &done, nullptr)) return done;
  const DWORD error = GetLastError();
  return error == ERROR_HANDLE_EOF || error == ERROR_BROKEN_PIPE ? 0 : Failed();
}

// ReadFile at a place moves the file's position, and pread does not.
int64_t ReadAt(int file, void* to, size_t size, uint64_t at) {
  LARGE_INTEGER before = {}, none = {};
  if (!SetFilePointerEx(ToHandle(file), none, &before, FILE_CURRENT)) return Failed();
  OVERLAPPED place = {};
  place.Offset = static_cast<DWORD>(at);
  place.OffsetHigh = static_cast<DWORD>(at >> 32);
  DWORD done = 0;
  const bool is_read = ReadFile(ToHandle(file), to, static_cast<DWORD>(std::min(size, kChunk)), &done, &place);
  const DWORD error = is_read ? ERROR_SUCCESS : GetLastError();
  if (!SetFilePointerEx(ToHandle(file), before, nullptr, FILE_BEGIN)) return Failed();
  SetLastError(error);
  return is_read || error == ERROR_HANDLE_EOF ? static_cast<int64_t>(done) : Failed();
}

int64_t Write(int file, const void* from, size_t size) {
  DWORD done = 0;
  if (WriteFile(ToHandle(file), from, static_cast<DWORD>(std::min(size, kChunk)), &done, nullptr)) return done;
  return Failed();
}

int Truncate(int file, uint64_t size) {
  FILE_END_OF_FILE_INFO end = {};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(size);
  return Done(SetFileInformationByHandle(ToHandle(file), FileEndOfFileInfo, &end, sizeof end));
}

int Reserve(int file, uint64_t size) {
  FILE_ALLOCATION_INFO space = {};
  space.AllocationSize.QuadPart = static_cast<LONGLONG>(size);
  return Done(SetFileInformationByHandle(ToHandle(file), FileAllocationInfo, &space, sizeof space)) == 0 ? 0 : errno;
}

int Sync(int file) {
  FileInfo info;
  if (GetInfo(file, info) != 0) return -1;
  return info.type == FileType::kFolder ? 0 : Done(FlushFileBuffers(ToHandle(file)));
}

int GetInfo(const std::string& path, FileInfo& info) { return KeepOf(path, 0, info); }

int GetLinkInfo(const std::string& path, FileInfo& info) { return KeepOf(path, FILE_FLAG_OPEN_REPARSE_POINT, info); }

int GetInfo(int file, FileInfo& info) { return Keep(ToHandle(file), info); }

// Windows refuses to read and write locked bytes, so the lock is on a byte that no file has.
int LockFile(int file, Lock lock) {
  OVERLAPPED place = {};
  place.OffsetHigh = 0x40000000;
  const DWORD flags = (lock == Lock::kTryShared ? 0 : LOCKFILE_EXCLUSIVE_LOCK) |
                      (lock == Lock::kExclusive ? 0 : LOCKFILE_FAIL_IMMEDIATELY);
  return Done(LockFileEx(ToHandle(file), flags, 0, 1, 0, &place));
}

// NTFS writes its log of names before it answers FlushFileBuffers, so the new name is on the disk too.
// MOVEFILE_WRITE_THROUGH asks for the same where the first way is missing.
int Rename(const std::string& from, const std::string& to) {
  const std::wstring old_path = ToSystemPath(from), new_path = ToSystemPath(to);
  const HANDLE file = OpenHandle(old_path, GENERIC_WRITE | DELETE, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT);
  if (file == INVALID_HANDLE_VALUE) return Failed();
  const bool is_renamed = Patiently(
      new_path,
      [&] {
        return RenameAtOnce(file, new_path) ||
               MoveFileExW(old_path.c_str(), new_path.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
      },
      true);
  const int result = Done(is_renamed && FlushFileBuffers(file));
  CloseHandle(file);
  return result;
}

// A file that others have open keeps its name until they close it, where the first way is missing.
int Remove(const std::string& path) {
  const std::wstring system_path = ToSystemPath(path);
  const HANDLE file = OpenHandle(system_path, DELETE, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT);
  if (file == INVALID_HANDLE_VALUE) return Failed();
  FileInfo info;
  DWORD flags = kDeleteAtOnce;
  const bool is_folder = Keep(file, info) == 0 && info.type == FileType::kFolder;
  const bool is_gone = !is_folder && SetFileInformationByHandle(file, kDispositionEx, &flags, sizeof flags);
  CloseHandle(file);
  if (is_folder) return errno = EISDIR, -1;
  return is_gone ? 0 : Done(DeleteFileW(system_path.c_str()));
}

bool IsThere(const std::string& path) {
  FileInfo info;
  return GetInfo(path, info) == 0;
}

bool CanRead(const std::string& path) { return CanOpen(path, GENERIC_READ); }

bool CanWrite(const std::string& path) {
  FileInfo info;
  if (GetInfo(path, info) != 0) return false;
  return info.type == FileType::kFolder ? CanWriteIn(path) : CanOpen(path, GENERIC_WRITE);
}

bool CanWriteIn(const std::string& folder) { return CanOpen(folder, FILE_ADD_FILE | FILE_TRAVERSE); }

int MakePrivate(const std::string&) { return 0; }

int MakePrivate(int) { return 0; }

std::string ReadLink(const std::string&) { return {}; }  // FindRealPath follows links to files that are there

std::string FindRealPath(const std::string& path) {
  const HANDLE file = OpenHandle(ToSystemPath(path), FILE_READ_ATTRIBUTES, OPEN_EXISTING, 0);
  if (file == INVALID_HANDLE_VALUE) return {};
  std::wstring name(GetFinalPathNameByHandleW(file, nullptr, 0, FILE_NAME_NORMALIZED), L'\0');
  name.resize(GetFinalPathNameByHandleW(file, name.data(), static_cast<DWORD>(name.size()), FILE_NAME_NORMALIZED));
  CloseHandle(file);
  if (name.empty()) name = FullPath(ToWide(path));
  constexpr std::wstring_view kShare = L"\\\\?\\UNC\\", kPrefix = L"\\\\?\\";
  if (name.starts_with(kShare))
    name = L"\\\\" + name.substr(kShare.size());
  else if (name.starts_with(kPrefix))
    name.erase(0, kPrefix.size());
  return ToUtf8(name.data(), name.size());
}

// "C:name" depends on the folder of that drive, and "\name" on the drive.
bool IsAbsolute(const std::string& path) {
  if (path.size() < 2) return false;
  const bool is_share = IsSeparator(path[0]) && IsSeparator(path[1]);
  return is_share || (path.size() > 2 && path[1] == ':' && IsSeparator(path[2]));
}

std::string MakeAbsolute(const std::string& path) {
  const std::wstring full = FullPath(ToWide(path));
  return ToUtf8(full.data(), full.size());
}

size_t FindName(std::string_view path) {
  size_t at = path.size();
  while (at > 0 && !IsSeparator(path[at - 1]) && !(at == 2 && path[1] == ':')) --at;
  return at;
}

std::string GetFolder(const std::string& path) {
  const size_t name_at = FindName(path);
  if (name_at == 0) return ".";
  const bool is_root = name_at == 1 || path[name_at - 1] == ':' || path[name_at - 2] == ':';
  return path.substr(0, is_root ? name_at : name_at - 1);
}

std::string MakeNewFolder(const std::string& begin) {
  constexpr char kCharacters[] = "abcdefghijklmnopqrstuvwxyz012345";
  unsigned char random[kNewFolderEnd];
  for (int i = 0; i < kTries; ++i) {
    if (GetEntropy(random, sizeof random) != 0) return {};
    std::string path = begin;
    for (const unsigned char c : random) path += kCharacters[c % (sizeof kCharacters - 1)];
    if (CreateDirectoryW(ToSystemPath(path).c_str(), OwnerOnly())) return path;
    if (GetLastError() != ERROR_ALREADY_EXISTS) return Failed(), std::string();
  }
  return {};
}

int RemoveFolder(const std::string& path) { return Done(RemoveDirectoryW(ToSystemPath(path).c_str())); }

bool ForEachName(const std::string& folder, const std::function<void(const std::string& name)>& use) {
  WIN32_FIND_DATAW entry;
  const HANDLE listing = FindFirstFileW(ToSystemPath(folder + (folder.ends_with(':') ? "*" : "\\*")).c_str(), &entry);
  if (listing == INVALID_HANDLE_VALUE) return false;
  do use(ToUtf8(entry.cFileName, std::wcslen(entry.cFileName)));
  while (FindNextFileW(listing, &entry));
  FindClose(listing);
  return true;
}

const std::byte* Map(int file, uint64_t offset, size_t size) {
  auto* const bytes = static_cast<std::byte*>(VirtualAlloc(nullptr, size, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE));
  if (bytes == nullptr) return Failed(), nullptr;
  for (size_t done = 0; done < size;) {
    const int64_t part = ReadAt(file, bytes + done, size - done, offset + done);
    if (part <= 0) {  // the file has become shorter, or cannot be read
      const int error = part < 0 ? errno : EIO;
      VirtualFree(bytes, 0, MEM_RELEASE);
      errno = error;
      return nullptr;
    }
    done += static_cast<size_t>(part);
  }
  DWORD before = 0;
  VirtualProtect(bytes, size, PAGE_READONLY, &before);
  return bytes;
}

void Unmap(const std::byte* bytes, size_t) { VirtualFree(const_cast<std::byte*>(bytes), 0, MEM_RELEASE); }

uint64_t GetMapUnit() { return 1; }

}  // namespace wisp::platform

#endif  // defined(_WIN32)
