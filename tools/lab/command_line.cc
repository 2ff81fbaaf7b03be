// The command line of `wisp-lab`.
#include "tools/lab/commands.h"
#include "tools/wisp/options.h"
#include "tools/wisp/program_commands.h"

namespace wisp::tools {
namespace {

class LabCommandLine final : public ProgramCommands {
 public:
  LabCommandLine() : ProgramCommands("wisp-lab", "measures wisp: its speed, its privacy, and the tables of papers.") {
    AddAudit();
    AddBench();
    AddPerplexity();
    AddReproduce();
    AddFields();
    AddGoals();
    CheckNumbers(app_);
  }

 private:
  void AddAudit() {
    AuditArguments& a = audit_;
    CLI::App* c = app_.add_subcommand(
        "audit",
        "Attack training or decoding as they really run, and compare the measured privacy loss with the claimed one.\n"
        "Not refuted proves nothing. Refuted (exit code 4) holds with the confidence stated.\n"
        "  wisp-lab audit step --method phantom --noise-multiplier 1\n"
        "  wisp-lab audit step --recipe models/recipes/sst2-dp-fp.json --method paper\n"
        "  wisp-lab audit run --recipe r.json --data log.db --ledger log.ledger\n"
        "  wisp-lab audit decoding --mode anchored --clip 1");
    c->require_subcommand(1);
    CLI::App* step = c->add_subcommand(
        "step", "Release one step many times, with a canary and without (synthetic records; white box).");
    step->add_option("--q", a.sampling_probability, "Sampling probability")->capture_default_str();
    step->add_option(
            "--through", a.through,
            "release (the noisy sum of a step) or trainer (the whole loop with a charge for each release: slow)")
        ->capture_default_str();
    CLI::App* run =
        c->add_subcommand("run", "Train once with canaries, half of them in the data (Steinke et al. 2023).");
    AddOptional(run, "--delta", a.run_delta, "Delta of the epsilon; default: the recipe's, or 1e-5");
    run->add_option("--canaries", a.canaries, "Number of canaries, made-up users of two items each")
        ->capture_default_str();
    CLI::App* membership = c->add_subcommand(
        "membership", "Train on half of the users, and try to tell them from the others by the loss.");
    CLI::App* decoding = c->add_subcommand(
        "decoding", "Compute every outcome of private sampling on a small support, under the worst pairs of models.");
    for (CLI::App* sub : {step, run, membership}) {
      sub->add_option("--recipe", a.recipe, "Architecture and hyper-parameters, JSON; default: something small");
      sub->add_option("--model", a.model, "Start from this model");
      sub->add_option("--method", a.method,
                      "In place of the recipe's; fest and adafest+ are audited with half of the items as the rows that "
                      "are trained");
      AddOptional(sub, "--noise-multiplier", a.noise_multiplier, "In place of the recipe's");
      AddOptional(sub, "--clipping-norm", a.clipping_norm, "In place of the recipe's");
    }
    for (CLI::App* sub : {run, membership}) {
      sub->add_option("--ledger", a.ledger, "The data set's ledger: an audit is charged like training");
      AddAnchor(sub, a.anchor);
      sub->add_option("--dataset", a.dataset,
                      "Name of the data set; that of the ledger must be the same. Default: the file's");
      sub->add_option("--users", a.users, "Made-up users, where no data is given")->capture_default_str();
      AddOptional(sub, "--epsilon", a.epsilon, "Privacy target of the run");
      AddOptional(sub, "--num-records-public", a.num_records_public,
                  "Number of users that anybody may know; membership: that of the half");
      AddOptional(sub, "--batch", a.expected_batch, "Expected batch, in place of the recipe's");
      AddOptional(sub, "--epochs", a.epochs, "In place of the recipe's");
      AddOptional(sub, "--steps", a.steps, "Steps instead of epochs");
      sub->add_option("--threads", a.threads, "0: up to 4")->check(ThreadsRange());
      AddData(sub, a.data, false);
    }
    for (CLI::App* sub : {run, decoding})
      AddOptional(sub, "--claim", a.claim, "Test this epsilon instead of what is charged");
    for (CLI::App* sub : {step, decoding}) {
      sub->add_option("--observations", a.observations,
                      "Releases with the canary, and as many without; or samples of the sampler")
          ->capture_default_str();
    }
    decoding->add_option("--mode", a.mode, "mixed (with the uniform, or with --mixing) or anchored")
        ->capture_default_str();
    decoding->add_option("--items", a.items, "Size of the support, up to 6")->capture_default_str();
    decoding->add_option("--samples", a.samples, "Distinct items sampled")->capture_default_str();
    decoding->add_option("--lambda", a.lambda, "Share of the private model in a mixture")->capture_default_str();
    decoding->add_option("--mixing", a.mixing,
                         "Mixed: public probabilities of the items, separated by commas; default: all the same");
    decoding->add_option("--clip", a.clip, "Anchored: how far a logit may move from the base model's")
        ->capture_default_str();
    decoding->add_option("--temperature", a.temperature, "Anchored: temperature of the softmax")->capture_default_str();
    for (CLI::App* sub : {step, run, membership, decoding}) {
      if (sub == step || sub == decoding) sub->add_option("--delta", a.delta, "At this delta")->capture_default_str();
      sub->add_option("--confidence", a.confidence, "Of the verdict")->capture_default_str();
      AddOptional(sub, "--reproducible-noise", a.reproducible_noise_seed, "Seed of repeatable noise: for experiments");
    }
    chosen_.OnCall(step, AuditStepCommand, a);
    chosen_.OnCall(run, AuditRunCommand, a);
    chosen_.OnCall(membership, AuditMembershipCommand, a);
    chosen_.OnCall(decoding, AuditDecodingCommand, a);
  }

