// Reads ratings.dat of MovieLens: user::item::rating::timestamp, no header. The rating is not used: every rating counts
// as a choice.
#include "runtime/core/decimal.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {

namespace {

Status AddLine(std::string_view line, uint64_t number, const ReadOptions& options, SequenceBuilder& builder) {
  if (line.size() > kMaxLineBytes) return builder.Error(number, TooLong(line.size()));
  std::string_view fields[4], rest = line;
  size_t count = 0;
  for (size_t end = 0; end != std::string_view::npos; ++count) {
    end = rest.find("::");
    if (count < 4) fields[count] = rest.substr(0, end);
    if (end != std::string_view::npos) rest.remove_prefix(end + 2);
  }
  if (count != 4) {
    return builder.Error(number, std::to_string(count) + " fields between '::', " + Shown(line) +
                                     "; allowed is user::item::rating::timestamp");
  }
  builder.SetRowUser(fields[0]);
  double rating;
  const char* end = fields[2].data() + fields[2].size();
  if (const auto parsed = ReadDecimal(fields[2].data(), end, rating); parsed.ec != std::errc() || parsed.ptr != end) {
    return builder.Error(number, "the rating is " + Shown(fields[2]) + "; allowed is a number");
  }
  int64_t time;
  if (!ParseTime(fields[3], options.units.times_per_second, time)) return BadTime(builder, number, fields[3]);
  if (options.time == TimeSource::kFileOrder) time = static_cast<int64_t>(number);
  return builder.Add(number, fields[0], fields[1], time);
}

}  // namespace

Status ReadRatingsDat(std::string_view text, const ReadOptions& options, SequenceBuilder& builder) {
  Lines lines(text);
  while (lines.Next()) WISP_RETURN_IF_ERROR(builder.TakeRow(AddLine(lines.line(), lines.number(), options, builder)));
  builder.set_num_lines(lines.number());
  return OkStatus();
}

}  // namespace wisp::data
