/* Callbacks of the library for JavaScript: C functions whose addresses go into the options' structs. So no function is
 * created at run time, which a strict content-security policy would forbid. */
#include <emscripten.h>

#include "ports/c/wisp.h"
#include "ports/c/wisp_embed.h"

/* clang-format off */
EM_JS(int, wisp_wasm_tell_progress, (double step, double num_steps, double loss, double epsilon), {
  const progress = { step: step, numSteps: num_steps, loss: loss, epsilon: epsilon };
  return Module["onProgress"] && Module["onProgress"](progress) ? 1 : 0;
});

EM_JS(void, wisp_wasm_tell_sentence, (int level, const char* sentence), {
  if (Module["onSentence"]) Module["onSentence"](level === 1 ? "warning" : "info", UTF8ToString(sentence));
});
/* clang-format on */

static int OnProgress(const wisp_progress* progress, void* user_data) {
  (void)user_data;
  const double step = (double)progress->step, num_steps = (double)progress->num_steps;
  return wisp_wasm_tell_progress(step, num_steps, progress->loss, progress->epsilon);
}

static void OnSentence(void* data, wisp_log_level level, const char* sentence) {
  (void)data;
  wisp_wasm_tell_sentence((int)level, sentence);
}

EMSCRIPTEN_KEEPALIVE wisp_progress_callback wisp_wasm_progress(void) { return OnProgress; }

EMSCRIPTEN_KEEPALIVE const wisp_logger* wisp_wasm_logger(void) {
  static const wisp_logger kLogger = {.size = sizeof(wisp_logger), .write = OnSentence};
  return &kLogger;
}
