// The options of `wisp recommend`.
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

// Adds the options that only private recommendations have.
void AddPrivateRecommend(CLI::App* c, PrivateSampleArguments& p) {
  CLI::Option* on =
      AddPrivateSamples(c, p,
                        "Sample items instead of showing the best, and charge the ledger before each sample; free for\n"
                        "weights that carry a guarantee. Shows no scores");
  const auto add = [&](const char* name, auto& value, const char* help) {
    return c->add_option(name, value, help)->needs(on);
  };
  add("--mode", p.mode,
      "mixed (with the uniform over the support) or anchored (to --base); default: anchored with --base");
  add("--temperature", p.temperature, "Temperature of the softmax, before mixing; or of the anchored softmax")
      ->capture_default_str();
  add("--top-k", p.top_k, "mixed: keep this many of the model's best before mixing; 0: all");
  add("--top-p", p.top_p, "mixed: of these, keep the fewest that together have this probability")
      ->capture_default_str();
  add("--block", p.block, "Samples charged at a time; unused ones are lost. 0: as many as are asked for");
}

}  // namespace

void AddRecommend(CLI::App& app, Chosen& chosen, RecommendArguments& a) {
  CLI::App* c = app.add_subcommand(
      "recommend",

      "Recommend the best next items for a user of a log, or after a history.\n"
      "  wisp recommend --model models/cafe.wisp --data log.db --user u00007\n"
      "  wisp recommend --model models/cafe.wisp --history tea-mint,bagel-lentil --count 5\n"
      "  wisp recommend --model m.wisp --history tea-mint --private --ledger log.ledger\n"
      "      --base models/cafe.wisp --public-dataset shipped --epsilon 8 --delta 1e-6 --planned-samples 20");
  c->add_option("--model", a.model, "Model file")->required();
  c->add_option("--adapter", a.adapter, "An adapter that was trained with it");
  c->add_option("--user", a.user, "A user of the data");
  AddRepeated(c, "--history", a.history,
              "Item keys, oldest first, separated by commas. May be given several times, in order. A value that is\n"
              "as a whole an item's key is that item, even if it has commas");
  c->add_flag("--cold-start", a.cold_start,
              "For a person without any history: popular items, as far as the model knows them");
  AddRepeated(c, "--candidates", a.candidates, "Consider only these items, given like --history");
  c->add_option("--count", a.count, "How many")->capture_default_str();
  c->add_option("--backend", a.backend, "simd, int8 (linear layers over 8-bit integers) or xnnpack")
      ->capture_default_str();
  c->add_option("--threads", a.threads, "Threads that share the positions of the history; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  CLI::Option* const allow = c->add_flag(
      "--allow-seen", a.allow_seen,
      "Items of the history may be recommended again; with --exclude-seen they are not. Both override the model.\n"
      "Default: as the model says (wisp inspect), which evaluation follows too");
  c->add_flag("--exclude-seen", a.exclude_seen, "Items of the history are not recommended again")->excludes(allow);
  AddDevice(c, a.device);
  AddData(c, a.data, false);
  AddPrivateRecommend(c, a.priv);
  chosen.OnCall(c, Recommend, a);
}

}  // namespace wisp::tools
