// wisp._core.FleetServer and FleetSimulation (wisp_fleet_server.h). wisp.fleet carries the messages.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <wisp/wisp_fleet_server.h>

#include <cstring>
#include <optional>

#include "ports/python/core/privacy.h"

namespace wisp_python {
namespace {

using ServerHandle = Handle<wisp_fleet_server, wisp_fleet_server_close>;
using SimulationHandle = Handle<wisp_fleet_simulation, wisp_fleet_simulation_close>;

struct Server {
  std::shared_ptr<ServerHandle> server;
  const std::shared_ptr<ServerHandle>& opened() const { return Opened(server, "FleetServer"); }
};
struct Simulation {
  std::shared_ptr<SimulationHandle> simulation;
  const std::shared_ptr<SimulationHandle>& opened() const { return Opened(simulation, "FleetSimulation"); }
};

nb::bytes Bytes(const void* bytes, size_t size) { return nb::bytes(static_cast<const char*>(bytes), size); }

using NodeIds = nb::typed<nb::list, nb::int_>;

std::vector<uint64_t> ReadNodes(const nb::list& given) {
  std::vector<uint64_t> nodes;
  nodes.reserve(nb::len(given));
  for (nb::handle node : given) nodes.push_back(nb::cast<uint64_t>(node));
  return nodes;
}

void OpenServer(Server* self, const std::string& plan, const std::string& model, const std::string& folder,
                std::optional<uint64_t> seed) {
  auto server = std::make_shared<ServerHandle>();
  wisp_error error;
  const wisp_code code = WithoutGil([&] {
    return wisp_fleet_server_open(plan.c_str(), model.c_str(), folder.c_str(), seed ? &*seed : nullptr, server->out(),
                                  &error);
  });
  Check(code, error);
  new (self) Server{std::move(server)};
}

Dict Look(const Server& self) {
  const InUse server(self.opened());
  wisp_fleet_state state = WISP_INIT(wisp_fleet_state);
  wisp_error error;
  Check(wisp_fleet_server_look(server.get(), &state, &error), error);
  Dict out;
  out["round"] = state.round;
  out["done"] = state.done != 0;
  out["evaluation_due"] = state.evaluation_due != 0;
  out["plan"] = state.plan;
  return out;
}

nb::bytes Weights(const Server& self) {
  const InUse server(self.opened());
  wisp_fleet_state state = WISP_INIT(wisp_fleet_state);
  wisp_error error;
  Check(wisp_fleet_server_look(server.get(), &state, &error), error);
  return Bytes(state.weights, state.weights_bytes);
}

void Begin(const Server& self, bool evaluation) {
  const InUse server(self.opened());
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_fleet_server_begin(server.get(), evaluation ? 1 : 0, &error); });
  Check(code, error);
}

nb::typed<nb::list, bool> Asks(const Server& self, const NodeIds& given) {
  const std::vector<uint64_t> nodes = ReadNodes(given);
  const InUse server(self.opened());
  std::vector<uint8_t> asks(nodes.size());
  wisp_error error;
  Check(wisp_fleet_server_asks(server.get(), nodes.data(), nodes.size(), asks.data(), &error), error);
  nb::list out;
  for (const uint8_t asked : asks) out.append(asked != 0);
  return out;
}

const char* Add(const Server& self, uint64_t node, const nb::bytes& bytes) {
  constexpr const char* kWords[] = {"added", "not asked", "twice", "out of bound"};
  const InUse server(self.opened());
  int32_t added = 0;
  wisp_error error;
  const wisp_code code = WithoutGil(
      [&] { return wisp_fleet_server_add(server.get(), node, bytes.c_str(), bytes.size(), &added, &error); });
  Check(code, error);
  return kWords[added];
}

Dict End(const Server& self) {
  constexpr const char* kVerdicts[] = {"undecided", "better", "worse"};
  const InUse server(self.opened());
  wisp_fleet_gain gain = WISP_INIT(wisp_fleet_gain);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_fleet_server_end(server.get(), &gain, &error); });
  Check(code, error);
  Dict out;
  out["round"] = gain.round;
  out["mean_gain"] = gain.mean_gain;
  out["deviation"] = gain.deviation;
  out["verdict"] = kVerdicts[gain.verdict];
  return out;
}

