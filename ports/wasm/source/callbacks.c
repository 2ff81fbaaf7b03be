/* Callbacks of the library for JavaScript: C functions whose addresses go into the options' structs. So no function is
 * created at run time, which a strict content-security policy would forbid. */
#include <emscripten.h>
#include <stdlib.h>

#include "ports/c/wisp.h"
#include "ports/c/wisp_embed.h"
#include "ports/c/wisp_fleet.h"

/* An answer of a fleet's server. The bytes are freed by whoever asked. */
typedef struct Answer {
  double server_time;
  void* bytes;
  size_t size;
  int32_t status;
} Answer;

/* clang-format off */
EM_JS(int, wisp_wasm_tell_progress, (double step, double num_steps, double loss, double epsilon), {
  const progress = { step: step, numSteps: num_steps, loss: loss, epsilon: epsilon };
  return Module["onProgress"] && Module["onProgress"](progress) ? 1 : 0;
});

EM_JS(void, wisp_wasm_tell_sentence, (int level, const char* sentence), {
  if (Module["onSentence"]) Module["onSentence"](level === 1 ? "warning" : "info", UTF8ToString(sentence));
});

EM_JS(int, wisp_wasm_send, (const char* url, const char* headers, const void* body, size_t size, Answer* out), {
  const answer = Module["onPost"](UTF8ToString(url), UTF8ToString(headers), HEAPU8.subarray(body, body + size));
  if (typeof answer === "number") return answer;
  const bytes = _malloc(answer.bytes.length || 1);
  if (!bytes) return 1;
  HEAPU8.set(answer.bytes, bytes);
  HEAPF64[out >> 3] = answer.time;
  HEAPU32[(out >> 2) + 2] = bytes;
  HEAPU32[(out >> 2) + 3] = answer.bytes.length;
  HEAP32[(out >> 2) + 4] = answer.status;
  return 0;
});

EM_JS(int, wisp_wasm_sign, (const void* message, size_t size, uint8_t* der, size_t capacity), {
  const signature = Module["onSign"](UTF8ToString(message, size));
  if (!signature || signature.length > capacity) return 0;
  HEAPU8.set(signature, der);
  return signature.length;
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

static int Post(void* data, const char* url, const char* headers, const void* body, size_t body_bytes,
                wisp_fleet_sink sink, void* sink_data, int32_t* status, double* server_time) {
  (void)data;
  Answer answer;
  const int ended = wisp_wasm_send(url, headers, body, body_bytes, &answer);
  if (ended != 0) return ended;
  const int refused = sink(sink_data, answer.bytes, answer.size);
  free(answer.bytes);
  *status = answer.status;
  *server_time = answer.server_time;
  return refused != 0 ? 2 : 0;
}

static int Sign(void* data, const void* message, size_t message_bytes, uint8_t* der, size_t capacity, size_t* length) {
  (void)data;
  *length = (size_t)wisp_wasm_sign(message, message_bytes, der, capacity);
  return *length == 0;
}

/* Each call replaces the key. */
EMSCRIPTEN_KEEPALIVE const wisp_fleet_transport* wisp_wasm_fleet_transport(const char* public_key_pem) {
  static wisp_fleet_transport transport = {.size = sizeof(wisp_fleet_transport), .post = Post, .sign = Sign};
  transport.public_key_pem = public_key_pem;
  return &transport;
}
