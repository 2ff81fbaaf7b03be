// The functions of wisp_deployment.h: plan, budget, runs, and the upkeep of a log.
#include "ports/c/wisp_deployment.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "ports/c/anchor_c.h"
#include "ports/c/device_c.h"
#include "ports/c/log_c.h"
#include "ports/c/model_c.h"
#include "ports/c/options_c.h"
#include "runtime/core/file.h"
#include "runtime/data/readers.h"
#include "runtime/model/catalogue.h"
#include "runtime/personalise/forecast.h"
#include "runtime/personalise/make_plan.h"
#include "runtime/personalise/planned_run.h"
#include "runtime/personalise/plan_change.h"
#include "runtime/personalise/rebase.h"
#include "runtime/train/run/fine_tune.h"
#include "runtime/train/run/records.h"

namespace {

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::GetNumber;
using wisp::ports::Guarded;
using wisp::ports::Text;
namespace data = wisp::data;
namespace privacy = wisp::privacy;

Result<privacy::RecordSpec::Events> MakeEvents(const char* function, const wisp_unit& field, int64_t session_gap,
                                               uint32_t times_per_second) {
  const auto unit = wisp::ports::UnitFromNumber(GetNumber(field));
  if (!unit)
    return InvalidArgument(function, ": unit is ", GetNumber(field),
                           "; required is what one record is: WISP_UNIT_USER, WISP_UNIT_SESSION or WISP_UNIT_DAY");
  return privacy::RecordSpec::Events{
      .unit = *unit, .session_gap = session_gap, .times_per_second = times_per_second == 0 ? 1 : times_per_second};
}

Result<wisp::DeploymentRequest> MakeRequest(const wisp_plan_options& o) {
  const int32_t evaluation = GetNumber(o.evaluation);
  if (evaluation < WISP_EVALUATION_PRIVATE || evaluation > WISP_EVALUATION_NONE)
    return InvalidArgument("wisp_plan_make: there is no evaluation ", evaluation);
  WISP_RETURN_IF_ERROR(wisp::ports::CheckNumbers("wisp_plan_options", {{"learning_rate", o.learning_rate}}));
  wisp::DeploymentRequest r{.num_records_public = o.num_records_public,
                            .num_records_at_start = o.num_records_at_start,
                            .epsilon = o.epsilon,
                            .delta = o.delta,
                            .runs = o.runs,
                            .steps_per_run = o.steps_per_run,
                            .expected_batch = o.expected_batch,
                            .learning_rate = o.learning_rate};
  if (evaluation == WISP_EVALUATION_NONE) {
    r.evaluations = 0;
  } else if (o.evaluations > 0) {
    r.evaluations = o.evaluations;
  }
  r.evaluates_locally = evaluation == WISP_EVALUATION_LOCAL;
  r.trains_until = o.trains_until;
  r.every = o.every;
  return r;
}

wisp_plan Filled(const wisp::Architecture& a, const wisp::DeploymentSettings& s, uint32_t typical_events,
                 privacy::PrivacyUnit unit, size_t bytes, const wisp::DeploymentTime& time) {
  const wisp::Outlook outlook = wisp::MakeOutlook(a, s, typical_events, unit);
  wisp_plan plan{};
  plan.size = sizeof(wisp_plan);
  plan.runs = s.runs;
  plan.evaluations = s.evaluations;
  plan.steps_per_run = s.steps_per_run;
  plan.expected_batch = s.expected_batch;
  plan.outlook = static_cast<wisp_outlook>(outlook.kind);
  plan.training_noise = s.training_noise, plan.evaluation_noise = s.evaluation_noise;
  plan.noise_to_signal = outlook.noise_to_signal;
  plan.noise_of_an_item = outlook.noise_of_an_item;
  plan.succession_releases = s.succession_releases, plan.succession_share = s.succession_share;
  plan.succession_noise = s.succession_noise, plan.succession_signal = outlook.succession_signal;
  plan.bias_weight_releases = s.bias_weight_releases, plan.bias_weight_share = s.bias_weight_share;
  plan.bias_weight_noise = s.bias_weight_noise;
  plan.found_gain = outlook.found.value_or(std::nan(""));
  plan.bytes = bytes;
  plan.cpu_seconds_of_run = time.cpu_of_run, plan.seconds_of_run = time.wall_of_run;
  plan.cpu_seconds_of_evaluation = time.cpu_of_evaluation, plan.seconds_of_evaluation = time.wall_of_evaluation;
  return plan;
}

Result<privacy::Ledger> OpenPlannedLedger(const wisp_plan_options& o, const wisp::ModelFile& base,
                                          const privacy::RecordSpec& record) {
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::OpenAnchor(o.anchor));
  return wisp::OpenLedgerToTrain({.base = &base,
                                  .base_path = o.model_path,
                                  .adapter_path = {},
                                  .dataset = o.dataset,
                                  .other_data = o.other_data != 0,
                                  .run = "plan",
                                  .ledger = wisp::LedgerToTrain{.path = o.ledger_path,
                                                                .anchor = std::move(anchor.kept),
                                                                .begin_anchor = anchor.begins,
                                                                .record = record,
                                                                .unit_chosen = true}});
}

