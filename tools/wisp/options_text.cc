// The options of commands that read or write texts: `wisp generate`, and of train and evaluate those for texts.
#include "tools/wisp/options.h"

namespace wisp::tools {

void AddTrainTexts(CLI::App* c, TrainArguments& a) {
  c->add_option("--texts", a.texts, "File of texts that a decoder learns, in place of --data (docs/texts.md)");
  c->add_option("--record", a.record,
                "What one record is, which is what is protected: line, paragraph (between blank lines), or chunk:N,\n"
                "pieces of N bytes of one long text, which protect no person; in place of the recipe's, or line");
  AddOptional(c, "--max-length", a.max_length,
              "Positions that are read of each text, the rest of it is left out; default: as many as the model has");
  c->add_option("--tokenizer", a.tokenizer,
                "Of fresh weights: a tokenizer.json, a folder with one, or bytes (every byte a token); public");
  c->add_option("--trains", a.trains, "Of a decoder all, or blocks: all but the tables of tokens and positions");
  AddOptional(c, "--lora", a.lora,
              "Train an adapter of this rank beside --model, in a file of its own, in place of the recipe's");
}

void AddEvaluateTexts(CLI::App* c, EvaluateArguments& a) {
  c->add_option("--texts", a.texts, "File of texts, in place of --data");
  c->add_option("--record", a.record, "How it is divided: line, paragraph or chunk:N")->capture_default_str();
  AddOptional(c, "--max-length", a.max_length,
              "Positions that are read of each text; default: as many as the model has");
}

void AddGenerate(CLI::App& app, Chosen& chosen, GenerateArguments& a) {
  CLI::App* c =
      app.add_subcommand("generate",
                         "Go on with a text, token by token. Draws are not private: nothing is charged.\n"
                         "  wisp generate gpt2.wisp --prompt \"Once upon a time\" --temperature 0.8 --top-p 0.95");
  c->add_option("model", a.model, "A decoder that brings its tokenizer (wisp convert)")->required();
  c->add_option("--adapter", a.adapter, "An adapter that was trained beside it");
  c->add_option("--prompt", a.prompt, "The text to go on with")->required();
  c->add_option("--max-tokens", a.max_new_tokens, "Tokens that are generated, at most")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str();
  c->add_option("--temperature", a.temperature, "Scores are divided by it; 0: always the most likely token")
      ->capture_default_str();
  c->add_option("--top-k", a.top_k, "So many of the most likely tokens; 0: all")->capture_default_str();
  c->add_option("--top-p", a.top_p, "The fewest tokens with so much probability together")->capture_default_str();
  c->add_option("--min-p", a.min_p, "Tokens with at least so much of the most likely one's probability")
      ->capture_default_str();
  c->add_option("--repetition-penalty", a.repetition_penalty, "Above 1: tokens that are there already come less often")
      ->capture_default_str();
  c->add_option("--stop", a.stop, "The text ends before this one; may be given several times");
  c->add_option("--seed", a.seed, "The same seed gives the same text")->capture_default_str();
  c->add_option("--backend", a.backend, "simd, xnnpack or int8 (docs/int8.md)")
      ->check(CLI::IsMember({"simd", "xnnpack", "int8"}))
      ->capture_default_str();
  c->add_option("--threads", a.threads, "That share the positions of the prompt; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  chosen.OnCall(c, GenerateCommand, a);
}

}  // namespace wisp::tools
