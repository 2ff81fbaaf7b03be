// The options of `wisp convert`, `export` and `embed`.
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

void AddConvert(CLI::App& app, Chosen& chosen, ConvertArguments& a) {
  CLI::App* c = app.add_subcommand(
      "convert",
      "Make a model of a folder of Hugging Face, or of a PyTorch state_dict of our recommender in a\n"
      "safetensors file (docs/convert.md).\n"
      "  wisp convert all-MiniLM-L6-v2 --out m.wisp --dataset \"what it learned from\"\n"
      "  wisp convert m.safetensors --out m.wisp --item-keys keys.txt --dataset \"what it learned from\"");
  c->add_option("in,--in", a.in,
                "Folder with config.json and model.safetensors, or a safetensors file. F16 and BF16 become F32")
      ->required();
  c->add_option("--out", a.out, "Model file to write")->required();
  c->add_option("--report", a.report, "For a folder: JSON file to write, with a report on each tensor");
  c->add_option("--max-length", a.max_length,
                "For a folder: most tokens of a text; 0: as many as the model has positions")
      ->capture_default_str();
  c->add_option("--pooling", a.pooling,
                "For a folder with an encoder: how it represents a text. first (the first position), mean, pooler, or\n"
                "folder: as the folder says, else its pooler, else first")
      ->check(OneOf({"folder", "first", "mean", "pooler"}))
      ->capture_default_str();
  c->add_flag("--allow-seen", a.allow_seen,
              "For a recommender: its lists may hold items of the history, because people repeat their choices, as in\n"
              "cafes, groceries and music");
  c->add_flag("--no-tokenizer", a.no_tokenizer,
              "For a folder: leave its tokenizer out, so that texts are given as ids");
  c->add_option("--config", a.config, "A recipe, or the object of its \"architecture\", in place of the file's own");
  c->add_option("--item-keys", a.item_keys,
                "File of the items' keys, one on each line, in the order of the table; default: the file's own");
  c->add_option("--item-names", a.item_names, "File of readable names, with key<TAB>name on each line");
  c->add_option(
      "--dataset", a.dataset,
      "Name of the data that the weights learned from; without a name, no private run may begin with the model");
  chosen.OnCall(c, Convert, a);
}

void AddExport(CLI::App& app, Chosen& chosen, ExportArguments& a) {
  CLI::App* c = app.add_subcommand("export",
                                   "Write a model as a PyTorch state_dict, a safetensors file, or as a folder of "
                                   "Hugging Face.\n"
                                   "  wisp export m.wisp --out m.safetensors\n"
                                   "  wisp export encoder.wisp --family bert --out folder");
  c->add_option("model,--model", a.model, "Model file of a recommender or decoder; with --family, of any kind")
      ->required();
  c->add_option("--out", a.out,
                "safetensors file to write; with --family it may be a folder, which also gets config.json")
      ->required();
  c->add_option(
      "--family", a.family,
      "Names of Hugging Face: bert, roberta, distilbert, gpt2, llama or qwen2. An encoder or a classifier needs it");
  chosen.OnCall(c, Export, a);
}

void AddEmbed(CLI::App& app, Chosen& chosen, EmbedArguments& a) {
  CLI::App* c = app.add_subcommand("embed",
                                   "Write the representation of each text, a vector.\n"
                                   "  wisp embed minilm.wisp --text \"a good film\" --json");
  c->add_option("model,--model", a.model, "Model file of an encoder or a classifier")->required();
  c->add_option("--adapter", a.adapter, "An adapter that was trained with it");
  AddRepeated(c, "--text", a.texts, "A text; may be given several times");
  c->add_option("--input", a.input, "File of texts, one on each line, in place of --text; blank lines are left out");
  auto* ids = AddRepeated(c, "--ids", a.ids,
                          "Token ids of a text, separated by commas, in place of --text; may be given several times");
  AddOptional(c, "--max-length", a.max_length,
              "Most tokens of a text that are read; default: as many as the model reads")
      ->excludes(ids);
  c->add_option("--threads", a.threads, "Threads that share the positions of a text; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  AddDevice(c, a.device);
  chosen.OnCall(c, Embed, a);
}

}  // namespace

void AddExchange(CLI::App& app, Chosen& chosen, ExchangeArguments& arguments) {
  AddConvert(app, chosen, arguments.convert);
  AddExport(app, chosen, arguments.export_);
  AddEmbed(app, chosen, arguments.embed);
}

}  // namespace wisp::tools
