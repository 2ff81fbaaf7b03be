// ratings.dat of MovieLens: user::item::rating::timestamp, no header. The rating is not used: whoever rated, chose.
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {

Status ReadRatingsDat(std::string_view text, const ReadOptions& options, SequenceBuilder& builder) {
  Lines lines(text);
  while (lines.Next()) {
    const std::string_view line = lines.line();
    if (line.size() > kMaxLineBytes) return builder.Error(lines.number(), TooLong(line.size()));
    std::string_view fields[4], rest = line;
    size_t count = 0;
    for (size_t end = 0; end != std::string_view::npos; ++count) {
      end = rest.find("::");
      if (count < 4) fields[count] = rest.substr(0, end);
      if (end != std::string_view::npos) rest.remove_prefix(end + 2);
    }
    if (count != 4) {
      return builder.Error(lines.number(), std::to_string(count) + " fields between '::', " + Shown(line) +
                                               "; allowed is user::item::rating::timestamp");
    }
    double rating;
    const char* end = fields[2].data() + fields[2].size();
    if (const auto parsed = std::from_chars(fields[2].data(), end, rating);
        parsed.ec != std::errc() || parsed.ptr != end) {
      return builder.Error(lines.number(), "the rating is " + Shown(fields[2]) + "; allowed is a number");
    }
    int64_t time;
    if (!ParseTime(fields[3], time)) return BadTime(builder, lines.number(), fields[3]);
    if (options.time == TimeSource::kFileOrder) time = static_cast<int64_t>(lines.number());
    WISP_RETURN_IF_ERROR(builder.Add(lines.number(), fields[0], fields[1], time));
  }
  builder.set_num_lines(lines.number());
  return OkStatus();
}

}  // namespace wisp::data
