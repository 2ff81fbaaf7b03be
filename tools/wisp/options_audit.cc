// The options of `wisp audit`.
#include "tools/wisp/options.h"

namespace wisp::tools {

void AddAudit(CLI::App& app, Chosen& chosen, AuditArguments& a) {
  CLI::App* c = app.add_subcommand(
      "audit",
      "Attack training or decoding as they really run, and compare the measured privacy loss with the claimed one.\n"
      "Not refuted proves nothing. Refuted (exit code 4) holds with the confidence stated.\n"
      "  wisp audit step --method phantom --noise-multiplier 1\n"
      "  wisp audit step --recipe models/recipes/sst2-dp-fp.json --method paper\n"
      "  wisp audit run --recipe r.json --data log.db --ledger log.ledger\n"
      "  wisp audit decoding --mode anchored --clip 1");
  c->require_subcommand(1);
  CLI::App* step = c->add_subcommand(
      "step", "Release one step many times, with a canary and without (synthetic records; white box).");
  step->add_option("--q", a.sampling_probability, "Sampling probability")->capture_default_str();
  step->add_option("--through", a.through,
                   "release (the noisy sum of a step) or trainer (the whole loop with a charge for each release: slow)")
      ->capture_default_str();
  CLI::App* run = c->add_subcommand("run", "Train once with canaries, half of them in the data (Steinke et al. 2023).");
  AddOptional(run, "--delta", a.run_delta, "Delta of the epsilon; default: the recipe's, or 1e-5");
  run->add_option("--canaries", a.canaries, "Number of canaries, made-up users of two items each")
      ->capture_default_str();
  CLI::App* membership =
      c->add_subcommand("membership", "Train on half of the users, and try to tell them from the others by the loss.");
  CLI::App* decoding = c->add_subcommand(
      "decoding", "Compute every outcome of private sampling on a small support, under the worst pairs of models.");
  for (CLI::App* sub : {step, run, membership}) {
    sub->add_option("--recipe", a.recipe, "Architecture and hyper-parameters, JSON; default: something small");
    sub->add_option("--model", a.model, "Start from this model");
    sub->add_option(
        "--method", a.method,
        "In place of the recipe's; fest and adafest+ are audited with half of the items as the rows that are trained");
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
  decoding->add_option("--draws", a.draws, "Distinct items sampled")->capture_default_str();
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
  chosen.OnCall(step, AuditStepCommand, a);
  chosen.OnCall(run, AuditRunCommand, a);
  chosen.OnCall(membership, AuditMembershipCommand, a);
  chosen.OnCall(decoding, AuditDecodingCommand, a);
}

}  // namespace wisp::tools
