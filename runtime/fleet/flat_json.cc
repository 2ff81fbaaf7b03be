#include "runtime/fleet/flat_json.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "runtime/core/decimal.h"
#include "runtime/core/first_characters.h"
#include "runtime/core/text.h"

namespace wisp {
namespace {

// Untrusted text as a message quotes it.
std::string Shown(std::string_view text) {
  const std::string_view first = FirstCharacters(text, 40);
  return OneLine(std::string(first)) + (first.size() < text.size() ? "..." : "");
}

class FlatJsonParser {
 public:
  FlatJsonParser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  Status Parse(std::vector<FlatJson::Entry>& entries) {
    if (!Skip('{')) return Expected("'{'");
    if (!Skip('}')) {
      do {
        if (entries.size() == FlatJson::kMostKeys) {
          return InvalidData(name_, ": has more than ", FlatJson::kMostKeys, " keys, which are allowed");
        }
        FlatJson::Entry entry;
        SkipSpace();
        if (!rest_.starts_with('"')) return Expected("a key in quotes");
        WISP_RETURN_IF_ERROR(String(entry.key));
        for (const FlatJson::Entry& other : entries) {
          if (other.key == entry.key) return InvalidData(name_, ": has \"", Shown(entry.key), "\" twice");
        }
        if (!Skip(':')) return Expected("':'");
        WISP_RETURN_IF_ERROR(Value(entry));
        entries.push_back(std::move(entry));
      } while (Skip(','));
      if (!Skip('}')) return Expected("',' or '}'");
    }
    SkipSpace();
    return rest_.empty() ? OkStatus() : Expected("the end of the text");
  }

 private:
  Status Expected(std::string_view what) const {
    const std::string found = rest_.empty() ? "the end of the text" : "'" + Shown(FirstCharacters(rest_, 1)) + "'";
    return InvalidData(name_, " line ", line_, ": has ", found, " in place of ", what);
  }

  void SkipSpace() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != std::string_view::npos) {
      if (rest_.front() == '\n') ++line_;
      rest_.remove_prefix(1);
    }
  }
  bool Skip(char c) {
    SkipSpace();
    return SkipHere(c);
  }
  bool SkipHere(char c) {
    const bool is = rest_.starts_with(c);
    if (is) rest_.remove_prefix(1);
    return is;
  }
  size_t SkipDigits() {
    size_t digits = 0;
    while (digits < rest_.size() && IsAsciiDigit(rest_[digits])) ++digits;
    rest_.remove_prefix(digits);
    return digits;
  }

  Status Value(FlatJson::Entry& entry) {
    SkipSpace();
    if (rest_.starts_with('"')) return String(entry.text);
    for (const std::string_view word : {"true", "false"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      entry.kind = FlatJson::Kind::kTruth;
      entry.text = word;
      return OkStatus();
    }
    if (rest_.starts_with('-') || (!rest_.empty() && IsAsciiDigit(rest_.front()))) return Number(entry);
    return Expected("a string, a number, true or false");
  }

  Status Number(FlatJson::Entry& entry) {
    entry.kind = FlatJson::Kind::kNumber;
    const std::string_view all = rest_;
    SkipHere('-');
    const bool zero = rest_.starts_with('0');
    if (const size_t digits = SkipDigits(); digits == 0 || (zero && digits > 1)) return Expected("a number");
    bool integer = true;
    if (SkipHere('.')) {
      integer = false;
      if (SkipDigits() == 0) return Expected("a digit");
    }
    if (SkipHere('e') || SkipHere('E')) {
      integer = false;
      if (!SkipHere('+')) SkipHere('-');
      if (SkipDigits() == 0) return Expected("a digit");
    }
    entry.text = all.substr(0, all.size() - rest_.size());
    const char* const begin = entry.text.data();
    const char* const end = begin + entry.text.size();
    if (const auto [at, error] = ReadDecimal(begin, end, entry.number); error != std::errc() || at != end) {
      return InvalidData(name_, ": \"", Shown(entry.key), "\" is ", Shown(entry.text),
                         "; allowed are 0 and numbers of size 1e-307 to 1e308");
    }
    entry.is_whole = integer && std::from_chars(begin, end, entry.whole).ec == std::errc();
    return OkStatus();
  }

  Status String(std::string& text) {
    SkipHere('"');
    while (!SkipHere('"')) {
      const size_t length = Utf8Length(rest_);
      if (rest_.empty() || length == 0) return Expected("a character of UTF-8");
      if (static_cast<uint8_t>(rest_.front()) < 0x20) return Expected("an escape: strings hold no control characters");
      if (SkipHere('\\')) {
        WISP_RETURN_IF_ERROR(Escape(text));
      } else {
        text += rest_.substr(0, length);
        rest_.remove_prefix(length);
      }
    }
    return OkStatus();
  }

  Status Escape(std::string& text) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (SkipHere('u')) {
      uint32_t point = 0, low = 0;
      if (!Digits(point)) return Expected("four hexadecimal digits");
      if (point >= 0xD800 && point < 0xDC00) {
        if (!SkipHere('\\') || !SkipHere('u') || !Digits(low) || low < 0xDC00 || low >= 0xE000) {
          return Expected("the second half of a surrogate pair");
        }
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      } else if (point == 0 || (point >= 0xDC00 && point < 0xE000)) {
        return InvalidData(name_, " line ", line_, ": has the escape of ", point == 0 ? "a zero" : "half a",
                           " character, which is not allowed");
      }
      AppendUtf8(text, point);
      return OkStatus();
    }
    const size_t which = rest_.empty() ? std::string_view::npos : kEscapes.find(rest_.front());
    if (which == std::string_view::npos) return Expected("an escape of JSON");
    text += kMeanings[which];
    rest_.remove_prefix(1);
    return OkStatus();
  }

