#include "runtime/data/date_time.h"

#include <charconv>
#include <cmath>

#include "runtime/core/decimal.h"

namespace wisp::data {
namespace {

constexpr int64_t kSecondsPerDay = 86400;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Consumes what it finds at the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Exactly `count` digits.
  bool Digits(size_t count, int64_t& number) {
    if (rest_.size() < count) return false;
    number = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!IsDigit(rest_[i])) return false;
      number = 10 * number + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return true;
  }
  // Reads one or more digits of a fraction, in billionths; those behind the ninth are ignored.
  bool Fraction(int64_t& billionths) {
    size_t count = 0;
    billionths = 0;
    for (; count < rest_.size() && IsDigit(rest_[count]); ++count) {
      if (count < 9) billionths = 10 * billionths + (rest_[count] - '0');
    }
    for (size_t i = count; i < 9; ++i) billionths *= 10;
    rest_.remove_prefix(count);
    return count > 0;
  }

 private:
  std::string_view rest_;
};

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int64_t DaysInMonth(int64_t year, int64_t month) {
  constexpr int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeap(year) ? 29 : kDays[month - 1];
}

// Days since 1970-01-01. A year begins with March here, so that a leap year's extra day comes last.
int64_t DaysSince1970(int64_t year, int64_t month, int64_t day) {
  const int64_t shifted = month <= 2 ? year - 1 : year;
  const int64_t era = shifted / 400, year_of_era = shifted % 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

bool ReadDay(Scanner& scan, bool& separated, int64_t& days) {
  int64_t year, month, day;
  if (!scan.Digits(4, year)) return false;
  separated = scan.Take('-');
  if (!scan.Digits(2, month) || (separated && !scan.Take('-')) || !scan.Digits(2, day)) return false;
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > DaysInMonth(year, month)) return false;
  days = DaysSince1970(year, month, day);
  return true;
}

// Reads a time of day. A second of 60 is a leap second, which counts as the first of the next minute; 24:00 is the end
// of a day.
bool ReadClock(Scanner& scan, int64_t& seconds, int64_t& billionths) {
  int64_t hour, minute, second = 0;
  if (!scan.Digits(2, hour)) return false;
  const bool separated = scan.Take(':');
  if (!scan.Digits(2, minute)) return false;
  const bool has_seconds = separated ? scan.Take(':') : scan.Digits(2, second);
  if (separated && has_seconds && !scan.Digits(2, second)) return false;
  if (has_seconds && (scan.Take('.') || scan.Take(',')) && !scan.Fraction(billionths)) return false;
  const bool is_end_of_day = hour == 24 && minute == 0 && second == 0 && billionths == 0;
  if ((hour > 23 && !is_end_of_day) || minute > 59 || second > 60) return false;
  seconds = 3600 * hour + 60 * minute + second;
  return true;
}

// Reads a time zone as seconds east of UTC: Z, +01, +0100, +01:00, or nothing.
bool ReadZone(Scanner& scan, int64_t& east) {
  if (scan.at_end() || scan.Take('Z') || scan.Take('z')) return scan.at_end();
  const bool is_east = scan.Take('+');
  if (!is_east && !scan.Take('-')) return false;
  int64_t hours, minutes = 0;
  if (!scan.Digits(2, hours)) return false;
  if (!scan.at_end() && (static_cast<void>(scan.Take(':')), !scan.Digits(2, minutes))) return false;
  if (hours > 23 || minutes > 59) return false;
  east = (is_east ? 60 : -60) * (60 * hours + minutes);
  return scan.at_end();
}

}  // namespace

bool ParseDate(std::string_view text, uint32_t per_second, int64_t& time) {
  Scanner scan(text);
  bool separated = false;
  int64_t days = 0, seconds = 0, billionths = 0, east = 0;
  if (!ReadDay(scan, separated, days)) return false;
  if (scan.at_end()) {
    if (!separated) return false;
  } else {
    if (!scan.Take('T') && !scan.Take('t') && !scan.Take(' ')) return false;
    if (!ReadClock(scan, seconds, billionths) || !ReadZone(scan, east)) return false;
  }
  // Years up to 9999 with 1e9 units a second do not fit into 64 bits; years up to 2223 do.
  int64_t whole = 0;
  if (__builtin_mul_overflow(days * kSecondsPerDay + seconds - east, int64_t{per_second}, &whole)) return false;
  return !__builtin_add_overflow(whole, billionths * int64_t{per_second} / 1'000'000'000, &time);
}

bool ParseTime(std::string_view text, uint32_t per_second, int64_t& time) {
  const char* end = text.data() + text.size();
  const auto exact = std::from_chars(text.data(), end, time);
  if (exact.ec == std::errc() && exact.ptr == end) return true;
  double real = 0;
  const auto general = ReadDecimal(text.data(), end, real);
  if (general.ec != std::errc() || general.ptr != end) return ParseDate(text, per_second, time);
  if (!(real > -9e18 && real < 9e18)) return false;
  time = static_cast<int64_t>(std::floor(real));
  return true;
}

}  // namespace wisp::data
