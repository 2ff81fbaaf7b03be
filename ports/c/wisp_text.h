/* wisp: texts. Encoders make vectors of them, classifiers name a class, decoders go on with them. Conventions as in
 * wisp.h. None of it is in a library that only recommends (libwisp-runtime). One of texts (libwisp-text) has what
 * libwisp-runtime has and the part "Texts".
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

/* ---- Texts (in libwisp and libwisp-text) ------------------------------------------------------------------------- */

typedef struct wisp_text_model wisp_text_model; /* an open model of texts */

/* An encoder, a classifier or a decoder. Of `options`, which may be NULL, are read: backend and half_cache (of a
 * decoder), verify, verified, adapter_path, num_threads, run_tasks and its data. Another that is set is
 * WISP_UNSUPPORTED. A large model opens in milliseconds with WISP_VERIFY_ONCE, from the second time on.
 * WISP_INVALID_ARGUMENT where the model brings no tokenizer. */
WISP_API wisp_code wisp_text_open(const char* path, const wisp_open_options* options, wisp_text_model** model,
                                  wisp_error* error);
WISP_API void wisp_text_close(wisp_text_model* model); /* what it gave is no longer valid */

typedef struct wisp_text_info { /* what a model of texts is */
  size_t size;
  uint32_t width;       /* numbers of an embedding; 0: it is a decoder */
  uint32_t num_classes; /* 0: it is no classifier */
  uint32_t max_length;  /* tokens of a text, those that the tokenizer puts around it included */
  uint32_t num_tokens;  /* that its tokenizer knows */
  int32_t is_decoder;   /* 1: wisp_text_generate, else 0 */
  int32_t not_read;
  uint64_t bytes; /* held beside the mapped file */
} wisp_text_info;
/* Fills `info`, whose size WISP_INIT has set. */
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

typedef struct wisp_generate_options { /* how a text goes on */
  size_t size;
  uint32_t max_new_tokens;   /* 0: 128 */
  uint32_t top_k;            /* so many of the most likely tokens; 0: all */
  double temperature;        /* scores are divided by it; 0: 1. For the most likely token set `greedy` */
  double top_p;              /* the fewest tokens with so much probability together; 0: 1 */
  double min_p;              /* those with at least so much of the most likely one's probability */
  double repetition_penalty; /* 0: 1, none */
  uint64_t seed;             /* of the draws */
  const char* const* stop;   /* the text ends before any of these */
  size_t num_stop;           /* of `stop` */
  int32_t greedy;            /* 1: always the most likely token */
  int32_t not_read;
} wisp_generate_options;

/* Why a text ended. */
typedef enum wisp_ended WISP_ENUM_TYPE {
  WISP_ENDED_LENGTH = 0,  /* max_new_tokens */
  WISP_ENDED_TOKEN = 1,   /* the model's token for an end */
  WISP_ENDED_STOP = 2,    /* one of `stop` */
  WISP_ENDED_CONTEXT = 3, /* the model has no position left */
  WISP_ENDED_CALLER = 4   /* on_text returned 0 */
} wisp_ended;

typedef struct wisp_generated { /* a text that was made */
  size_t size;
  const char* text;       /* without the prompt; valid until the next call with this model */
  size_t text_bytes;      /* without the final zero */
  uint32_t num_tokens;    /* that were generated */
  uint32_t prompt_tokens; /* that were read */
  wisp_ended ended;       /* why it ended */
  int32_t not_read;
} wisp_generated;

/* Told of a text as it is made, whole characters, not ended by a zero. Returns 0 to end the text. */
typedef int32_t (*wisp_on_text)(void* user_data, const char* text, size_t num_bytes);

/* Goes on with a prompt, token by token. `on_text`, which may be NULL, is given what is new, whole characters and no
 * NUL at the end, on the caller's thread; it returns 0 to end. `options` and `generated` may be NULL. A prompt that
 * begins as the last text did costs what is new. Draws are not private: nothing is charged, and weights that learned
 * without a guarantee may show what they learned from. For these: wisp_private_generate. */
WISP_API wisp_code wisp_text_generate(wisp_text_model* model, const char* prompt, const wisp_generate_options* options,
                                      wisp_on_text on_text, void* user_data, wisp_generated* generated,
                                      wisp_error* error);

