/* wisp: texts. Encoders compute their vectors, classifiers name their class, decoders continue them. Conventions:
 * wisp.h. The library that only recommends (libwisp-runtime) has none of it. The library for texts (libwisp-text) has
 * everything in libwisp-runtime and the part "Texts".
 *
 *   wisp_text_model* model = NULL;
 *   wisp_text_open("minilm.wisp", NULL, &model, &error);
 *   float vector[384];
 *   wisp_text_embed(model, "a good film", vector, 384, &error);
 *   wisp_text_close(model);
 *
 * `wisp convert` makes models from the folders of other programs, tokenizer included (docs/convert.md). */
#ifndef WISP_PORTS_C_WISP_TEXT_H_
#define WISP_PORTS_C_WISP_TEXT_H_

#include "wisp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Texts (in libwisp and libwisp-text) ------------------------------------------------------------------------- */

typedef struct wisp_text_model wisp_text_model; /* an open model of texts */

/* Opens an encoder, a classifier or a decoder. `options`, which may be NULL: backend, float16_cache (decoders), verify,
 * verified, adapter_path, num_threads, run_tasks and its data are read; any other that is set is WISP_UNSUPPORTED. With
 * WISP_VERIFY_ONCE a large model opens in milliseconds from the second time on. WISP_INVALID_ARGUMENT: the model has no
 * tokenizer. */
WISP_API wisp_code wisp_text_open(const char* path, const wisp_open_options* options, wisp_text_model** model,
                                  wisp_error* error);
WISP_API void wisp_text_close(wisp_text_model* model); /* strings that it returned become invalid */

typedef struct wisp_text_info { /* properties of a model of texts */
  size_t size;
  uint32_t width;       /* length of an embedding; 0: the model is a decoder */
  uint32_t num_classes; /* 0: it is not a classifier */
  uint32_t max_length;  /* tokens of a text, including those that the tokenizer adds around it */
  uint32_t num_tokens;  /* size of the tokenizer's vocabulary */
  int32_t is_decoder;   /* 1: a decoder, for wisp_text_generate; else 0 */
  int32_t not_read;
  uint64_t bytes; /* bytes held beside the mapped file */
} wisp_text_info;
/* Fills `info`, whose size WISP_INIT has set. */
WISP_API wisp_code wisp_text_info_read(const wisp_text_model* model, wisp_text_info* info, wisp_error* error);
/* The name of a class: "" if the model has none, or for an index out of range. Valid until the model is closed. */
WISP_API const char* wisp_text_class_name(const wisp_text_model* model, uint32_t index);

/* Splits a text into tokens as the model reads them, at most max_length. `*count` is the room in `tokens`, and becomes
 * their number. WISP_INVALID_ARGUMENT if that number exceeds the room: then only `*count` is written.
 * WISP_INVALID_DATA: the text is not UTF-8; the sentence has the offset of its first wrong byte. */
WISP_API wisp_code wisp_text_tokenize(wisp_text_model* model, const char* text, int32_t* tokens, size_t* count,
                                      wisp_error* error);

/* Computes the vector of a text: `width` numbers. Tokens beyond max_length are left out. */
WISP_API wisp_code wisp_text_embed(wisp_text_model* model, const char* text, float* vector, size_t width,
                                   wisp_error* error);

/* Computes the probability of each class for a text. */
WISP_API wisp_code wisp_text_classify(wisp_text_model* model, const char* text, float* probabilities,
                                      size_t num_classes, wisp_error* error);

typedef struct wisp_generate_options { /* how a text is continued */
  size_t size;
  uint32_t max_new_tokens;   /* 0: 128 */
  uint32_t top_k;            /* keep this many of the most likely tokens; 0: all */
  double temperature;        /* divides the scores; 0: 1. Set `greedy` for the most likely token */
  double top_p;              /* keep the fewest tokens that hold this probability together; 0: 1 */
  double min_p;              /* keep tokens with at least this fraction of the largest probability */
  double repetition_penalty; /* 0: 1, no penalty */
  uint64_t seed;             /* seed of sampling */
  const char* const* stop;   /* the text ends before the first of these strings */
  size_t num_stop;           /* of `stop` */
  int32_t greedy;            /* 1: always the most likely token */
  int32_t not_read;
} wisp_generate_options;

/* The reason why a text ended. */
typedef enum wisp_ended WISP_ENUM_TYPE {
  WISP_ENDED_LENGTH = 0,  /* max_new_tokens */
  WISP_ENDED_TOKEN = 1,   /* the model's end token */
  WISP_ENDED_STOP = 2,    /* one of `stop` */
  WISP_ENDED_CONTEXT = 3, /* the model has no positions left */
  WISP_ENDED_CALLER = 4   /* on_text returned 0 */
} wisp_ended;

