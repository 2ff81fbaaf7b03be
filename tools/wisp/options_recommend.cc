// The options of `wisp recommend`.
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

// Adds the options that only private recommendations have.
void AddPrivateRecommend(CLI::App* c, PrivateDrawArguments& p) {
  CLI::Option* on =
      AddPrivateDraws(c, p,
                      "Draw items instead of showing the best, and charge the ledger before each draw; free for\n"
                      "weights that carry a guarantee. Shows no scores");
  const auto add = [&](const char* name, auto& value, const char* help) {
    return c->add_option(name, value, help)->needs(on);
  };
  add("--mode", p.mode,
      "mixed (with the uniform over the support) or anchored (to --base); default: anchored with --base");
  add("--temperature", p.temperature, "Of the softmax, before mixing; or of the anchored one")->capture_default_str();
  add("--top-k", p.top_k, "mixed: keep so many of the model's best before mixing; 0: all");
  add("--top-p", p.top_p, "mixed: then the fewest that hold this share")->capture_default_str();
  add("--block", p.block, "Draws charged at a time; what is not drawn is lost. 0: as many as are asked for");
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
  AddRepeated(
      c, "--history", a.history,
      "Item keys, oldest first, separated by commas. May be given several times, one behind the other; what is\n"
      "an item's key as a whole is that item, whatever commas are in it");
  c->add_flag("--newcomer", a.newcomer, "For a person without any history: what is popular, as the model knows it");
  AddRepeated(c, "--candidates", a.candidates, "Consider only these items, given as those of --history");
  c->add_option("--count", a.count, "How many")->capture_default_str();
  c->add_option("--backend", a.backend, "simd, int8 (linear layers over 8-bit integers) or xnnpack")
      ->capture_default_str();
  c->add_option("--threads", a.threads, "That share the positions of the history; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  CLI::Option* const allow =
      c->add_flag("--allow-seen", a.allow_seen,
                  "Items of the history may come back, and with --exclude-seen they do not, whatever the model says.\n"
                  "Default: as the model says (wisp inspect), which is what is evaluated and judged");
  c->add_flag("--exclude-seen", a.exclude_seen, "Items of the history do not come back")->excludes(allow);
  AddDevice(c, a.device);
  AddData(c, a.data, false);
  AddPrivateRecommend(c, a.priv);
  chosen.OnCall(c, Recommend, a);
}

}  // namespace wisp::tools