/* The same of several texts: `prompt` is the index of the text's prompt. */
typedef int32_t (*wisp_on_batch_text)(void* user_data, size_t prompt, const char* text, size_t num_bytes);

/* Goes on with several prompts at once: each step reads the weights once for all that are being made, which are
 * `at_once` (1 to 256; 0: 16). Prompt i draws with options->seed + i, and its text is, to the bit, what
 * wisp_text_generate makes of it alone with that seed. A text that ends makes room for the next prompt. `on_text`,
 * which may be NULL, is told the prompt's index, and returns 0 to end that text. `generated`, which may be NULL, has
 * room for `num_prompts`, each with its size (WISP_INIT); the texts are valid until the next call of this function with
 * this model. An error names the prompt. On as many threads as the model was opened with. While the call runs, each of
 * `at_once` has keys and values for the longest prompt and max_new_tokens. */
WISP_API wisp_code wisp_text_generate_batch(wisp_text_model* model, const char* const* prompts, size_t num_prompts,
                                            const wisp_generate_options* options, uint32_t at_once,
                                            wisp_on_batch_text on_text, void* user_data, wisp_generated* generated,
                                            wisp_error* error);

/* ---- Generating privately (in libwisp alone) -------------------------------------------------------------------- */

/* Draws tokens and charges the ledger before each (docs/texts.md). Either what the weights learned from is protected,
 * or the `private_texts` in the prompt of public weights. The prompt is not. Weights with a guarantee cost nothing. */
typedef struct wisp_private_generator wisp_private_generator;

typedef struct wisp_private_text_options { /* what is protected, and how tokens are drawn */
  size_t size;
  /* ledger, how far draws lean on the model, temperature, top_k, top_p, draws_per_charge; a draw is a token. Its
   * base_model must be NULL. Its unit, where a ledger is made: WISP_UNIT_INTERACTION unless it is given, as decoders
   * learn lines, paragraphs or chunks, whoever wrote them. May be NULL where draws are free. */
  const wisp_private_options* draws;
  /* anchored, or mixed: the public decoder as shipped, with the same tokenizer; must stay open; may be NULL if mixed */
  wisp_text_model* base_model;
  int32_t mix_with_base; /* 1, mixed: with the base's distribution, in the place of the uniform */
  uint32_t base_top;     /* only the so many best tokens of the base, or of the public context; 0: all */
  double mixing_floor;   /* mix_with_base: the uniform's share of what is mixed in; 0: 0.1 */
  /* Private texts, each one record; copied. What they say otherwise than the public context is clipped (draws->clip),
   * added up and divided by `contexts`, a public number: as many as there are texts, or so. The ledger's unit is
   * WISP_UNIT_INTERACTION, or what draws->unit says: WISP_UNIT_USER where each text is all that one user wrote. */
  const char* const* private_texts;
  size_t num_private_texts; /* of `private_texts` */
  uint32_t contexts;        /* 0: there are no private texts */
  int32_t not_read;
  const char* context_before; /* public words before each text; NULL: none */
  const char* context_after;  /* and between it and the prompt; NULL: a new line */
  const char* public_text;    /* in the text's place in the public context; NULL: none */
  const char* dataset;        /* name of the private texts' data set, in the ledger; NULL: that of the ledger */
} wisp_private_text_options;

/* `model` must stay open until the generator is closed; one thread at a time uses both. WISP_PRIVACY_REFUSED: the
 * sentence says what has no guarantee, or that a ledger is needed. The ledger, its limit and a lifetime's plan are
 * written with the first text that wisp_private_generate does not refuse. */
WISP_API wisp_code wisp_private_generator_open(wisp_text_model* model, const wisp_private_text_options* options,
                                               wisp_private_generator** generator, wisp_error* error);
WISP_API void wisp_private_generator_close(wisp_private_generator* generator); /* before its models */
/* 1: tokens are free; 0: they are charged. */
WISP_API int32_t wisp_private_generator_is_free(const wisp_private_generator* generator);

/* As wisp_text_generate. Of `options`, which may be NULL, are read max_new_tokens, stop and num_stop; another that is
 * set is WISP_PRIVACY_REFUSED, for no law is charged for it. WISP_PRIVACY_REFUSED too, before anything is charged,
 * where the budget has no room for max_new_tokens: the sentence says for how many. The text is valid until the next
 * call with this generator. */
