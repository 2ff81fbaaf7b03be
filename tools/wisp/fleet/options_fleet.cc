// The options of `wisp fleet` and `wisp node`.
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

void AddFleetPlan(CLI::App* fleet, Chosen& chosen, FleetPlanArguments& a) {
  CLI::App* c = fleet->add_subcommand(
      "plan",

      "Plan a fleet before it begins: its noise, what it costs each device, whether the model can gain by it, and what "
      "it takes. It reads no data. With --out it writes the plan, which is public, and with --policy the limits that "
      "devices come with.\n"
      "  wisp fleet plan --devices 100000 --rounds 100 --takes-part 1 --epsilon 3\n"
      "  wisp fleet plan --devices 100000 --rounds 100 --epsilon 3 --model models/cafe.wisp\n"
      "      --out plan.json --policy policy.json --server https://fleet.example.org");
  c->add_option("--devices", a.devices, "Number of devices, which anybody may know")->required();
  c->add_option("--rounds", a.rounds, "Number of rounds")->required();
  c->add_option(
       "--takes-part", a.takes_part,
       "The most rounds in which one device takes part; it divides --rounds. More of them need more noise, and\n"
       "still help: the noise beside the signal falls with their root")
      ->capture_default_str();
  CLI::Option* epsilon =
      AddOptional(c, "--epsilon", a.epsilon, "Epsilon of each device over all of its rounds, whoever looks");
  AddOptional(c, "--readers-epsilon", a.readers_epsilon,
              "Instead: epsilon for those who see all models and not who took part when; for some thousand devices")
      ->excludes(epsilon);
  AddOptional(c, "--delta", a.delta, "Default: 1e-5, or a tenth of 1 / --devices if that is less");
  CLI::Option* model = c->add_option("--model", a.model, "The base: the unchanged shipped model");
  c->add_option("--weights", a.num_weights, "Instead of --model: the number of weights that train")
      ->capture_default_str()
      ->excludes(model);
  c->add_option("--part", a.part, "The weights that train: all, blocks (without tables) or adapter (beside the base)")
      ->check(OneOf({"all", "blocks", "adapter"}))
      ->capture_default_str();
  c->add_option("--adapter-rank", a.adapter_rank, "For --part adapter: its rank (8)");
  CLI::Option* out = c->add_option("--out", a.out, "File of the plan to write; without it nothing is written");
  out->needs(model);
  CLI::Option* policy = c->add_option("--policy", a.policy, "File of the tightest policy that allows the plan");
  CLI::Option* server =
      c->add_option("--server", a.server, "The server's address for --policy: https, or http for this machine");
  policy->needs(out)->needs(server);
  server->needs(policy);
  c->add_option("--name", a.name, "Name of the fleet in plans and ledgers: letters, digits, - and _")
      ->capture_default_str();
  c->add_option("--method", a.method,
                "What a device sends: gradient (of its record) or local (the difference that steps on it make)")
      ->check(OneOf({"gradient", "local"}))
      ->capture_default_str();
  c->add_option("--local-steps", a.local_steps, "For --method local: steps of a device in a round");
  c->add_option("--local-learning-rate", a.local_learning_rate, "For --method local: the rate of these steps");
  c->add_option("--learning-rate", a.learning_rate, "Rate of the server's steps, by Adam")->capture_default_str();
  c->add_option("--clipping-norm", a.clipping_norm, "The largest norm of what a device sends")->capture_default_str();
  c->add_option("--bits", a.bits, "Bits of a number that a device sends: 8, 16 or 32")->capture_default_str();
  c->add_option("--evaluators", a.evaluators, "Share of the devices that evaluates and never trains, up to 0.5");
  c->add_option("--evaluations", a.evaluations, "Number of evaluations; a multiple of --takes-part");
  c->add_option("--round-seconds", a.round_seconds, "The deadline of a round")->capture_default_str();
  CLI::Option* records = c->add_option(
      "--records-epsilon", a.records_epsilon,
      "For --policy: also protect each record on a device, from the server too. An update is then the change of a\n"
      "private run, and this is epsilon of all of a device's runs together. With --method local");
  records->needs(policy);
  for (CLI::Option* option :
       {c->add_option("--records-delta", a.records_delta, "For --records-epsilon: its delta, below 1 / records"),
        c->add_option("--num-records-public", a.num_records_public,
                      "For --records-epsilon: the number of records of a device, which anybody may know"),
        c->add_option("--batch", a.batch, "For --records-epsilon: records that are expected in a local step")}) {
    records->needs(option);
    option->needs(records);
  }
  chosen.OnCall(c, FleetPlanCommand, a);
}

void AddNode(CLI::App& app, Chosen& chosen, NodeArguments& a) {
  CLI::App* c = app.add_subcommand(
      "node",

      "Be a device of a fleet, which asks for work and sends the answer. It does what the policy allows, and charges "
      "each participation to the ledger first. It goes on after errors of the network and after a crash.\n"
      "  wisp node --policy policy.json --data log.db --model models/cafe.wisp --ledger fleet.ledger");
  c->add_option("--policy", a.policy, "The limits of this device, a file that comes with the app")->required();
  c->add_option("--data", a.data,
                "The log of events, SQLite. If it is damaged, zeros are sent; not where records are protected")
      ->required();
  c->add_option("--model", a.model, "The base: the unchanged shipped model")->required();
  c->add_option("--ledger", a.ledger, "A ledger for fleets alone; made if absent. An unfinished answer lies beside it")
      ->required();
  c->add_option("--output", a.output, "Where the fleet's model is kept, if it is not worse for this device's log");
  CLI::Option* records = c->add_option("--records-ledger", a.records_ledger,
                                       "For a policy that protects records: the ledger that their runs charge");
  CLI::Option* dataset = c->add_option("--dataset", a.dataset, "For --records-ledger: the name of the data");
  records->needs(dataset);
  dataset->needs(records);
  c->add_option("--superlink", a.superlink, "The server's address. It has to be that of --policy");
  c->add_option("--key", a.key,
                "The device's private key (P-256, PEM), made if absent. Default: the name of --ledger and .pem");
  c->add_option("--ca", a.ca, "File of the certificates to trust, PEM. Default: the system's");
  CLI::Option* once = c->add_flag("--once", a.once, "End when nothing is left to do now, or at the first error");
  c->add_option("--seconds", a.seconds, "End after so many seconds. Default: run until it is stopped")->excludes(once);
  c->add_option("--ask-seconds", a.ask_seconds,
                "Mean time between questions while nothing is to do: a thirtieth of the number of devices or more")
      ->check(Within(1, 3600))
      ->capture_default_str();
  AddUnit(c, a.unit, a.session_gap, a.times_per_second,
          "How events become training records: user, session or day; default: user. All that the device holds is\n"
          "protected whatever this says. A policy that protects records means these");
  chosen.OnCall(c, NodeCommand, a);
}

}  // namespace

void AddFleet(CLI::App& app, Chosen& chosen, FleetCommandArguments& arguments) {
  CLI::App* fleet = app.add_subcommand(
      "fleet",

      "Let many devices learn one model together, privately. Nobody but the server sees what one of them sends.\n"
      "  wisp fleet plan --devices 100000 --rounds 100 --takes-part 1 --epsilon 3");
  fleet->require_subcommand(1);
  AddFleetPlan(fleet, chosen, arguments.plan);
  AddNode(app, chosen, arguments.node);
}

}  // namespace wisp::tools