typedef struct wisp_generated { /* a generated text */
  size_t size;
  const char* text;       /* without the prompt; valid until the next call with this model */
  size_t text_bytes;      /* without the final zero */
  uint32_t num_tokens;    /* tokens generated */
  uint32_t prompt_tokens; /* tokens of the prompt */
  wisp_ended ended;       /* why it ended */
  int32_t not_read;
} wisp_generated;

/* Receives a text as it is generated: whole characters, not NUL-terminated. Returns 0 to end the text. */
typedef int32_t (*wisp_on_text)(void* user_data, const char* text, size_t num_bytes);

/* Continues a prompt, token by token. `on_text`, which may be NULL, receives what is new, whole characters without a
 * final NUL, on the caller's thread; it returns 0 to end. `options` and `generated` may be NULL. If a prompt begins
 * with the last prompt and text, only the new part is computed. Sampling is not private: nothing is charged, and
 * weights that learned without a guarantee may reveal what they learned from. For such weights use
 * wisp_private_generate. */
WISP_API wisp_code wisp_text_generate(wisp_text_model* model, const char* prompt, const wisp_generate_options* options,
                                      wisp_on_text on_text, void* user_data, wisp_generated* generated,
                                      wisp_error* error);

/* wisp_on_text for several texts: `prompt` is the index of the text's prompt. */
typedef int32_t (*wisp_on_batch_text)(void* user_data, size_t prompt, const char* text, size_t num_bytes);

/* Continues several prompts at once: each step reads the weights once for all texts in progress, of which there are
 * `at_once` (1 to 256; 0: 16). Prompt i is sampled with the seed options->seed + i, and its text equals, to the bit,
 * what wisp_text_generate makes of it alone with that seed. A text that ends makes room for the next prompt. `on_text`,
 * which may be NULL, receives the prompt's index, and returns 0 to end that text. `generated`, which may be NULL, has
 * room for `num_prompts`, each with its size set (WISP_INIT); the texts are valid until the next call of this function
 * with this model. An error names the prompt. Uses as many threads as the model was opened with. During the call each
 * of the `at_once` texts has a key/value cache for the longest prompt and max_new_tokens. */
WISP_API wisp_code wisp_text_generate_batch(wisp_text_model* model, const char* const* prompts, size_t num_prompts,
                                            const wisp_generate_options* options, uint32_t at_once,
                                            wisp_on_batch_text on_text, void* user_data, wisp_generated* generated,
                                            wisp_error* error);

/* ---- Generating privately (in libwisp alone) -------------------------------------------------------------------- */

/* Samples tokens and charges the ledger before each (docs/texts.md). It protects either what the weights learned from,
 * or the `private_texts` in the prompt of public weights. The prompt itself is not protected. Weights with a guarantee
 * cost nothing. */
typedef struct wisp_private_generator wisp_private_generator;

typedef struct wisp_private_text_options { /* what is protected, and how tokens are sampled */
  size_t size;
  /* ledger, decoding, temperature, top_k, top_p, samples_per_charge; a sample is a token. base_model must be NULL here.
   * A new ledger has WISP_UNIT_INTERACTION unless a unit is given, because decoders learn lines, paragraphs or chunks,
   * whoever wrote them. May be NULL where samples are free. */
  const wisp_private_options* samples;
  /* anchored, or mixed: the public decoder as shipped, with the same tokenizer; must stay open; may be NULL if mixed */
  wisp_text_model* base_model;
  int32_t mix_with_base; /* 1, mixed: mix with the base's distribution instead of the uniform one */
  uint32_t base_top;     /* keep only this many best tokens of the base, or of the public context; 0: all */
  double mixing_floor;   /* mix_with_base: the uniform distribution's share of what is mixed in; 0: 0.1 */
  /* Private texts, each one record; copied. The difference of each from the public context is clipped (samples->clip);
   * differences are summed and divided by `contexts`, a public number: as many as there are texts, or about that. The
   * ledger's unit is WISP_UNIT_INTERACTION, or samples->unit: WISP_UNIT_USER if each text is all that one user
   * wrote. */
  const char* const* private_texts;
  size_t num_private_texts; /* of `private_texts` */
  uint32_t contexts;        /* 0: no private texts */
  int32_t not_read;
  const char* context_before; /* public words before each text; NULL: none */
  const char* context_after;  /* public words between each text and the prompt; NULL: a new line */
  const char* public_text;    /* takes the text's place in the public context; NULL: none */
  const char* dataset;        /* name of the private texts' data set, in the ledger; NULL: the ledger's data set */
} wisp_private_text_options;

/* `model` must stay open until the generator is closed; one thread at a time uses both. WISP_PRIVACY_REFUSED: the
 * sentence says what has no guarantee, or that a ledger is needed. The ledger, its limit and the plan of samples
 * are written with the first text that wisp_private_generate does not refuse. */
WISP_API wisp_code wisp_private_generator_open(wisp_text_model* model, const wisp_private_text_options* options,
                                               wisp_private_generator** generator, wisp_error* error);
