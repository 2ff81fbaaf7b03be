// A small writer of JSON text, two spaces of indentation a level.
//
// What it is: enough for privacy.json and the ledger's export. Strings are escaped, also what a terminal acts on and
// what moves text without being seen; bytes that are not UTF-8 become the replacement character, doubles are written so
// that reading gives the same double. JSON has no infinity: a number that is not finite becomes the string "infinity",
// "-infinity" or "nan", never a silent null. What it is not: a parser, or a checker of what the caller does; keys
// belong in objects, every Begin has its End.
//
//   JsonWriter json;
//   json.BeginObject().Key("epsilon").Value(2.5).Key("steps").Value(uint64_t{10}).EndObject();
//   std::string text = json.Take();
#ifndef WISP_RUNTIME_PRIVACY_JSON_H_
#define WISP_RUNTIME_PRIVACY_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wisp::privacy {

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);
  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(double number);
  JsonWriter& Value(uint64_t number);
  JsonWriter& Value(bool value);
  JsonWriter& Null();

  // The text, with a newline at its end. The writer is empty afterwards.
  std::string Take();

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void BeginValue();
  void NewLine();
  void AppendQuoted(std::string_view text);

  std::string text_;
  std::vector<size_t> counts_;  // values written so far, for every open bracket
  bool after_key_ = false;
};

// JSON text that another writer made, with escapes (\u202e) for the characters that JsonWriter escapes: outside strings
// JSON has none of them, so the text means the same. A byte that is not UTF-8 becomes the replacement character.
std::string EscapedJson(std::string_view json);

// The shortest decimal text that reads back as `number`; "infinity", "-infinity", "nan".
std::string DoubleText(double number);
// For people: so many significant digits at most. Not for what was spent: that is EpsilonText's.
std::string ShortText(double number, int digits = 4);
// For people, of an epsilon, a delta or what else must not be understated: at most so many significant digits (1 to
// 15), rounded up. Read back it is never less than `number`.
std::string EpsilonText(double number, int digits = 4);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_JSON_H_