  void AddBench() {
    CLI::App* c =
        app_.add_subcommand("bench",
                            "Measure this machine: products, training steps with and without privacy, scoring.\n"
                            "  wisp-lab bench --threads 2\n  wisp-lab bench --model m.wisp --what score\n"
                            "  wisp-lab bench --all --json > machine.json");
    c->add_option("--what", bench_.what,
                  "both (train and score), train, score, encoder (--length tokens, else 128, 6 blocks of width 384), "
                  "decoder (a prompt of\n"
                  "--length tokens, else 512, then one token at a time), ops (each kernel, with twice the\n"
                  "last-level cache in memory, up to a gigabyte), clipping (the time that ghost clipping of the "
                  "embedding would add\n"
                  "to a private step), sparse (catalogues of 1e5 to 1e7 items: 16 GB, minutes), products (of a step, "
                  "by shape),\n"
                  "panels (weights in panels beside packed ones, on each instruction set) or roofline (bytes\n"
                  "and operations of each op)")
        ->capture_default_str()
        ->excludes(
            c->add_flag("--all", bench_.all,
                        "Measure everything at fixed sizes, in up to five minutes: a row of docs/processors.md"));
    const auto add = [&](const std::string& name, auto& value, const char* help) {
      return c->add_option(name, value, help)->each([this, name](const std::string&) { bench_.given.push_back(name); });
    };
    add("--model", bench_.model,
        "score, roofline: this model; default: one of the size of ML-1M, or the recipe's. decoder: this file");
    add("--tensors", bench_.tensors,
        "encoder, decoder: write the results to this safetensors file; for the encoder its weights too");
    add("--recipe", bench_.recipe, "train, products, roofline: use this recipe's model, method, batch and length");
    add("--threads", bench_.threads, "0: up to 4; ops uses one")->check(ThreadsRange());
    add("--batch", bench_.batch, "Records per training step")->capture_default_str();
    add("--items", bench_.items, "Size of the catalogue; sparse has its own")->capture_default_str();
    add("--length", bench_.length, "Positions of a record or a text; sparse has its own")->capture_default_str();
    add("--inner-width", bench_.inner_width, "Inner width of a feed-forward layer; encoder and sparse have their own")
        ->check(Within(1, 65536))
        ->capture_default_str();
    add("--repeats", bench_.repeats, "Samples of each figure")->capture_default_str();
    add("--cache", bench_.cache, "decoder: keys and values in f32 or f16")
        ->check(OneOf({"f32", "f16"}))
        ->capture_default_str();
    AddDevice(c, bench_.device);
    chosen_.OnCall(c, Bench, bench_);
  }