WISP_API void wisp_private_generator_close(wisp_private_generator* generator); /* close it before its models */
/* 1: tokens are free; 0: they are charged. */
WISP_API int32_t wisp_private_generator_is_free(const wisp_private_generator* generator);

/* wisp_text_generate with a guarantee. `options`, which may be NULL: max_new_tokens, stop and num_stop are read; any
 * other that is set is WISP_PRIVACY_REFUSED, because it changes the distribution that is charged for.
 * WISP_PRIVACY_REFUSED too, before anything is charged, if the budget has no room for max_new_tokens: the sentence says
 * for how many it has. The text is valid until the next call with this generator. */
WISP_API wisp_code wisp_private_generate(wisp_private_generator* generator, const char* prompt,
                                         const wisp_generate_options* options, wisp_on_text on_text, void* user_data,
                                         wisp_generated* generated, wisp_error* error);

/* ---- Training on texts (in libwisp alone) ----------------------------------------------------------------------- */

/* Defines one record in a file of texts, which is protected as a whole. */
typedef enum wisp_text_record WISP_ENUM_TYPE {
  WISP_TEXT_LINE = 1,      /* a line that is not blank */
  WISP_TEXT_PARAGRAPH = 2, /* the lines between blank ones */
  WISP_TEXT_CHUNK = 3      /* so many bytes of one long text: this protects no person */
} wisp_text_record;

typedef struct wisp_text_records { /* how a file of texts is read */
  size_t size;
  wisp_text_record record; /* required */
  uint32_t chunk_bytes;    /* WISP_TEXT_CHUNK: required, 8 to 1048576; else 0 */
  uint32_t max_length;     /* positions read of a record, the rest is left out; 0: as many as the model has */
  int32_t not_read;
} wisp_text_records;

/* wisp_personalise for a decoder that learns texts. Of the options, log_path is a file of texts, num_records_public the
 * number of records that anybody may know it to have, and unit WISP_UNIT_INTERACTION, or WISP_UNIT_USER if each record
 * is all that one user wrote; session_gap and times_per_second stay 0. Of the result, num_events is the number of texts
 * in the file, bad_rows how many of them the tokenizer rejects, and records_too_short how many have fewer than two
 * tokens. */
WISP_API wisp_code wisp_text_train(const wisp_personalise_options* options, const wisp_text_records* records,
                                   wisp_personalise_result* result, wisp_error* error);

/* The format of a file of labelled texts. */
typedef enum wisp_labelled_format WISP_ENUM_TYPE {
  WISP_LABELLED_LINES = 1, /* label, tab, text; no header */
  WISP_LABELLED_TSV = 2,   /* with a header; no quotes: a tab or a line end ends a field */
  WISP_LABELLED_CSV = 3    /* with a header, and quotes as in RFC 4180; a record is one line */
} wisp_labelled_format;

/* The part of a classifier that trains. */
typedef enum wisp_trains WISP_ENUM_TYPE {
  WISP_TRAINS_HEAD = 1,   /* the pooler, if there is one, and the head: few weights, little memory and noise */
  WISP_TRAINS_BLOCKS = 2, /* everything but the tables of tokens, positions and types */
  WISP_TRAINS_ALL = 3     /* everything */
} wisp_trains;

typedef struct wisp_labelled_texts { /* how labelled texts are read, and what trains on them */
  size_t size;
  /* required, public: two names or more. A label is one of them or, if no name equals it, its number from 0 on. A
   * classifier that training starts from keeps its classes: the same in the same order */
  const char* const* classes;
  size_t num_classes;          /* of `classes` */
  wisp_labelled_format format; /* required */
  wisp_trains trains;          /* required; 0 with adapter_rank or adapter_path: the adapter and its head train */
  uint32_t max_length;         /* tokens read of a text, the rest is left out; 0: as many as the model has */
  int32_t not_read;
  /* names of columns in the header; NULL with WISP_LABELLED_LINES */
  const char* text_column;  /* NULL: "sentence" or "text" */
  const char* label_column; /* NULL: "label" */
} wisp_labelled_texts;

/* wisp_personalise for an encoder that learns to classify texts, or for a classifier that learns further. One labelled
 * text is one record. Of the options, log_path is the file of labelled texts, num_records_public the number of them
 * that anybody may know, and unit WISP_UNIT_INTERACTION, or WISP_UNIT_USER if each text is all that one user wrote;
 * session_gap and times_per_second stay 0. Of the result, num_events is the number of texts in the file and bad_rows
 * how many were left out: malformed, with a label that is no class, or without a token; both are local only.
 * output_path is for wisp_text_open and wisp_text_classify. */
WISP_API wisp_code wisp_classifier_train(const wisp_personalise_options* options, const wisp_labelled_texts* texts,
                                         wisp_personalise_result* result, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif  // WISP_PORTS_C_WISP_TEXT_H_
