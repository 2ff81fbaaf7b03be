// CSV, TSV and RecBole's .inter: a header that names columns, then one event a record.
#include <vector>

#include "runtime/data/columns.h"
#include "runtime/data/delimited_records.h"
#include "runtime/data/lines.h"
#include "runtime/data/readers.h"

namespace wisp::data {
namespace {

Status AddRow(const Records& records, size_t width, const Columns& columns, const ReadOptions& options,
              SequenceBuilder& builder) {
  const std::vector<std::string_view>& fields = records.fields();
  if (fields.size() != width) {
    return builder.Error(records.line(), std::to_string(fields.size()) + " fields, the first is " + Shown(fields[0]) +
                                             "; allowed are " + std::to_string(width) + ", as in the header");
  }
  builder.SetRowUser(fields[columns.user]);
  auto time = static_cast<int64_t>(records.line());
  if (options.time == TimeSource::kColumn && !ParseTime(fields[*columns.time], options.units.times_per_second, time)) {
    return BadTime(builder, records.line(), fields[*columns.time]);
  }
  return builder.Add(records.line(), fields[columns.user], fields[columns.item], time);
}

Status ReadRows(Records& records, const Columns& columns, const ReadOptions& options, SequenceBuilder& builder) {
  const size_t width = records.fields().size();
  while (records.Next()) {
    WISP_RETURN_IF_ERROR(
        builder.TakeRow(records.fault().ok() ? AddRow(records, width, columns, options, builder) : records.fault()));
  }
  builder.set_num_lines(records.num_lines());
  return records.status();
}

// A sentence if a header of one column seems to have several with another separator; else empty.
std::string OtherSeparator(std::string_view header, char separator) {
  if (separator != ',' && header.find(',') != std::string_view::npos)
    return "','; allowed is a tab here, commas are the format csv";
  if (separator != '\t' && header.find('\t') != std::string_view::npos)
    return "a tab; allowed is ',' here, tabs are the format tsv";
  for (const char c : {';', '|'}) {
    if (header.find(c) != std::string_view::npos)
      return std::string("'") + c + "'; allowed are ',' (the format csv) and a tab (the format tsv)";
  }
  return {};
}

// `name_of` returns a column's name from a field of the header, or an error.
template <class GetName>
Status ReadTable(std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder,
                 GetName&& name_of) {
  Records records(builder.name(), text, separator, builder.private_run());
  if (!records.Next() || !records.fault().ok()) {
    WISP_RETURN_IF_ERROR(records.status());
    WISP_RETURN_IF_ERROR(records.fault());
    return InvalidData(builder.name(), ": it is empty; a header with the names of the columns is needed");
  }
  std::vector<std::string> header;
  for (const std::string_view field : records.fields()) {
    std::string_view name;
    WISP_RETURN_IF_ERROR(name_of(records.line(), field, name));
    header.emplace_back(name);
  }
  const std::string where = builder.name() + ", line " + std::to_string(records.line());
  if (header.size() == 1) {
    const std::string other = OtherSeparator(header[0], separator);
    if (!other.empty())
      return InvalidData(where, ": the header is one column, ", Shown(header[0]), "; the separator seems to be ",
                         other);
  }
  WISP_ASSIGN_OR_RETURN(const Columns columns, ChooseColumns(where, header, options));
  return ReadRows(records, columns, options, builder);
}

}  // namespace

Status ReadDelimited(std::string_view text, char separator, const ReadOptions& options, SequenceBuilder& builder) {
  return ReadTable(text, separator, options, builder, [](uint64_t, std::string_view field, std::string_view& name) {
    name = field;
    return OkStatus();
  });
}

Status ReadInter(std::string_view text, const ReadOptions& options, SequenceBuilder& builder) {
  return ReadTable(text, '\t', options, builder, [&](uint64_t line, std::string_view field, std::string_view& name) {
    const size_t colon = field.find(':');
    const std::string_view type = colon == std::string_view::npos ? std::string_view() : field.substr(colon + 1);
    name = field.substr(0, colon);
    if (type == "token" || type == "float" || type == "token_seq" || type == "float_seq") return OkStatus();
    return builder.Error(line, "the header has " + Shown(field) +
                                   "; allowed is name:type with type token, float, token_seq or float_seq");
  });
}

}  // namespace wisp::data
