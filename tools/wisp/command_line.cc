// Options, help and exit codes. The options of single commands are in options_*.cc.
#include "tools/wisp/program_commands.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/core/text.h"
#include "runtime/train/run/run_spec.h"
#include "tools/wisp/help.h"
#include "tools/wisp/option_names.h"
#include "tools/wisp/options.h"
#include "tools/wisp/recipe/known_words.h"

namespace wisp::tools {
namespace {

class CommandLine final : public ProgramCommands {
 public:
  CommandLine() : ProgramCommands("wisp", "small recommenders that learn privately on the device.") {
    AddSynth();
    AddNew();
    AddTrain();
    AddTune(app_, chosen_, tune_);
    AddEvaluate();
    AddRecommend(app_, chosen_, recommend_);
    AddInspect();
    AddExchange(app_, chosen_, exchange_);
    AddPrivacy();
    AddClassify(app_, chosen_, classify_);
    AddGenerate(app_, chosen_, generate_);
    AddDeployment(app_, chosen_, deployment_);
    AddFleet(app_, chosen_, fleet_);
    CheckNumbers(app_);
    SetGroups(app_);
  }

 private:
  void AddSynth() {
    CLI::App* c = app_.add_subcommand("synth",

                                      "Make a synthetic log of events with readable items.\n"
                                      "  wisp synth --out log.db --population device --users 2000");
    c->add_option("--out", synth_.out,
                  "File to write: .db is SQLite, .csv, .tsv and .inter have a header and times, anything else is "
                  "\"user item\" lines.\n"
                  "Names of the items go to the same name and .items.tsv")
        ->required();
    c->add_option("--population", synth_.population, "public (the data of the shipped model) or device")
        ->capture_default_str();
    c->add_option("--users", synth_.users, "Number of users")->capture_default_str();
    c->add_option("--min-events", synth_.min_events, "Fewest events of a user")->capture_default_str();
    c->add_option("--max-events", synth_.max_events, "Most events of a user")->capture_default_str();
    c->add_option("--repeats", synth_.repeats, "How many of 100 events repeat an item that the user had before")
        ->check(Within(0, 99))
        ->capture_default_str();
    c->add_option("--seed", synth_.seed, "The same seed gives the same data")->capture_default_str();
    chosen_.OnCall(c, Synth, synth_);
  }

  void AddNew() {
    CLI::App* c = app_.add_subcommand("new",

                                      "Make an untrained model from a recipe.\n"
                                      "  wisp new --recipe models/recipes/cafe.json --num-items 480 --out new.wisp\n"
                                      "  wisp new --recipe models/recipes/ml-1m.json --data ml-1m.txt --out new.wisp");
    c->add_option("--recipe", new_.recipe, "Architecture and hyper-parameters, JSON")->required();
    c->add_option("--out", new_.out, "Model file to write")->required();
    c->add_option("--num-items", new_.num_items, "Size of the catalogue, when no data is given");
    c->add_option("--catalogue", new_.catalogue,
                  "public: anybody may know which items the data has; in place of the recipe's data.catalogue")
        ->check(OneOf({"public"}));
    c->add_option("--item-names", new_.item_names, "File of readable names, with key<TAB>name on each line");
    c->add_option(
        "--item-features", new_.item_features,
        "File of the items with public numbers of each, key<TAB>numbers. An item's row then follows from its\n"
        "numbers, so that new items can be added without training");
    AddData(c, new_.data, false);
    chosen_.OnCall(c, New, new_);
  }

