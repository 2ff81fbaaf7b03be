// Checks Python's arguments. Every error names the argument, its value and what is allowed.
//
//   Options given(dict, "personalise");
//   options.epsilon = given.Number("epsilon");
//   options.log_path = given.Path("log");         belongs to `given`, which outlives the call
//   given.End();                                  no other names
#ifndef WISP_PORTS_PYTHON_CORE_ARGUMENTS_H_
#define WISP_PORTS_PYTHON_CORE_ARGUMENTS_H_

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "ports/python/core/handle.h"

namespace wisp_python {

// repr(value) and its type, short enough for a sentence.
std::string Shown(nb::handle value);

// The name of a value in messages: "histories[3]".
struct Label {
  const char* name;
  int64_t index = -1;
  std::string text() const;
};

// An integer between least and most; TypeError for other types.
int64_t Integer(const std::string& name, nb::handle value, int64_t least, int64_t most);
// UTF-8 without NUL, at which C would end it. TypeError for anything but a str.
std::string Utf8(const std::string& name, nb::handle value);
// The key of a user in a log, in the form that Log.users returns; its bytes may be invalid UTF-8.
std::string UserKey(const std::string& name, nb::handle value);
// 1 for True, 0 for False; TypeError for everything else.
int32_t Truth(const std::string& name, nb::handle value);

// A word that stands for a number of an enum.
struct Word {
  const char* word;
  int number;
};

// The keyword arguments of one call.
class Options {
 public:
  Options(Dict values, const char* called) : values_(std::move(values)), called_(called) {}

  // Null if None or absent, which selects the default of the C interface; so do the zeros below.
  const char* Path(const char* name);
  const char* Text(const char* name);
  double Number(const char* name);
  template <class Whole>
  Whole Count(const char* name) {
    const uint64_t most = std::numeric_limits<Whole>::max();
    const uint64_t int64_most = std::numeric_limits<int64_t>::max();
    return static_cast<Whole>(CountTo(name, static_cast<int64_t>(most < int64_most ? most : int64_most)));
  }
  int64_t Signed(const char* name);
  int32_t Flag(const char* name);
  // One of the words; 0 if None or absent.
  template <class Enum>
  Enum Choice(const char* name, std::initializer_list<Word> words) {
    return static_cast<Enum>(ParseChoice(name, words));
  }
  // A list of texts in the form of the C interface; empty if None or absent.
  std::vector<const char*> Texts(const char* name);
  // None if absent.
  nb::object Value(const char* name);

  // TypeError if a name was given that nothing asked for.
  void End() const;

 private:
  int64_t CountTo(const char* name, int64_t most);
  int ParseChoice(const char* name, std::initializer_list<Word> words);
  std::string Name(const char* name) const { return std::string(called_) + ": " + name; }

  Dict values_;
  const char* called_;
  std::set<std::string> asked_;
  std::deque<std::string> texts_;
};

// TypeError for a NumPy array with masked elements, whose values its buffer contains nevertheless.
void RefuseMask(const Label& label, nb::handle given);

// Item numbers, copied from a list or set of ints, or from an array of any integer type. A list, set or array may also
// contain items' keys, which FindKeys converts to numbers while the model is in use.
class Items {
 public:
  // None means no list (data() is null).
  Items(Label label, nb::handle given);
  // WISP_INVALID_ARGUMENT: the model lacks a key.
  void FindKeys(const wisp_model* model);

  const int32_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  bool FromBuffer(Label label, nb::handle given);
  void FromSequence(Label label, nb::handle given);

  Label label_;
  Buffer buffer_;
  std::vector<int32_t> copied_;
  std::vector<std::pair<size_t, std::string>> keys_;  // keys with their positions in `copied_`, in order
  const int32_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace wisp_python

#endif  // WISP_PORTS_PYTHON_CORE_ARGUMENTS_H_
