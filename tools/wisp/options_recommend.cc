// The options of `wisp recommend`.
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

// Options that mean nothing without --private need it.
void AddPrivateRecommend(CLI::App* c, PrivateRecommendArguments& p) {
  auto* on = c->add_flag("--private", p.on,
                         "Draw items instead of showing the best, and charge the ledger before each draw; free for\n"
                         "weights that carry a guarantee. Shows no scores");
  const auto add = [&](const char* name, auto& value, const char* help) {
    return c->add_option(name, value, help)->needs(on);
  };
  add("--ledger", p.ledger, "Privacy ledger of the data the model learned from; made if absent");
  AddAnchor(c, p.anchor);
  add("--mode", p.mode,
      "mixed (with the uniform over the support) or anchored (to --base); default: anchored with --base");
  add("--base", p.base, "The public model as it was shipped: same items, data sets declared by --public-dataset");
  add("--public-dataset", p.public_datasets, "Label of a data set in the provenance that is public; may be repeated");
  add("--lambda", p.lambda, "mixed: the model's share in a draw");
  add("--clip", p.clip, "anchored: how far a logit may move from the base's");
  add("--epsilon-per-draw", p.epsilon_per_draw, "Instead: the cost of one draw at delta 0");
  add("--epsilon", p.epsilon,
      "Instead: a target for --lifetime draws together, at --delta; limits a ledger that is still empty");
  add("--lifetime", p.lifetime, "Number of draws over all queries, for the target");
  add("--delta", p.delta, "Of the target and of --budget");
  add("--budget", p.budget, "Limit the ledger to this epsilon over everything, from now on");
  add("--num-records-public", p.num_records_public,
      "Number of records that may be known to anybody; delta must be below 1 over it");
  add("--allow-large-delta", p.allow_large_delta,
      "yes: accept a delta up to 1 / --num-records-public; not with ten records or fewer")
      ->check(CLI::IsMember({"yes"}));
  add("--temperature", p.temperature, "Of the softmax, before mixing; or of the anchored one")->capture_default_str();
  add("--top-k", p.top_k, "mixed: keep so many of the model's best before mixing; 0: all");
  add("--top-p", p.top_p, "mixed: then the fewest that hold this share")->capture_default_str();
  add("--support", p.support, "all, or base:K, the public base's K best; model:K is refused")->capture_default_str();
  add("--select", p.select, "sample; best is refused")->capture_default_str();
  add("--after-mixing", p.after_mixing, "nothing; top-k, top-p and temperature are refused")->capture_default_str();
  add("--block", p.block, "Draws charged at a time; what is not drawn is lost. 0: as many as are asked for");
  add("--unit", p.unit,
      "Privacy unit of a ledger that this command makes: user, session, day or interaction. Default: user, and the "
      "statement says that nobody chose it");
  add("--uncharged-tuning", p.uncharged_tuning,
      "What was chosen by looking at the same data without a charge, for the statement");
  add("--dataset", p.dataset, "Name of the data set; that of a ledger that exists must be the same");
  c->add_flag("--other-data", p.other_data,
              "Declare that a data set of the ledger's name in the provenance of --model and --base is other data")
      ->needs(on);
}

}  // namespace

void AddRecommend(CLI::App& app, Chosen& chosen, RecommendArguments& a) {
  CLI::App* c = app.add_subcommand(
      "recommend",
      "The best next items for a user of a log, or after a history.\n"
      "  wisp recommend --model m.wisp --data log.db --user u00007\n"
      "  wisp recommend --model m.wisp --history tea-mint,bagel-lentil --count 5\n"
      "  wisp recommend --model m.wisp --history tea-mint --private --ledger log.ledger --base base.wisp\n"
      "      --public-dataset shipped --epsilon 8 --delta 1e-6 --lifetime 20");
  c->add_option("--model", a.model, "Model file")->required();
  c->add_option("--adapter", a.adapter, "An adapter that was trained beside it");
  c->add_option("--user", a.user, "A user of the data");
  c->add_option("--history", a.history, "Item keys, oldest first, separated by commas");
  c->add_flag("--newcomer", a.newcomer, "For a person without any history: what is popular, as the model knows it");
  c->add_option("--candidates", a.candidates, "Consider only these item keys, separated by commas");
  c->add_option("--count", a.count, "How many")->capture_default_str();
  c->add_option("--backend", a.backend, "simd, int8 (linear layers over 8-bit integers) or xnnpack")
      ->capture_default_str();
  c->add_option("--threads", a.threads, "That share the positions of the history; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  c->add_flag("--allow-seen", a.allow_seen, "Items of the history may come back");
  AddDevice(c, a.device);
  AddData(c, a.data, false);
  AddPrivateRecommend(c, a.priv);
  chosen.OnCall(c, Recommend, a);
}

}  // namespace wisp::tools