  void AddTrain() {
    CLI::App* c = app_.add_subcommand(
        "train",

        "Train a model, or fine-tune one, privately if the recipe says so.\n"
        "  wisp train --recipe models/recipes/cafe-device.json --model models/cafe.wisp --data log.db\n"
        "      --out mine.wisp --ledger log.ledger --budget 8\n"
        "  wisp train --model gpt2.wisp --texts notes.txt --method phantom --epsilon 8 --lora 8\n"
        "      --num-records-public 5000 --out tuned.wisp --ledger notes.ledger\n"
        "  wisp train --recipe r.json --labelled train.tsv --out classifier.wisp --ledger train.ledger");
    c->add_option("--recipe", train_.recipe,
                  "Architecture and hyper-parameters, JSON; required unless a --model learns --texts");
    c->add_option("--out", train_.out, "Model file to write")->required();
    c->add_option("--model", train_.model, "Start from this model instead of fresh weights");
    c->add_option("--adapter", train_.adapter, "Start from --model and this adapter, which is trained further");
    c->add_option("--item-names", train_.item_names, "File of readable names, with key<TAB>name on each line");
    c->add_option(
        "--item-features", train_.item_features,
        "File with public numbers of each item, key<TAB>numbers. Items that share features then learn together");
    c->add_option("--ledger", train_.ledger,
                  "The data set's privacy ledger; required for private training, made if absent");
    AddAnchor(c, train_.anchor);
    AddOptional(c, "--budget", train_.budget, "From now on, limit the total epsilon of the ledger to this");
    const auto add = [&](const char* path, const char* note = "") {
      AddField(c, train_.given, path, RunKind::kEvents, note);
    };
    add("privacy.epsilon");
    add("privacy.noise_multiplier");
    add("privacy.delta", "; without a recipe 1 / (2 --num-records-public), 0.001 at most");
    add("training.num_records_public");
    add("training.method", "; for labelled texts dp-fp, phantom, rgp, ordinary");
    c->add_flag("--re-attention", train_.re_attention, "Correct attention for the noise variance in the weights");
    add("training.epochs");
    add("training.expected_batch", ". At most --num-records-public");
    add("training.sparse.rows");
    add("privacy.histogram_noise");
    add("training.optimizer.learning_rate");
    add("training.seed");
    AddOptional(c, "--reproducible-noise", train_.reproducible_noise_seed,
                "Seed of repeatable noise: for experiments, NO guarantee");
    c->add_option("--checkpoint", train_.checkpoint,
                  "Save progress here, also on an interrupt, and resume from it if it exists");
    AddOptional(
        c, "--checkpoint-every", train_.checkpoint_every,
        "Steps between saves (default: each charge of privacy.steps_per_charge steps; 50 if nothing is charged)");
    AddPlannedRuns(c, train_.planned_runs);
    c->add_option("--privacy-json", train_.privacy_json, "Write the privacy statement of the run here");
    c->add_option("--dataset", train_.dataset,
                  "Name of the data set in ledger and provenance. Use the same name each time, that of the ledger. "
                  "Default: the file's");
    c->add_flag("--other-data", train_.other_data,
                "Declare that a data set with this name in the provenance of --model is other data");
    AddRepeated(c, "--public-dataset", train_.public_datasets,
                "Label of a data set in the provenance of --model that is public; may be repeated");
    add("privacy.uncharged_tuning");
    c->add_option("--allow-large-delta", train_.allow_large_delta,
                  "yes: accept a delta up to 1 / records, as papers do; not with ten records or fewer")
        ->check(OneOf({"yes"}));
    c->add_option("--threads", train_.threads, "0: up to 4")->check(ThreadsRange())->capture_default_str();
    AddDevice(c, train_.device);
    AddData(c, train_.data, false);
    c->add_option(
        "--trains-until", train_.trains_until,
        "Train on the events up to the end of this day, such as 2026-01-01, or second since 1970, and on all\n"
        "of those: in place of the recipe's data.hold_out. Evaluate with the same option");
    AddTrainTexts(c, train_);
    AddTrainLabelled(c, train_);
    chosen_.OnCall(c, Train, train_);
  }

  void AddEvaluate() {
    CLI::App* c =
        app_.add_subcommand("evaluate",

                            "Measure how well a model predicts the next item (HIT@10, NDCG@10), texts or classes.\n"
                            "  wisp evaluate --model models/cafe.wisp --data log.db\n"
                            "  wisp evaluate --model gpt2.wisp --texts dev.txt\n"
                            "  wisp evaluate --model sst2.wisp --labelled dev.tsv");
    c->add_option("--model", evaluate_.model, "Model file")->required();
    c->add_option("--adapter", evaluate_.adapter, "An adapter that was trained with it");
    c->add_option("--split", evaluate_.split, "test (the last item of each record) or validation (the one before)")
        ->capture_default_str();
    c->add_option("--trains-until", evaluate_.trains_until,
                  "Test instead the first event of each record after this day, such as 2026-01-01, or second since\n"
                  "1970, with what came before as its history. The model must have trained with the same option");
    c->add_flag("--baselines", evaluate_.baselines,
                "Also measure lists without training, from the events that may train: the popular items, and what\n"
                "followed the last two items (arXiv 2605.07125). They are not private");
    c->add_option("--backend", evaluate_.backend, "simd, or int8: linear layers over 8-bit integers")
        ->capture_default_str();
    c->add_option("--threads", evaluate_.threads, "0: up to 4")->check(ThreadsRange());
    AddData(c, evaluate_.data, false);
    AddUnit(c, evaluate_.unit, evaluate_.session_gap, evaluate_.times_per_second,
            "Treat each session or day as a history of its own, and test each one that has at least two events, as\n"
            "evaluation by later events does; default: user");
    AddEvaluateTexts(c, evaluate_);
    AddEvaluateLabelled(c, evaluate_);
    chosen_.OnCall(c, Evaluate, evaluate_);
  }

