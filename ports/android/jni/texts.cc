// Converts between Java's UTF-16 and the library's UTF-8.
#include <cstdint>
#include <string_view>

#include "calls.h"

namespace wisp::jni {
namespace {

constexpr char32_t kReplacement = 0xfffd;

bool IsHigh(char32_t unit) { return unit >= 0xd800 && unit <= 0xdbff; }
bool IsLow(char32_t unit) { return unit >= 0xdc00 && unit <= 0xdfff; }

void AppendUtf8(char32_t c, std::string& out) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xc0 | (c >> 6)), tail(0)};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xe0 | (c >> 12)), tail(6), tail(0)};
  } else {
    out += {static_cast<char>(0xf0 | (c >> 18)), tail(12), tail(6), tail(0)};
  }
}

// Removes and returns the first character; for invalid UTF-8 it removes one byte and returns the replacement character.
char32_t TakeUtf8(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  if (first < 0x80) return first;
  const size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < more) return kReplacement;
  char32_t c = first & (0x3fu >> more);
  for (size_t i = 0; i < more; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return kReplacement;
    c = (c << 6) | (next & 0x3fu);
  }
  constexpr char32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[more] || c > 0x10ffff || IsHigh(c) || IsLow(c)) return kReplacement;
  text.remove_prefix(more);
  return c;
}

}  // namespace

std::string GetText(JNIEnv* env, jstring text, const char* name) {
  if (text == nullptr) Refuse(std::string(name) + " must not be null");
  std::u16string units(static_cast<size_t>(env->GetStringLength(text)), u'\0');
  static_assert(sizeof(jchar) == sizeof(char16_t));
  env->GetStringRegion(text, 0, static_cast<jsize>(units.size()), reinterpret_cast<jchar*>(units.data()));
  CheckPending(env);
  std::string out;
  out.reserve(units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    char32_t c = units[i];
    if (c == 0) Refuse(std::string(name) + " has a zero at character " + std::to_string(i) + "; a text has none");
    const bool pair = IsHigh(c) && i + 1 < units.size() && IsLow(units[i + 1]);
    if (pair) {
      c = 0x10000 + ((c - 0xd800) << 10) + (units[++i] - 0xdc00u);
    } else if (IsHigh(c) || IsLow(c)) {
      Refuse(std::string(name) + " has half of a pair of surrogates at character " + std::to_string(i) +
             "; a text has whole characters");
    }
    AppendUtf8(c, out);
  }
  return out;
}

jstring JavaText(JNIEnv* env, const char* text) {
  std::u16string units;
  for (std::string_view rest = text; !rest.empty();) {
    const char32_t c = TakeUtf8(rest);
    if (c < 0x10000) {
      units += static_cast<char16_t>(c);
    } else {
      units += {static_cast<char16_t>(0xd800 + ((c - 0x10000) >> 10)),
                static_cast<char16_t>(0xdc00 + ((c - 0x10000) & 0x3ff))};
    }
  }
  jstring result = env->NewString(reinterpret_cast<const jchar*>(units.data()), static_cast<jsize>(units.size()));
  if (result == nullptr) throw Pending{};
  return result;
}

}  // namespace wisp::jni
