/* The callback of generated text for JavaScript: a C function, as in callbacks.c. */
#include <emscripten.h>
#include <stddef.h>
#include <stdint.h>

#include "ports/c/wisp_text.h"

/* clang-format off */
EM_JS(int, wisp_wasm_tell_text, (const char* text, size_t num_bytes), {
  return Module["onText"](UTF8ToString(text, num_bytes)) ? 1 : 0;
});
/* clang-format on */

static int32_t OnText(void* user_data, const char* text, size_t num_bytes) {
  (void)user_data;
  return wisp_wasm_tell_text(text, num_bytes);
}

EMSCRIPTEN_KEEPALIVE wisp_on_text wisp_wasm_on_text(void) { return OnText; }
