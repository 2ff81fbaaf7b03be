// The options of commands that read or write texts: `wisp generate`, and the text options of `train` and `evaluate`.
#include "runtime/text/text_batch.h"
#include "runtime/train/run/run_spec.h"
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

// Adds the options that only private generation has. The prompt is not protected, and the help says so.
void AddPrivateGenerate(CLI::App* c, GenerateArguments& a) {
  CLI::Option* on =
      AddPrivateSamples(c, a.priv,
                        "Charge the ledger before each token, for the data that the weights learned from, or for\n"
                        "--private-texts; free for weights that carry a guarantee. The prompt is not protected");
  const auto add = [&](const char* name, auto& value, const char* help) {
    return c->add_option(name, value, help)->needs(on);
  };
  add("--mode", a.priv.mode,
      "mixed (with the uniform over the support), mixed-with-base (with the distribution of --base), anchored (to "
      "--base) or aggregate (of --private-texts); default: aggregate with --private-texts, anchored with --base, else "
      "mixed");
  add("--mixing-floor", a.mixing_floor, "mixed-with-base: the uniform's share of the distribution that is mixed in")
      ->capture_default_str();
  add("--block", a.priv.block, "Tokens charged at a time; unused ones are lost")
      ->check(Within(1u, 1u << 20))
      ->capture_default_str();
  CLI::Option* texts = add(
      "--private-texts", a.private_texts,
      "A file with a private text on each line, each one a record. They are references in the prompt of a public model "
      "(mode aggregate). --clip is then how far one of them may move a logit, before the sum is divided by --contexts");
  CLI::Option* contexts =
      add("--contexts", a.contexts,
          "For --private-texts: divisor of the sum of their logit changes; a public number, about the number of texts")
          ->check(Within(1u, 1u << 20))
          ->needs(texts);
  texts->needs(contexts);
  add("--context-before", a.context_before, "Public words before each private text")->needs(texts);
  add("--context-after", a.context_after, "Public words between each private text and the prompt; default: a new line")
      ->needs(texts);
  add("--public-text", a.public_text, "Text that the public context has in place of a private text; default: nothing")
      ->needs(texts);
}

}  // namespace

void AddTrainTexts(CLI::App* c, TrainArguments& a) {
  c->add_option("--texts", a.texts, "File of texts that a decoder learns, in place of --data; see docs/texts.md");
  AddField(c, a.given, "text.record", RunKind::kTexts,
           ". line, paragraph (between blank lines), or chunk:N,\n"
           "pieces of N bytes of one long text, which protect no person");
  AddField(c, a.given, "text.max_length", RunKind::kTexts);
  c->add_option("--tokenizer", a.tokenizer,
                "For fresh weights: a tokenizer.json, a folder with one, or bytes (every byte is a token); public");
  AddField(c, a.given, "training.trains", RunKind::kTexts, "; for a classifier also head");
  AddField(c, a.given, "training.last_blocks", RunKind::kClasses, ". For a classifier");
  AddOptional(c, "--lora", a.lora,
              "Train an adapter of this rank with --model, in a file of its own; in place of the recipe's rank")
      ->check(Within(1, 8192));
  AddField(c, a.given, "training.recompute_blocks", RunKind::kTexts,
           ". Short texts,\n"
           "such as single sentences, take several times as long (docs/memory.md)");
}

void AddEvaluateTexts(CLI::App* c, EvaluateArguments& a) {
  c->add_option("--texts", a.texts, "File of texts, in place of --data");
  c->add_option("--record", a.record, "How it is divided: line, paragraph or chunk:N")->capture_default_str();
  AddOptional(c, "--max-length", a.max_length,
              "Positions that are read of each text; default: as many as the model has");
}

void AddGenerate(CLI::App& app, Chosen& chosen, GenerateArguments& a) {
  CLI::App* c = app.add_subcommand(
      "generate",

      "Continue a text, token by token. Without --private nothing is charged.\n"
      "  wisp generate gpt2.wisp --prompt \"Once upon a time\" --temperature 0.8 --top-p 0.95\n"
      "  wisp generate gpt2.wisp --prompts prompts.txt --json\n"
      "  wisp generate tuned.wisp --private --base gpt2.wisp --public-dataset webtext --prompt \"Dear\"\n"
      "      --ledger notes.ledger --epsilon 8 --planned-samples 500 --max-tokens 50\n"
      "  wisp generate gpt2.wisp --private --public-dataset webtext --private-texts notes.txt\n"
      "      --contexts 8 --ledger notes.ledger --epsilon 8 --planned-samples 500 --prompt \"A note:\"");
  c->add_option("model,--model", a.model, "A decoder whose file has its tokenizer (wisp convert)")->required();
  c->add_option("--adapter", a.adapter, "An adapter that was trained with it");
  auto* prompt = AddOptional(c, "--prompt", a.prompt, "The text to continue");
  auto* prompts = c->add_option("--prompts", a.prompts,
                                "Instead: a file with one prompt on each line that is not blank. Prompt i, from 0 on, "
                                "samples with --seed + i: it gets the text that it would get alone with that seed");
  prompts->excludes(prompt);
  c->add_option("--at-once", a.at_once,
                "Prompts that are continued together: one token of all of them reads the weights once")
      ->needs(prompts)
      ->check(Within(size_t{1}, TextBatch::kMostPlaces))
      ->capture_default_str();
  c->add_option("--max-tokens", a.max_new_tokens, "Most tokens to generate")
      ->check(Within(1u, 1u << 20))
      ->capture_default_str();
  c->add_option("--temperature", a.temperature, "Scores are divided by it; 0: always the most likely token")
      ->capture_default_str();
  c->add_option("--top-k", a.top_k, "Keep this many of the most likely tokens; 0: all")->capture_default_str();
  c->add_option("--top-p", a.top_p, "Keep the fewest tokens that together have this probability")
      ->capture_default_str();
  c->add_option("--min-p", a.min_p, "Keep tokens with at least this share of the most likely one's probability")
      ->capture_default_str();
  c->add_option("--repetition-penalty", a.repetition_penalty, "Above 1: tokens that already occur become less likely")
      ->capture_default_str();
  AddRepeated(c, "--stop", a.stop, "The text ends before this one; may be given several times");
  AddOptional(c, "--seed", a.seed, "The same seed gives the same text; default: 1. Not for --private");
  c->add_option("--backend", a.backend, "simd, xnnpack or int8 (docs/small-models.md)")
      ->check(OneOf({"simd", "xnnpack", "int8"}))
      ->capture_default_str();
  c->add_option("--cache", a.cache,
                "Storage of the text's keys and values: f32, or f16 (half the memory, slightly different scores)")
      ->check(OneOf({"f32", "f16"}))
      ->capture_default_str();
  c->add_option("--threads", a.threads,
                "Threads that share the prompt's positions, and the columns and heads of one token; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  c->add_flag("--verify", a.verify,
              "First check every weight against its checksum, which reads the whole file; --private always does so");
  AddPrivateGenerate(c, a);
  chosen.OnCall(c, GenerateCommand, a);
}

}  // namespace wisp::tools