Status PlanDeployment(const wisp_plan_options* given, wisp_plan* out) {
  if (given == nullptr) return InvalidArgument("wisp_plan_make: options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_plan_options"));
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_plan"));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckGiven("wisp_plan_make", "model_path, ledger_path and dataset",
                                               {o.model_path, o.ledger_path, o.dataset}));
  WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec::Events events,
                        MakeEvents("wisp_plan_make", o.unit, o.session_gap, o.times_per_second));
  WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec record, wisp::MakeEventRecord(events));
  WISP_ASSIGN_OR_RETURN(const wisp::DeploymentRequest request, MakeRequest(o));
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile base, wisp::ModelFile::Open(o.model_path, wisp::Verify::kFull));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger, OpenPlannedLedger(o, base, record));
  WISP_ASSIGN_OR_RETURN(const wisp::MadePlan made, wisp::MakePlan(ledger, wisp::PlannedBase(base),
                                                                  {.request = request,
                                                                   .run = "plan",
                                                                   .output = Text(o.output_path),
                                                                   .replaces = o.replace != 0,
                                                                   .dry_run = o.dry_run != 0}));
  const wisp::Deployment& deployment = made.deployment;
  WISP_ASSIGN_OR_RETURN(const size_t bytes,
                        wisp::CountRunMemory(base.architecture(), deployment.settings, o.num_threads));
  wisp::DeploymentTime time;
  if (o.measure != 0) {
    std::vector<float> dequantised;
    WISP_ASSIGN_OR_RETURN(
        time, wisp::MeasureDeployment(
                  base.architecture(), base.AllWeights(dequantised), deployment,
                  {.ledger_path = o.ledger_path, .typical_events = o.typical_events, .num_threads = o.num_threads}));
  }
  if (out == nullptr) return OkStatus();
  wisp_plan filled = Filled(base.architecture(), deployment.settings, o.typical_events, ledger.unit(), bytes, time);
  filled.was_there = made.made_before ? 1 : 0;
  return wisp::ports::FillResult(filled, out, "wisp_plan");
}

Status ChangePlan(const wisp_plan_options* given, wisp_plan* out, double* noise_factor) {
  if (given == nullptr) return InvalidArgument("wisp_plan_change: options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_plan_options"));
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_plan"));
  if (o.model_path == nullptr || o.ledger_path == nullptr)
    return InvalidArgument("wisp_plan_change: model_path and ledger_path are required");
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile base, wisp::ModelFile::Open(o.model_path, wisp::Verify::kFull));
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::OpenAnchor(o.anchor));
  WISP_ASSIGN_OR_RETURN(privacy::Ledger ledger,
                        privacy::Ledger::OpenExisting(o.ledger_path, std::move(anchor.kept), anchor.begins));
  WISP_ASSIGN_OR_RETURN(const wisp::DeploymentSettings settings, wisp::RequireSettings(ledger));
  WISP_ASSIGN_OR_RETURN(const wisp::ChangedDeployment deployment,
                        wisp::ChangeDeployment(wisp::PlannedBase(base), ledger, settings,
                                               {.runs = o.runs,
                                                .steps_per_run = o.steps_per_run,
                                                .expected_batch = o.expected_batch,
                                                .num_records_public = o.num_records_public,
                                                .learning_rate = o.learning_rate,
                                                .every = o.every}));
  WISP_ASSIGN_OR_RETURN(const size_t bytes,
                        wisp::CountRunMemory(base.architecture(), deployment.settings, o.num_threads));
  if (o.dry_run == 0) WISP_RETURN_IF_ERROR(wisp::WriteChange(ledger, deployment, "changed plan"));
  if (noise_factor != nullptr) *noise_factor = deployment.settings.training_noise / settings.training_noise;
  if (out == nullptr) return OkStatus();
  const wisp_plan filled = Filled(base.architecture(), deployment.settings, o.typical_events, ledger.unit(), bytes, {});
  return wisp::ports::FillResult(filled, out, "wisp_plan");
}

