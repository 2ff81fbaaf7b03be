// The options of `wisp convert` and `wisp embed`.
#include "tools/wisp/options.h"

namespace wisp::tools {
namespace {

void AddConvert(CLI::App& app, Chosen& chosen, ConvertArguments& a) {
  CLI::App* c =
      app.add_subcommand("convert",

                         "Import, export, compress or merge a model (docs/convert.md). A wisp model is exported, "
                         "compressed or merged; any other is imported.\n"
                         "  wisp convert models/cafe.wisp --out cafe.safetensors\n"
                         "  wisp convert gpt2.wisp --int8 --out gpt2-int8.wisp\n"
                         "  wisp convert base.wisp --adapter mine.wisp --out merged.wisp\n"
                         "  wisp convert all-MiniLM-L6-v2 --out minilm.wisp --dataset \"what it learned from\"");
  c->add_option("in,--in", a.in,
                "A wisp model, a folder with config.json and model.safetensors, or a safetensors file. F16 and BF16\n"
                "become F32")
      ->required();
  c->add_option("--out", a.out, "File to write; for an export one that ends in .safetensors, or with --family a folder")
      ->required();
  c->add_option("--adapter", a.adapter, "Merge the model and this adapter, which was trained with it, into one model");
  c->add_flag("--f16", a.f16, "Compress: the tables of items and positions as float16");
  c->add_flag("--int8", a.int8, "Compress: the weights of layers and of items in blocks of 8-bit integers");
  c->add_flag("--int4", a.int4,
              "Compress: the weights of layers in blocks of 4-bit integers, those of items in blocks of 8-bit ones");
  c->add_flag("--panels", a.panels,
              "Keep weights unrounded, in the order of the products, so that a processor needs no copy of them\n"
              "(docs/small-models.md)");
  c->add_option("--family", a.family,
                "Export by the names of Hugging Face: bert, roberta, distilbert, gpt2, llama or qwen2; --out may be a\n"
                "folder, which also gets config.json. An encoder or a classifier needs it");
  c->add_option("--dataset", a.dataset,
                "Import: name of the data that the weights learned from; without a name, no private run may begin\n"
                "with the model");
  c->add_option("--report", a.report, "For a folder: JSON file to write, with a report on each tensor");
  c->add_option("--max-length", a.max_length,
                "For a folder: most tokens of a text; 0: as many as the model has positions")
      ->capture_default_str();
  c->add_option("--pooling", a.pooling,
                "For a folder with an encoder: how it represents a text. first (the first position), mean, pooler, or\n"
                "folder: as the folder says, else its pooler, else first")
      ->check(OneOf({"folder", "first", "mean", "pooler"}))
      ->capture_default_str();
  c->add_flag("--no-tokenizer", a.no_tokenizer,
              "For a folder: leave its tokenizer out, so that texts are given as ids");
  c->add_flag("--allow-seen", a.allow_seen,
              "For a recommender: its lists may hold items of the history, because people repeat their choices, as in\n"
              "cafes, groceries and music");
  c->add_option("--config", a.config,
                "For a recommender: a recipe, or the object of its \"architecture\", in place of the file's own");
  c->add_option("--item-keys", a.item_keys,
                "For a recommender: file of the items' keys, one on each line, in the order of the table; default:\n"
                "the file's own");
  c->add_option("--item-names", a.item_names,
                "For a recommender: file of readable names, with key<TAB>name on each line");
  chosen.OnCall(c, Convert, a);
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
  AddEmbed(app, chosen, arguments.embed);
}

}  // namespace wisp::tools
