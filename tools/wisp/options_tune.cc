// The options of `wisp tune`.
#include "tools/wisp/options.h"

#include "runtime/train/run/run_spec.h"

namespace wisp::tools {

void AddTune(CLI::App& app, Chosen& chosen, TuneArguments& a) {
  CLI::App* c = app.add_subcommand(
      "tune",

      "Find the best of a few values of a recipe, privately at a cost or free on public data.\n"
      "  wisp tune --recipe models/recipes/cafe-device.json --model models/cafe.wisp --data log.db\n"
      "      --ledger log.ledger --budget 8 --values optimizer.learning_rate=0.003,0.01 --epochs 5\n"
      "      --expected-runs 12 --out best.wisp\n"
      "  wisp tune --recipe r.json --data public.csv --public --values epochs=10,30 --out-recipe best.json");
  TrainArguments& t = a.train;
  c->add_option("--recipe", t.recipe, "Architecture and hyper-parameters, JSON")->required();
  AddRepeated(c, "--values", a.values,
              "A key of the recipe and its values, key=value,value; may be repeated, for all combinations. A key of\n"
              "the section training needs no section")
      ->required();
  AddData(c, t.data, true);
  c->add_option("--model", t.model, "Start from this model; required unless --public");
  c->add_option("--out", t.out, "Model of the best run; required unless --public");
  c->add_option("--out-recipe", a.out_recipe, "Recipe to write, with the best values");
  c->add_flag("--public", a.is_public,
              "The data are public: try every combination once, by the recipe's method, and show how good each is");
  c->add_option("--ledger", t.ledger, "The data set's privacy ledger; required unless --public, made if absent");
  AddAnchor(c, t.anchor);
  AddOptional(c, "--budget", t.budget, "From now on, limit the total epsilon of the ledger to this");
  AddOptional(c, "--expected-runs", a.expected_runs,
              "How many runs the search makes on average; their number is random, and each takes a combination by\n"
              "chance. Default: twice as many as there are combinations, at least 6");
  AddField(c, t.given, "privacy.epsilon", RunKind::kEvents, ". It is that of the whole search");
  AddField(c, t.given, "privacy.delta", RunKind::kEvents);
  AddField(c, t.given, "training.num_records_public", RunKind::kEvents);
  AddField(c, t.given, "training.method", RunKind::kEvents);
  AddField(c, t.given, "training.epochs", RunKind::kEvents);
  c->add_option("--dataset", t.dataset,
                "Name of the data set in ledger and provenance. Use the same name each time, that of the ledger. "
                "Default: the file's");
  c->add_flag("--other-data", t.other_data,
              "Declare that a data set with this name in the provenance of --model is other data");
  AddRepeated(c, "--public-dataset", t.public_datasets,
              "Label of a data set in the provenance of --model that is public; may be repeated");
  c->add_option("--threads", t.threads, "0: up to 4")->check(ThreadsRange())->capture_default_str();
  chosen.OnCall(c, Tune, a);
}

}  // namespace wisp::tools