std::string RunName() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return "run " + std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

wisp_run_result Filled(const wisp::PlannedRunResult& planned_run) {
  wisp_run_result r{};
  r.size = sizeof(wisp_run_result);
  const bool weighed = planned_run.serves == wisp::PlannedRunResult::Serves::kWeighedBase;
  r.served = weighed ? WISP_SERVED_EARLIER : static_cast<wisp_served>(planned_run.serves);
  r.changed = planned_run.changed ? 1 : 0;
  r.evaluated = planned_run.evaluated ? 1 : 0;
  r.verdict = static_cast<wisp_verdict>(planned_run.verdict.kind);
  r.steps = planned_run.steps;
  r.steps_of_model = planned_run.steps_of_model;
  r.runs_left = planned_run.left.runs;
  r.steps_left = planned_run.left.steps;
  r.evaluations_left = planned_run.left.evaluations;
  r.num_events = planned_run.log.num_read;
  r.unknown_events = planned_run.log.unknown_events;
  r.unknown_items = planned_run.log.unknown_items;
  r.bad_rows = planned_run.log.bad_rows;
  if (!planned_run.training) return r;
  r.on_device = planned_run.training->options.device.memory.is_host() ? 0 : 1;
  r.num_records = planned_run.training->num_records;
  return r;
}

Result<std::function<void(wisp::PlannedRunOptions::Says, const std::string&)>> SayTo(const wisp_logger* given) {
  std::function<void(wisp::PlannedRunOptions::Says, const std::string&)> say;
  if (given == nullptr) return say;
  WISP_ASSIGN_OR_RETURN(const wisp_logger logger, wisp::ports::MakeOptions(given, "wisp_logger"));
  if (logger.write == nullptr) return InvalidArgument("wisp_logger: write must not be NULL");
  say = [logger](wisp::PlannedRunOptions::Says kind, const std::string& sentence) {
    logger.write(logger.data, kind == wisp::PlannedRunOptions::Says::kInfo ? WISP_LOG_INFO : WISP_LOG_WARNING,
                 wisp::OneLine(sentence).c_str());
  };
  return say;
}

Status RunPlanned(const wisp_run_options* given, wisp_run_result* out) {
  if (given == nullptr) return InvalidArgument("wisp_run_planned: options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_run_options"));
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_run_result"));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckGiven("wisp_run_planned", "model_path, log_path, output_path and ledger_path",
                                               {o.model_path, o.log_path, o.output_path, o.ledger_path}));
  WISP_RETURN_IF_ERROR(wisp::CheckThreads(o.num_threads));
  const std::string output = o.output_path, log = o.log_path;
  WISP_ASSIGN_OR_RETURN(auto anchor, wisp::ports::OpenAnchor(o.anchor));
  WISP_ASSIGN_OR_RETURN(const wisp::OpenedDevice device,
                        wisp::ports::DeviceOrProcessor(o.device, wisp::DeviceUse::kTraining));
  wisp::PlannedRunOptions planned_run;
  planned_run.base_path = o.model_path;
  planned_run.output = output;
  planned_run.reads = {{"log_path", log}};
  planned_run.ledger = {.path = o.ledger_path, .anchor = std::move(anchor.kept), .begin_anchor = anchor.begins};
  planned_run.dataset = Text(o.dataset);
  planned_run.other_data = o.other_data != 0;
  planned_run.early = o.early != 0;
  planned_run.run = RunName();
  planned_run.created_by = std::string("wisp ") + wisp_version();
  planned_run.num_threads = o.num_threads;
  planned_run.executor = wisp::ports::MakeExecutor(o.run_tasks, o.run_tasks_data);
  planned_run.device = device.device;
  WISP_ASSIGN_OR_RETURN(const auto allocator, wisp::ports::MakeAllocator(o.allocator));
  if (allocator != nullptr && device.is_processor()) planned_run.device.memory = wisp::kernels::HostMemory(*allocator);
  planned_run.max_bytes = o.max_bytes;
  WISP_ASSIGN_OR_RETURN(planned_run.say, SayTo(o.logger));
  if (planned_run.say && !device.missing.empty())
    planned_run.say(wisp::PlannedRunOptions::Says::kWarning, device.missing);
  planned_run.read = [&](const data::ReadOptions& options) { return data::ReadLog(log, options); };
  planned_run.cancelled = [&o] { return o.cancelled != nullptr && o.cancelled(o.user_data) != 0; };
  planned_run.progress = [&o](const wisp::JobProgress& p) {
    if (o.progress == nullptr) return true;
    const wisp_progress progress{sizeof(wisp_progress), p.step, p.num_steps, p.mean_loss,
                                 p.epsilon.value_or(std::nan(""))};
    return o.progress(&progress, o.user_data) == 0;
  };
  WISP_ASSIGN_OR_RETURN(const wisp::PlannedRunResult result, wisp::RunPlanned(planned_run));
  return out == nullptr ? OkStatus() : wisp::ports::FillResult(Filled(result), out, "wisp_run_result");
}

