// wisp._core's nightly training (wisp_deployment.h): plan, run, budget, quality, new bases and items.
#include <algorithm>
#include <cmath>
#include <deque>

#include "ports/python/core/privacy.h"

namespace wisp_python {
namespace {

class PlanArguments {
 public:
  PlanArguments(Dict given, const char* called) : given_(std::move(given), called), anchor_(given_.Value("anchor")) {
    wisp_plan_options& o = options_;
    o.model_path = given_.Path("model");
    o.ledger_path = given_.Path("ledger");
    o.dataset = given_.Text("dataset");
    o.epsilon = given_.Number("epsilon");
    o.delta = given_.Number("delta");
    o.num_records_public = given_.Count<uint32_t>("num_records_public");
    o.runs = given_.Count<uint32_t>("runs");
    o.unit = ReadGivenUnit(given_);
    o.times_per_second = given_.Count<uint32_t>("times_per_second");
    o.session_gap = given_.Signed("session_gap");
    o.evaluation = given_.Choice<wisp_evaluation>(
        "evaluation",
        {{"private", WISP_EVALUATION_PRIVATE}, {"local", WISP_EVALUATION_LOCAL}, {"none", WISP_EVALUATION_NONE}});
    o.evaluations = given_.Count<uint32_t>("evaluations");
    o.steps_per_run = given_.Count<uint64_t>("steps_per_run");
    o.expected_batch = given_.Count<uint32_t>("expected_batch");
    o.num_threads = given_.Count<uint32_t>("num_threads");
    o.learning_rate = given_.Number("learning_rate");
    o.typical_events = given_.Count<uint32_t>("typical_events");
    o.dry_run = given_.Flag("dry_run");
    o.measure = given_.Flag("measure");
    o.other_data = given_.Flag("other_data");
    o.output_path = given_.Path("output");
    o.replace = given_.Flag("replace");
    o.num_records_at_start = given_.Count<uint32_t>("num_records_at_start");
    o.anchor = anchor_.anchor();
    o.trains_until = given_.Signed("trains_until");
    given_.End();
  }
  const wisp_plan_options* options() const { return &options_; }
  Anchor& anchor() { return anchor_; }

 private:
  Options given_;
  Anchor anchor_;
  wisp_plan_options options_ = WISP_INIT(wisp_plan_options);
};

Dict GetPlan(const wisp_plan& plan) {
  constexpr const char* kOutlook[] = {"gain", "some gain", "hopeless", "new items only"};
  Dict out;
  out["runs"] = plan.runs;
  out["evaluations"] = plan.evaluations;
  out["steps_per_run"] = plan.steps_per_run;
  out["expected_batch"] = plan.expected_batch;
  out["outlook"] = kOutlook[std::clamp<int>(plan.outlook, WISP_OUTLOOK_GAIN, WISP_OUTLOOK_NEW_ITEMS)];
  out["training_noise"] = plan.training_noise;
  out["evaluation_noise"] = plan.evaluation_noise;
  out["noise_to_signal"] = plan.noise_to_signal;
  out["found_gain"] = plan.found_gain;
  out["bytes"] = plan.bytes;
  out["cpu_seconds_of_run"] = plan.cpu_seconds_of_run;
  out["seconds_of_run"] = plan.seconds_of_run;
  out["cpu_seconds_of_evaluation"] = plan.cpu_seconds_of_evaluation;
  out["seconds_of_evaluation"] = plan.seconds_of_evaluation;
  out["was_there"] = plan.was_there != 0;
  out["noise_of_an_item"] = plan.noise_of_an_item;
  out["succession_releases"] = plan.succession_releases;
  out["succession_share"] = plan.succession_share;
  out["succession_noise"] = plan.succession_noise;
  out["succession_signal"] = plan.succession_signal;
  out["bias_weight_releases"] = plan.bias_weight_releases;
  out["bias_weight_share"] = plan.bias_weight_share;
  out["bias_weight_noise"] = plan.bias_weight_noise;
  return out;
}

Dict MakePlan(Dict given) {
  PlanArguments arguments(std::move(given), "make_plan");
  wisp_plan plan = WISP_INIT(wisp_plan);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_plan_make(arguments.options(), &plan, &error); });
  if (code != WISP_OK) arguments.anchor().Rethrow();
  Check(code, error);
  return GetPlan(plan);
}

nb::typed<nb::tuple, Dict, double> ChangePlan(Dict given) {
  PlanArguments arguments(std::move(given), "change_plan");
  wisp_plan plan = WISP_INIT(wisp_plan);
  double factor = 1;
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_plan_change(arguments.options(), &plan, &factor, &error); });
  if (code != WISP_OK) arguments.anchor().Rethrow();
  Check(code, error);
  return nb::make_tuple(GetPlan(plan), factor);
}