WISP_API wisp_code wisp_private_generate(wisp_private_generator* generator, const char* prompt,
                                         const wisp_generate_options* options, wisp_on_text on_text, void* user_data,
                                         wisp_generated* generated, wisp_error* error);

/* ---- Training on texts (in libwisp alone) ----------------------------------------------------------------------- */

/* What one record of a file of texts is: what is protected, as a whole. */
typedef enum wisp_text_record WISP_ENUM_TYPE {
  WISP_TEXT_LINE = 1,      /* a line that is not blank */
  WISP_TEXT_PARAGRAPH = 2, /* the lines between blank ones */
  WISP_TEXT_CHUNK = 3      /* so many bytes of one long text: that protects no person */
} wisp_text_record;

typedef struct wisp_text_records { /* how a file of texts is read */
  size_t size;
  wisp_text_record record; /* required */
  uint32_t chunk_bytes;    /* WISP_TEXT_CHUNK: required, 8 to 1048576; else 0 */
  uint32_t max_length;     /* positions that are read of a record, the rest is left out; 0: as many as the model has */
  int32_t not_read;
} wisp_text_records;

/* wisp_personalise for a decoder that learns texts: of the options log_path is a file of texts, num_users_public how
 * many records anybody may know it to have, and unit WISP_UNIT_INTERACTION, or WISP_UNIT_USER where each record is all
 * that one user wrote; session_gap and times_per_second stay 0. Of the result num_events is the number of texts in the
 * file, bad_rows how many of them no tokenizer takes, and records_too_short those of fewer than two tokens. */
WISP_API wisp_code wisp_text_train(const wisp_personalise_options* options, const wisp_text_records* records,
                                   wisp_personalise_result* result, wisp_error* error);

/* How a file of labelled texts is written. */
typedef enum wisp_labelled_format WISP_ENUM_TYPE {
  WISP_LABELLED_LINES = 1, /* label, tab, text; no header */
  WISP_LABELLED_TSV = 2,   /* with a header; no quotes: a tab or a line end ends a field */
  WISP_LABELLED_CSV = 3    /* with a header, and quotes as in RFC 4180; a record is one line */
} wisp_labelled_format;

/* What of a classifier learns. */
typedef enum wisp_trains WISP_ENUM_TYPE {
  WISP_TRAINS_HEAD = 1,   /* the pooler, where there is one, and the head: few weights, little memory and noise */
  WISP_TRAINS_BLOCKS = 2, /* all but the tables of tokens, positions and types */
  WISP_TRAINS_ALL = 3     /* everything */
} wisp_trains;

typedef struct wisp_labelled_texts { /* how labelled texts are read, and what learns them */
  size_t size;
  /* required, public: two names and more. A label is one of them or, where none is called so, its number from 0 on. A
   * classifier as start keeps its classes: the same in the same order */
  const char* const* classes;
  size_t num_classes;          /* of `classes` */
  wisp_labelled_format format; /* required */
  wisp_trains trains;          /* required; 0 with adapter_rank or adapter_path: the adapter learns, and its head */
  uint32_t max_length;         /* tokens that are read of a text, the rest is left out; 0: as many as the model has */
  int32_t not_read;
  /* the header's name of each; NULL with WISP_LABELLED_LINES */
  const char* text_column;  /* NULL: "sentence" or "text" */
  const char* label_column; /* NULL: "label" */
} wisp_labelled_texts;

/* wisp_personalise for an encoder that learns to name the classes of texts, or for a classifier that learns further.
 * One labelled text is one record. Of the options log_path is the file of labelled texts, num_users_public how many
 * anybody may know it to have, and unit WISP_UNIT_INTERACTION, or WISP_UNIT_USER where each text is all that one
 * user wrote; session_gap and times_per_second stay 0. Of the result num_events is the number of texts in the file
 * and bad_rows how many were left out: malformed, of a label that is no class, or without a token; both are local
 * only. output_path is for wisp_text_open and wisp_text_classify. */
WISP_API wisp_code wisp_classifier_train(const wisp_personalise_options* options, const wisp_labelled_texts* texts,
                                         wisp_personalise_result* result, wisp_error* error);

#ifdef __cplusplus
}
#endif

#endif  // WISP_PORTS_C_WISP_TEXT_H_
