// wisp._core's private fine-tuning, of recommenders and of decoders of texts, and statements.
#include "ports/python/core/privacy.h"

namespace wisp_python {
namespace {

// The arguments of wisp.personalise and wisp.train_texts.
class TrainingArguments {
 public:
  TrainingArguments(Dict given, nb::object progress, const char* called)
      : given_(std::move(given), called), progress_(std::move(progress)), anchor_(given_.Value("anchor")) {
    Files();
    Privacy();
    options_.expected_batch = given_.Count<uint32_t>("expected_batch");
    options_.epochs = given_.Number("epochs");
    options_.learning_rate = given_.Number("learning_rate");
    options_.clipping_norm = given_.Number("clipping_norm");
    options_.num_threads = given_.Count<uint32_t>("num_threads");
    options_.adapter_rank = given_.Count<uint32_t>("adapter_rank");
    options_.device = ChooseDevice(given_, device_);
    options_.progress = &Progress::OnProgress;
    options_.cancelled = &Progress::IsCancelled;
    options_.user_data = &progress_;
  }

  Options& given() { return given_; }
  const wisp_personalise_options& options() const { return options_; }

  template <class Run>
  Dict Finish(Run&& run) {
    given_.End();
    wisp_personalise_result result = WISP_INIT(wisp_personalise_result);
    wisp_error error;
    const wisp_code code = WithoutGil([&] { return run(&options_, &result, &error); });
    progress_.Rethrow(code, error);
    if (code != WISP_OK) anchor_.Rethrow();
    Check(code, error);
    return Report(result);
  }

 private:
  void Files() {
    options_.model_path = given_.Path("model");
    options_.log_path = given_.Path("log");
    options_.output_path = given_.Path("output");
    options_.ledger_path = given_.Path("ledger");
    options_.checkpoint_path = given_.Path("checkpoint");
    options_.checkpoint_every = given_.Count<uint64_t>("checkpoint_every");
    options_.adapter_path = given_.Path("adapter");
  }
  void Privacy() {
    options_.epsilon = given_.Number("epsilon");
    options_.delta = given_.Number("delta");
    options_.num_records_public = given_.Count<uint32_t>("num_records_public");
    options_.budget_epsilon = given_.Number("budget_epsilon");
    options_.unit = ReadGivenUnit(given_);
    options_.times_per_second = given_.Count<uint32_t>("times_per_second");
    options_.session_gap = given_.Signed("session_gap");
    options_.dataset = given_.Text("dataset");
    options_.other_data = given_.Flag("other_data");
    options_.uncharged_tuning = given_.Text("uncharged_tuning");
    options_.planned_runs = given_.Count<uint32_t>("planned_runs");
    options_.anchor = anchor_.anchor();
  }
  static Dict Report(const wisp_personalise_result& result) {
    Dict out;
    out["num_steps"] = result.num_steps;
    out["planned_steps"] = result.planned_steps;
    out["resumed_from"] = result.resumed_from;
    out["epsilon"] = result.epsilon;
    out["noise_multiplier"] = result.noise_multiplier;
    out["checkpoint_failed"] = result.checkpoint_failed != 0;
    out["on_device"] = result.on_device != 0;
    out["num_records"] = result.num_records;
    out["records_too_short"] = result.records_too_short;
    out["gradients_dropped"] = result.gradients_dropped;
    out["num_events"] = result.num_events;
    out["unknown_events"] = result.unknown_events;
    out["unknown_items"] = result.unknown_items;
    out["bad_rows"] = result.bad_rows;
    return out;
  }

  Options given_;
  Progress progress_;
  Anchor anchor_;
  wisp_device device_ = WISP_INIT(wisp_device);
  wisp_personalise_options options_ = WISP_INIT(wisp_personalise_options);
};

Dict Personalise(Dict given, nb::object progress) {
  TrainingArguments arguments(std::move(given), std::move(progress), "personalise");
  return arguments.Finish(wisp_personalise);
}

Dict TrainTexts(Dict given, nb::object progress) {
  TrainingArguments arguments(std::move(given), std::move(progress), "train_texts");
  wisp_text_records records = WISP_INIT(wisp_text_records);
  records.record = arguments.given().Choice<wisp_text_record>(
      "record", {{"line", WISP_TEXT_LINE}, {"paragraph", WISP_TEXT_PARAGRAPH}, {"chunk", WISP_TEXT_CHUNK}});
  records.chunk_bytes = arguments.given().Count<uint32_t>("chunk_bytes");
  records.max_length = arguments.given().Count<uint32_t>("max_length");
  return arguments.Finish([&](const wisp_personalise_options* options, wisp_personalise_result* result,
                              wisp_error* error) { return wisp_text_train(options, &records, result, error); });
}

Dict PlanMemory(Dict dict) {
  Options given(std::move(dict), "plan_training_memory");
  wisp_device device = WISP_INIT(wisp_device);
  wisp_personalise_options options = WISP_INIT(wisp_personalise_options);
  options.model_path = given.Path("model");
  options.num_records_public = given.Count<uint32_t>("num_records_public");
  options.num_threads = given.Count<uint32_t>("num_threads");
  options.device = ChooseDevice(given, device);
  given.End();
  wisp_personalise_memory memory = WISP_INIT(wisp_personalise_memory);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_personalise_plan_memory(&options, &memory, &error); });
  Check(code, error);
  Dict out;
  out["weight_bytes"] = memory.weight_bytes;
  out["packed_weights_bytes"] = memory.packed_weights_bytes;
  out["optimizer_bytes"] = memory.optimizer_bytes;
  out["gradient_sum_bytes"] = memory.gradient_sum_bytes;
  out["activation_bytes"] = memory.activation_bytes;
  out["record_gradient_bytes"] = memory.record_gradient_bytes;
  out["list_bytes"] = memory.list_bytes;
  out["total_bytes"] = memory.total_bytes;
  return out;
}

nb::str Statement(Dict dict) {
  Options given(std::move(dict), "privacy_statement");
  const char* const ledger = given.Path("ledger");
  const double delta = given.Number("delta");
  const auto format =
      given.Choice<wisp_statement_format>("format", {{"text", WISP_STATEMENT_TEXT}, {"json", WISP_STATEMENT_JSON}});
  Anchor anchor(given.Value("anchor"));
  given.End();
  return GiveText([&](char* text, size_t capacity, size_t* needed, wisp_error* error) {
    if (anchor.anchor() == nullptr) return wisp_privacy_statement(ledger, delta, format, text, capacity, needed, error);
    return wisp_privacy_statement_anchored(ledger, anchor.anchor(), delta, format, text, capacity, needed, error);
  });
}

nb::str DescribeDevice(Dict dict) {
  Options given(std::move(dict), "describe_device");
  wisp_device device = WISP_INIT(wisp_device);
  const wisp_device* const named = ChooseDevice(given, device);
  given.End();
  return GiveText([&](char* text, size_t capacity, size_t* needed, wisp_error* error) {
    return wisp_device_describe(named, text, capacity, needed, error);
  });
}

}  // namespace

void BindTraining(nb::module_& module) {
  module.def("personalise", &Personalise, nb::arg("options"), nb::arg("progress") = nb::none());
  module.def("train_texts", &TrainTexts, nb::arg("options"), nb::arg("progress") = nb::none());
  module.def("plan_training_memory", &PlanMemory, nb::arg("options"));
  module.def("privacy_statement", &Statement, nb::arg("options"));
  module.def("describe_device", &DescribeDevice, nb::arg("options"));
}

}  // namespace wisp_python
