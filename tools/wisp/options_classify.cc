// The options of `wisp classify`, and those that `wisp train` and `wisp evaluate` have for labelled texts.
#include "runtime/train/run/run_spec.h"
#include "tools/wisp/options.h"

namespace wisp::tools {

void AddTrainLabelled(CLI::App* c, TrainArguments& a) {
  c->add_option("--labelled", a.labelled,
                "File of labelled texts that a classifier learns, in place of --data; label<TAB>text lines, or TSV or "
                "CSV with a header (--format)");
  AddField(c, a.given, "data.text_column", RunKind::kClasses);
  AddField(c, a.given, "data.label_column", RunKind::kClasses);
  AddField(c, a.given, "dp_fp.mode", RunKind::kClasses);
  c->add_option("--vocabulary", a.vocabulary, "File of tokens that anybody may know, one on each line");
}

void AddEvaluateLabelled(CLI::App* c, EvaluateArguments& a) {
  c->add_option("--labelled", a.labelled, "File of labelled texts, in place of --data, as for wisp train");
  c->add_option("--text-column", a.text_column, "Name of the column of texts");
  c->add_option("--label-column", a.label_column, "Name of the column of labels");
}

void AddClassify(CLI::App& app, Chosen& chosen, ClassifyArguments& a) {
  CLI::App* c = app.add_subcommand("classify",
                                   "Predict the class of each text, with its probability.\n"
                                   "  wisp classify --model sst2.wisp --text \"a charming film\"");
  c->add_option("--model", a.model, "Classifier file")->required();
  c->add_option("--adapter", a.adapter, "An adapter that was trained with it");
  AddRepeated(c, "--text", a.texts, "A text; may be given several times");
  c->add_option("--input", a.input, "File of texts, one on each line; blank lines are left out");
  AddOptional(c, "--max-length", a.max_length,
              "Most tokens of a text that are read; default: as many as the model reads");
  c->add_option("--threads", a.threads, "Threads that share the positions of a text; 0: up to 4")
      ->check(ThreadsRange())
      ->capture_default_str();
  AddDevice(c, a.device);
  chosen.OnCall(c, Classify, a);
}

}  // namespace wisp::tools
