#include "tools/wisp/options.h"

#include "runtime/core/decimal.h"

namespace wisp::tools {
namespace {

bool Read(const std::string& text, std::string& value) {
  value = text;
  return true;
}

bool Read(const std::string& text, double& value) {
  return ReadDecimal(text.data(), text.data() + text.size(), value).ec == std::errc();
}

template <class T>
CLI::Option* Repeated(CLI::App* app, const std::string& name, std::vector<T>& values, const std::string& help) {
  const auto read = [&values](const CLI::results_t& given) {
    values.assign(given.size(), {});
    for (size_t i = 0; i < given.size(); ++i) {
      if (!Read(given[i], values[i])) return false;
    }
    return true;
  };
  // The text that the help shows.
  const auto shown = [&values] { return CLI::detail::join(values, " "); };
  return app->add_option(name, read, help, false, shown)
      ->type_name(CLI::detail::type_name<T>())
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

}  // namespace

CLI::Option* AddOptional(CLI::App* app, const std::string& name, std::optional<std::string>& value,
                         const std::string& help) {
  const auto read = [&value](const CLI::results_t& given) {
    value = given.front();
    return true;
  };
  return app->add_option(name, read, help, false, [&value] { return value.value_or(""); })->type_name("TEXT");
}

CLI::Option* AddRepeated(CLI::App* app, const std::string& name, std::vector<std::string>& values,
                         const std::string& help) {
  return Repeated(app, name, values, help);
}

CLI::Option* AddRepeated(CLI::App* app, const std::string& name, std::vector<double>& values, const std::string& help) {
  return Repeated(app, name, values, help);
}

}  // namespace wisp::tools
