/* wisp: texts. Encoders make vectors of them, classifiers name a class, decoders go on with them. Conventions as in
 * wisp.h. None of it is in a library that only recommends (libwisp-runtime).
 *
 *   wisp_text_model* model = NULL;
 *   wisp_text_open("minilm.wisp", NULL, &model, &error);
 *   float vector[384];
 *   wisp_text_embed(model, "a good film", vector, 384, &error);
 *   wisp_text_close(model);
 *
 * Models are made of folders of other programs by `wisp convert` (docs/convert.md), and bring their tokenizer along. */
#ifndef WISP_PORTS_C_WISP_TEXT_H_
#define WISP_PORTS_C_WISP_TEXT_H_

#include "wisp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Texts (not in a library that only recommends) -------------------------------------------------------------- */

typedef struct wisp_text_model wisp_text_model;

/* An encoder, a classifier or a decoder. Of `options`, which may be NULL, are read: backend (of a decoder), verify
 * (without WISP_VERIFY_ONCE), adapter_path, num_threads, run_tasks and its data. Another that is set is
 * WISP_UNSUPPORTED. WISP_INVALID_ARGUMENT where the model brings no tokenizer. */
WISP_API wisp_code wisp_text_open(const char* path, const wisp_open_options* options, wisp_text_model** model,
                                  wisp_error* error);
WISP_API void wisp_text_close(wisp_text_model* model);

typedef struct wisp_text_info {
  size_t size;
  uint32_t width;       /* numbers of an embedding; 0: it is a decoder */
  uint32_t num_classes; /* 0: it is no classifier */
  uint32_t max_length;  /* tokens of a text, those that the tokenizer puts around it included */
  uint32_t num_tokens;
  int32_t is_decoder; /* 1: wisp_text_generate, else 0 */
  int32_t not_read;
  uint64_t bytes; /* held beside the mapped file */
} wisp_text_info;
WISP_API wisp_code wisp_text_info_read(const wisp_text_model* model, wisp_text_info* info, wisp_error* error);
/* "" if the model carries none, or for an index out of range. Valid until the model is closed. */
WISP_API const char* wisp_text_class_name(const wisp_text_model* model, uint32_t index);

/* The tokens of a text, as the model reads them, at most max_length: `*count` is how many there is room for, and
 * becomes how many there are. WISP_INVALID_ARGUMENT where there are more than there is room for: then nothing is
 * written but `*count`. WISP_INVALID_DATA: the text is not UTF-8, with the offset of its first wrong byte. */
WISP_API wisp_code wisp_text_tokenize(wisp_text_model* model, const char* text, int32_t* tokens, size_t* count,
                                      wisp_error* error);

/* The vector of a text: `width` numbers. What does not fit max_length tokens is left out. */
WISP_API wisp_code wisp_text_embed(wisp_text_model* model, const char* text, float* vector, size_t width,
                                   wisp_error* error);

/* The probability of each class of a text. */
WISP_API wisp_code wisp_text_classify(wisp_text_model* model, const char* text, float* probabilities,
                                      size_t num_classes, wisp_error* error);

typedef struct wisp_generate_options {
  size_t size;
  uint32_t max_new_tokens;   /* 0: 128 */
  uint32_t top_k;            /* so many of the most likely tokens; 0: all */
  double temperature;        /* scores are divided by it; 0: 1. For the most likely token set `greedy` */
  double top_p;              /* the fewest tokens with so much probability together; 0: 1 */
  double min_p;              /* those with at least so much of the most likely one's probability */
  double repetition_penalty; /* 0: 1, none */
  uint64_t seed;
  const char* const* stop; /* the text ends before any of these */
  size_t num_stop;
  int32_t greedy; /* 1: always the most likely token */
  int32_t not_read;
} wisp_generate_options;

typedef enum wisp_ended WISP_ENUM_TYPE {
  WISP_ENDED_LENGTH = 0,  /* max_new_tokens */
  WISP_ENDED_TOKEN = 1,   /* the model's token for an end */
  WISP_ENDED_STOP = 2,    /* one of `stop` */
  WISP_ENDED_CONTEXT = 3, /* the model has no position left */
  WISP_ENDED_CALLER = 4   /* on_text returned 0 */
} wisp_ended;

typedef struct wisp_generated {
  size_t size;
  const char* text; /* without the prompt; valid until the next call with this model */
  size_t text_bytes;
  uint32_t num_tokens;    /* that were generated */
  uint32_t prompt_tokens; /* that were read */
  wisp_ended ended;
  int32_t not_read;
} wisp_generated;

/* Goes on with a prompt, token by token. `on_text`, which may be NULL, is given what is new, whole characters and no
 * NUL at the end, on the caller's thread; it returns 0 to end. `options` and `generated` may be NULL. A prompt that
 * begins as the last text did costs what is new. Draws are not private: nothing is charged, and weights that learned
 * without a guarantee may show what they learned from. */
typedef int32_t (*wisp_on_text)(void* user_data, const char* text, size_t num_bytes);
WISP_API wisp_code wisp_text_generate(wisp_text_model* model, const char* prompt, const wisp_generate_options* options,
                                      wisp_on_text on_text, void* user_data, wisp_generated* generated,
                                      wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif  // WISP_PORTS_C_WISP_TEXT_H_