Status Evaluate(const char* model_path, const char* log_path, uint32_t num_threads, wisp_quality* out) {
  if (model_path == nullptr || log_path == nullptr || out == nullptr)
    return InvalidArgument("wisp_evaluate: model_path, log_path and quality must not be NULL");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_quality"));
  WISP_RETURN_IF_ERROR(wisp::CheckThreads(num_threads));
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile model, wisp::ModelFile::Open(model_path, wisp::Verify::kFull));
  WISP_ASSIGN_OR_RETURN(const data::ItemIndex index, data::ItemIndex::Make(model_path, wisp::GetItemKeys(model)));
  WISP_ASSIGN_OR_RETURN(const data::ReadResult events,
                        data::ReadLog(log_path, {.known_items = &index, .private_run = true}));
  const wisp::RecordSet set =
      wisp::MakeRecords(events.sequences, model.architecture().max_length, wisp::HoldOut::kTest);
  wisp::Workers workers(num_threads == 0 ? wisp::DefaultThreads() : num_threads, {});
  const wisp::RankingQuality q = wisp::EvaluateModel(model, set.test, workers);
  const wisp_quality quality{sizeof(wisp_quality), q.ndcg_at_10, q.hit_at_10, q.num_users};
  return wisp::ports::FillResult(quality, out, "wisp_quality");
}

Status RebaseTo(const wisp_rebase_options* given, wisp_rebase_result* out) {
  if (given == nullptr) return InvalidArgument("wisp_rebase: options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_rebase_options"));
  WISP_RETURN_IF_ERROR(wisp::ports::CheckGiven("wisp_rebase", "from_path, to_path, output_path and ledger_path",
                                               {o.from_path, o.to_path, o.output_path, o.ledger_path}));
  if (out != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_rebase_result"));
  WISP_ASSIGN_OR_RETURN(const wisp::RebaseResult r,
                        wisp::Rebase({.from = o.from_path,
                                      .to = o.to_path,
                                      .output = o.output_path,
                                      .ledger = o.ledger_path,
                                      .start_over = o.start_over != 0,
                                      .created_by = std::string("wisp ") + wisp_version()}));
  if (out == nullptr) return OkStatus();
  const wisp_rebase_result filled{.size = sizeof(wisp_rebase_result),
                                  .carried = r.carried ? 1 : 0,
                                  .shared_items = r.shared_items,
                                  .lost_items = r.lost_items,
                                  .not_read = 0};
  return wisp::ports::FillResult(filled, out, "wisp_rebase_result");
}

Status AddToCatalogue(const char* model_path, const wisp_new_item* items, size_t count, const char* out_path) {
  if (model_path == nullptr || out_path == nullptr || (items == nullptr && count > 0))
    return InvalidArgument("wisp_catalogue_add: model_path and out_path must not be NULL, nor items with a count");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_catalogue_add", items, count));
  const std::string model = model_path, out = out_path;
  WISP_RETURN_IF_ERROR(wisp::CheckOutput({"out_path", out}, {{"model_path", model}}));
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile base, wisp::ModelFile::Open(model, wisp::Verify::kFull));
  std::vector<wisp::NewItem> added;
  for (size_t i = 0; i < count; ++i)
    added.push_back({.key = Text(items[i].key), .name = Text(items[i].name), .like = Text(items[i].like)});
  WISP_ASSIGN_OR_RETURN(wisp::GrownModel grown, wisp::AddItems(base, added));
  grown.contents.created_by = std::string("wisp ") + wisp_version();
  return wisp::WriteModel(out, grown.contents);
}

