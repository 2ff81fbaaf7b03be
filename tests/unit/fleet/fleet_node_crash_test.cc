// Kills a node at each call of the server and at each change of a file. No crash may send an update that was not
// charged, or another one for the same participation.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/unit/fleet/node_test_util.h"

namespace {

// In a child, counts down the operations that change files. Ends the process at the last one, before or after it.
int operations_left = 0;
bool dies_after = false;
constexpr int kKilled = 77;

template <class Operation>
int Counted(const Operation& operation) {
  if (operations_left == 0 || --operations_left > 0) return operation();
  if (dies_after) operation();
  _exit(kKilled);
}

}  // namespace

#ifndef WISP_SANITIZED
// The library's calls reach these in place of the C library's, and so do those of SQLite.
extern "C" int rename(const char* from, const char* to) noexcept {
  return Counted([&] { return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)); });
}
extern "C" int unlink(const char* path) noexcept {
  return Counted([&] { return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0)); });
}
extern "C" int fsync(int fd) {
  return Counted([&] { return static_cast<int>(syscall(SYS_fsync, fd)); });
}
extern "C" int fdatasync(int fd) {
  return Counted([&] { return static_cast<int>(syscall(SYS_fdatasync, fd)); });
}
#endif

namespace wisp::fleet::fleet_node_crash_test {
namespace {

using test::FakeSuperLink;

// A child's way to the server, which lives in the parent.
class PipeTransport final : public Transport {
 public:
  PipeTransport(int end, double now) : end_(end), now_(now), key_(test::FakeKey("first")) {}

  int calls_left = 0;  // the process ends at the last one of these
  bool after = false;

  Result<HttpReply> Post(const std::string& path, std::span<const HttpHeader> headers, std::string_view body,
                         size_t) override {
    const bool dies = calls_left > 0 && --calls_left == 0;
    if (dies && !after) _exit(kKilled);
    std::string sent;
    Append(sent, path);
    for (const HttpHeader& header : headers) Append(sent, header.value);
    Append(sent, body);
    Write(end_, sent);
    HttpReply reply;
    reply.status = std::stoi(Read(end_));
    reply.server_time = now_;
    reply.body = Read(end_);
    if (dies) _exit(kKilled);
    return reply;
  }
  Result<std::string> Sign(std::string_view message) override { return test::FakeSignature(key_, message); }
  const std::string& public_key_pem() const override { return key_; }
  Status Verify(const std::string&, std::string_view, std::string_view) override { return OkStatus(); }
  double Now() const override { return now_; }

  static void Append(std::string& to, std::string_view bytes) {
    const uint64_t size = bytes.size();
    to.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(bytes);
  }
  static void Write(int end, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(end, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // Empty if the other end is gone.
  static std::string Read(int end) {
    uint64_t size = 0;
    if (recv(end, &size, sizeof(size), MSG_WAITALL) != static_cast<ssize_t>(sizeof(size))) return {};
    std::string bytes(size, '\0');
    if (size > 0 && recv(end, bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) return {};
    return bytes;
  }

 private:
  int end_;
  double now_;
  std::string key_;
};

struct Crash {
  int at_call = 0, at_operation = 0;  // counted from 1; 0: none
  bool after = false;
};

class CrashedNode : public test::NodeTest {
 protected:
  // Works in a child until it ends or is killed. Returns its exit code: 0, kKilled, or the code of an error.
  int Child(const Crash& crash) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      alarm(60);
      PipeTransport transport(ends[1], server_.now);
      transport.calls_left = crash.at_call;
      transport.after = crash.after;
      dies_after = crash.after;
      operations_left = crash.at_operation;
      const auto node = Open(transport);
      const Status worked = node ? Work(*node).status() : IoError("not opened");
      _exit(static_cast<int>(worked.code()));
    }
    close(ends[1]);
    for (std::string path; !(path = PipeTransport::Read(ends[0])).empty();) {
      const std::vector<HttpHeader> headers = {{"content-type", PipeTransport::Read(ends[0])},
                                               {"flwr-public-key", PipeTransport::Read(ends[0])},
                                               {"flwr-timestamp", PipeTransport::Read(ends[0])},
                                               {"flwr-signature", PipeTransport::Read(ends[0])}};
      const std::string body = PipeTransport::Read(ends[0]);
      if (path.ends_with("push-messages")) {
        pushed_.insert(body);
        EXPECT_GE(NumCharges(), static_cast<int>(pushed_.size())) << "something left before it was charged";
      }
      const HttpReply reply = server_.Post(path, headers, body);
      std::string answer;
      PipeTransport::Append(answer, std::to_string(reply.status));
      PipeTransport::Append(answer, reply.body);
      PipeTransport::Write(ends[0], answer);
    }
    close(ends[0]);
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
  }

  // Serves two rounds with a crash, then starts again until all is done. False if the crash came after the end.
  bool ServeTwoRounds(const Crash& crash) {
    server_ = FakeSuperLink();
    pushed_.clear();
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string path = entry.path();
      if (path != base_path_ && path != log_path_) std::filesystem::remove(path);
    }
    for (const int64_t round : {1, 5}) Send(Ask(round));
    const int ended = Child(crash);
    EXPECT_TRUE(ended == 0 || ended == kKilled) << ended;
    for (int i = 0; i < 3; ++i) {
      const int again = Child({});
      // Killed before it knew its number: the server lets it join when it counts as offline.
      if (again == static_cast<int>(StatusCode::kIo)) server_.now += 3601;
      if (again == 0) break;
    }
    const int charged = NumCharges(), received = static_cast<int>(server_.Take().size());
    EXPECT_TRUE(charged == received || charged == received + 1) << charged << " charged, " << received << " received";
    EXPECT_LE(charged, static_cast<int>(policy_.takes_part));
    EXPECT_LE(pushed_.size(), static_cast<size_t>(charged)) << "a reply was made anew";
    EXPECT_EQ(NumFiles(), 0u);
    lost_ += 2 - received;
    ++runs_;
    return ended == kKilled;
  }

  std::set<std::string> pushed_;  // the announcements of replies, which name the hashes of all of them
  int lost_ = 0, runs_ = 0;
};

TEST_F(CrashedNode, AtEveryCall_ChargesWhatIsReceived) {
  for (const bool after : {false, true}) {
    int at = 1;
    while (ServeTwoRounds({.at_call = at, .after = after}) && !HasFailure()) ++at;
    EXPECT_GE(at, 20) << "two rounds of eight calls, and those of joining";
  }
  // A request is lost if the process ends between its delivery and the file. Both are lost while a node waits to join.
  EXPECT_LE(lost_, 8);
  RecordProperty("runs", runs_);
}

#ifndef WISP_SANITIZED
TEST_F(CrashedNode, AtEveryChangeOfAFile_ChargesWhatIsReceived) {
  for (const bool after : {false, true}) {
    int at = 1;
    while (ServeTwoRounds({.at_operation = at, .after = after}) && !HasFailure()) ++at;
    EXPECT_GE(at, 20) << "the changes of files are counted";
  }
  RecordProperty("runs", runs_);
}
#endif

}  // namespace
}  // namespace wisp::fleet::fleet_node_crash_test