  bool Digits(uint32_t& number) {
    if (rest_.size() < 4) return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, number, 16);
    if (error != std::errc() || end != rest_.data() + 4) return false;
    rest_.remove_prefix(4);
    return true;
  }

  static void AppendUtf8(std::string& text, uint32_t point) {
    const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += static_cast<char>(0xC0 | point >> 6);
    } else if (point < 0x10000) {
      text += static_cast<char>(0xE0 | point >> 12);
      tail(6);
    } else {
      text += static_cast<char>(0xF0 | point >> 18);
      tail(12);
      tail(6);
    }
    if (point >= 0x80) tail(0);
  }

  std::string_view rest_;
  const std::string& name_;
  size_t line_ = 1;
};

}  // namespace

Result<FlatJson> FlatJson::Parse(std::string_view text, std::string name, size_t most_bytes) {
  if (text.size() > most_bytes) {
    return InvalidData(name, ": has ", text.size(), " bytes; allowed are ", most_bytes, " at most");
  }
  FlatJson json(std::move(name));
  WISP_RETURN_IF_ERROR(FlatJsonParser(text, json.name_).Parse(json.entries_));
  return json;
}

bool FlatJson::Has(std::string_view key) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
}

Status FlatJson::Refuse(const Entry& entry, std::string_view allowed) const {
  const char* const quote = entry.kind == Kind::kText ? "\"" : "";
  return InvalidData(name_, ": \"", Shown(entry.key), "\" is ", quote, Shown(entry.text), quote, "; allowed ", allowed);
}

Result<const FlatJson::Entry*> FlatJson::Find(std::string_view key, Kind kind, std::string_view allowed) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (found == entries_.end()) return InvalidData(name_, ": has no \"", key, "\"; allowed ", allowed);
  found->asked = true;
  if (found->kind != kind) return Refuse(*found, allowed);
  return &*found;
}

Result<std::string> FlatJson::Text(std::string_view key, size_t most_bytes) {
  const std::string allowed = JoinText("are strings of ", most_bytes, " bytes at most");
  WISP_ASSIGN_OR_RETURN(const Entry* entry, Find(key, Kind::kText, allowed));
  if (entry->text.size() > most_bytes) return Refuse(*entry, allowed);
  return entry->text;
}

Result<double> FlatJson::Number(std::string_view key, double least, double most) {
  const std::string allowed = JoinText("are numbers from ", least, " to ", most);
  WISP_ASSIGN_OR_RETURN(const Entry* entry, Find(key, Kind::kNumber, allowed));
  if (!(entry->number >= least && entry->number <= most)) return Refuse(*entry, allowed);
  return entry->number;
}

Result<int64_t> FlatJson::Whole(std::string_view key, int64_t least, int64_t most) {
  const std::string allowed = JoinText("are whole numbers from ", least, " to ", most);
  WISP_ASSIGN_OR_RETURN(const Entry* entry, Find(key, Kind::kNumber, allowed));
  if (!entry->is_whole) return Refuse(*entry, allowed + ", without point and exponent");
  if (entry->whole < least || entry->whole > most) return Refuse(*entry, allowed);
  return entry->whole;
}

Result<bool> FlatJson::Truth(std::string_view key) {
  WISP_ASSIGN_OR_RETURN(const Entry* entry, Find(key, Kind::kTruth, "are true and false"));
  return entry->text == "true";
}

Result<size_t> FlatJson::Choice(std::string_view key, std::span<const std::string_view> names) {
  std::string allowed = "are";
  for (size_t i = 0; i < names.size(); ++i) {
    allowed += i == 0 ? " \"" : i + 1 < names.size() ? ", \"" : " and \"";
    allowed.append(names[i]);
    allowed += '"';
  }
  WISP_ASSIGN_OR_RETURN(const Entry* entry, Find(key, Kind::kText, allowed));
  const auto found = std::find(names.begin(), names.end(), entry->text);
  if (found == names.end()) return Refuse(*entry, allowed);
  return static_cast<size_t>(found - names.begin());
}

Status FlatJson::NoOtherKeys() const {
  for (const Entry& entry : entries_) {
    if (entry.asked) continue;
    std::string known;
    for (const Entry& other : entries_) {
      if (other.asked) known += (known.empty() ? "" : ", ") + Shown(other.key);
    }
    return InvalidData(name_, ": \"", Shown(entry.key), "\" is not known; known here: ", known);
  }
  return OkStatus();
}

}  // namespace wisp