  void AddPerplexity() {
    CLI::App* c = app_.add_subcommand(
        "perplexity",
        "Measure the perplexity of private token sampling against epsilon, on texts that the model did not learn "
        "from.\n"
        "  wisp-lab perplexity --model tuned.wisp --base gpt2.wisp --texts dev.txt --samples 100");
    c->add_option("--model", perplexity_.model, "The decoder to sample from")->required();
    c->add_option("--adapter", perplexity_.adapter, "An adapter that was trained with it");
    c->add_option("--base", perplexity_.base, "The unchanged public decoder")->required();
    c->add_option("--texts", perplexity_.texts, "Texts that neither model learned from; the output is not private")
        ->required();
    c->add_option("--record", perplexity_.record, "What one text is: line, paragraph, ... as for wisp evaluate")
        ->capture_default_str();
    c->add_option("--max-length", perplexity_.max_length,
                  "Tokens that are read of each text; 0: as many positions as both models have");
    AddRepeated(c, "--epsilon", perplexity_.epsilons, "Target; may be given several times")->capture_default_str();
    c->add_option("--samples", perplexity_.samples, "Tokens that each epsilon pays for")
        ->check(Within(uint64_t{1}, uint64_t{1} << 40))
        ->capture_default_str();
    c->add_option("--delta", perplexity_.delta, "Delta of composition by PLD")->capture_default_str();
    c->add_option("--temperature", perplexity_.temperature, "Of all laws")
        ->check(Within(1e-3, 1e3))
        ->capture_default_str();
    chosen_.OnCall(c, MeasurePerplexity, perplexity_);
  }

  void AddReproduce() {
    CLI::App* c = app_.add_subcommand(
        "reproduce",
        "Reproduce a paper's table, cell by cell. Each run appends a line of JSON with its test figures.\n"
        "If the table declares its data a public benchmark and the number of users confirms that, private runs are\n"
        "charged to a temporary ledger; on any other data --ledger is needed.\n"
        "Cells that time steps need no data; those of private sampling need a model and data.\n"
        "  wisp-lab reproduce phantom-table-2 --list\n"
        "  wisp-lab reproduce phantom-figure-8 --out docs/results/phantom-figure-8.jsonl\n"
        "  wisp-lab reproduce phantom-table-2 --data ml-1m.txt --out docs/results/phantom-table-2.jsonl --skip-done");
    c->add_option("name", reproduce_.table, "A table of models/reproduce, or a path that ends in .json");
    c->add_option("--out", reproduce_.out, "File of results; each run appends a line");
    c->add_option("--cell", reproduce_.cell, "Only this cell, ROW/COLUMN");
    AddOptional(c, "--seed", reproduce_.seed, "Only this one of the table's seeds");
    c->add_flag("--list", reproduce_.list, "Show the cells, and how many of their runs --out has");
    c->add_flag("--skip-done", reproduce_.skip_done, "Skip runs that --out already has with the current recipe");
    c->add_option("--model", reproduce_.model,
                  "Cells of private sampling: sample from this model, trained without privacy");
    c->add_option("--ledger", reproduce_.ledger,
                  "The data set's privacy ledger, for private cells on data that the table does not call public");
    AddAnchor(c, reproduce_.anchor);
    c->add_option(
        "--base", reproduce_.base,
        "Cells of private sampling: the public model with the same items; untrained, or its data sets declared public");
    AddRepeated(c, "--public-dataset", reproduce_.public_datasets,
                "Label of a data set in the base's provenance that is public; may be repeated");
    c->add_option("--threads", reproduce_.threads, "0: up to 4")->check(ThreadsRange());
    AddData(c, reproduce_.data, false);
    chosen_.OnCall(c, Reproduce, reproduce_);
  }

  void AddFields() {
    CLI::App* c = app_.add_subcommand("fields",
                                      "List the fields of a training run: keys of recipes, ranges, defaults, options.\n"
                                      "  wisp-lab fields --json");
    chosen_.OnCall(c, ListFields, fields_);
  }

  void AddGoals() {
    CLI::App* c = app_.add_subcommand("goals",
                                      "Print the goals for GPUs beside what tests/cuda/gpu measured.\n"
                                      "  wisp-lab goals --figures results");
    c->add_option("--figures", goals_.figures, "The folder that tests/cuda/gpu left")->required();
    chosen_.OnCall(c, PrintGoals, goals_);
  }

  AuditArguments audit_;
  BenchArguments bench_;
  PerplexityArguments perplexity_;
  ReproduceArguments reproduce_;
  FieldsArguments fields_;
  GoalsArguments goals_;
};

}  // namespace

std::unique_ptr<ProgramCommands> MakeLabCommands() { return std::make_unique<LabCommandLine>(); }

}  // namespace wisp::tools