Status ChangeOffer(const char* model_path, const char* const* keys, size_t count, int32_t restore,
                   const char* out_path) {
  if (model_path == nullptr || out_path == nullptr || (keys == nullptr && count > 0))
    return InvalidArgument(
        "wisp_catalogue_retire: model_path and out_path must not be NULL, nor item_keys with a count");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_catalogue_retire", keys, count));
  if (restore != 0 && restore != 1)
    return InvalidArgument("wisp_catalogue_retire: restore is ", restore, ", allowed are 0 and 1");
  const std::string model = model_path, out = out_path;
  WISP_RETURN_IF_ERROR(wisp::CheckOutput({"out_path", out}, {{"model_path", model}}));
  WISP_ASSIGN_OR_RETURN(const wisp::ModelFile base, wisp::ModelFile::Open(model, wisp::Verify::kFull));
  std::vector<std::string> named;
  for (size_t i = 0; i < count; ++i) named.push_back(Text(keys[i]));
  std::vector<float> room;
  WISP_ASSIGN_OR_RETURN(
      wisp::ModelContents contents,
      wisp::ChangeOffer(base, named, restore != 0 ? wisp::Offer::kRestored : wisp::Offer::kRetired, room));
  contents.created_by = std::string("wisp ") + wisp_version();
  return wisp::WriteModel(out, contents);
}

Status AppendAll(wisp_log* log, const wisp_event* events, size_t count) {
  if (log == nullptr || (events == nullptr && count > 0))
    return InvalidArgument("wisp_log_append_all: log must not be NULL, nor events with a count");
  WISP_RETURN_IF_ERROR(wisp::ports::CheckList("wisp_log_append_all", events, count));
  std::vector<data::Event> all;
  for (size_t i = 0; i < count; ++i) {
    if (events[i].user == nullptr || events[i].item_key == nullptr)
      return InvalidArgument("wisp_log_append_all: event ", i, " has no user or no item_key");
    all.push_back({.user = events[i].user, .item = events[i].item_key, .time = events[i].time});
  }
  return log->log.AppendAll(all);
}

Status Prune(wisp_log* log, const wisp_prune_options* given, uint64_t* pruned) {
  if (log == nullptr || given == nullptr) return InvalidArgument("wisp_log_prune: log and options must not be NULL");
  WISP_ASSIGN_OR_RETURN(const auto o, wisp::ports::MakeOptions(given, "wisp_prune_options"));
  data::PruneOptions options{.newest_per_user = o.newest_per_user};
  if (o.has_before != 0) options.before = o.before;
  WISP_ASSIGN_OR_RETURN(const privacy::RecordSpec::Events events,
                        MakeEvents("wisp_log_prune", o.unit, o.session_gap, o.times_per_second));
  WISP_ASSIGN_OR_RETURN(options.units, wisp::MakeUnits(events));
  WISP_ASSIGN_OR_RETURN(const uint64_t count, log->log.Prune(options));
  if (pruned != nullptr) *pruned = count;
  return OkStatus();
}

Status Count(const wisp_log* log, wisp_log_counts* out) {
  if (log == nullptr || out == nullptr) return InvalidArgument("wisp_log_count: log and counts must not be NULL");
  WISP_ASSIGN_OR_RETURN(const data::LogCount count, log->log.Count());
  const wisp_log_counts counts{.size = sizeof(wisp_log_counts),
                               .events = count.events,
                               .users = count.users,
                               .items = count.items,
                               .oldest = count.oldest.value_or(0),
                               .newest = count.newest.value_or(0),
                               .unreadable = count.unreadable};
  return wisp::ports::FillResult(counts, out, "wisp_log_counts");
}

Status TellEvents(const wisp_log* log, const char* user, wisp_on_event on_event, void* user_data) {
  if (log == nullptr || user == nullptr || on_event == nullptr)
    return InvalidArgument("wisp_log_events: log, user and on_event must not be NULL");
  WISP_ASSIGN_OR_RETURN(const std::vector<data::Event> events, log->log.Events(user));
  for (const data::Event& event : events) {
    const wisp_event told{event.user.c_str(), event.item.c_str(), event.time};
    if (on_event(user_data, &told) == 0) break;
  }
  return OkStatus();
}

