// A small writer of JSON text, two spaces of indentation a level.
//
// It is enough for privacy.json and the ledger's export. Strings are escaped, including characters that control a
// terminal or move text invisibly; bytes that are not UTF-8 become the replacement character. Doubles are written so
// that reading gives the same double. JSON has no infinity: a number that is not finite becomes the string "infinity",
// "-infinity" or "nan", never a silent null. It does not parse, and does not check the caller: keys belong in objects,
// and every Begin has its End.
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

  // Returns the text, with a newline at its end, and empties the writer.
  std::string Take();

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void BeginValue();
  void NewLine();
  void AppendQuoted(std::string_view text);

  std::string text_;
  std::vector<size_t> counts_;  // values written so far, per open bracket
  bool after_key_ = false;
};

// Escapes (\u202e) the characters that JsonWriter escapes in JSON text of another writer: JSON has them only inside
// strings, so the meaning stays the same. A byte that is not UTF-8 becomes the replacement character.
std::string EscapedJson(std::string_view json);

// The shortest decimal text that reads back as `number`; "infinity", "-infinity", "nan".
std::string DoubleText(double number);
// For people: at most `digits` significant digits. Use EpsilonText for what was spent.
std::string ShortText(double number, int digits = 4);
// For an epsilon, a delta or another figure that must not be understated: at most `digits` significant digits (1 to
// 15), rounded up. Read back, it is never less than `number`.
std::string EpsilonText(double number, int digits = 4);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_JSON_H_