void Write(const Server& self, const std::string& path) {
  const InUse server(self.opened());
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_fleet_server_write(server.get(), path.c_str(), &error); });
  Check(code, error);
}

Dict Cost(const Server& self) {
  const InUse server(self.opened());
  wisp_fleet_cost cost = WISP_INIT(wisp_fleet_cost);
  wisp_error error;
  const wisp_code code = WithoutGil([&] { return wisp_fleet_server_cost(server.get(), &cost, &error); });
  Check(code, error);
  Dict out;
  out["delta"] = cost.delta;
  out["epsilon_readers"] = cost.readers;
  out["epsilon_device"] = cost.device;
  return out;
}

void OpenSimulation(Simulation* self, const std::string& plan, const std::string& model, const std::string& log,
                    const std::optional<NodeIds>& given, uint32_t threads) {
  const std::vector<uint64_t> nodes = given ? ReadNodes(*given) : std::vector<uint64_t>();
  auto simulation = std::make_shared<SimulationHandle>();
  wisp_error error;
  const wisp_code code = WithoutGil([&] {
    return wisp_fleet_simulation_open(plan.c_str(), model.c_str(), log.c_str(), given ? nodes.data() : nullptr,
                                      nodes.size(), threads, simulation->out(), &error);
  });
  Check(code, error);
  new (self) Simulation{std::move(simulation)};
}

NodeIds Nodes(const Simulation& self) {
  const InUse simulation(self.opened());
  std::vector<uint64_t> nodes(wisp_fleet_simulation_num_nodes(simulation.get()));
  wisp_fleet_simulation_nodes(simulation.get(), nodes.data());
  nb::list out;
  for (const uint64_t node : nodes) out.append(node);
  return out;
}

nb::typed<nb::list, nb::bytes> Answer(const Simulation& self, const std::string& task, int64_t round,
                                      const nb::bytes& weights, const NodeIds& given) {
  const std::vector<uint64_t> nodes = ReadNodes(given);
  std::vector<std::string> sent(nodes.size());
  const InUse simulation(self.opened());
  wisp_error error;
  const wisp_code code = WithoutGil([&] {
    return wisp_fleet_simulation_answer(
        simulation.get(), task.c_str(), round, weights.c_str(), weights.size(), nodes.data(), nodes.size(),
        [](void* all, size_t index, const void* bytes, size_t size) {
          (*static_cast<std::vector<std::string>*>(all))[index].assign(static_cast<const char*>(bytes), size);
        },
        &sent, &error);
  });
  Check(code, error);
  nb::list out;
  for (const std::string& bytes : sent) out.append(Bytes(bytes.data(), bytes.size()));
  return out;
}

}  // namespace

void BindFleet(nb::module_& module) {
  nb::class_<Server>(module, "FleetServer", "The server's part of a fleet; wisp.fleet carries its messages.")
      .def("__init__", &OpenServer, nb::arg("plan"), nb::arg("model"), nb::arg("folder"), nb::kw_only(),
           nb::arg("seed") = nb::none())
      .def("look", &Look, "The state: round, done, evaluation_due, plan (its text).")
      .def("weights", &Weights, "The weights that the next round starts from, as they travel.")
      .def("begin", &Begin, nb::kw_only(), nb::arg("evaluation") = false)
      .def("asks", &Asks, nb::arg("nodes"))
      .def("add", &Add, nb::arg("node"), nb::arg("update"))
      .def("end", &End)
      .def("write_model", &Write, nb::arg("path"))
      .def("cost", &Cost);
  nb::class_<Simulation>(module, "FleetSimulation", "Devices of a fleet in this process: each user of a log is one.")
      .def("__init__", &OpenSimulation, nb::arg("plan"), nb::arg("model"), nb::arg("log"), nb::kw_only(),
           nb::arg("nodes") = nb::none(), nb::arg("threads") = 1)
      .def("nodes", &Nodes)
      .def("answer", &Answer, nb::arg("task"), nb::arg("round"), nb::arg("weights"), nb::arg("nodes"));
}

}  // namespace wisp_python
