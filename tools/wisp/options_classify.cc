// The options of `wisp classify`.
#include "runtime/train/run/run_spec.h"
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

void AddLabelled(CLI::App* app, std::string& path, std::string& format) {
  app->add_option("--data", path, "Labelled texts: label<TAB>text lines, or TSV or CSV with a header")->required();
  app->add_option("--format", format, "auto, lines, tsv or csv")->capture_default_str();
}

void AddTrain(CLI::App* c, Chosen& chosen, ClassifyTrainArguments& a) {
  c->add_option("--recipe", a.recipe, "Architecture, hyper-parameters and the classes (data.classes), JSON")
      ->required();
  c->add_option("--out", a.out, "Classifier file to write")->required();
  AddLabelled(c, a.data, a.format);
  const auto add = [&](const char* path, const char* note = "") {
    AddField(c, a.given, path, RunKind::kClasses, note);
  };
  add("data.text_column");
  add("data.label_column");
  c->add_option("--method", a.method, "dp-fp, phantom, rgp or ordinary, in place of the recipe's");
  c->add_option("--mode", a.mode, "Mode of dp-fp: aggregate, clipped or paper, in place of the recipe's");
  c->add_option("--trains", a.trains, "all, blocks (no tables) or head, in place of the recipe's");
  AddOptional(c, "--lora", a.lora, "Train adapters of this rank and the head, beside --base, which does not change")
      ->check(Within(1, 8192));
  AddOptional(c, "--max-length", a.max_length,
              "Most tokens of a text that training reads; default: as many as the model reads");
  add("training.recompute_blocks",
      ". Short texts,\n"
      "such as single sentences, take several times as long (docs/memory.md)");
  c->add_option("--base", a.base, "Start from this encoder or classifier, with its vocabulary");
  c->add_option("--adapter", a.adapter, "Start from --base and this adapter, which is trained further");
  c->add_option("--vocabulary", a.vocabulary, "File of tokens that anybody may know, one on each line");
  c->add_option("--ledger", a.ledger, "The data set's privacy ledger; required for private methods, made if absent");
  AddAnchor(c, a.anchor);
  AddOptional(c, "--budget", a.budget, "From now on, limit the total epsilon of the ledger to this");
  add("privacy.epsilon");
  add("privacy.noise_multiplier", ". In mode paper: dp_fp.paper.noise_multiplier");
  add("privacy.delta");
  add("training.num_records_public");
  add("training.epochs");
  add("training.expected_batch", ". At most --num-records-public");
  add("training.optimizer.learning_rate");
  add("training.seed");
  AddOptional(c, "--reproducible-noise", a.reproducible_noise_seed,
              "Seed of repeatable noise: for experiments, NO guarantee");
  c->add_option("--checkpoint", a.checkpoint,
                "Save progress here, also on an interrupt, and resume from it if it exists");
  AddOptional(c, "--checkpoint-every", a.checkpoint_every,
              "Steps between saves (default: each charge of privacy.steps_per_charge steps; 50 if nothing is charged)");
  AddPlannedRuns(c, a.planned_runs);
  c->add_option("--dataset", a.dataset,
                "Name of the data set in ledger and provenance. Use the same name each time, that of the ledger. "
                "Default: the file's");
  c->add_flag("--other-data", a.other_data,
              "Declare that a data set with this name in the provenance of --base is other data");
  AddRepeated(c, "--public-dataset", a.public_datasets,
              "Label of a data set in the provenance of --base that is public; may be repeated");
  add("privacy.uncharged_tuning");
  c->add_option("--threads", a.threads, "0: up to 4")->check(ThreadsRange())->capture_default_str();
  AddDevice(c, a.device);
  chosen.OnCall(c, ClassifyTrain, a);
}

}  // namespace

void AddClassify(CLI::App& app, Chosen& chosen, ClassifyArguments& a) {
  CLI::App* c = app.add_subcommand(
      "classify",
      "Classify texts: train a classifier privately, test it, use it.\n"
      "  wisp classify train --recipe models/recipes/sst2-dp-fp.json --data train.tsv --out c.wisp --ledger l.db\n"
      "  wisp classify predict --model c.wisp --text \"a charming film\"");
  c->require_subcommand(1);
  AddTrain(c->add_subcommand(
               "train",
               "Train by the recipe's method: dp-fp, phantom or rgp, which are private, or ordinary (NO guarantee)."),
           chosen, a.train);
  CLI::App* evaluate =
      c->add_subcommand("evaluate", "Measure the share of labelled texts whose class is predicted correctly.");
  evaluate->add_option("--model", a.evaluate.model, "Classifier file")->required();
  evaluate->add_option("--adapter", a.evaluate.adapter, "An adapter that was trained with it");
  AddOptional(evaluate, "--max-length", a.evaluate.max_length,
              "Most tokens of a text that are read; default: as many as the model reads");
  evaluate->add_option("--text-column", a.evaluate.text_column, "Name of the column of texts");
  evaluate->add_option("--label-column", a.evaluate.label_column, "Name of the column of labels");
  evaluate->add_option("--threads", a.evaluate.threads, "0: up to 4")->check(ThreadsRange())->capture_default_str();
  AddLabelled(evaluate, a.evaluate.data, a.evaluate.format);
  chosen.OnCall(evaluate, ClassifyEvaluate, a.evaluate);
  CLI::App* predict = c->add_subcommand("predict", "Predict the class of each text, with its probability.");
  predict->add_option("--model", a.predict.model, "Classifier file")->required();
  predict->add_option("--adapter", a.predict.adapter, "An adapter that was trained with it");
  AddRepeated(predict, "--text", a.predict.texts, "A text; may be given several times");
  predict->add_option("--input", a.predict.input, "File of texts, one on each line; blank lines are left out");
  AddOptional(predict, "--max-length", a.predict.max_length,
              "Most tokens of a text that are read; default: as many as the model reads");
  predict->add_option("--threads", a.predict.threads, "Threads that share the positions of a text; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  AddDevice(predict, a.predict.device);
  chosen.OnCall(predict, ClassifyPredict, a.predict);
}

}  // namespace wisp::tools
