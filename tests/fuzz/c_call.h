// Helpers of the fuzz targets of the C interface: structs of any size with guards after them, the check that code and
// sentence agree, small models, and the loop that turns bytes into calls.
//
//   class Machine : wisp::fuzz::Caller { ... void Call(Input& input); };
//   return wisp::fuzz::CallAll<Machine>(folder, data, size);
#ifndef WISP_TESTS_FUZZ_C_CALL_H_
#define WISP_TESTS_FUZZ_C_CALL_H_

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "ports/c/wisp.h"
#include "runtime/model/model_file.h"
#include "tests/fuzz/input.h"
#include "tests/unit/core/temporary_folder.h"

namespace wisp::fuzz {

inline constexpr int kMostCalls = 40;
inline constexpr uint32_t kItems = 6;

// A struct of the interface with space after it, as a newer caller would have.
template <class T>
struct Sized {
  T options = WISP_INIT(T);
  std::array<unsigned char, 128> behind{};
};

template <class T>
void Resize(Sized<T>& sized, Input& input) {
  const uint8_t choice = input.Byte();
  if (choice < 200) return;
  const size_t sizes[] = {0,
                          1,
                          7,
                          sizeof(size_t),
                          sizeof(size_t) + 4,
                          sizeof(T) - 8,
                          sizeof(T) + 8,
                          sizeof(T) + 64,
                          5000,
                          std::numeric_limits<size_t>::max()};
  sized.options.size = sizes[choice % std::size(sizes)];
  if (choice > 250) sized.behind[input.Byte() % sized.behind.size()] = 1;
}

// A result in any size; bytes after the caller's size must stay unchanged.
template <class T>
class Filled {
 public:
  explicit Filled(Input& input) {
    room_.fill(kUntouched);
    Sized<T> sized;
    Resize(sized, input);
    size_ = sized.options.size;
    std::memcpy(room_.data(), &size_, sizeof size_);
    null_ = input.Byte() == 255;
  }
  ~Filled() {
    for (size_t i = std::max(size_ <= kRoom ? size_ : 0, sizeof size_); i < kRoom; ++i)
      Require(room_[i] == kUntouched, "nothing behind a struct is written");
  }
  Filled(const Filled&) = delete;
  T* get() { return null_ ? nullptr : reinterpret_cast<T*>(room_.data()); }

 private:
  static constexpr size_t kRoom = sizeof(T) + 128;
  static constexpr unsigned char kUntouched = 0xa5;
  alignas(16) std::array<unsigned char, kRoom> room_;
  size_t size_ = 0;
  bool null_ = false;
};

// Puts any number into an enum's field; mostly one from 0 to `most`.
template <class Enum>
void Choose(Enum& field, int32_t most, Input& input) {
  const uint8_t byte = input.Byte();
  const int32_t number = byte < 240 ? byte % (most + 1) : input.Number<int8_t>();
  std::memcpy(&field, &number, sizeof field);
}

class Caller {
 protected:
  // Requires that the code and the sentence agree.
  wisp_code Held(wisp_code code) {
    Require(code == error_.code, "the code that is returned is the error's");
    if (code != WISP_OK)
      RequireSentence(error_.message);
    else
      Require(error_.message[0] == '\0', "no sentence without an error");
    return code;
  }
  static std::vector<int32_t> Items(Input& input) {
    std::vector<int32_t> items(input.Byte() % 8);
    for (int32_t& item : items) {
      const uint8_t byte = input.Byte();
      item = byte < 240 ? byte % kItems : input.Number<int32_t>();
    }
    return items;
  }

  wisp_error error_{};
};

// Removes the files, and those that SQLite keeps beside them.
inline void RemoveAll(const test::TemporaryFolder& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    for (const char* side : {"", "-wal", "-shm", "-journal"}) std::remove((folder / name + side).c_str());
  }
}

// Writes two small models with the same items: one of public data, and one without a guarantee.
inline void WriteModels(const test::TemporaryFolder& folder) {
  const UniformArchitecture a{
      .num_items = kItems, .max_length = 4, .width = 4, .num_heads = 2, .num_blocks = 1, .inner_width = 3};
  std::vector<float> weights(FlatSize(ListParameters(a)));
  for (const ParameterSpec& p : ListParameters(a)) {
    for (size_t i = 0; i < p.size(); ++i)
      weights[p.offset + i] = static_cast<float>((p.offset + i) * 37 % 101) / 101 - 0.5f;
  }
  for (const bool tuned : {false, true}) {
    const Status status = WriteModel(
        folder / (tuned ? "tuned.wisp" : "base.wisp"),
        {.architecture = a,
         .weights = weights,
         .item_keys = {"10", "9", "a", "b", "c", "d"},
         .item_names = {"One", "Two", "", "One", "Five", "Six"},
         .provenance = {{.description = "trained", .dataset = tuned ? "events" : "synthetic", .date = "2026-11-20"}}});
    Require(status.ok(), status.message().c_str());
  }
}

template <class Machine>
int CallAll(const test::TemporaryFolder& folder, const uint8_t* data, size_t size) {
  Input input(data, size);
  Machine machine(folder);
  for (int i = 0; i < kMostCalls && !input.empty(); ++i) machine.Call(input);
  return 0;
}

}  // namespace wisp::fuzz

#endif  // WISP_TESTS_FUZZ_C_CALL_H_