  void AddInspect() {
    CLI::App* c =
        app_.add_subcommand("inspect",

                            "Show the contents of a model file, or the memory that it needs.\n"
                            "  wisp inspect models/cafe.wisp\n"
                            "  wisp inspect models/cafe.wisp --memory --method phantom --threads 2 --records 6040");
    c->add_option("model,--model", inspect_.model, "Model file")->required();
    c->add_flag("--verify", inspect_.verify, "Also check every weight against its checksum");
    auto* memory = c->add_flag(
        "--memory", inspect_.memory,
        "Show instead the memory for recommending, and for training with --method or --recipe.\n"
        "The figures are exact, and none of it is allocated. The batch matters only for adafest and adafest+,\n"
        "whose growth it bounds, for a classifier's lists, and on a device");
    c->add_option("--method", inspect_.method, Allowed(*FindField("training.method", RunKind::kEvents)))->needs(memory);
    c->add_option(
         "--recipe", inspect_.recipe,
         "Recipe of the training, JSON. It sets all that is not given here, also --records. Required for a classifier")
        ->needs(memory);
    AddOptional(c, "--rank", inspect_.rank, "rgp: rank of the projections")->needs(memory);
    AddOptional(c, "--lora", inspect_.lora, "An adapter of this rank trains beside the model")
        ->needs(memory)
        ->check(Within(1, 8192));
    c->add_option("--adapter", inspect_.adapter, "An adapter that was trained with the model, and is trained further")
        ->needs(memory);
    c->add_option("--trains", inspect_.trains, "Part of the model that trains: all, blocks, or (for a classifier) head")
        ->needs(memory);
    AddOptional(c, "--max-length", inspect_.max_length, "Most tokens of a text that training reads")->needs(memory);
    c->add_flag("--recompute-blocks", inspect_.recompute_blocks, "Training recomputes blocks (see wisp train)")
        ->needs(memory);
    AddOptional(c, "--rows", inspect_.rows, ListMethods(NamesRows) + ": how many rows of the item table to train")
        ->needs(memory);
    AddOptional(c, "--batch", inspect_.expected_batch, "adafest, adafest+, classifiers and devices: expected batch")
        ->needs(memory);
    AddOptional(c, "--noise-multiplier", inspect_.noise_multiplier, ListMethods(IsAdaptive) + ": noise of a step")
        ->needs(memory);
    AddOptional(c, "--num-records-public", inspect_.num_records_public,
                "adafest, adafest+ and classifiers: number of records that anybody may know. It determines\n"
                "the sampling probability. Default: the recipe's, or --records")
        ->needs(memory);
    c->add_option("--backend", inspect_.backend,
                  "Backend for recommending: simd (the default), int8 (linear layers over 8-bit integers) or xnnpack")
        ->needs(memory);
    AddDevice(c, inspect_.device, memory);
    c->add_option("--threads", inspect_.threads, "Threads of training and of a batch; 0: up to 4")
        ->check(ThreadsRange())
        ->needs(memory);
    AddOptional(c, "--records", inspect_.records,
                "Records of training: 16 bytes each, and 4 for each thread; default: --num-records-public,\n"
                "or the recipe's num_records_public")
        ->needs(memory);
    chosen_.OnCall(c, Inspect, inspect_);
  }

