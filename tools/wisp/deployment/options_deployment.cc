// The options of `wisp plan`, `personalise`, `report`, `catalogue` and `log`.
#include "tools/wisp/options.h"

#include <limits>

namespace wisp::tools {
namespace {

constexpr char kUnitHelp[] = "What one record is, the unit that is protected as a whole: user, session or day";

void AddTimesPerSecond(CLI::App* c, uint32_t& times_per_second) {
  c->add_option("--times-per-second", times_per_second,
                "How many of the log's times make a second, with every unit: 1000 for ms")
      ->capture_default_str();
}

void AddDeploymentOptions(CLI::App* c, DeploymentArguments& deployment) {
  c->add_option("--model", deployment.model, "The base: the unchanged shipped model")->required();
  c->add_option("--ledger", deployment.ledger,
                "The data set's privacy ledger. Default: the name of --data, with .ledger in place of its ending");
  AddAnchor(c, deployment.anchor);
  c->add_option("--dataset", deployment.dataset, "Name of the data set in ledger and provenance. Default: the file's");
  c->add_option("--threads", deployment.threads, "0: up to 4")->check(ThreadsRange());
  AddData(c, deployment.data, true);
}

void AddPlan(CLI::App& app, Chosen& chosen, PlanArguments& a) {
  CLI::App* c = app.add_subcommand(
      "plan",

      "Plan the privacy budget of a deployment before the first look at its data. It sets noise, steps and "
      "evaluations of all training sessions, predicts the cost and the gain of one, and reads no event.\n"
      "  wisp plan --data log.db --model models/cafe.wisp --epsilon 8 --for \"1 year\" --unit user\n"
      "      --num-records-public 2000\n"
      "  wisp plan --data log.db --model models/cafe.wisp --left\n"
      "  wisp plan --data log.db --model models/cafe.wisp --change --for \"6 months\" --every \"1 week\"");
  AddDeploymentOptions(c, a.deployment);
  auto* left = c->add_flag("--left", a.left, "Instead: show the rest of the plan that the ledger has");
  auto* change =
      c->add_flag("--change", a.change,
                  "Instead: change the rest of the plan. Other times (--for, --every, --steps) cost nothing;\n"
                  "another --batch or --num-records-public costs noise, and the output says how much")
          ->excludes(left);
  const auto fixed = [&](CLI::Option* option) { option->excludes(left)->excludes(change); };
  fixed(AddOptional(c, "--epsilon", a.epsilon, "Epsilon of the whole deployment, for every record"));
  fixed(AddOptional(c, "--delta", a.delta, "Default: 1e-5, or a tenth of 1 / --num-records-public if that is less"));
  AddOptional(c, "--num-records-public", a.num_records_public,
              "Number of records (users, sessions or days) that anybody may know")
      ->check(Within(uint32_t{1}, std::numeric_limits<uint32_t>::max()))
      ->excludes(left);
  fixed(c->add_option(
      "--num-records-at-start", a.num_records_at_start,
      "Number of these that exist when the deployment begins, which anybody may know; all exist at its end. Training\n"
      "sessions share the steps by how many exist. Default: all from the first session on"));
  c->add_option("--for", a.duration, "How long the deployment lasts: \"1 year\"")->excludes(left);
  c->add_option("--every", a.every, "Time between training sessions. Default: \"1 day\"")->excludes(left);
  AddUnit(c, a.unit, a.session_gap, a.times_per_second, kUnitHelp);
  fixed(
      c->add_option("--evaluation", a.evaluation,
                    "How a personalised model is evaluated: private (later events decide, with noise, if it is "
                    "better),\n"
                    "local (the same without noise and without a charge, for models that never leave the device), or\n"
                    "none (the newest model is served, better or not)")
          ->check(OneOf({"private", "local", "none"}))
          ->capture_default_str());
  fixed(AddOptional(c, "--evaluations", a.evaluations,
                    "Number of evaluations. Default: 12, or with --trains-until one for every 400 records, 2 to 12"));
  fixed(c->add_option("--trains-until", a.trains_until,
                      "For a log that does not grow: events after this day, such as 2026-01-01, or second since 1970\n"
                      "are for evaluation only. Default: each evaluation uses the events after the previous one"));
  AddOptional(c, "--batch", a.expected_batch, "Expected batch. Default: a quarter of the records")->excludes(left);
  AddOptional(c, "--steps", a.steps,
              "Steps of a training session. Default: 30 passes over the records in the whole deployment")
      ->excludes(left);
  AddOptional(c, "--learning-rate", a.learning_rate, "Default: chosen by the noise, 0.01 at most")->excludes(left);
  c->add_option(
       "--typical-events", a.typical_events,
       "Events of a record, a public guess. 0: as many as the model reads to predict the time, 10 to predict the gain")
      ->excludes(left);
  c->add_flag("--dry-run", a.dry_run, "Write nothing")->excludes(left);
  fixed(c->add_flag("--replace", a.replace,
                    "Replace another plan that the ledger has, if nothing was charged under it.\n"
                    "Without --replace another plan is refused, and the same plan is left unchanged"));
  chosen.OnCall(c, PlanCommand, a);
}

void AddPersonalise(CLI::App& app, Chosen& chosen, PersonaliseArguments& a) {
  CLI::App* c =
      app.add_subcommand("personalise",

                         "Run one training session of the plan. It trains, evaluates when it is time, and serves the "
                         "personalised model only if it was found better than the base, which is when \"evidence\", "
                         "how much more often its lists held what people did next, is above \"threshold\", the most "
                         "that chance and noise alone could explain. It resumes where it stopped.\n"
                         "  wisp personalise --data log.db --model models/cafe.wisp --out served.wisp");
  c->add_option("--out", a.out, "The model to serve; its candidate, checkpoint and lock lie beside it")->required();
  AddDeploymentOptions(c, a.deployment);
  c->add_flag("--start-over", a.start_over,
              "Begin a new model if --out is missing although the plan has trained one. It starts from the base, with\n"
              "the rest of the plan");
  c->add_flag("--early", a.early, "Run although less than half of the plan's --every has passed since the last run");
  c->add_flag("--other-data", a.other_data,
              "Declare that a data set with this name in the provenance of --model is other data");
  AddDevice(c, a.device);
  chosen.OnCall(c, Personalise, a);
}

void AddReport(CLI::App& app, Chosen& chosen, ReportArguments& a) {
  CLI::App* c = app.add_subcommand(
      "report",

      "Write a page about a deployment: plan and reality, costs, evaluations, the statement. It needs the ledger only. "
      "With the models it also says what each layer learned. With the log, one part of it is for this device's owner "
      "only.\n"
      "  wisp report --ledger log.ledger --html report.html\n"
      "  wisp report --ledger log.ledger --html report.html --model models/cafe.wisp --out served.wisp");
  c->add_option("--ledger", a.ledger, "The ledger with the plan")->required();
  AddAnchor(c, a.anchor);
  c->add_option("--html", a.html, "File to write")->required();
  AddData(c, a.data, false);
  CLI::Option* model = c->add_option("--model", a.model, "The base");
  CLI::Option* out = c->add_option("--out", a.out, "The served model, --out of wisp personalise");
  c->get_option("--data")->needs(model)->needs(out);
  model->needs(out);
  out->needs(model);
  c->add_option("--threads", a.threads, "0: up to 4")->check(ThreadsRange());
  chosen.OnCall(c, Report, a);
}

void AddRebase(CLI::App* catalogue, Chosen& chosen, RebaseArguments& a) {
  CLI::App* c = catalogue->add_subcommand(
      "rebase",

      "Move what was learned to a new base. The new base itself is served until an evaluation finds the moved model "
      "better.\n"
      "  wisp catalogue rebase --from models/cafe.wisp --to base-2.wisp --out my.wisp --ledger log.ledger\n"
      "  wisp catalogue rebase --from models/cafe.wisp --adapter a.wisp --to base-2.wisp --out b.wisp");
  c->add_option("--from", a.from, "The previous base")->required();
  c->add_option("--to", a.to, "The new base, which --model of wisp personalise names from now on")->required();
  c->add_option("--out", a.out, "The served model, --out of wisp personalise")->required();
  c->add_option("--adapter", a.adapter,
                "Instead of a deployment: an adapter of --from; --out becomes an adapter of --to. It is not evaluated");
  c->add_option("--ledger", a.ledger, "The ledger with the plan. Required without --adapter")->excludes("--adapter");
  c->add_flag("--start-over", a.start_over,
              "Give up what was learned where the new base could never serve it; otherwise that is refused")
      ->excludes("--adapter");
  chosen.OnCall(c, RebaseCommand, a);
}

void AddCatalogue(CLI::App& app, Chosen& chosen, CatalogueArguments& a, RebaseArguments& rebase) {
  CLI::App* catalogue =
      app.add_subcommand("catalogue",

                         "Change the items of a base, and move personalised models to the new base.\n"
                         "  wisp catalogue list --model models/cafe.wisp\n"
                         "  wisp catalogue add --model models/cafe.wisp --items new.tsv --out base-2.wisp\n"
                         "  wisp catalogue retire --model models/cafe.wisp --items gone.txt --out base-2.wisp");
  catalogue->require_subcommand(1);
  CLI::App* add = catalogue->add_subcommand("add", "Write a base with more items. What is known of them is public.");
  add->add_option("--model", a.model, "The base")->required();
  add->add_option(
         "--items", a.items,
         "Lines of key<TAB>name, or key<TAB>name<TAB>the key of a similar item. Without a similar item its row\n"
         "is made from items that share words of its name, or else from all")
      ->required();
  add->add_option("--item-features", a.item_features,
                  "For a model with item features: lines of key<TAB>numbers, as for wisp new. The new items are\n"
                  "recommended at once");
  add->add_option("--out", a.out, "Model file to write; it may replace a model, but no other file")->required();
  chosen.OnCall(add, CatalogueAdd, a);
  const auto offer = [&](const char* name, const char* help, auto command) {
    CLI::App* c = catalogue->add_subcommand(name, help);
    c->add_option("--model", a.model, "The base")->required();
    c->add_option("--items", a.items, "File with a key on each line; text after a tab is not read")->required();
    c->add_option("--out", a.out, "Model file to write; it may replace a model, but no other file")->required();
    chosen.OnCall(c, command, a);
  };
  offer("retire", "Write a base that never recommends these items. They keep their rows and may stand in histories.",
        CatalogueRetire);
  offer("restore", "Write a base that recommends retired items again.", CatalogueRestore);
  CLI::App* list = catalogue->add_subcommand("list", "List the keys and names of its items, and which are retired.");
  list->add_option("--model", a.model, "Model file")->required();
  chosen.OnCall(list, CatalogueList, a);
  AddRebase(catalogue, chosen, rebase);
}

CLI::App* AddLogCommand(CLI::App* log, const char* name, const char* help, LogArguments& a) {
  CLI::App* c = log->add_subcommand(name, help);
  c->add_option("log,--log", a.path, "SQLite file of events")->required();
  return c;
}

void AddLog(CLI::App& app, Chosen& chosen, LogArguments& a) {
  CLI::App* log = app.add_subcommand("log",

                                     "Maintain a log of events. Local only: the output is not private.\n"
                                     "  wisp log count log.db\n"
                                     "  wisp log erase log.db --user u17\n"
                                     "  wisp log prune log.db --before 2026-01-01 --unit session --session-gap 1800\n"
                                     "  wisp log backup log.db --out copy.db\n"
                                     "  wisp log restore log.db --from copy.db");
  log->require_subcommand(1);
  const auto add_dates = [&](CLI::App* c) {
    c->add_option("--times-per-second", a.times_per_second,
                  "Show a time that is a date as a number since 1970: 1, in seconds; 1000, in milliseconds")
        ->capture_default_str();
  };
  CLI::App* count = AddLogCommand(log, "count", "Count events, users and items, and show their times.", a);
  add_dates(count);
  chosen.OnCall(count, LogCount, a);
  CLI::App* list = AddLogCommand(log, "list", "List users by key, with their numbers of events.", a);
  list->add_option("--after", a.after, "Begin after this user");
  list->add_option("--count", a.count, "How many")->capture_default_str();
  add_dates(list);
  chosen.OnCall(list, LogList, a);
  CLI::App* erase = AddLogCommand(
      log, "erase",
      "Remove all events of a user, and overwrite them. What models learned from them stays in the models.", a);
  erase->add_option("--user", a.user, "Whose")->required();
  chosen.OnCall(erase, LogErase, a);
  CLI::App* prune = AddLogCommand(log, "prune", "Remove old data: users' older events, or whole sessions and days.", a);
  prune->add_option("--before", a.before, "A day such as 2026-01-01, or a number in the log's own times");
  prune->add_option("--newest-per-user", a.newest_per_user, "Unit user: keep this many events of each");
  AddUnit(prune, a.unit, a.session_gap, a.times_per_second, kUnitHelp);
  prune->get_option("--unit")->required();
  chosen.OnCall(prune, LogPrune, a);
  CLI::App* backup = AddLogCommand(log, "backup", "Write a whole copy of the log's current contents.", a);
  backup->add_option("--out", a.copy, "File to write; an existing file is not replaced")->required();
  chosen.OnCall(backup, LogBackup, a);
  CLI::App* restore = AddLogCommand(
      log, "restore", "Replace the log's contents by those of a copy; makes the log if it is missing.", a);
  restore->add_option("--from", a.copy, "The copy")->required();
  chosen.OnCall(restore, LogRestore, a);
  CLI::App* import =
      AddLogCommand(log, "import", "Add the events of a file to a log, which is made if it is missing.", a);
  AddData(import, a.data, true);
  AddTimesPerSecond(import, a.times_per_second);
  chosen.OnCall(import, LogImport, a);
  CLI::App* export_ =
      AddLogCommand(log, "export", "Write all events as text: user, item, time. As private as the log.", a);
  export_->add_option("--out", a.copy, "File that ends in .csv or .tsv; none that is there is replaced")->required();
  add_dates(export_);
  chosen.OnCall(export_, LogExport, a);
}

}  // namespace

void AddDeployment(CLI::App& app, Chosen& chosen, DeploymentCommandArguments& arguments) {
  AddPlan(app, chosen, arguments.plan);
  AddPersonalise(app, chosen, arguments.personalise);
  AddReport(app, chosen, arguments.report);
  AddCatalogue(app, chosen, arguments.catalogue, arguments.rebase);
  AddLog(app, chosen, arguments.log);
}

void AddUnit(CLI::App* c, std::optional<std::string>& unit, int64_t& session_gap, uint32_t& times_per_second,
             const char* help) {
  AddOptional(c, "--unit", unit, help)->check(OneOf({"user", "session", "day"}));
  c->add_option("--session-gap", session_gap, "For sessions: seconds without an event that end one, such as 1800");
  AddTimesPerSecond(c, times_per_second);
}

}  // namespace wisp::tools