Dict Budget(Dict dict) {
  Options given(std::move(dict), "budget");
  const char* const ledger = given.Path("ledger");
  const double delta = given.Number("delta");
  Anchor anchor(given.Value("anchor"));
  given.End();
  wisp_budget budget = WISP_INIT(wisp_budget);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_budget_read(ledger, anchor.anchor(), delta, &budget, &error); });
  if (code != WISP_OK) anchor.Rethrow();
  Check(code, error);
  Dict out;
  out["epsilon_stated"] = budget.epsilon_stated;
  out["epsilon_charged"] = std::isnan(budget.epsilon_charged) ? budget.epsilon_stated : budget.epsilon_charged;
  out["delta"] = budget.delta;
  out["epsilon_limit"] = budget.epsilon_limit;
  out["has_plan"] = budget.has_plan != 0;
  out["runs_left"] = budget.runs_left;
  out["steps_left"] = budget.steps_left;
  out["evaluations_left"] = budget.evaluations_left;
  out["succession_releases_left"] = budget.succession_releases_left;
  out["bias_weight_releases_left"] = budget.bias_weight_releases_left;
  return out;
}

nb::typed<nb::list, nb::any> BudgetHistory(Dict dict) {
  Options given(std::move(dict), "budget_history");
  const char* const ledger = given.Path("ledger");
  const double delta = given.Number("delta");
  const auto points = given.Count<uint32_t>("points");
  Anchor anchor(given.Value("anchor"));
  given.End();
  nb::list out;
  wisp_error error;
  // Ctrl-C ends the list, and is raised behind it.
  const wisp_on_spent keep = [](void* list, const wisp_spent* spent) -> int32_t {
    const Acquired acquired;
    static_cast<nb::list*>(list)->append(
        nb::make_tuple(nb::str(spent->time_utc), spent->charges, spent->epsilon_stated,
                       std::isnan(spent->epsilon_charged) ? spent->epsilon_stated : spent->epsilon_charged));
    return PyErr_CheckSignals() == 0 ? 1 : 0;
  };
  const wisp_code code =
      WithoutGil([&] { return wisp_budget_history(ledger, anchor.anchor(), delta, points, keep, &out, &error); });
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (code != WISP_OK) anchor.Rethrow();
  Check(code, error);
  return out;
}

Dict GetRun(const wisp_run_result& result, const nb::list& sentences) {
  constexpr const char* kServed[] = {"base", "earlier", "newest"};
  constexpr const char* kVerdict[] = {"undecided", "better", "worse"};
  Dict out;
  out["served"] = kServed[std::clamp<int>(result.served, WISP_SERVED_BASE, WISP_SERVED_NEWEST)];
  out["changed"] = result.changed != 0;
  out["evaluated"] = result.evaluated != 0;
  out["verdict"] = kVerdict[std::clamp<int>(result.verdict, WISP_VERDICT_UNDECIDED, WISP_VERDICT_WORSE)];
  out["on_device"] = result.on_device != 0;
  out["steps"] = result.steps;
  out["steps_of_model"] = result.steps_of_model;
  out["runs_left"] = result.runs_left;
  out["steps_left"] = result.steps_left;
  out["evaluations_left"] = result.evaluations_left;
  out["sentences"] = sentences;
  out["num_events"] = result.num_events;
  out["unknown_events"] = result.unknown_events;
  out["unknown_items"] = result.unknown_items;
  out["bad_rows"] = result.bad_rows;
  out["num_records"] = result.num_records;
  return out;
}

// Collects the run's messages as pairs (is it a warning, sentence).
void Note(void* data, wisp_log_level level, const char* sentence) {
  static_cast<std::vector<std::pair<bool, std::string>>*>(data)->emplace_back(level == WISP_LOG_WARNING, sentence);
}