Status Users(const wisp_log* log, const char* after, size_t limit, char* text, size_t capacity, size_t* needed) {
  if (log == nullptr || after == nullptr || needed == nullptr || (text == nullptr && capacity > 0))
    return InvalidArgument("wisp_log_users: log, after and needed must not be NULL, nor text with a capacity");
  WISP_ASSIGN_OR_RETURN(const std::vector<data::LogUser> users, log->log.Users(after, limit));
  std::string lines;
  for (const data::LogUser& user : users) lines += user.user + "\n";
  wisp::ports::GiveText(lines, text, capacity, needed);
  return OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_plan_make(const wisp_plan_options* options, wisp_plan* plan, wisp_error* error) {
  return Guarded(error, [&] { return PlanDeployment(options, plan); });
}

wisp_code wisp_plan_change(const wisp_plan_options* options, wisp_plan* plan, double* noise_factor, wisp_error* error) {
  return Guarded(error, [&] { return ChangePlan(options, plan, noise_factor); });
}

wisp_code wisp_run_planned(const wisp_run_options* options, wisp_run_result* result, wisp_error* error) {
  return Guarded(error, [&] { return RunPlanned(options, result); });
}

wisp_code wisp_evaluate(const char* model_path, const char* log_path, uint32_t num_threads, wisp_quality* quality,
                        wisp_error* error) {
  return Guarded(error, [&] { return Evaluate(model_path, log_path, num_threads, quality); });
}

wisp_code wisp_rebase(const wisp_rebase_options* options, wisp_rebase_result* result, wisp_error* error) {
  return Guarded(error, [&] { return RebaseTo(options, result); });
}

wisp_code wisp_rebase_adapter(const char* from_path, const char* adapter_path, const char* to_path,
                              const char* out_path, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (from_path == nullptr || adapter_path == nullptr || to_path == nullptr || out_path == nullptr)
      return InvalidArgument("wisp_rebase_adapter: from_path, adapter_path, to_path and out_path must not be NULL");
    return wisp::RebaseAdapter({.from = from_path,
                                .adapter = adapter_path,
                                .to = to_path,
                                .output = out_path,
                                .created_by = std::string("wisp ") + wisp_version()});
  });
}

wisp_code wisp_catalogue_add(const char* model_path, const wisp_new_item* items, size_t count, const char* out_path,
                             wisp_error* error) {
  return Guarded(error, [&] { return AddToCatalogue(model_path, items, count, out_path); });
}

wisp_code wisp_catalogue_retire(const char* model_path, const char* const* item_keys, size_t count, int32_t restore,
                                const char* out_path, wisp_error* error) {
  return Guarded(error, [&] { return ChangeOffer(model_path, item_keys, count, restore, out_path); });
}

wisp_code wisp_log_append_all(wisp_log* log, const wisp_event* events, size_t count, wisp_error* error) {
  return Guarded(error, [&] { return AppendAll(log, events, count); });
}

wisp_code wisp_log_erase(wisp_log* log, const char* user, uint64_t* erased, wisp_error* error) {
  return Guarded(error, [&]() -> Status {
    if (log == nullptr || user == nullptr) return InvalidArgument("wisp_log_erase: log and user must not be NULL");
    WISP_ASSIGN_OR_RETURN(const uint64_t count, log->log.Erase(user));
    if (erased != nullptr) *erased = count;
    return OkStatus();
  });
}

wisp_code wisp_log_prune(wisp_log* log, const wisp_prune_options* options, uint64_t* pruned, wisp_error* error) {
  return Guarded(error, [&] { return Prune(log, options, pruned); });
}

wisp_code wisp_log_count(const wisp_log* log, wisp_log_counts* counts, wisp_error* error) {
  return Guarded(error, [&] { return Count(log, counts); });
}

wisp_code wisp_log_events(const wisp_log* log, const char* user, wisp_on_event on_event, void* user_data,
                          wisp_error* error) {
  return Guarded(error, [&] { return TellEvents(log, user, on_event, user_data); });
}

wisp_code wisp_log_users(const wisp_log* log, const char* after, size_t limit, char* text, size_t capacity,
                         size_t* needed, wisp_error* error) {
  return Guarded(error, [&] { return Users(log, after, limit, text, capacity, needed); });
}

}  // extern "C"
