#include "ports/c/wisp_fleet_server.h"

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ports/c/status_c.h"
#include "runtime/core/file.h"
#include "runtime/data/readers.h"
#include "runtime/fleet/fleet_budget.h"
#include "runtime/fleet/server/fleet_server.h"
#include "runtime/fleet/server/fleet_simulation.h"
#include "runtime/model/catalogue.h"

using wisp::InvalidArgument;
using wisp::OkStatus;
using wisp::Result;
using wisp::Status;
using wisp::ports::Guarded;

namespace data = wisp::data;
namespace fleet = wisp::fleet;

namespace {

Result<fleet::FleetPlan> ReadPlan(const std::string& path) {
  WISP_ASSIGN_OR_RETURN(const wisp::MappedFile file, wisp::MappedFile::Open(path));
  return fleet::FleetPlan::FromText({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

}  // namespace

struct wisp_fleet_server {
  explicit wisp_fleet_server(wisp::ModelFile opened) : base(std::move(opened)) {}
  const wisp::ModelFile base;
  std::string plan;
  std::unique_ptr<fleet::FleetServer> server;
  bool evaluates = false;  // what was begun
};

struct wisp_fleet_simulation {
  explicit wisp_fleet_simulation(wisp::ModelFile opened) : base(std::move(opened)) {}
  const wisp::ModelFile base;
  std::string plan;
  data::Sequences sequences;
  std::vector<uint64_t> nodes;
  std::unique_ptr<fleet::FleetSimulation> devices;
};

namespace {

Status CheckPaths(const char* who, std::initializer_list<const char*> paths, const void* out) {
  for (const char* path : paths) {
    if (path == nullptr) return InvalidArgument(who, ": no path may be NULL");
  }
  return out != nullptr ? OkStatus() : InvalidArgument(who, ": the handle's place must not be NULL");
}

Status OpenServer(const char* plan_path, const char* model_path, const char* folder, const uint64_t* seed,
                  wisp_fleet_server** out) {
  WISP_RETURN_IF_ERROR(CheckPaths("wisp_fleet_server_open", {plan_path, model_path, folder}, out));
  WISP_ASSIGN_OR_RETURN(const fleet::FleetPlan plan, ReadPlan(plan_path));
  WISP_ASSIGN_OR_RETURN(wisp::ModelFile base, wisp::ModelFile::Open(model_path, wisp::Verify::kFull));
  auto opened = std::make_unique<wisp_fleet_server>(std::move(base));
  WISP_ASSIGN_OR_RETURN(
      opened->server,
      fleet::FleetServer::Open({.plan = plan,
                                .base = &opened->base,
                                .folder = folder,
                                .reproducible_seed = seed != nullptr ? std::optional(*seed) : std::nullopt}));
  opened->plan = plan.ToText();
  *out = opened.release();
  return OkStatus();
}

Status End(wisp_fleet_server* s, wisp_fleet_gain* gain) {
  if (!s->evaluates) return s->server->EndRound();
  if (gain != nullptr) WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(gain->size, "wisp_fleet_gain"));
  WISP_ASSIGN_OR_RETURN(const fleet::FleetEvaluation found, s->server->EndEvaluation());
  if (gain == nullptr) return OkStatus();
  using Kind = wisp::Verdict::Kind;
  const Kind kind = found.verdict.kind;
  return wisp::ports::FillResult(wisp_fleet_gain{.size = sizeof(wisp_fleet_gain),
                                                 .round = found.round,
                                                 .verdict = kind == Kind::kBetter ? 1 : (kind == Kind::kWorse ? 2 : 0),
                                                 .mean_gain = found.mean_gain,
                                                 .deviation = found.deviation},
                                 gain, "wisp_fleet_gain");
}

Status Cost(const wisp_fleet_server* s, wisp_fleet_cost* out) {
  WISP_RETURN_IF_ERROR(wisp::ports::CheckSize(out->size, "wisp_fleet_cost"));
  WISP_ASSIGN_OR_RETURN(const auto figures, s->server->GetFigures());
  if (figures.basis == wisp::privacy::LedgerFigures::Basis::kNoGuarantee)
    return wisp::PrivacyRefused("the noise can be repeated, by a seed");
  WISP_ASSIGN_OR_RETURN(const fleet::FleetCost cost, fleet::CostOf(s->server->plan()));
  const double readers = figures.used.value_or(figures.stated).epsilon;
  return wisp::ports::FillResult(wisp_fleet_cost{.size = sizeof(wisp_fleet_cost),
                                                 .delta = s->server->plan().delta,
                                                 .readers = std::min(readers, cost.device),
                                                 .device = cost.device},
                                 out, "wisp_fleet_cost");
}

Status OpenSimulation(const char* plan_path, const char* model_path, const char* log_path, const uint64_t* nodes,
                      size_t num_nodes, uint32_t num_threads, wisp_fleet_simulation** out) {
  WISP_RETURN_IF_ERROR(CheckPaths("wisp_fleet_simulation_open", {plan_path, model_path, log_path}, out));
  WISP_RETURN_IF_ERROR(wisp::CheckThreads(num_threads));
  WISP_ASSIGN_OR_RETURN(const fleet::FleetPlan plan, ReadPlan(plan_path));
  WISP_ASSIGN_OR_RETURN(wisp::ModelFile base, wisp::ModelFile::Open(model_path, wisp::Verify::kFull));
  auto opened = std::make_unique<wisp_fleet_simulation>(std::move(base));
  WISP_ASSIGN_OR_RETURN(const data::ItemIndex index,
                        data::ItemIndex::Make(model_path, wisp::GetItemKeys(opened->base)));
  WISP_ASSIGN_OR_RETURN(data::ReadResult read,
                        data::ReadSequences(log_path, data::Format::kAuto, {.known_items = &index}));
  opened->sequences = std::move(read.sequences);
  if (nodes != nullptr) {
    opened->nodes.assign(nodes, nodes + num_nodes);
  } else {
    opened->nodes.resize(opened->sequences.num_users());
    std::iota(opened->nodes.begin(), opened->nodes.end(), uint64_t{1});
  }
  opened->plan = plan.ToText();
  opened->devices =
      std::make_unique<fleet::FleetSimulation>(fleet::MakePolicy(plan, "https://localhost"), opened->base,
                                               opened->sequences, opened->nodes, std::max(1u, num_threads));
  *out = opened.release();
  return OkStatus();
}

}  // namespace

extern "C" {

wisp_code wisp_fleet_server_open(const char* plan_path, const char* model_path, const char* folder,
                                 const uint64_t* seed, wisp_fleet_server** server, wisp_error* error) {
  return Guarded(error, [&] { return OpenServer(plan_path, model_path, folder, seed, server); });
}

void wisp_fleet_server_close(wisp_fleet_server* server) { delete server; }

wisp_code wisp_fleet_server_look(const wisp_fleet_server* s, wisp_fleet_state* state, wisp_error* error) {
  return Guarded(error, [&] {
    return wisp::ports::FillResult(wisp_fleet_state{.size = sizeof(wisp_fleet_state),
                                                    .round = s->server->round(),
                                                    .done = s->server->done() ? 1 : 0,
                                                    .evaluation_due = s->server->evaluation_due() ? 1 : 0,
                                                    .not_read = 0,
                                                    .plan = s->plan.c_str(),
                                                    .weights = s->server->weights().data(),
                                                    .weights_bytes = s->server->weights().size()},
                                   state, "wisp_fleet_state");
  });
}

wisp_code wisp_fleet_server_begin(wisp_fleet_server* s, int32_t evaluation, wisp_error* error) {
  return Guarded(error, [&] {
    s->evaluates = evaluation != 0;
    return s->evaluates ? s->server->BeginEvaluation() : s->server->BeginRound();
  });
}

wisp_code wisp_fleet_server_asks(const wisp_fleet_server* s, const uint64_t* nodes, size_t num_nodes, uint8_t* asks,
                                 wisp_error* error) {
  return Guarded(error, [&] {
    for (size_t i = 0; i < num_nodes; ++i) asks[i] = s->server->Asks(nodes[i]) ? 1 : 0;
    return OkStatus();
  });
}

wisp_code wisp_fleet_server_add(wisp_fleet_server* s, uint64_t node, const void* bytes, size_t size, int32_t* added,
                                wisp_error* error) {
  return Guarded(error, [&] {
    const std::string_view sent(static_cast<const char*>(bytes), size);
    *added = static_cast<int32_t>(s->evaluates ? s->server->AddGain(node, sent) : s->server->Add(node, sent));
    return OkStatus();
  });
}

wisp_code wisp_fleet_server_end(wisp_fleet_server* s, wisp_fleet_gain* gain, wisp_error* error) {
  return Guarded(error, [&] { return End(s, gain); });
}

wisp_code wisp_fleet_server_write(const wisp_fleet_server* s, const char* path, wisp_error* error) {
  return Guarded(error, [&] { return s->server->WriteModel(path); });
}

wisp_code wisp_fleet_server_cost(const wisp_fleet_server* s, wisp_fleet_cost* cost, wisp_error* error) {
  return Guarded(error, [&] { return Cost(s, cost); });
}

wisp_code wisp_fleet_simulation_open(const char* plan_path, const char* model_path, const char* log_path,
                                     const uint64_t* nodes, size_t num_nodes, uint32_t num_threads,
                                     wisp_fleet_simulation** simulation, wisp_error* error) {
  return Guarded(error, [&] {
    return OpenSimulation(plan_path, model_path, log_path, nodes, num_nodes, num_threads, simulation);
  });
}

void wisp_fleet_simulation_close(wisp_fleet_simulation* simulation) { delete simulation; }
size_t wisp_fleet_simulation_num_nodes(const wisp_fleet_simulation* s) { return s->nodes.size(); }
void wisp_fleet_simulation_nodes(const wisp_fleet_simulation* s, uint64_t* nodes) {
  std::copy(s->nodes.begin(), s->nodes.end(), nodes);
}

wisp_code wisp_fleet_simulation_answer(wisp_fleet_simulation* s, const char* task, int64_t round, const void* weights,
                                       size_t weights_bytes, const uint64_t* nodes, size_t num_nodes,
                                       void (*take)(void*, size_t, const void*, size_t), void* user_data,
                                       wisp_error* error) {
  return Guarded(error, [&] {
    std::vector<std::string> updates;
    s->devices->Answer(
        {.plan = s->plan, .task = task, .round = round, .weights = {static_cast<const char*>(weights), weights_bytes}},
        {nodes, num_nodes}, updates);
    for (size_t i = 0; i < num_nodes; ++i) take(user_data, i, updates[i].data(), updates[i].size());
    return OkStatus();
  });
}

}  // extern "C"
