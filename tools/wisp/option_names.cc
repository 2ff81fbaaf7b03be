#include "tools/wisp/option_names.h"

#include <cstdlib>
#include <string_view>

namespace wisp::tools {
namespace {

struct Name {
  std::string_view setting, here;
};
constexpr Name kNames[] = {
    {"`adapter_path`", "--adapter"},
    {"`start_over`", "--start-over"},
    {"`anchor`", "--anchor"},
    {"`begin` of the anchor", "--begin-anchor"},
    {"`checkpoint_path`", "--checkpoint"},
    {"`dataset`", "--dataset"},
    {"`early`", "--early"},
    {"`delta`", "--delta, or privacy.delta in a recipe"},
    {"`epsilon`", "--epsilon"},
    {"`expected_batch`", "--batch"},
    {"`histogram_noise`", "--histogram-noise, or privacy.histogram_noise in a recipe"},
    {"`item_column`", "--item-column"},
    {"`evaluation`", "--evaluation local"},
    {"`evaluations`", "--evaluations"},
    {"`label_column`", "--label-column"},
    {"`ledger_path`", "--ledger"},
    {"`noise_multiplier`", "--noise-multiplier"},
    {"`other_data`", "--other-data"},
    {"`public_datasets`", "--public-dataset"},
    {"`replace`", "--replace"},
    {"`rows`", "--rows, or training.sparse.rows in a recipe"},
    {"`runs`", "--every"},
    {"`steps_per_run`", "--steps"},
    {"`start_over`", "--start-over"},
    {"`table`", "--table"},
    {"`text_column`", "--text-column"},
    {"`time_column`", "--time-column"},
    {"`times_per_second`", "--times-per-second"},
    {"`trains_until`", "--trains-until"},
    {"`uncharged_tuning`", "--uncharged-tuning, or privacy.uncharged_tuning in a recipe"},
    {"`user_column`", "--user-column"},
    {"`wisp_plan_change`", "`wisp plan --change`"},
    {"`wisp_plan_make`", "`wisp plan`"},
};

}  // namespace

bool TellsAsInC() {
  const char* codes = std::getenv("WISP_EXIT_CODES");
  return codes != nullptr && std::string_view(codes) == "c";
}

std::string InProgramWords(std::string sentence) {
  if (TellsAsInC() || sentence.find('`') == std::string::npos) return sentence;
  for (const auto& [setting, here] : kNames) {
    for (size_t at = 0; (at = sentence.find(setting, at)) != std::string::npos; at += here.size())
      sentence.replace(at, setting.size(), here);
  }
  return sentence;
}

}  // namespace wisp::tools
