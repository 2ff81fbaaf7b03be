// The options that `wisp recommend --private` and `wisp generate --private` share.
#include "tools/wisp/options.h"

namespace wisp::tools {

// Options that only --private uses are refused without it.
CLI::Option* AddPrivateSamples(CLI::App* c, PrivateSampleArguments& p, const char* help_of_private) {
  auto* on = c->add_flag("--private", p.on, help_of_private);
  const auto add = [&](const char* name, auto& value, const char* help) {
    return c->add_option(name, value, help)->needs(on);
  };
  add("--ledger", p.ledger, "Privacy ledger of the data that samples reveal; made if absent");
  AddAnchor(c, p.anchor);
  add("--base", p.base, "The public model, unchanged: same vocabulary, its data sets declared by --public-dataset");
  AddRepeated(c, "--public-dataset", p.public_datasets,
              "Label of a data set in the provenance that is public; may be repeated")
      ->needs(on);
  add("--lambda", p.lambda, "mixed: the model's share in a sample");
  add("--clip", p.clip,
      "anchored: how far a logit may move from the base's; aggregate: how far one private text may move it");
  add("--epsilon-per-sample", p.epsilon_per_sample, "Instead: the cost of one sample at delta 0");
  add("--epsilon", p.epsilon,
      "Instead: a target for all --planned-samples together, at --delta; it limits a ledger that is still "
      "empty");
  add("--planned-samples", p.planned_samples,
      "Number of samples over all queries, for the target. Without it, wisp generate takes the tokens of this text "
      "alone,\n"
      "and nothing is left for another text");
  add("--delta", p.delta, "Delta of the target and of --budget");
  add("--budget", p.budget, "From now on, limit the total epsilon of the ledger to this");
  add("--num-records-public", p.num_records_public,
      "Number of records that anybody may know; delta must be below 1 / this number");
  add("--allow-large-delta", p.allow_large_delta,
      "yes: accept a delta up to 1 / --num-records-public; not with ten records or fewer")
      ->check(OneOf({"yes"}));
  add("--support", p.support,
      "Items or tokens to sample from: all, or base:K, the public base's K best; model:K is refused")
      ->capture_default_str();
  AddOptional(c, "--unit", p.unit,
              "Privacy unit of a ledger that this command makes: user, session, day or interaction. Default: "
              "interaction if the model reads texts, else user. The statement says if nobody chose it")
      ->needs(on);
  add("--uncharged-tuning", p.uncharged_tuning,
      "Choices that were made by looking at the same data without a charge, for the statement");
  add("--dataset", p.dataset, "Name of the data set, which must be that of an existing ledger");
  c->add_flag("--other-data", p.other_data,
              "Declare that a data set with the ledger's name in the provenance of --model and --base is other data")
      ->needs(on);
  return on;
}

}  // namespace wisp::tools