Dict RunPlanned(Dict dict, nb::object progress) {
  Options given(std::move(dict), "run_planned");
  Anchor anchor(given.Value("anchor"));
  Progress told(std::move(progress));
  std::vector<std::pair<bool, std::string>> said;
  wisp_logger logger = WISP_INIT(wisp_logger);
  logger.write = &Note;
  logger.data = &said;
  wisp_device device = WISP_INIT(wisp_device);
  wisp_run_options options = WISP_INIT(wisp_run_options);
  options.model_path = given.Path("model");
  options.log_path = given.Path("log");
  options.output_path = given.Path("output");
  options.ledger_path = given.Path("ledger");
  options.dataset = given.Text("dataset");
  options.num_threads = given.Count<uint32_t>("num_threads");
  options.other_data = given.Flag("other_data");
  options.max_bytes = given.Count<uint64_t>("max_bytes");
  options.device = ChooseDevice(given, device);
  options.anchor = anchor.anchor();
  options.logger = &logger;
  options.progress = &Progress::OnProgress;
  options.cancelled = &Progress::IsCancelled;
  options.user_data = &told;
  given.End();
  wisp_run_result result = WISP_INIT(wisp_run_result);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_run_planned(&options, &result, &error); });
  told.Rethrow(code, error);
  if (code != WISP_OK) anchor.Rethrow();
  Check(code, error);
  nb::list sentences;
  for (const auto& [is_warning, sentence] : said)
    sentences.append(nb::make_tuple(is_warning ? "warning" : "info", nb::str(sentence.c_str())));
  return GetRun(result, sentences);
}

Dict Evaluate(Dict dict) {
  Options given(std::move(dict), "evaluate");
  const char* const model = given.Path("model");
  const char* const log = given.Path("log");
  const auto num_threads = given.Count<uint32_t>("num_threads");
  wisp_quality quality = WISP_INIT(wisp_quality);
  given.End();
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_evaluate(model, log, num_threads, &quality, &error); });
  Check(code, error);
  Dict out;
  out["ndcg_at_10"] = quality.ndcg_at_10;
  out["hit_at_10"] = quality.hit_at_10;
  out["num_users"] = quality.num_users;
  return out;
}

Dict Rebase(Dict dict) {
  Options given(std::move(dict), "rebase");
  wisp_rebase_options options = WISP_INIT(wisp_rebase_options);
  options.from_path = given.Path("from_model");
  options.to_path = given.Path("to_model");
  options.output_path = given.Path("output");
  options.ledger_path = given.Path("ledger");
  options.start_over = given.Flag("start_over");
  given.End();
  wisp_rebase_result result = WISP_INIT(wisp_rebase_result);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_rebase(&options, &result, &error); });
  Check(code, error);
  Dict out;
  out["carried"] = result.carried != 0;
  out["shared_items"] = result.shared_items;
  out["lost_items"] = result.lost_items;
  return out;
}

void RebaseAdapter(Dict dict) {
  Options given(std::move(dict), "rebase_adapter");
  const char* const from = given.Path("from_model");
  const char* const adapter = given.Path("adapter");
  const char* const to = given.Path("to_model");
  const char* const output = given.Path("output");
  given.End();
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_rebase_adapter(from, adapter, to, output, &error); });
  Check(code, error);
}

void CatalogueAdd(Dict dict) {
  Options given(std::move(dict), "catalogue_add");
  const char* const model = given.Path("model");
  const char* const output = given.Path("output");
  const std::vector<const char*> keys = given.Texts("keys"), names = given.Texts("names"), likes = given.Texts("likes");
  given.End();
  // Python passes three lists of equal length, with "" for a missing value.
  const auto text = [](const std::vector<const char*>& list, size_t i) {
    return i < list.size() && *list[i] != '\0' ? list[i] : nullptr;
  };
  std::vector<wisp_new_item> items;
  for (size_t i = 0; i < keys.size(); ++i) items.push_back({keys[i], text(names, i), text(likes, i)});
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_catalogue_add(model, items.data(), items.size(), output, &error); });
  Check(code, error);
}

void CatalogueRetire(Dict dict) {
  Options given(std::move(dict), "catalogue_retire");
  const char* const model = given.Path("model");
  const char* const output = given.Path("output");
  const std::vector<const char*> keys = given.Texts("keys");
  const int32_t restore = given.Flag("restore");
  given.End();
  wisp_error error;
  const wisp_code code =
      WithoutGil([&] { return wisp_catalogue_retire(model, keys.data(), keys.size(), restore, output, &error); });
  Check(code, error);
}

}  // namespace

void BindDeployment(nb::module_& module) {
  module.def("make_plan", &MakePlan, nb::arg("options"));
  module.def("change_plan", &ChangePlan, nb::arg("options"));
  module.def("budget", &Budget, nb::arg("options"));
  module.def("budget_history", &BudgetHistory, nb::arg("options"));
  module.def("run_planned", &RunPlanned, nb::arg("options"), nb::arg("progress") = nb::none());
  module.def("evaluate", &Evaluate, nb::arg("options"));
  module.def("rebase", &Rebase, nb::arg("options"));
  module.def("rebase_adapter", &RebaseAdapter, nb::arg("options"));
  module.def("catalogue_add", &CatalogueAdd, nb::arg("options"));
  module.def("catalogue_retire", &CatalogueRetire, nb::arg("options"));
}

}  // namespace wisp_python