  void AddPrivacy() {
    CLI::App* c = app_.add_subcommand("privacy",

                                      "Show what a ledger's data set has spent, or do accounting without a ledger.\n"
                                      "  wisp privacy --ledger log.ledger --delta 1e-5\n"
                                      "  wisp privacy check statement.json --ledger log.ledger\n"
                                      "  wisp privacy epsilon --sigma 1 --q 0.01 --steps 1000 --delta 1e-5 --json");
    const auto add_other_data = [&](CLI::App* to) {
      to->add_flag("--other-data", privacy_.other_data,
                   "Declare that a data set with the ledger's name in the provenance of --model is other data")
          ->needs("--model");
    };
    c->require_subcommand(0, 1);
    c->add_option("--ledger", privacy_.ledger, "Privacy ledger of a data set");
    AddAnchor(c, privacy_.anchor);
    AddOptional(c, "--delta", privacy_.at_delta,
                "Delta of the shown epsilon; default: that of the ledger's limit, or 1e-5");
    AddRepeated(c, "--model", privacy_.models,
                "A model that the statement should name, with its SHA-256; may be repeated");
    add_other_data(c);
    chosen_.OnCall(c, PrivacyLedger, privacy_);
    CLI::App* check = c->add_subcommand("check",
                                        "Check that a kept statement (--json) agrees with a ledger, and with models.\n"
                                        "  wisp privacy check statement.json --ledger log.ledger --model mine.wisp");
    check->add_option("statement,--statement", privacy_.statement, "File that `wisp privacy --json` has written")
        ->required();
    check->add_option("--ledger", privacy_.ledger, "Privacy ledger of the data set")->required();
    AddAnchor(check, privacy_.anchor);
    AddRepeated(check, "--model", privacy_.models, "A model that the statement names; may be repeated");
    add_other_data(check);
    chosen_.OnCall(check, PrivacyCheck, privacy_);
    CLI::App* epsilon = c->add_subcommand("epsilon",

                                          "Compute epsilon of a number of steps of the Poisson-subsampled Gaussian.\n"
                                          "  wisp privacy epsilon --sigma 1 --q 0.01 --steps 1000 --delta 1e-5");
    epsilon->add_option("--sigma", privacy_.noise_multiplier, "Noise multiplier")->required();
    CLI::App* calibrate = c->add_subcommand("calibrate",

                                            "Find the smallest noise multiplier for a target epsilon.\n"
                                            "  wisp privacy calibrate --epsilon 4 --q 0.01 --steps 1000 --delta 1e-5");
    AddOptional(calibrate, "--epsilon", privacy_.epsilon, "Target")->required();
    for (CLI::App* sub : {epsilon, calibrate}) {
      sub->add_option("--q", privacy_.sampling_probability, "Sampling probability")->required();
      sub->add_option("--steps", privacy_.steps, "Number of steps")->required();
      sub->add_option("--delta", privacy_.delta, "Delta")->required();
    }
    AddPrivacyDecoding(c);
    chosen_.OnCall(epsilon, PrivacyEpsilon, privacy_);
    chosen_.OnCall(calibrate, PrivacyCalibrate, privacy_);
  }

  void AddPrivacyDecoding(CLI::App* privacy) {
    CLI::App* c = privacy->add_subcommand(
        "decoding",
        "Compute the total cost of private samples, or, with --calibrate, the parameters that meet a target.\n"
        "  wisp privacy decoding --support 10000 --lambda 1e-4 --samples 100 --delta 1e-6\n"
        "  wisp privacy decoding --clip 0.5 --samples 100 --delta 1e-6\n"
        "  wisp privacy decoding --calibrate --epsilon 2 --support 10000 --samples 100 --delta 1e-6\n"
        "  wisp privacy decoding --clip 2 --contexts 16 --epsilon 8 --delta 1e-6");
    c->add_option("--samples", privacy_.steps,
                  "Number of samples (items or tokens) over all queries of the model; without it: the most that "
                  "--epsilon pays for");
    c->add_option("--delta", privacy_.delta, "Delta")->required();
    c->add_option("--support", privacy_.support, "Mixed: number of items in the support");
    c->add_option("--lambda", privacy_.lambda, "Mixed: the model's share in a sample");
    c->add_option("--clip", privacy_.clip, "Anchored: how far a logit may move from the base's");
    c->add_option("--temperature", privacy_.temperature, "Anchored")->capture_default_str();
    c->add_option("--contexts", privacy_.contexts, "Aggregate: the declared number of private texts in the prompt")
        ->check(Within(1u, 1u << 20));
    c->add_option("--mixing-floor", privacy_.mixing_floor,
                  "Mixed with a public distribution that has this share of the uniform over --support");
    c->add_flag("--calibrate", privacy_.calibrate, "Find lambda (with --support) or clip (without) for --epsilon");
    AddOptional(c, "--epsilon", privacy_.epsilon,
                "Target of --calibrate, or budget for as many samples as it pays for");
    chosen_.OnCall(c, PrivacyDecoding, privacy_);
  }

  SynthArguments synth_;
  NewArguments new_;
  TrainArguments train_;
  TuneArguments tune_;
  EvaluateArguments evaluate_;
  RecommendArguments recommend_;
  InspectArguments inspect_;
  ExchangeArguments exchange_;
  GenerateArguments generate_;
  PrivacyArguments privacy_;
  ClassifyArguments classify_;
  DeploymentCommandArguments deployment_;
  FleetCommandArguments fleet_;
};

}  // namespace

std::unique_ptr<ProgramCommands> MakeCommands() { return std::make_unique<CommandLine>(); }

}  // namespace wisp::tools
